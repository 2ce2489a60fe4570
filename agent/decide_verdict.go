package agent

import (
	"slices"
	"strings"
)

// verdict takes a person's decision. While a message is unanswered or the run
// is paused it is kept: the model may still withdraw the call.
func (m *Machine) verdict(v Verdict) Receipt {
	body := v.body()
	if r, stop := m.sent("verdict", v.ID, body, v.Principal); stop {
		r.Gate = m.gateOutcome(v.Gate)
		return r
	}
	if err := CheckVerdict(v); err != nil {
		return refused(ErrorCode(err), "%v", err)
	}
	v.At, v.Reason = m.at, clean(v.Reason)
	m.expireGates()
	if why := m.voids(v); why != "" {
		e := m.emit(EventVerdict, v.Gate, VerdictData{Verdict: v, Judgement: "void", Reason: why, Body: body})
		return Receipt{Status: Voided, Seq: e.Seq, Reason: why, Gate: m.gateOutcome(v.Gate)}
	}
	result, err := m.checkedResult(m.run.gate(v.Gate), v)
	if err != nil {
		return refused(CodeInvalid, "%v", err)
	}
	v.Result = result
	if m.run.Owed > 0 || m.run.Status == RunPaused {
		reason := "it arrived while the run had something unanswered, and is judged right after"
		if m.run.Status == RunPaused {
			reason = "the run is paused (" + m.run.Reason + "); it is judged when the run is resumed"
		}
		e := m.emit(EventVerdict, v.Gate, VerdictData{Verdict: v, Judgement: "kept", Body: body})
		return Receipt{Status: KeptBack, Seq: e.Seq, Gate: m.gateOutcome(v.Gate), Reason: reason}
	}
	seq := m.take(v, body)
	return Receipt{Status: Accepted, Seq: seq, Gate: m.gateOutcome(v.Gate)}
}

// body tells a repeat from another verdict under the same id.
func (v Verdict) body() string {
	return digest(append([]any{"verdict", clean(v.Gate), clean(v.Digest), clean(string(v.Verdict)), clean(v.Reason)}, v.resolution()...))
}

// CheckVerdict says whether a verdict is one at all. Anything but a known word
// decides nothing.
func CheckVerdict(v Verdict) error {
	switch {
	case v.Gate == "" || v.Digest == "" || len(v.Gate)+len(v.Digest) > idLimit || clean(v.Gate+v.Digest) != v.Gate+v.Digest:
		return Errorf(CodeInvalid, "a verdict names its gate and the digest that the gate was shown with")
	case v.Verdict != Approve && v.Verdict != Reject && !v.resolves():
		return Errorf(CodeInvalid, "verdict %q is neither %s nor %s, nor, of a step in doubt, %s or %s: the gate stays open", v.Verdict, Approve, Reject, Happened, DidNotHappen)
	case !v.resolves() && (len(v.Result) > 0 || v.Again):
		return Errorf(CodeInvalid, "only a verdict on a step in doubt has a result or again")
	case v.resolves() && checkResolution(v) != nil:
		return checkResolution(v)
	case v.Verdict == Reject && strings.TrimSpace(v.Reason) == "":
		return Errorf(CodeInvalid, "a reject needs a reason: the model and the user are told")
	case len(v.Reason) > reasonLimit:
		return Errorf(CodeInvalid, "the reason has %d bytes, the limit is %d", len(v.Reason), reasonLimit)
	case v.Principal.Subject == "":
		return Errorf(CodeInvalid, "a verdict names the person who decided")
	}
	return nil
}

// voids says why a verdict decides nothing; "" where it is valid.
func (m *Machine) voids(v Verdict) string {
	g := m.run.gate(v.Gate)
	switch {
	case g == nil:
		return "there is no gate " + v.Gate
	case g.Kind == KindAsk:
		return "gate " + g.ID + " asks the user, who answers by a message"
	case g.Status != GateOpen:
		why := "gate " + g.ID + " was closed as " + string(g.Status)
		if g.By != nil {
			why += " by " + g.By.Subject
		}
		if g.ClosedAt != nil {
			why += " at " + stamp(*g.ClosedAt)
		}
		return why
	case (g.Kind == KindDoubt) != v.resolves():
		if g.Kind == KindDoubt {
			return "gate " + g.ID + " asks whether step " + g.Step + " happened: answer " + string(Happened) + " or " + string(DidNotHappen)
		}
		return "gate " + g.ID + " asks for " + string(Approve) + " or " + string(Reject)
	case g.Digest != v.Digest:
		return "the digest is not that of gate " + g.ID + " as it stands: look at the gate again"
	case g.ExpiresAt != nil && !v.At.Before(*g.ExpiresAt):
		return "gate " + g.ID + " had expired at " + stamp(*g.ExpiresAt)
	case m.def.signed && !v.Verified:
		return "this agent takes signed verdicts only: nothing proves who sent this one"
	case v.Principal.Tenant != "" && v.Principal.Tenant != m.run.Tenant:
		return "the principal belongs to another tenant"
	case !slices.ContainsFunc(g.Roles, func(r string) bool { return slices.Contains(v.Principal.Roles, r) }):
		return "deciding needs the role " + joinOr(g.Roles)
	}
	return ""
}

