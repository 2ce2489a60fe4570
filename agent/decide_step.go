package agent

import (
	"fmt"
	"slices"
)

// stepFinished takes a result: it happened, whatever the state makes of it.
func (m *Machine) stepFinished(in StepFinished) {
	s := m.run.step(in.Step)
	if s == nil || s.Status != StepRunning {
		return
	}
	m.finish(s, StepDoneData{Result: in.Result, Whole: in.Whole, ActiveMS: in.ActiveMS}, in.Unkept)
}

// effectStands settles a step whose effect happened in an earlier branch: its
// gate has nothing to decide.
func (m *Machine) effectStands(in EffectStands) {
	s := m.run.step(in.Step)
	if s != nil && s.Status == StepInDoubt {
		m.closeDoubt(s.ID, "the ledger has learnt that it happened")
		m.finish(s, StepDoneData{Result: in.Result, Whole: in.Whole, Stood: true, Reason: "it was recorded after all"}, in.Unkept)
		return
	}
	if s == nil || s.Status != StepWaiting {
		return
	}
	m.emit(EventGateClosed, s.ID, GateClosedData{Gate: s.ID, Status: GateVoid, Reason: "it has happened already, before the run was reset"})
	m.finish(s, StepDoneData{Result: in.Result, Whole: in.Whole, Stood: true, Reason: "it had happened before the run was reset"}, in.Unkept)
}

// taken settles a step that happened, and takes its result into the state.
func (m *Machine) taken(s *Step, d StepDoneData, unkept string) {
	id, t := s.ID, m.def.tools[s.Tool]
	state, err := m.committed(s, d.Result, unkept)
	d.Uncommitted = err != nil
	m.emit(EventStepDone, id, d)
	if err != nil {
		m.emit(EventCommitRefused, id, CommitRefusedData{Reason: clip(err.Error(), reasonLimit)})
		return
	}
	m.set(origin{source: "tool", step: id}, state, t.verified(m.run.State, state))
}

// finish settles a step that happened, and what it undid.
func (m *Machine) finish(s *Step, d StepDoneData, unkept string) {
	id, undoes := s.ID, s.Undoes
	m.taken(s, d, unkept)
	if o := m.run.step(undoes); o != nil && o.Status == StepDone {
		m.emit(EventStepSettled, undoes, StepSettledData{Status: StepUndone, ForGood: true, By: id})
	}
}

// committed is the state that the tool's Commit makes of a result.
func (m *Machine) committed(s *Step, result JSON, unkept string) (JSON, error) {
	if unkept != "" {
		return nil, Errorf(CodeInvalid, "%s", unkept)
	}
	if size := len(result); size > m.run.Limits.Result {
		return nil, Errorf(CodeInvalid, "result_too_large: %d bytes, the limit is %d; the tool must name Keep", size, m.run.Limits.Result)
	}
	state, err := m.def.tools[s.Tool].commit(m.run.State, s.Args, result)
	if err != nil {
		return nil, err
	}
	return state, m.mayCommit(state, s.Seq)
}

// verified lists the fields that a result of the tool vouches for: those it
// names, and those it changed.
func (t *toolDef) verified(old, next JSON) []string {
	out := slices.Concat(t.verifies, changedFields(object(old), object(next)))
	slices.Sort(out)
	return slices.Compact(out)
}

// mayCommit checks a state that a Commit made: only fields that tools may set,
// none that follows a field which changed after the step started, no cap
// passed.
func (m *Machine) mayCommit(next JSON, started int64) error {
	for _, name := range changedFields(object(m.run.State), object(next)) {
		f, _ := m.def.field(name)
		if !f.Settable("tool") {
			return Errorf(CodeInvalid, "%s may not be set by a tool", name)
		}
		for up := f.Follows; up != ""; {
			if m.run.Provenance[up].Rev > started {
				return Errorf(CodeConflict, "stale: %s changed after this step started", up)
			}
			parent, _ := m.def.field(up)
			up = parent.Follows
		}
	}
	return m.fits(next)
}

