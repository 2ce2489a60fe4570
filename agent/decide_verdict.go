package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"
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
	if size, limit := v.size(), max(m.run.Limits.State, m.run.Limits.Result); size > limit {
		return refused(CodeInvalid, "the verdict brings %d bytes, the limit is %d", size, limit)
	}
	v.At, v.Reason = m.at, clean(v.Reason)
	if v.Verdict == TakeBack {
		return m.takeBack(v, body)
	}
	m.expireGates()
	m.escalateGates()
	if code, why := m.voids(v); why != "" {
		return m.voided(v, body, code, why)
	}
	v, err := m.checked(v)
	if err != nil {
		return refused(ErrorCode(err), "%v", err)
	}
	if full := m.keptFull(v); full != "" {
		return refused(CodeUnavailable, "%s", full)
	}
	if r, put := m.putOff(v, body, v.At); put {
		return r
	}
	if m.run.Owed == 0 && m.run.Status != RunPaused {
		return m.take(v, body)
	}
	reason := "it arrived while the run had something unanswered, and is judged right after"
	if m.run.Status == RunPaused {
		reason = "the run is paused (" + m.run.Reason + "); it is judged when the run is resumed"
	}
	e := m.emit(EventVerdict, v.Gate, VerdictData{Verdict: v, Judgement: "kept", Body: body})
	return Receipt{Status: KeptBack, Seq: e.Seq, Gate: m.gateOutcome(v.Gate), Reason: reason}
}

// body tells a repeat from another verdict under the same id.
func (v Verdict) body() string { return digest(append([]any{"verdict"}, v.Content()...)) }

// size is about what a verdict brings. It is bounded before anything else is judged:
// one that decides nothing is recorded whole, in an event that an activity carries.
func (v Verdict) size() int {
	n := len(v.Args) + len(v.Result)
	if v.Answer != nil {
		n += len(v.Answer.Fields)
	}
	return n
}

// maxKept bounds the verdicts that wait to be judged: each is in every snapshot.
const maxKept = 64

// keptFull says why a verdict cannot be kept; "" where it can.
func (m *Machine) keptFull(v Verdict) string {
	size := v.size()
	waiting := slices.Concat(m.run.Kept, m.run.Pending)
	for _, k := range waiting {
		size += k.size()
	}
	if len(waiting) >= maxKept || size > m.run.Limits.State {
		return fmt.Sprintf("%d verdicts wait to be judged already; send this again later", len(waiting))
	}
	return ""
}

// CheckVerdict says whether a verdict is one at all. Anything but a known word
// decides nothing.
func CheckVerdict(v Verdict) error {
	switch {
	case v.Gate == "" || v.Digest == "" || len(v.Gate)+len(v.Digest) > idLimit || clean(v.Gate+v.Digest) != v.Gate+v.Digest:
		return Errorf(CodeInvalid, "a verdict names its gate and the digest that the gate was shown with")
	case !slices.Contains([]VerdictValue{Approve, Reject, Return, Edit, TakeBack, GiveAnswer, Happened, DidNotHappen}, v.Verdict):
		return Errorf(CodeInvalid, "verdict %q is none of %s, %s, %s and %s, nor, of a question, %s, nor, of a step in doubt, %s or %s: the gate stays open", v.Verdict,
			Approve, Reject, Return, Edit, GiveAnswer, Happened, DidNotHappen)
	case !v.resolves() && (len(v.Result) > 0 || v.Again):
		return Errorf(CodeInvalid, "only a verdict on a step in doubt has a result or again")
	case v.Verdict != Edit && len(v.Args) > 0:
		return Errorf(CodeInvalid, "only an edit has arguments")
	case v.Verdict != GiveAnswer && v.Answer != nil:
		return Errorf(CodeInvalid, "only the verdict %s has an answer", GiveAnswer)
	case v.resolves() && checkResolution(v) != nil:
		return checkResolution(v)
	case v.Verdict == GiveAnswer && checkAnswer(v.Answer) != nil:
		return checkAnswer(v.Answer)
	case v.Verdict == Edit && len(v.Args) == 0:
		return Errorf(CodeInvalid, "an edit needs the new arguments, whole, as an object")
	case slices.Contains([]VerdictValue{Reject, Return, Edit}, v.Verdict) && strings.TrimSpace(v.Reason) == "":
		return Errorf(CodeInvalid, "%s needs a reason: the model and the user are told", withArticle(v.Verdict))
	case len(v.Reason) > reasonLimit:
		return Errorf(CodeInvalid, "the reason has %d bytes, the limit is %d", len(v.Reason), reasonLimit)
	case v.Principal.Subject == "":
		return Errorf(CodeInvalid, "a verdict names the person who decided")
	}
	return nil
}