// take lets a valid verdict decide its gate.
func (m *Machine) take(v Verdict, body string) int64 {
	e := m.emit(EventVerdict, v.Gate, VerdictData{Verdict: v, Judgement: "valid", Body: body})
	g := *m.run.gate(v.Gate)
	closed := GateClosedData{Gate: g.ID, Status: GateApproved, Verdict: v.Verdict, By: &v.Principal, Reason: v.Reason, Verified: v.Verified}
	if g.Kind == KindDoubt {
		m.resolve(v, g, closed)
		return e.Seq
	}
	if v.Verdict == Reject {
		closed.Status = GateRejected
		m.emit(EventGateClosed, g.ID, closed)
		m.emit(EventRulingMade, g.ID, RulingMadeData{Ruling: Ruling{ID: g.ID, Tool: g.Tool, Title: g.Title, Args: digest(g.Args),
			Reads: g.Reads, Values: digest(m.values(g.Reads)), Reason: v.Reason, By: v.Principal, At: v.At}})
		m.emit(EventStepSettled, g.ID, StepSettledData{Status: StepRejected, Reason: "rejected by " + v.Principal.Subject + ": " + v.Reason})
		return e.Seq
	}
	m.emit(EventGateClosed, g.ID, closed)
	if g.Kind == KindMove {
		m.takeMove(g)
		return e.Seq
	}
	m.emit(EventStepResumed, g.ID, struct{}{})
	return e.Seq
}

// takeMove makes an approved move, if its guard still allows it.
func (m *Machine) takeMove(g Gate) {
	move := m.moveOf(g.Args)
	if move == nil {
		m.emit(EventStepSettled, g.ID, StepSettledData{Status: StepVoid, Reason: "the phase has no such move any more"})
		return
	}
	if err := m.guard(move); err != nil {
		m.emit(EventStepSettled, g.ID, StepSettledData{Status: StepVoid, Reason: clip("approved, but now "+err.Error(), reasonLimit)})
		return
	}
	to, _ := m.def.phase(move.to)
	m.emit(EventStepSettled, g.ID, StepSettledData{Status: StepDone})
	m.enter(to, "gate")
}

func (m *Machine) moveOf(args JSON) *moveDef {
	to, _ := object(args)["to"].(string)
	p, ok := m.def.phase(m.run.Phase)
	if !ok {
		return nil
	}
	for _, mv := range p.moves {
		if mv.to == to {
			return mv
		}
	}
	return nil
}

// judgeKept judges the verdicts that arrived while something was unanswered,
// in order of arrival.
func (m *Machine) judgeKept() {
	for _, v := range slices.Clone(m.run.Kept) {
		body := v.body()
		if why := m.voids(v); why != "" {
			m.emit(EventVerdict, v.Gate, VerdictData{Verdict: v, Judgement: "void", Reason: why, Body: body})
			continue
		}
		m.take(v, body)
	}
}

// expireGates closes the gates whose time is up. A kept verdict that arrived
// in time is judged first.
func (m *Machine) expireGates() {
	for _, g := range slices.Clone(m.run.Gates) {
		if g.Status != GateOpen || g.ExpiresAt == nil || m.at.Before(*g.ExpiresAt) {
			continue
		}
		if slices.ContainsFunc(m.run.Kept, func(v Verdict) bool { return v.Gate == g.ID && v.At.Before(*g.ExpiresAt) }) {
			continue
		}
		m.closeStep(g.ID, GateExpired, StepExpired, "nobody decided until "+stamp(*g.ExpiresAt))
	}
}

func (m *Machine) gateOutcome(id string) *GateOutcome {
	g := m.run.gate(id)
	if g == nil {
		return nil
	}
	out := &GateOutcome{ID: g.ID, Status: g.Status, At: g.ClosedAt}
	if g.By != nil {
		out.By = g.By.Subject
	}
	return out
}