// fits checks the caps of a state.
func (m *Machine) fits(state JSON) error {
	if len(state) > m.run.Limits.State {
		return Errorf(CodeInvalid, "state_too_large: %d bytes, the limit is %d", len(state), m.run.Limits.State)
	}
	if n := len(m.run.shown(state)); n > m.run.Limits.Shown {
		return Errorf(CodeInvalid, "state_too_large: %d bytes would be shown to the model, the limit is %d; tag large fields view:\"-\"", n, m.run.Limits.Shown)
	}
	return nil
}

// stepEnded takes any other end of a running step.
func (m *Machine) stepEnded(id string, d StepSettledData) {
	s := m.run.step(id)
	if s == nil || s.Status != StepRunning {
		return
	}
	m.emit(EventStepSettled, id, d)
	if d.Status == StepInDoubt && m.run.Cancel == nil {
		m.doubt(s)
	}
}

// commitment is a call that passed every check and is about to become a step.
type commitment struct {
	kind StepKind
	tool string
	args JSON
	by   StepSource
	call string
	gate *gateDef
	t    *toolDef // nil for a move
	// undoes is the step that it undoes, and undone the key of that step's effect;
	// nil and "" for all other calls. Of a step that the run holds no more only the
	// key is known.
	undoes *Step
	undone string
	// replaces is the step in whose place it stands: one that a person edited, or
	// whose policy has changed.
	replaces string
	editedBy string    // subject
	approval *Approval // the editor's, of the arguments as edited
	// from is the gate of the step in whose place it stands, where people had been
	// asked: they are asked at least as much again, and who asked for that asks for this.
	from *Gate
	// escalated: it has waited long enough at the gate of the step that it replaces.
	escalated bool
	// carried: people have approved it as the step that it replaces, and that holds still.
	carried bool
}

// nextID is the id of the next step: <turn>.<n>.
func (r *Run) nextID() string { return fmt.Sprintf("%d.%d", r.Turn, r.NextStep) }

// key names the present effect of a call in the ledger. In another scope, as of a
// fork whose effects are to be fresh, the same call has another.
func (r *Run) key(tool, effect string) string {
	return digest([]any{r.Scope(), tool, effect, r.Ordinals[effect]})
}

// effect is what makes two calls the same effect: tool and arguments, and of an undo
// the effect that it undoes, since a later one may have had the same result.
func (c commitment) effect() string {
	if c.undone != "" {
		return undoEffect(c.tool, c.args, c.undone)
	}
	return effectOf(c.tool, c.args)
}

// effectOf is the effect of a call that undoes nothing.
func effectOf(tool string, args JSON) string { return digest([]any{tool, args}) }

// commit makes a step of a call: running, or waiting at a gate that opens now.
func (m *Machine) commit(c commitment) {
	id := m.run.nextID()
	d := StepStartedData{Kind: c.kind, Tool: c.tool, Args: c.args, By: c.by, Call: c.call, Status: StepRunning}
	if c.t != nil && c.t.effect != ReadOnly {
		d.Effect = c.effect()
		if c.undoes != nil {
			d.Undoes = c.undoes.ID
		}
		d.Ordinal = m.run.Ordinals[d.Effect]
		d.Key = m.run.key(c.tool, d.Effect)
		d.Repeatable, d.Compensation = c.t.repeatable && c.undone == "", c.t.undo
	}
	d.Replaces, d.EditedBy, d.Reserves = c.replaces, c.editedBy, m.reserves(c)
	policy, needed := m.needsGate(c.gate, c.args)
	if !needed && c.editedBy != "" && c.from != nil {
		policy, needed = c.from.Policy, true
	}
	var g Gate
	if needed = needed && !c.carried; needed {
		g = m.newGate(id, c, policy)
		needed = !m.approvedByEditor(&g, c.approval)
	}
	if needed {
		d.Status = StepWaiting
	}
	m.emit(EventStepStarted, id, d)
	if needed {
		m.emit(EventGateOpened, id, GateOpenedData{Gate: g})
	}
}

// approvedByEditor counts an editor's approval, where the policy lets the editor
// decide, and reports whether it is enough.
func (m *Machine) approvedByEditor(g *Gate, a *Approval) bool {
	if a == nil || m.mayNot(*g, a.By) != "" {
		return false
	}
	if g.needs() == 1 {
		return true
	}
	g.Approvals = []Approval{*a}
	return false
}

