package web

import (
	"errors"
	"net/http"
	"slices"

	"interlock/agent"
	"interlock/api/access"
	"interlock/signals"
	"interlock/store"
)

// found is a run that the caller may see, as its journal has it.
type found struct {
	chain  store.Chain
	events []agent.Event
	run    *agent.Run // whole: what is shown of it goes through hides
	fresh  bool       // it comes from the run itself, and not from the journal
}

// hides is what the caller is not shown of the run, whatever the moment that is shown.
func (f found) hides() *agent.Redaction { return f.run.Redaction() }

// on is the run for the table of access.
func (f found) on() access.On {
	return access.On{Tenant: f.chain.Tenant, Run: f.chain.Address, User: f.run.User}
}

// allow checks an act with the run of a request, before and after it is looked up:
// what the caller may never do is refused before.
func (v *visit) allow(act access.Act, find func() (access.On, error)) error {
	if err := access.Check(v.caller, act, access.On{}); err != nil {
		return err
	}
	on, err := find()
	if err != nil {
		return err
	}
	return access.Check(v.caller, act, on)
}

// find reads the run that the path names. Where the store is down, the run itself
// is asked, and the page says so.
func (v *visit) find(act access.Act) (f found, err error) {
	err = v.allow(act, func() (access.On, error) {
		if f, err = v.read(); err != nil {
			return access.On{}, err
		}
		return f.on(), nil
	})
	return f, v.looked(access.RunGet, act, v.address(), err)
}

// looked writes the line of a look, or of an act that is refused already. One that
// is not writes its own line, once it is known what came of it.
func (v *visit) looked(look, act access.Act, target string, err error) error {
	switch {
	case err != nil:
		return v.audited(act, target, err)
	case v.r.Method == http.MethodPost:
		return nil
	case actsOnRuns[act]:
		act = look
	}
	return v.audited(act, target, nil)
}

// actsOnRuns are the acts whose pages are looked at before they are sent.
var actsOnRuns = map[access.Act]bool{access.Verdict: true, access.Cancel: true}

func (v *visit) read() (f found, err error) {
	if f.chain, err = v.chain(); err != nil {
		return f, err
	}
	if f.events, err = v.Reader.Events(v.ctx, f.chain, 1, 0); err == nil {
		if len(f.events) == 0 {
			return v.ask(f)
		}
		f.run, err = agent.Reduce(f.events)
		return f, err
	}
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return v.ask(f)
	}
	run, asked := v.Starter.Get(v.ctx, f.chain.Address)
	if asked != nil {
		return f, agent.Errorf(agent.CodeUnavailable, "the store cannot be read (%v), and the run does not answer either (%v)", err, asked)
	}
	v.Log.WarnContext(v.ctx, "store cannot be read", "request_id", v.id, "error", err)
	v.banner = "The store cannot be read just now: this is what the run itself says. Its events are not shown."
	f.run, f.fresh = run, true
	return f, nil
}

// ask is a run that has recorded nothing yet: it is asked itself.
func (v *visit) ask(f found) (found, error) {
	run, err := v.Starter.Get(v.ctx, f.chain.Address)
	if err != nil {
		if agent.ErrorCode(err) == agent.CodeNotFound || agent.ErrorCode(err) == agent.CodeInvalid {
			return f, access.NotFound()
		}
		return f, err
	}
	f.run, f.fresh = run, true
	return f, nil
}

// foundGate is a gate that the caller may see, and its run.
type foundGate struct {
	found
	gate agent.Gate
}

func (g foundGate) target() string { return g.chain.Address + "#" + g.gate.ID }

// findGate reads the gate that the path names, for an act of the caller's. After
// an act of theirs (?after=) the run itself is asked, since the journal may not
// have it yet.
func (v *visit) findGate(act access.Act, verdict agent.VerdictValue) (g foundGate, err error) {
	target := v.address() + "#" + v.r.PathValue("gate")
	err = v.allow(act, func() (access.On, error) {
		if g, err = v.readGate(v.r.PathValue("gate")); err != nil {
			return access.On{}, err
		}
		on := g.on()
		on.Gate = &access.OnGate{Kind: g.gate.Kind, Roles: g.gate.Roles, Verdict: verdict}
		return on, nil
	})
	return g, v.looked(access.GateGet, act, target, err)
}

func (v *visit) readGate(id string) (g foundGate, err error) {
	if g.found, err = v.read(); err != nil {
		return g, err
	}
	if v.query("after") != "" && !g.fresh {
		if run, err := v.Starter.Get(v.ctx, g.chain.Address); err == nil && run.FirstRunID == g.run.FirstRunID && run.Seq >= g.run.Seq {
			g.run, g.fresh = run, true
		}
	}
	if i := slices.IndexFunc(g.run.Gates, func(g agent.Gate) bool { return g.ID == id }); i >= 0 {
		g.gate = g.run.Gates[i]
		return g, nil
	}
	row, err := v.Starter.Gate(v.ctx, g.chain.Address, id)
	if err != nil {
		if agent.ErrorCode(err) == agent.CodeNotFound {
			return g, access.NotFound()
		}
		return g, err
	}
	if row.FirstRunID != "" && row.FirstRunID != g.run.FirstRunID {
		return g, access.NotFound()
	}
	g.gate = row.Gate
	return g, nil
}

// judged is how a verdict was judged that the run has had before: what a second
// click is answered with.
func (v *visit) judged(chain store.Chain, id string, seq int64) (d agent.VerdictData, err error) {
	events, err := v.Reader.Events(v.ctx, chain, seq, 1)
	if err != nil {
		return d, err
	}
	if len(events) == 0 || events[0].Type != agent.EventVerdict {
		return d, errors.New("there is no such verdict")
	}
	d = dataOf[agent.VerdictData](events[0])
	if d.Verdict.ID != id {
		return d, errors.New("there is another verdict")
	}
	return d, nil
}

// chainOf is the run that stands at an address.
func chainOf(address string) (store.Chain, error) {
	tenant, _, _, ok := signals.SplitAddress(address)
	if !ok {
		return store.Chain{}, access.NotFound()
	}
	return store.Chain{Tenant: tenant, Address: address}, nil
}
