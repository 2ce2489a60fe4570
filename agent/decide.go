package agent

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// started opens the run. A start input that the definition refuses fails it,
// with the reason in the journal.
func (m *Machine) started(in Started) {
	if m.run.Seq > 0 {
		return
	}
	m.run.Tenant, m.salt = in.Tenant, in.Salt // the first event carries the one, and is hashed with the other
	body := in.Body
	if len(body) == 0 {
		body = JSON("{}")
	}
	m.emit(EventStarted, "", StartedData{Agent: m.def.Name, Version: m.def.Version, Key: in.Key, FirstRunID: in.FirstRunID,
		Rules: in.Rules, Salt: in.Salt, Fingerprint: in.Fingerprint, Limits: in.Limits, Principal: in.Principal, User: in.User,
		Body: body, BodyDigest: in.Digest, After: in.After, Repair: in.Repair.data(), Scope: in.Repair.scope(), Sensitive: m.def.sensitive(), Hidden: m.def.hidden()})
	if in.Repair != nil {
		m.startRepair(*in.Repair)
		return
	}
	state, err := m.def.init(body)
	if err == nil && len(state) > m.run.Limits.State {
		err = Errorf(CodeInvalid, "the first state has %d bytes, the limit is %d", len(state), m.run.Limits.State)
	}
	if err == nil {
		err = m.fits(state)
	}
	if err != nil {
		m.emit(EventFailed, "", EndedData{Reason: clip("start input refused: "+err.Error(), reasonLimit)})
		return
	}
	m.emit(EventStateSet, "", StateSetData{Patch: state, Source: "start", Fields: changedFields(object(m.def.zero), object(state))})
	m.enter(m.def.phases[0], "start", "")
}

// refused is the receipt of an input that changes nothing.
func refused(code Code, format string, args ...any) Receipt {
	e := Errorf(code, format, args...)
	return Receipt{Status: Refused, Code: code, Reason: e.Error()}
}

// sent checks what every input of a sender has: an id, and a run that still
// takes inputs. repeat is set where the id was handled before.
func (m *Machine) sent(what, id, body string, who Principal) (r Receipt, stop bool) {
	if err := CheckPrincipal(who); err != nil {
		return refused(CodeInvalid, "%v", err), true
	}
	switch {
	case who.Tenant != "" && who.Tenant != m.run.Tenant && what != "verdict": // which is recorded as void
		return refused(CodeDenied, "the principal belongs to another tenant"), true
	case m.def.signed && steers(what) && who.Auth == "":
		return refused(CodeDenied, "this agent takes a %s with a token only: nothing proves who sent this one", what), true
	case strings.TrimSpace(id) == "" || len(id) > idLimit || !utf8.ValidString(id) || clean(id) != id:
		return refused(CodeInvalid, "a %s needs an id of 1 to %d characters, chosen by its sender, so that a repeat is harmless", what, idLimit), true
	}
	if h := m.run.FirstReceipt(id, who); h != nil {
		if h.Body != body {
			return refused(CodeConflict, "id %s was used before with another content; use a new id", id), true
		}
		return h.Receipt(m.run.Status), true
	}
	if m.run.Status.Ended() {
		return refused(CodeEnded, "the run has ended (%s); start a new one", m.run.Status), true
	}
	return Receipt{}, false
}

// steers reports inputs that decide what a run does, and so need a token where the
// agent is signed. A verdict is recorded without one, and decides nothing.
func steers(what string) bool { return what != "message" && what != "verdict" }