// values are the present values of fields, null where one was never set.
func (m *Machine) values(fields []string) map[string]JSON { return m.run.values(fields) }

func (r *Run) values(fields []string) map[string]JSON {
	state := object(r.State)
	out := map[string]JSON{}
	for _, f := range fields {
		out[f] = encodeValue(state[f])
	}
	return out
}

// enterCall makes one call of code. A call that cannot be made is a refused
// step that the model is told of.
func (m *Machine) enterCall(p *phaseDef, call Call) {
	t, ok := m.def.tools[call.Tool]
	if !ok {
		panic(fmt.Sprintf("agent %s: Enter of phase %s calls tool %s, which the definition does not know: name it in Spec.Tools", m.def.Name, p.name, call.Tool))
	}
	refuse := func(args JSON, reason string) {
		id := m.run.nextID()
		m.emit(EventStepStarted, id, StepStartedData{Kind: KindTool, Tool: t.name, Args: args, By: ByEnter, Status: StepRefused, Reason: clip(reason, reasonLimit)})
	}
	text, err := Encode(call.Args)
	if err != nil {
		refuse(JSON("{}"), err.Error())
		return
	}
	args, err := m.arguments(t, text)
	if err != nil {
		refuse(JSON("{}"), err.Error())
		return
	}
	c, err := m.known(commitment{kind: KindTool, tool: t.name, args: args, by: ByEnter, gate: t.gate, t: t})
	if err != nil {
		refuse(args, err.Error())
		return
	}
	if reason := m.forbids(c, ""); reason != "" {
		refuse(c.args, reason)
		return
	}
	m.commit(c)
}

// maxOrdinals bounds the effects whose calls are counted: the counts must never
// be forgotten, and are carried in every snapshot.
const maxOrdinals = 1000

// forbids says why a call with good arguments may not be made now: a binding
// ruling, too much under way, or the same effect under way. instead is the step
// whose place it would take.
func (m *Machine) forbids(c commitment, instead string) string {
	t, args := c.t, c.args
	if r := m.ruling(t.name, args); r != nil {
		return fmt.Sprintf("%s rejected this (%s); it stays refused while %s unchanged", r.By.Subject, r.Reason, unchanged(r.Reads))
	}
	if reason := m.needsYes(c, instead); reason != "" {
		return reason
	}
	open, steps := len(args), 0
	for _, s := range m.run.Steps {
		if s.Status.Open() && s.ID != instead {
			open, steps = open+len(s.Args), steps+1
		}
	}
	if steps >= maxCalls {
		return fmt.Sprintf("%d calls are under way already; wait for them or withdraw one", steps)
	}
	if open > m.run.Limits.State {
		return fmt.Sprintf("the calls that are under way would hold %d bytes of arguments, the limit is %d; wait for them or withdraw one", open, m.run.Limits.State)
	}
	effect, repeats := c.effect(), t.repeatable && c.undone == ""
	if _, known := m.run.Ordinals[effect]; repeats && !known && len(m.run.Ordinals) >= maxOrdinals {
		return fmt.Sprintf("the run has made %d different repeatable calls and remembers no more; start a new run for the rest", maxOrdinals)
	}
	if t.effect == ReadOnly || repeats {
		return ""
	}
	for _, s := range m.run.Steps {
		if s.Effect == effect && s.Status.Open() && s.ID != instead {
			return fmt.Sprintf("the same call is step %s already, which is %s", s.ID, s.Status)
		}
		if s.Effect == effect && s.Status == StepDone && m.run.undoOf(s.ID) != nil {
			return fmt.Sprintf("the same call happened as step %s, which is being undone; wait for what becomes of that", s.ID)
		}
	}
	return ""
}

func unchanged(reads []string) string {
	switch len(reads) {
	case 0:
		return "it is not lifted and the run is"
	case 1:
		return reads[0] + " is"
	}
	out := reads[0]
	for _, r := range reads[1:] {
		out += " and " + r
	}
	return out + " are"
}

// ruling is the one that binds a call now, nil where none does.
func (m *Machine) ruling(tool string, args JSON) *Ruling {
	for i := range m.run.Rulings {
		if r := &m.run.Rulings[i]; r.Tool == tool && r.Args == digest(args) && m.binds(*r) {
			return r
		}
	}
	return nil
}
