package api

import (
	"context"
	"net/http"
	"time"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/desk"
	"interlock/api/visible"
	"interlock/signals"
	"interlock/store"
)

// GateLine is a gate with the run that it stands in.
type GateLine struct {
	Address    string     `json:"address"`
	FirstRunID string     `json:"first_run_id,omitempty"`
	Agent      string     `json:"agent"`
	Key        string     `json:"key"`
	Gate       agent.Gate `json:"gate"`
	Assigned   *Assigned  `json:"assigned,omitempty" doc:"who looks at it at the moment"`
	// Misleading is for whoever shows the gate to a person.
	Misleading []string `json:"misleading,omitempty" doc:"what its texts hold that does not show as what it is: show those characters escaped, and say so"`
}

func gateLineOf(r store.GateRow, d desk.Desk) GateLine {
	tenant, _, key, _ := signals.SplitAddress(r.Address)
	assigned := assignedOf(d, store.Chain{Tenant: tenant, Address: r.Address, FirstRunID: r.FirstRunID}, r.Gate.ID)
	return GateLine{r.Address, r.FirstRunID, r.Agent, key, r.Gate, assigned, visible.Gate(r.Gate)}
}

// GatePage is a page of gates.
type GatePage struct {
	Gates []GateLine `json:"gates"`
	Next  string     `json:"next_page_token,omitempty" doc:"absent on the last page"`
}

// VerdictBody is what a person decides about a gate as it was shown to them.
type VerdictBody struct {
	Digest  string      `json:"digest" minLength:"1" maxLength:"128" doc:"of the gate as it was shown: if that has changed, the verdict decides nothing"`
	Verdict string      `json:"verdict" enum:"approve,reject,return,edit,take_back,answer,happened,did_not_happen"`
	Reason  string      `json:"reason,omitempty" maxLength:"1000" doc:"needed but for approve and answer"`
	Args    agent.JSON  `json:"args,omitempty" doc:"edit: the new arguments, whole"`
	Answer  *AnswerBody `json:"answer,omitempty" doc:"answer: a yes or no, values of fields, or both"`
	Result  agent.JSON  `json:"result,omitempty" doc:"happened: what the tool would have answered"`
	Again   bool        `json:"again,omitempty" doc:"did_not_happen: run it again"`
	AsUser  string      `json:"as_user,omitempty" maxLength:"200"`
}

// AnswerBody is a user's answer to a question. False, 0 and "" are answers.
type AnswerBody struct {
	Confirm *bool      `json:"confirm,omitempty" doc:"whether the values shown are right"`
	Fields  agent.JSON `json:"fields,omitempty" doc:"an object of the fields that the question asks for"`
}

// DecidedGate is what became of a verdict.
type DecidedGate struct {
	Address string        `json:"address"`
	ID      string        `json:"id"`
	Receipt agent.Receipt `json:"receipt"`
}

type gatesInput struct {
	Paged
	Role   string `query:"role" maxLength:"200" doc:"only gates that this role may decide"`
	Agent  string `query:"agent" maxLength:"64"`
	Status string `query:"status" enum:"open,approved,rejected,returned,edited,answered,resolved,expired,void,withdrawn,any" default:"open"`
	Older  string `query:"older_than" maxLength:"20" doc:"only gates that were opened so long ago, such as 4h"`
}

// GatePath names a gate in a path.
type GatePath struct {
	RunPath
	Gate string `path:"gate" maxLength:"100" doc:"the gate's id, such as 3.1"`
}

type verdictInput struct {
	GatePath
	Keyed
	Body VerdictBody
}

func (s *Server) gateRoutes() {
	handle(s, Route{Method: http.MethodGet, Path: "/v1/gates", ID: "list-gates", Tag: "gates", Summary: "List the tenant's gates, oldest first", Act: access.GateList}, s.listGates)
	handle(s, Route{Method: http.MethodGet, Path: "/v1/runs/{agent}/{key}/gates/{gate}", ID: "get-gate", Tag: "gates", Summary: "Get a gate whole", Act: access.GateGet}, s.getGate)
	handle(s, Route{Method: http.MethodPost, Path: "/v1/runs/{agent}/{key}/gates/{gate}/verdict", ID: "decide-gate", Tag: "gates", Summary: "Decide about a gate as it was shown",
		Act: access.Verdict, Acts: true}, s.decide)
}

