package web

import (
	"fmt"
	"strings"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/words"
)

const actGate = access.GateGet

// sentenceOf says what is decided about.
func sentenceOf(g agent.Gate, run *agent.Run) string {
	switch g.Kind {
	case agent.KindAsk:
		return "The agent " + run.Agent + " asks " + run.User + "."
	case agent.KindDoubt:
		return "Interlock may have run " + g.Tool + " of agent " + run.Agent + " for " + run.User + ", and nobody knows whether it happened."
	case agent.KindMove:
		return "Interlock will make a move of agent " + run.Agent + " for " + run.User + "."
	}
	return "Interlock will run " + g.Tool + " of agent " + run.Agent + " for " + run.User + "."
}

// how says how a gate was closed, and by whom.
func how(g agent.Gate) string {
	text := "closed: " + string(g.Status)
	if g.By != nil {
		text = "decided by " + words.Principal(g.By, g.Verified) + ": " + string(g.Status)
	}
	if g.Reason != "" {
		text += " (" + g.Reason + ")"
	}
	return text
}

// outcomes say what happens on each verdict, and without one.
func outcomes(g agent.Gate, run *agent.Run) []outcomeView {
	if g.Kind == agent.KindAsk {
		out := []outcomeView{{"Answer", "The agent is told at once. A yes binds to the values as they are shown here: if one changes, it is void."}}
		return append(out, lapse(g)...)
	}
	if g.Kind == agent.KindDoubt {
		return []outcomeView{
			{"It happened", "The step is done with the result that you give, and the ledger has it so for good."},
			{"It did not happen", "The step has failed, and the ledger has it so; or it runs again, by the protocol of its tool."}}
	}
	what := "Interlock runs " + g.Tool + " once, with exactly these arguments"
	if g.Kind == agent.KindMove {
		what = "The move is made, if its condition still holds"
	}
	if left := max(g.Quorum, 1) - len(g.Approvals); left > 1 {
		more := "1 more is needed"
		if left > 2 {
			more = fmt.Sprintf("%d more are needed", left-1)
		}
		what = "Your approval is counted; " + more + ", and then " + what
	}
	out := []outcomeView{
		{"Approve", what + ". If a value shown here changes before, the approval is void."},
		{"Reject", "It does not run, now or later: the same call is refused as long as " + unchanged(g) + ", until a person lifts that ruling. The model and the user are told the reason."},
		{"Return", "It does not run, and nothing is remembered. The model is told your note, and may propose something else."},
	}
	if len(g.Edit) > 0 && !undoes(g, run) {
		out = append(out, outcomeView{"Edit", "A call of " + g.Tool + " with your arguments takes its place. The policy is judged anew of it: where you may decide alone it runs, else others are asked."})
	}
	if g.TakeBack > 0 {
		out = append(out, outcomeView{"Second thoughts", "A verdict that decides takes effect after " + lasting(g.TakeBack) + ". Until then whoever gave it can take it back, and the gate is open as before."})
	}
	return append(out, lapse(g)...)
}

func unchanged(g agent.Gate) string {
	if len(g.Reads) == 0 {
		return "this run lasts"
	}
	return strings.Join(g.Reads, " and ") + verb(len(g.Reads))
}

func verb(n int) string {
	if n == 1 {
		return " is unchanged"
	}
	return " are unchanged"
}

// lapse says what happens if nobody decides.
func lapse(g agent.Gate) (out []outcomeView) {
	if e := g.Escalation; e != nil && !e.Done {
		out = append(out, outcomeView{"Escalation", "From " + words.Stamp(e.At) + " on, role " + strings.Join(e.Roles, " or ") + " may decide too."})
	}
	switch {
	case g.ExpiresAt != nil:
		out = append(out, outcomeView{"Nobody decides", "It expires at " + words.Stamp(*g.ExpiresAt) + ": it does not run, and nothing is remembered. Expiry never approves."})
	default:
		out = append(out, outcomeView{"Nobody decides", "It waits: it does not expire."})
	}
	return out
}

// undoes reports a gate about an undo, which has nothing to edit.
func undoes(g agent.Gate, run *agent.Run) bool {
	for _, s := range run.Steps {
		if s.ID == g.StepID() {
			return s.By == agent.ByUndo
		}
	}
	return false
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
