package web

import (
	"net/http"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/desk"
	"interlock/store"
)

// lookView is who looks at a gate.
type lookView struct {
	Who   string // "": nobody
	For   string // who is away, and whom they stand in for
	By    string // who has handed it to them; "": they took it
	Mine  bool
	Until moment
}

// deskView is what the page of a gate says of who looks at it, and what the caller
// may do about that.
type deskView struct {
	Look    *lookView
	May     bool // take it, hand it over
	LetGo   bool
	Usual   string
	Problem string
	To      string // as it was sent
}

// desk is who looks at which gate now. Where that cannot be read the gates are shown
// without.
func (v *visit) desk() desk.Desk {
	d, err := desk.Open(v.ctx, v.Reader, v.caller.Tenant, v.now)
	if err != nil {
		v.Log.WarnContext(v.ctx, "who looks at which gate cannot be read", "request_id", v.id, "error", err)
	}
	return d
}

func (v *visit) lookOf(d desk.Desk, run store.Chain, gate string) *lookView {
	l := d.Of(run, gate)
	if l == nil {
		return nil
	}
	out := &lookView{Who: l.To, For: l.For, Mine: l.To == v.caller.Subject, Until: v.moment(l.Until)}
	if l.By != l.To && l.By != l.For {
		out.By = l.By
	}
	return out
}

// deskOf is nil where the gate is closed, or nobody can be told of it.
func (v *visit) deskOf(g foundGate) *deskView {
	on := g.on()
	on.Gate = &access.OnGate{Kind: g.gate.Kind, Roles: g.gate.Roles}
	if g.gate.Status != agent.GateOpen || access.Check(v.caller, access.GateAssign, on) != nil {
		return nil
	}
	d, run := v.desk(), g.whole()
	out := &deskView{Look: v.lookOf(d, run, g.gate.ID), May: d.May(v.caller, run, g.gate.ID), Usual: lasting(desk.Usual)}
	out.LetGo = out.Look != nil && out.May
	return out
}

// whole is the run of a gate, by its first run id too.
func (f found) whole() store.Chain {
	return store.Chain{Tenant: f.chain.Tenant, Address: f.chain.Address, FirstRunID: f.run.FirstRunID}
}

func takeGate(v *visit) error {
	return v.assigning(func(d desk.Desk, g foundGate) error {
		_, err := d.Assign(v.ctx, v.Reader, v.caller, g.whole(), g.gate, "", 0)
		return err
	})
}

func handGate(v *visit) error {
	return v.assigning(func(d desk.Desk, g foundGate) error {
		to := v.form("to")
		if err := needed(to, "name the colleague who is to look at it"); err != nil {
			return err
		}
		_, err := d.Assign(v.ctx, v.Reader, v.caller, g.whole(), g.gate, to, 0)
		return err
	})
}

func letGateGo(v *visit) error {
	return v.assigning(func(d desk.Desk, g foundGate) error {
		return d.Unassign(v.ctx, v.Reader, v.caller, g.whole(), g.gate.ID)
	})
}

// assigning changes who looks at the gate that the path names, and shows it then.
func (v *visit) assigning(do func(d desk.Desk, g foundGate) error) error {
	g, err := v.findGate(access.GateAssign, "")
	if err != nil {
		return err
	}
	d, err := desk.Open(v.ctx, v.Reader, v.caller.Tenant, v.now)
	if err == nil {
		err = do(d, g)
	}
	switch err = v.audited(access.GateAssign, g.target(), err); agent.ErrorCode(err) {
	case agent.CodeInvalid, agent.CodeConflict:
		status, _ := statusOf(agent.ErrorCode(err))
		return v.gatePageAbout(status, g, verdictForm{}, err)
	case agent.CodeGateClosed:
		return v.gatePageAbout(http.StatusConflict, g, verdictForm{}, nil) // it says how it was closed
	default:
		if err != nil {
			return err
		}
	}
	v.to(gatePath(g.run.Agent, g.run.Key, g.gate.ID))
	return nil
}