func (m *Machine) message(in Message) Receipt {
	content := []any{"message", clean(in.Text)}
	if in.Policy != "" {
		content = append(content, clean(string(in.Policy)))
	}
	body := digest(content)
	if r, stop := m.sent("message", in.ID, body, in.Principal); stop {
		return r
	}
	if err := errors.Join(m.CheckMessage(in.Text), CheckPolicy(in.Policy)); err != nil {
		return refused(CodeInvalid, "%v", err)
	}
	switch {
	case m.run.Cancel != nil:
		return refused(CodeEnded, "the run is being cancelled; start a new one")
	case m.run.LastWord:
		return refused(CodeEnded, "the run is ending; start a new one")
	case m.run.Repairs != nil:
		return refused(CodeInvalid, "this run only undoes steps of %s, and takes no messages", m.run.Repairs.Address)
	}
	busy := m.run.busy()
	if busy && m.policy(in) == MessageReject {
		return refused(CodeConflict, "the run is busy (%s) and takes no message meanwhile: send this again when it waits", m.doing())
	}
	unread := len(in.Text)
	for _, it := range m.run.Opening {
		if it.Kind == ItemMessage {
			unread += len(it.Text)
		}
	}
	if unread > m.run.Limits.Message {
		return refused(CodeUnavailable, "the run is busy and its unread messages would pass %d bytes; send this again later", m.run.Limits.Message)
	}
	took := m.takes(in, busy)
	e := m.emit(EventMessage, "", MessageData{ID: in.ID, Principal: in.Principal, Text: in.Text, Body: body, Policy: in.Policy, Took: took,
		First: in.First && busy && m.policy(Message{Policy: in.Policy}) != MessageQueue})
	for _, g := range slices.Clone(m.run.Gates) {
		if g.Status == GateOpen && g.Kind == KindAsk && in.Principal.Subject == m.run.User {
			m.emit(EventGateClosed, g.ID, GateClosedData{Gate: g.ID, Status: GateAnswered, By: &in.Principal, Reason: "by the user's message", Message: e.Seq})
			m.emit(EventStepSettled, g.ID, StepSettledData{Status: StepDone, Reason: "the user's next message is the answer"})
		}
	}
	m.interrupt(in, took)
	return Receipt{Status: Accepted, Seq: e.Seq, Took: took}
}

// CheckMessage says whether a text can be a message, before it is sent.
func (m *Machine) CheckMessage(text string) error {
	limit := m.run.Limits.Message
	if limit == 0 {
		limit = m.def.limits.Message
	}
	return CheckText(text, limit)
}

// CheckText says whether a text of a user can be taken in.
func CheckText(text string, limit int) error {
	switch {
	case strings.TrimSpace(text) == "":
		return Errorf(CodeInvalid, "a message needs a text")
	case len(text) > limit:
		return Errorf(CodeInvalid, "the message has %d bytes, the limit is %d: send a shorter one", len(text), limit)
	case !utf8.ValidString(text):
		return Errorf(CodeInvalid, "the message is not valid UTF-8")
	case strings.ContainsRune(text, 0):
		return Errorf(CodeInvalid, "the message holds the character U+0000")
	}
	return nil
}

// clean drops what no store may hold: U+0000 and invalid UTF-8.
func clean(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
}

// cancel ends the run. Its running steps end by their tools' choice, so that every
// step ends in a definite status; then what is to be undone is. A second cancel
// that undoes more is merged into the first.
func (m *Machine) cancel(in CancelRun) Receipt {
	undo := in.Undo.norm()
	content := []any{"cancel", clean(in.Reason)}
	if undo != "" {
		content = append(content, clean(string(undo)))
	}
	body := digest(content)
	if r, stop := m.sent("cancel", in.ID, body, in.Principal); stop {
		return r
	}
	switch err := CheckUndoScope(in.Undo); {
	case err != nil:
		return refused(CodeInvalid, "%v", err)
	case len(in.Reason) > reasonLimit:
		return refused(CodeInvalid, "the reason has %d bytes, the limit is %d", len(in.Reason), reasonLimit)
	case undo != "" && m.run.Repairs != nil:
		return refused(CodeInvalid, "this run only undoes steps of %s: cancel it without an undo", m.run.Repairs.Address)
	case m.run.Cancel != nil && !undo.beyond(m.run.Cancel.Undo):
		return Receipt{Status: Repeated, Seq: m.run.Cancel.Seq, Reason: "a cancel is under way"}
	}
	took := &Took{How: TookNow}
	if m.run.Cancel != nil {
		took.How = TookMerged
	}
	e := m.emit(EventCancelRequested, "", CancelRequestedData{ID: in.ID, Principal: in.Principal, Reason: clean(in.Reason), Undo: undo, Body: body, Took: took})
	m.stopAll("the run was cancelled")
	return Receipt{Status: Accepted, Seq: e.Seq, Took: took}
}

// stopAll brings to an end what a cancelled run does, or begins to.
func (m *Machine) stopAll(reason string) {
	m.letGo(reason)
	for _, s := range slices.Clone(m.run.Steps) {
		switch {
		case s.Status == StepWaiting && (s.By != ByUndo || m.run.Cancel.Undo == ""):
			m.closeStep(s.ID, GateVoid, StepCancelled, reason)
		case s.Status == StepInDoubt:
			m.closeDoubt(s.ID, reason)
		case s.Status == StepRunning:
			m.cutStep(s, reason)
		}
	}
}

