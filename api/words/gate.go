package words

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"interlock/agent"
	"interlock/api/visible"
)

// Rules are what a verdict must fulfil beside the role.
func Rules(g agent.Gate) string {
	text := ""
	if g.Quorum > 1 {
		text += fmt.Sprintf(", %d different persons", g.Quorum)
	}
	if g.Distinct {
		text += ", none of those who asked"
	}
	return text
}

// Approvals say how many have approved, of how many.
func Approvals(g agent.Gate) string {
	if g.Quorum <= 1 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", len(g.Approvals), g.Quorum)
}

// AskedBy is who asked first: who edited it, or whom the run serves.
func AskedBy(g agent.Gate) string {
	if len(g.Askers) == 0 {
		return "-"
	}
	return g.Askers[0]
}

// Asked are the fields that an answer may set, with the schema of each.
func Asked(g agent.Gate) agent.JSON {
	var schema struct {
		Properties agent.JSON `json:"properties"`
	}
	if json.Unmarshal(g.Schema, &schema) != nil {
		return nil
	}
	return schema.Properties
}

// Origin says where a field's value comes from, and whether the user has
// confirmed it.
func Origin(run *agent.Run, field string) string {
	p, ok := run.Provenance[field]
	if !ok {
		return "never set"
	}
	from := map[string]string{
		"start": "given at the start", "user": "in the user's own words", "model": "set by the model",
		"reviewer": "set by a reviewer", "system": "set by a backend", "follows": "cleared with the field that it follows",
		agent.SourceRepair: "as the repaired run ended", agent.SourceRollback: "empty again, since its turn was rolled back",
	}[p.Source]
	if p.Source == agent.SourceAmend {
		from = "set from outside by " + p.By
	}
	if p.Source == "tool" {
		from = "a result of step " + p.Step
		if s := slices.IndexFunc(run.Steps, func(s agent.Step) bool { return s.ID == p.Step }); s >= 0 {
			from = run.Steps[s].Tool + "'s result (step " + p.Step + ")"
		}
	}
	if p.Source == agent.SourceAmend {
		from = "set from outside by " + p.By
	}
	if p.Source == "user" && p.Turn > 0 {
		from += fmt.Sprintf(" (turn %d)", p.Turn)
	}
	if c, ok := run.Confirmed[field]; ok {
		from += fmt.Sprintf(", confirmed by %q", c.Quote)
	}
	return from
}

// Deciders says who may decide about a gate.
func Deciders(g agent.Gate) string {
	if len(g.Roles) == 0 {
		return "the run's user"
	}
	return "role " + strings.Join(g.Roles, " or ")
}

// ByWhom is who closed a gate and why; where nobody did, only why.
func ByWhom(g agent.Gate) string {
	if g.By == nil {
		return visible.Inline(g.Reason)
	}
	return visible.Inline("by " + Principal(g.By, g.Verified) + Because(g.Reason))
}

// Principal names who acted. Nobody has checked an unverified one.
func Principal(p *agent.Principal, verified bool) string {
	if p == nil {
		return "nobody"
	}
	name := p.Subject
	if len(p.Roles) > 0 {
		name += " (" + strings.Join(p.Roles, ", ") + ")"
	}
	if !verified {
		name += ", unverified"
	}
	return name
}

// Because is a reason behind what it is of, where there is one.
func Because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// Question is what a customer is asked, with the values that code shows.
func Question(g agent.Gate) string {
	var shown []string
	for _, f := range g.Reads {
		shown = append(shown, f+" = "+Value(g.Shown[f]))
	}
	if len(shown) == 0 {
		return g.Title
	}
	return g.Title + " (" + strings.Join(shown, ", ") + ")"
}
