package agent

import "strings"

// Repair is what a repair run does: it undoes steps of a run that has ended. Its
// machine has neither phase nor model; the state is the one that the run ended
// with, and the effects are unique in that run's scope, so that two repairs of one
// step are one effect.
type Repair struct {
	Address    string       `json:"address"` // of the run that has ended
	FirstRunID string       `json:"first_run_id"`
	Scope      string       `json:"scope"` // what its effects are unique in
	Turn       int          `json:"turn"`  // from which the repair's steps are numbered: no step of the run has it
	ID         string       `json:"id"`    // of the request
	Reason     string       `json:"reason"`
	Steps      []RepairStep `json:"steps"` // in the order in which they are undone
	// Ordinals are those of the undos that were refused for good before.
	Ordinals map[string]int `json:"ordinals,omitempty"`
	State    JSON           `json:"state,omitempty"`
}

// RepairStep is a step that happened, as the journal of its run has it.
type RepairStep struct {
	ID           string `json:"id"`
	Tool         string `json:"tool"`
	Compensation string `json:"compensation"`
	Args         JSON   `json:"args"`
	Result       JSON   `json:"result"`
	Key          string `json:"key"`
	Effect       string `json:"effect"`
	Ordinal      int    `json:"ordinal,omitempty"`
	Turn         int    `json:"turn,omitempty"`
	Seq          int64  `json:"seq"`
}

// Repaired names the run that a repair run undoes steps of.
type Repaired struct {
	Address    string `json:"address"`
	FirstRunID string `json:"first_run_id"`
}

// RepairOf makes a repair of a run that has ended from its journal, whole. It
// fails as an undo of the living run would, and says why; but steps that the run
// had let go of can be undone too.
func RepairOf(events []Event, in UndoSteps) (*Repair, error) {
	if err := CheckUndo(in.Steps, in.Reason); err != nil {
		return nil, err
	}
	r := &Run{}
	for _, e := range events {
		if e.Type != EventTrimmed {
			if err := tryApply(r, e); err != nil {
				return nil, err
			}
		}
	}
	r.Undo, r.Cancel = nil, nil // nothing is under way any more
	steps, err := r.undoables(in.Steps)
	if err != nil {
		return nil, err
	}
	p := &Repair{Address: r.Address(), FirstRunID: r.FirstRunID, Scope: r.Scope(), Turn: r.Turn + 1, ID: in.ID, Reason: in.Reason, State: r.State}
	for _, s := range steps {
		p.Steps = append(p.Steps, RepairStep{ID: s.ID, Tool: s.Tool, Compensation: s.Compensation, Args: s.Args, Result: s.Result,
			Key: s.Key, Effect: s.Effect, Ordinal: s.Ordinal, Turn: s.Turn, Seq: s.Seq})
		effect := undoEffect(s.Compensation, undoArgs(s), s.Key)
		if n := r.Ordinals[effect]; n > 0 {
			if p.Ordinals == nil {
				p.Ordinals = map[string]int{}
			}
			p.Ordinals[effect] = n
		}
	}
	return p, nil
}

// StepIDs are the steps that are undone, the last first.
func (p *Repair) StepIDs() (out []string) {
	for _, s := range p.Steps {
		out = append(out, s.ID)
	}
	return out
}

// data is the repair as the run's first event has it.
func (p *Repair) data() *Repair {
	if p == nil {
		return nil
	}
	out := *p
	out.State = nil
	return &out
}

func (p *Repair) scope() string {
	if p == nil {
		return ""
	}
	return p.Scope
}

// repair puts the steps that are to be undone into the run, as they happened.
func (r *Run) repair(p Repair) {
	r.Repairs = &Repaired{Address: p.Address, FirstRunID: p.FirstRunID}
	r.Turn, r.Ordinals = p.Turn, p.Ordinals
	for _, s := range p.Steps {
		r.Steps = append(r.Steps, Step{ID: s.ID, Kind: KindTool, Tool: s.Tool, Args: s.Args, By: ByEnter, Status: StepDone, Turn: s.Turn, Seq: s.Seq,
			Key: s.Key, Effect: s.Effect, Ordinal: s.Ordinal, Result: s.Result, Compensation: s.Compensation})
	}
}

// startRepair opens a repair run: without Init, without a phase, without the
// model.
func (m *Machine) startRepair(p Repair) {
	state, err := m.def.checkState(p.State)
	if err == nil && !strings.HasPrefix(p.Scope, m.run.Tenant+"/"+m.run.Agent+"/") {
		err = Errorf(CodeInvalid, "scope %q is none of a run of agent %s of tenant %s", clip(p.Scope, idLimit), m.run.Agent, m.run.Tenant)
	}
	if err == nil {
		err = m.fits(state)
	}
	var steps []string
	if err == nil {
		steps, err = m.undoables(p.StepIDs(), p.Reason)
	}
	if err != nil {
		m.emit(EventFailed, "", EndedData{Reason: clip("repair refused: "+err.Error(), reasonLimit)})
		return
	}
	m.emit(EventStateSet, "", StateSetData{Patch: state, Source: SourceRepair, Fields: changedFields(object(m.def.zero), object(state))})
	m.emit(EventUndoRequested, "", UndoRequestedData{ID: p.ID, Principal: m.run.Principal, Steps: steps, Reason: clip(p.Reason, reasonLimit),
		Body: undoBody(p.StepIDs(), p.Reason)})
}

// SourceRepair is the source of the state that a repair run begins with.
const SourceRepair = "repair"

// repaired ends a repair run once every step has been undone or stands.
func (m *Machine) repaired() {
	if m.run.undoing() == nil {
		m.emit(EventCompleted, "", EndedData{Failed: m.run.standing()})
	}
}