// closeStep ends a step that waits at its gate, and the gate.
func (m *Machine) closeStep(id string, gate GateStatus, step StepStatus, reason string) {
	m.emit(EventGateClosed, id, GateClosedData{Gate: id, Status: gate, Reason: reason})
	m.emit(EventStepSettled, id, StepSettledData{Status: step, Reason: reason})
}

// set writes a new state on somebody's account, with what follows from the change:
// fields that follow a changed one are cleared, and gates that read a changed
// one are void. The caller has checked that they may be set so.
func (m *Machine) set(o origin, state JSON, verified []string) {
	old, next := object(m.run.State), object(state)
	changed := changedFields(old, next)
	reset := m.resetFollowers(next, changed)
	if len(changed)+len(reset)+len(verified) == 0 {
		return
	}
	m.emit(EventStateSet, o.step, StateSetData{Patch: encodeValue(mergeDiff(old, next)), Source: o.source, By: o.by,
		Fields: changed, Reset: reset, Verified: verified})
	m.voidGates(slices.Concat(changed, reset))
	m.voidUnconfirmed()
}

func changedFields(old, next map[string]any) []string {
	var out []string
	both := map[string]bool{}
	for _, k := range sortedKeys(old) {
		both[k] = true
	}
	for _, k := range sortedKeys(next) {
		both[k] = true
	}
	for _, k := range sortedKeys(both) {
		if !sameValue(old[k], next[k]) {
			out = append(out, k)
		}
	}
	return out
}

// resetFollowers clears, in next, the fields that follow a changed one and
// were not written themselves; a cleared field clears its own followers.
func (m *Machine) resetFollowers(next map[string]any, changed []string) []string {
	zero := object(m.def.zero)
	var reset []string
	for again := true; again; {
		again = false
		for _, f := range m.def.fields {
			if f.Follows == "" || slices.Contains(changed, f.Name) || slices.Contains(reset, f.Name) {
				continue
			}
			if !slices.Contains(changed, f.Follows) && !slices.Contains(reset, f.Follows) {
				continue
			}
			if sameValue(next[f.Name], zero[f.Name]) {
				continue
			}
			if z, ok := zero[f.Name]; ok {
				next[f.Name] = z
			} else {
				delete(next, f.Name)
			}
			reset = append(reset, f.Name)
			again = true
		}
	}
	slices.Sort(reset)
	return reset
}

// voidGates closes the open gates whose shown fields have changed.
func (m *Machine) voidGates(changed []string) {
	for _, g := range slices.Clone(m.run.Gates) {
		if g.Status != GateOpen {
			continue
		}
		for _, f := range g.Reads {
			if slices.Contains(changed, f) {
				m.voidGate(g, f+" changed after it was shown")
				break
			}
		}
	}
}

// voidGate ends a step whose gate shows what is not so any more. An undo is asked for
// anew: whoever asked for it has not taken that back.
func (m *Machine) voidGate(g Gate, why string) {
	undo := m.run.step(g.StepID()).By == ByUndo
	m.emit(EventGateClosed, g.ID, GateClosedData{Gate: g.ID, Status: GateVoid, Reason: why})
	m.emit(EventStepSettled, g.ID, StepSettledData{Status: StepVoid, Reason: why, Again: undo})
}

// enter puts the run into a phase and makes the calls of its Enter.
// step is the move that people have approved, where they have.
func (m *Machine) enter(p *phaseDef, by, step string) {
	m.emit(EventPhaseEntered, "", PhaseEnteredData{Phase: p.name, Final: p.final, By: by, Step: step})
	m.voidOutside(p)
	if p.enter == nil {
		return
	}
	for _, call := range p.enter(m.situation()) {
		m.enterCall(p, call)
	}
}

// voidOutside closes the calls that wait at a gate and have no place in the phase.
func (m *Machine) voidOutside(p *phaseDef) {
	for _, s := range slices.Clone(m.run.Steps) {
		if s.Status != StepWaiting || s.Kind == KindAsk || s.By == ByUndo {
			continue
		}
		if s.By == ByEnter || s.Kind == KindMove || !slices.Contains(p.tools, s.Tool) {
			m.closeStep(s.ID, GateVoid, StepVoid, "the run moved to phase "+p.name)
		}
	}
}