func (s *Server) listGates(ctx context.Context, c *call, in *gatesInput) (*body[GatePage], error) {
	f := store.GateFilter{Agent: in.Agent, Role: in.Role, After: in.Token, Limit: in.Size + 1}
	if in.Status != "any" {
		f.Status = agent.GateStatus(in.Status)
	}
	if in.Older != "" {
		age, err := time.ParseDuration(in.Older)
		if err != nil || age < 0 {
			return nil, agent.Errorf(agent.CodeInvalid, "older_than %q is no age: give a duration such as 4h", in.Older)
		}
		f.Before = s.now().Add(-age)
	}
	rows, err := s.reads.GateRows(ctx, c.caller.Tenant, f)
	if err != nil {
		return nil, err
	}
	d, err := s.desk(ctx, c.caller.Tenant)
	if err != nil {
		return nil, err
	}
	rows, more := cut(rows, in.Size)
	page, all := GatePage{Gates: []GateLine{}}, &store.Redactions{Reader: s.reads}
	for _, r := range rows {
		page.Gates = append(page.Gates, s.lineOfGate(ctx, c, r, d, all))
	}
	if more {
		page.Next = rows[len(rows)-1].Cursor
	}
	return &body[GatePage]{page}, nil
}

// gate finds a gate, and checks that the caller may do to it what they ask for.
func (s *Server) gate(ctx context.Context, c *call, in GatePath, v agent.VerdictValue) (string, store.GateRow, error) {
	none := store.GateRow{}
	address, err := c.address(in.Agent, in.Key)
	if err != nil {
		return "", none, err
	}
	on := access.On{Tenant: c.caller.Tenant, Run: address, AsUser: c.asUser}
	if on.User, err = s.userOf(ctx, c.caller.Tenant, address); err != nil {
		return "", none, err
	}
	if err := access.Check(c.caller, c.act, on); err != nil { // before it is known whether there is such a gate
		return "", none, err
	}
	row, err := s.runs.Gate(ctx, address, in.Gate)
	if err != nil {
		return "", none, err
	}
	on.Gate = &access.OnGate{Kind: row.Gate.Kind, Roles: s.deciders(row.Gate), Verdict: v}
	if err = access.Check(c.caller, c.act, on); err == nil {
		c.run = address
	}
	return address, row, err
}

// lineOfGate is a gate for the caller: whole where they decide about it.
func (s *Server) lineOfGate(ctx context.Context, c *call, r store.GateRow, d desk.Desk, all *store.Redactions) GateLine {
	line := gateLineOf(r, d)
	g := r.Gate
	g.Roles = s.deciders(g)
	if access.Decides(c.caller, g, access.On{Tenant: c.caller.Tenant, Run: r.Address}) {
		return line
	}
	return agent.Redacted(all.Of(ctx, store.Chain{Tenant: c.caller.Tenant, Address: r.Address, FirstRunID: r.FirstRunID}), line)
}

// deciders are the roles that may decide a gate now.
func (s *Server) deciders(g agent.Gate) []string {
	if e := g.Escalation; e != nil && !e.Done && !s.now().Before(e.At) {
		return append(append([]string(nil), g.Roles...), e.Roles...)
	}
	return g.Roles
}

func (s *Server) getGate(ctx context.Context, c *call, in *GatePath) (*body[GateLine], error) {
	_, row, err := s.gate(ctx, c, *in, "")
	if err != nil {
		return nil, err
	}
	d, err := s.desk(ctx, c.caller.Tenant)
	c.redacted = true
	return &body[GateLine]{s.lineOfGate(ctx, c, row, d, &store.Redactions{Reader: s.reads})}, err
}

func (s *Server) decide(ctx context.Context, c *call, in *verdictInput) (*body[DecidedGate], error) {
	b := in.Body
	c.asUser = b.AsUser
	v := signals.Verdict{ID: c.key, Gate: in.Gate, Digest: b.Digest, Verdict: agent.VerdictValue(b.Verdict), Reason: b.Reason, Args: b.Args, Result: b.Result,
		Again: b.Again, TraceID: c.trace}
	if b.Answer != nil {
		v.Answer = &agent.Answer{Confirm: b.Answer.Confirm, Fields: b.Answer.Fields}
	}
	v.Principal = c.principal()
	address, _, err := s.gate(ctx, c, in.GatePath, v.Verdict)
	if err != nil {
		return nil, err
	}
	r, err := s.runs.Decide(ctx, address, v)
	if err != nil {
		return nil, s.notDecided(ctx, address, v, err)
	}
	if p := s.void(ctx, c, address, v, r); p != nil {
		return nil, p
	}
	return &body[DecidedGate]{DecidedGate{address, c.key, r}}, nil
}