func withArticle(v VerdictValue) string {
	if v == Edit {
		return "an edit"
	}
	return "a " + string(v)
}

// voids says why a verdict decides nothing; "" where it is valid.
func (m *Machine) voids(v Verdict) (Code, string) {
	g := m.run.gate(v.Gate)
	switch {
	case g == nil:
		return CodeNotFound, "there is no gate " + v.Gate
	case g.Status != GateOpen:
		return closedGate(*g)
	case g.Pending != nil:
		p := g.Pending
		return CodeGateClosed, fmt.Sprintf("gate %s was decided by %s at %s (%s), which takes effect at %s unless it is taken back", g.ID, p.By.Subject, stamp(p.At), p.Verdict, stamp(p.Until))
	case wrongWord(*g, v) != "":
		return CodeInvalid, wrongWord(*g, v)
	case g.Digest != v.Digest:
		return CodeStale, "the digest is not that of gate " + g.ID + " as it stands: look at the gate again"
	case g.ExpiresAt != nil && !v.At.Before(*g.ExpiresAt):
		return CodeGateClosed, "gate " + g.ID + " had expired at " + stamp(*g.ExpiresAt)
	case m.def.signed && !v.Verified:
		return CodeDenied, "this agent takes signed verdicts only: nothing proves who sent this one"
	case m.mayNot(*g, v.Principal) != "":
		return CodeDenied, m.mayNot(*g, v.Principal)
	case v.Verdict == Approve && g.approvedBy(v.Principal.Subject):
		return CodeConflict, fmt.Sprintf("%s has approved gate %s already: it needs %d different persons", v.Principal.Subject, g.ID, g.needs())
	}
	return "", ""
}

// closedGate says of a gate that is not open how it was closed.
func closedGate(g Gate) (Code, string) {
	if g.Status == GateOpen {
		return "", ""
	}
	why := "gate " + g.ID + " was closed as " + string(g.Status)
	if g.By != nil {
		why += " by " + g.By.Subject
	}
	if g.ClosedAt != nil {
		why += " at " + stamp(*g.ClosedAt)
	}
	return CodeGateClosed, why
}

// wrongWord says which verdicts a gate takes, where it does not take this one.
func wrongWord(g Gate, v Verdict) string {
	switch {
	case (g.Kind == KindAsk) != (v.Verdict == GiveAnswer):
		if g.Kind == KindAsk {
			return "gate " + g.ID + " asks the user, who answers it by a message or by " + string(GiveAnswer)
		}
		return "gate " + g.ID + " is no question: " + string(GiveAnswer) + " belongs to those"
	case (g.Kind == KindDoubt) != v.resolves():
		if g.Kind == KindDoubt {
			return "gate " + g.ID + " asks whether step " + g.Step + " happened: answer " + string(Happened) + " or " + string(DidNotHappen)
		}
		return "gate " + g.ID + " asks for " + string(Approve) + " or " + string(Reject) + ", or " + string(Return) + " or " + string(Edit)
	}
	return ""
}

// mayNot says why a person may not decide a gate; "" where they may. It is the
// one place where principals of verdicts are judged.
func (m *Machine) mayNot(g Gate, p Principal) string {
	switch {
	case p.Tenant != "" && p.Tenant != m.run.Tenant:
		return "the principal belongs to another tenant"
	case g.Kind == KindAsk && p.Subject != m.run.User:
		return "only " + m.run.User + ", whom the run serves, answers its questions"
	case g.Kind == KindAsk:
		return ""
	case !slices.ContainsFunc(g.Roles, func(r string) bool { return slices.Contains(p.Roles, r) }):
		return "deciding needs the role " + joinOr(g.Roles)
	case g.Distinct && amongPersons(g.Askers, p.Subject):
		return p.Subject + " is among those who asked for it, and another person must decide"
	}
	return ""
}

