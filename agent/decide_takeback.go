package agent

import (
	"fmt"
	"slices"
	"time"
)

// putOff lets a valid verdict that would decide its gate wait, where its person may
// have second thoughts, from when it is the one that decides. It reports false where
// it is to be judged now.
func (m *Machine) putOff(v Verdict, body string, decides time.Time) (Receipt, bool) {
	g := m.run.gate(v.Gate)
	until := decides.Add(g.TakeBack)
	if g.TakeBack <= 0 || !g.decidedBy(v) || !m.at.Before(until) {
		return Receipt{}, false
	}
	e := m.emit(EventVerdict, g.ID, VerdictData{Verdict: v, Judgement: "pending", Body: body})
	m.emit(EventGatePending, g.ID, GatePendingData{Gate: g.ID, Pending: &PendingVerdict{Verdict: v.Verdict, By: v.Principal, Verified: v.Verified, Reason: v.Reason, At: v.At, Until: until}})
	return Receipt{Status: KeptBack, Seq: e.Seq, Gate: m.gateOutcome(g.ID),
		Reason: fmt.Sprintf("it takes effect at %s; until then the verdict %s takes it back", stamp(until), TakeBack)}, true
}

// decidedBy reports whether a verdict is the one that closes the gate.
func (g Gate) decidedBy(v Verdict) bool {
	switch v.Verdict {
	case Approve:
		return len(g.Approvals)+1 >= g.needs()
	case Reject, Return, Edit:
		return true
	}
	return false
}

// takeBack ends the wait of a person's own verdict: the gate is open as before. It is
// taken at once, whatever else the run has to do.
func (m *Machine) takeBack(v Verdict, body string) Receipt {
	code, why := m.noTakeBack(v)
	if why != "" {
		return m.voided(v, body, code, why)
	}
	e := m.emit(EventVerdict, v.Gate, VerdictData{Verdict: v, Judgement: "valid", Body: body})
	m.emit(EventGatePending, v.Gate, GatePendingData{Gate: v.Gate})
	return Receipt{Status: Accepted, Seq: e.Seq, Reason: "the verdict was taken back; gate " + v.Gate + " is open", Gate: m.gateOutcome(v.Gate)}
}

// noTakeBack says why nothing is taken back; "" where something is.
func (m *Machine) noTakeBack(v Verdict) (code Code, why string) {
	g := m.run.gate(v.Gate)
	if g == nil {
		return CodeNotFound, "there is no gate " + v.Gate
	}
	if code, why := closedGate(*g); why != "" {
		return code, why
	}
	p := g.Pending
	switch {
	case p == nil:
		return CodeGateClosed, "no verdict on gate " + g.ID + " waits to take effect: there is nothing to take back"
	case g.Digest != v.Digest:
		return CodeStale, "the digest is not that of gate " + g.ID + " as it stands: look at the gate again"
	case p.By.Subject != v.Principal.Subject || v.Principal.Tenant != "" && v.Principal.Tenant != m.run.Tenant:
		return CodeDenied, "only " + p.By.Subject + ", whose verdict it is, takes it back"
	case p.Verified && !v.Verified:
		return CodeDenied, "nothing proves that " + v.Principal.Subject + " sent this, and the verdict was proven"
	}
	return "", ""
}

// pendingOver reports whether a verdict's time to be taken back is over.
func (m *Machine) pendingOver() bool {
	return slices.ContainsFunc(m.run.Gates, func(g Gate) bool { return g.Pending != nil && !m.at.Before(g.Pending.Until) })
}

// judgePending judges the verdicts whose time to be taken back is over, in the order
// in which they arrived, by what is so now.
func (m *Machine) judgePending() {
	for _, v := range slices.Clone(m.run.Pending) {
		g := m.run.gate(v.Gate)
		if g == nil || g.Pending == nil || m.at.Before(g.Pending.Until) {
			continue
		}
		m.emit(EventGatePending, g.ID, GatePendingData{Gate: g.ID})
		m.judgeLate(v, v.At)
	}
}

func applyGatePending(r *Run, _ Event, d GatePendingData) {
	if g := r.gate(d.Gate); g != nil {
		g.Pending = d.Pending
	}
	if d.Pending == nil {
		r.dropPending(d.Gate)
	}
}

func (r *Run) dropPending(gate string) {
	r.Pending = slices.DeleteFunc(r.Pending, func(v Verdict) bool { return v.Gate == gate })
}
