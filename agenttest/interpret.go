package agenttest

import (
	"slices"

	"interlock/agent"
	"interlock/llm"
	"interlock/tool"
)

// entry is an input on its way to the machine, with its sender's receipt.
type entry struct {
	input   agent.Input
	trace   string
	receipt agent.Receipt
}

// modelCall is a model call under way.
type modelCall struct {
	view     agent.View
	request  llm.Request
	standing []agent.EffectStands // what its ride found out
	lookups  []agent.Task         // that it carried
}

// stepRun is a step under way.
type stepRun struct {
	task     agent.Task
	standing []agent.EffectStands
	lookups  []agent.Task
}

func (r *Run) push(in agent.Input) *entry {
	e := &entry{input: in}
	r.queue = append(r.queue, e)
	return e
}

// drive takes one input after the other until there is none. What a tool's
// function or a model sends to the run meanwhile is taken in the same order.
func (r *Run) drive() {
	r.t.Helper()
	if r.driving {
		return
	}
	r.driving = true
	defer func() { r.driving = false }()
	for len(r.queue) > 0 {
		e := r.queue[0]
		r.queue = r.queue[1:]
		r.take(e)
	}
}

func (r *Run) take(e *entry) {
	r.t.Helper()
	commands, receipt := r.step(r.now, e.trace, e.input)
	e.receipt = receipt
	// Gates first: whatever activity comes next asks about their effects.
	for _, c := range commands {
		switch c := c.(type) {
		case agent.OpenGate:
			if c.Lookup != nil {
				r.lookups = append(r.lookups, *c.Lookup)
			}
		case agent.Resolve:
			r.resolve(c)
		}
	}
	for _, c := range commands {
		r.launch(c)
	}
}

func (r *Run) launch(c agent.Command) {
	r.t.Helper()
	switch c := c.(type) {
	case agent.CallModel:
		r.callModel(c.View)
	case agent.CancelModel:
		if r.open != nil && r.open.view.Turn == c.Turn {
			r.lookups = append(r.lookups, r.open.lookups...)
			r.open = nil
		}
	case agent.RunStep:
		r.runStep(c.Task)
	case agent.CancelStep:
		r.cancelStep(c.Step)
	case agent.StopStep:
		if !slices.ContainsFunc(r.held, func(s *stepRun) bool { return s.task.Step == c.Task.Step }) {
			r.fence(c.Task) // nothing of it runs
		}
	case agent.OpenGate:
		if c.ExpiresAt != nil {
			r.timers[c.Gate] = *c.ExpiresAt
		}
		if c.EscalatesAt != nil {
			r.timers[c.Gate+" escalation"] = *c.EscalatesAt
		}
	case agent.SetPending:
		r.timers[c.Gate+" pending"] = c.Until
	case agent.SetIdle:
		r.timers[idleTimer] = c.At
	case agent.CloseGate:
		delete(r.timers, c.Gate)
		delete(r.timers, c.Gate+" escalation")
		delete(r.timers, c.Gate+" pending")
	case agent.Record:
		standing, _ := r.ride()
		r.carried(standing)
	case agent.Finish, agent.Resolve:
	default:
		r.t.Fatalf("agenttest: unknown command %T", c)
	}
}

// idleTimer is the name of the one timer that is no gate's.
const idleTimer = "idle"

// resolve settles an effect as a person found out. What the ledger holds otherwise
// stays, as it does in a run.
func (r *Run) resolve(c agent.Resolve) {
	if row, _ := r.ledger.Row(r.t.Context(), c.Task); row == nil || row.Settled != nil {
		return
	}
	_ = r.ledger.Settle(r.t.Context(), c.Task, tool.Settlement{Refused: c.Refused, Result: tool.Result{JSON: c.Result}})
	if c.Refused == "" {
		r.undone(c.Task)
	}
}

// undone marks what a task has undone: its effect stands no more. What the ledger
// holds otherwise stays, as it does in a run.
func (r *Run) undone(task agent.Task) {
	r.t.Helper()
	original, ok := task.Undone()
	if !ok {
		return
	}
	run, ok := r.runners[original.Tool]
	if !ok {
		run = r.shadow(original.Tool, nil)
	}
	if err := run.Undone(r.t.Context(), original, task.Key, r.ports()); err != nil && agent.ErrorCode(err) != agent.CodeConflict {
		r.t.Fatalf("agenttest: record that step %s was undone: %v", original.Step, err)
	}
}

// ride is what an activity finds out that carries the look-ups.
func (r *Run) ride() (standing []agent.EffectStands, lookups []agent.Task) {
	r.t.Helper()
	lookups, r.lookups = r.lookups, nil
	for _, task := range lookups {
		result, ok, err := r.standing(task)
		if err != nil {
			r.t.Fatalf("agenttest: look-up of the effect of step %s, %s: %v", task.Step, task.Tool, err)
		}
		if ok {
			r.undone(task)
			standing = append(standing, agent.EffectStands{Step: task.Step, Result: result.JSON, Whole: result.Whole, Unkept: result.Unkept})
		}
	}
	return standing, lookups
}

func (r *Run) carried(standing []agent.EffectStands) {
	for _, s := range standing {
		r.push(s)
	}
}

func (r *Run) callModel(v agent.View) {
	r.t.Helper()
	call := &modelCall{view: v}
	call.standing, call.lookups = r.ride()
	req, err := r.request(v)
	if err != nil {
		r.t.Fatalf("agenttest: the context of turn %d cannot be rendered: %v", v.Turn, err)
	}
	call.request, r.asked = req, &req
	if r.model == nil {
		r.open = call
		return
	}
	r.answer(call, r.model)
}

func (r *Run) runStep(task agent.Task) {
	r.t.Helper()
	s := &stepRun{task: task}
	info, _ := r.def.Tool(task.Tool)
	if !info.Quick { // a quick tool carries nothing
		s.standing, s.lookups = r.ride()
	}
	if run, ok := r.runners[task.Tool]; ok {
		r.finish(s, run, attempts)
		return
	}
	r.held = append(r.held, s)
}

// cancelStep lets go of a step that only reads. One with an effect is stopped: the
// test says what came of it, with Stops, Done or Fail.
func (r *Run) cancelStep(id string) {
	for i, s := range r.held {
		if s.task.Step == id && s.task.Effect == agent.ReadOnly {
			r.held = append(r.held[:i:i], r.held[i+1:]...)
			r.lookups = append(r.lookups, s.lookups...)
			return
		}
	}
}