// checked is a valid verdict with what it brings in canonical form; an error
// refuses it, and the gate stays open.
func (m *Machine) checked(v Verdict) (Verdict, error) {
	g := m.run.gate(v.Gate)
	var err error
	switch v.Verdict {
	case Happened:
		v.Result, err = m.def.checkResult(g.Tool, v.Result, m.run.Limits.Result)
	case Edit:
		v.Args, err = m.editedArgs(*g, v.Args)
	case GiveAnswer:
		v.Answer, err = m.answered(*g, *v.Answer)
	}
	return v, err
}

func (m *Machine) voided(v Verdict, body string, code Code, why string) Receipt {
	v.Args, v.Answer, v.Result = nil, nil, nil // what decides nothing is not kept; its digest tells a repeat
	e := m.emit(EventVerdict, v.Gate, VerdictData{Verdict: v, Judgement: "void", Code: code, Reason: why, Body: body})
	return Receipt{Status: Voided, Code: code, Seq: e.Seq, Reason: why, Gate: m.gateOutcome(v.Gate)}
}

// take lets a valid verdict decide its gate. The step starts now, so the policy is
// judged again now.
func (m *Machine) take(v Verdict, body string) Receipt {
	g := *m.run.gate(v.Gate)
	if c, changed := m.changedPolicy(g); changed {
		return m.askAnew(v, body, g, c)
	}
	e := m.emit(EventVerdict, v.Gate, VerdictData{Verdict: v, Judgement: "valid", Body: body})
	r := Receipt{Status: Accepted, Seq: e.Seq}
	closed := GateClosedData{Gate: g.ID, Status: GateApproved, Verdict: v.Verdict, By: &v.Principal, Reason: v.Reason, Verified: v.Verified}
	switch v.Verdict {
	case Happened, DidNotHappen:
		m.resolve(v, g, closed)
	case Reject:
		closed.Status = GateRejected
		m.emit(EventGateClosed, g.ID, closed)
		m.emit(EventRulingMade, g.ID, RulingMadeData{Ruling: Ruling{ID: g.ID, Tool: g.Tool, Title: g.Title, Args: digest(g.Args),
			Reads: g.Reads, Reason: v.Reason, By: v.Principal, At: v.At}})
		m.emit(EventStepSettled, g.ID, StepSettledData{Status: StepRejected, Reason: "rejected by " + v.Principal.Subject + ": " + v.Reason})
	case Return:
		closed.Status = GateReturned
		m.emit(EventGateClosed, g.ID, closed)
		m.emit(EventStepSettled, g.ID, StepSettledData{Status: StepReturned, Reason: "returned by " + v.Principal.Subject + " with a note: " + v.Reason})
	case Edit:
		r.Reason = m.edit(v, g, closed)
	case GiveAnswer:
		m.takeAnswer(v, g, closed)
	default:
		r.Reason = m.approve(v, g, closed)
	}
	r.Gate = m.gateOutcome(g.ID)
	return r
}

// approve counts an approval, and lets the step run once there are enough.
func (m *Machine) approve(v Verdict, g Gate, closed GateClosedData) (told string) {
	if g.needs() > 1 {
		all := append(slices.Clone(g.Approvals), Approval{By: v.Principal, Verified: v.Verified, Reason: v.Reason, At: v.At})
		m.emit(EventGateCounted, g.ID, GateCountedData{Gate: g.ID, Approvals: all})
		if told = fmt.Sprintf("%d of %d approvals", len(all), g.needs()); len(all) < g.needs() {
			return told
		}
	}
	m.emit(EventGateClosed, g.ID, closed)
	if g.Kind == KindMove {
		m.takeMove(g)
	} else {
		m.emit(EventStepResumed, g.ID, struct{}{})
	}
	return told
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
	m.enter(to, "gate", g.ID)
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
// in order of arrival. What could be refused no more is void.
func (m *Machine) judgeKept() {
	for _, v := range slices.Clone(m.run.Kept) {
		m.judgeLate(v, m.at) // only now may it be the one that decides
	}
}

// judgeLate judges a verdict some time after it arrived. It may decide its gate since
// then.
func (m *Machine) judgeLate(v Verdict, decides time.Time) {
	body := v.body()
	code, why := m.voids(v)
	if why == "" {
		if _, err := m.checked(v); err != nil {
			code, why = ErrorCode(err), clip(err.Error(), reasonLimit)
		}
	}
	if why != "" {
		m.voided(v, body, code, why)
		return
	}
	if _, put := m.putOff(v, body, decides); !put {
		m.take(v, body)
	}
}
