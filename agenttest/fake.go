package agenttest

import (
	"context"
	"errors"
	"reflect"
	"runtime/debug"
	"slices"

	"interlock/agent"
	"interlock/tool"
)

// attempts is how often a step's function is called that fails without having
// been refused for good: as often as a worker tries a ReadOnly tool. It stands
// for all attempts that fit into the tool's deadline.
const attempts = tool.ReadAttempts

// Fake runs a tool's steps by f, the steps that run now included. A result goes
// through JSON and the limit as a real one does, but through no Keep. An error
// says what is known, as one of the tool's own function would ([Run.Fail]); f is
// called up to three times before it counts. The same call of a tool with an
// effect is the same effect: f is not called for it again.
//
// f may use the run: it then does so while the step runs.
func Fake[A, R any](r *Run, name string, f func(A) (R, error)) {
	r.t.Helper()
	args, result := r.types(name)
	if args == nil {
		r.t.Fatalf("agenttest: tool %s was not made by package tool: end its steps by Done and Fail", name)
	}
	if a, b := reflect.TypeFor[A](), reflect.TypeFor[R](); a != args || b != result {
		r.t.Fatalf("agenttest: tool %s takes %s and gives %s; the fake takes %s and gives %s", name, args, result, a, b)
	}
	r.serve(name, r.shadow(name, func(j agent.JSON) (agent.JSON, error) {
		a, err := decode[A](j)
		if err != nil {
			return nil, tool.Refused(err)
		}
		out, err := f(a)
		if err != nil {
			return nil, err
		}
		return agent.Encode(out)
	}))
}

// Real runs steps by the tools' own functions, the steps that run now included;
// without names those of all tools that have no fake. A Transactional tool then
// needs its database.
func (r *Run) Real(tools ...string) {
	r.t.Helper()
	all := len(tools) == 0
	if all {
		for _, info := range r.def.Tools() {
			tools = append(tools, info.Name)
		}
	}
	for _, name := range tools {
		if _, faked := r.runners[name]; all && faked {
			continue
		}
		r.tool(name)
		runner, ok := tool.RunnerOf(r.def, name)
		if !ok {
			r.t.Fatalf("agenttest: tool %s was not made by package tool: it has no function to run", name)
		}
		r.serve(name, runner)
	}
}

// Unknown makes an error of which nobody knows whether the effect happened: the
// step is in doubt.
func Unknown(err error) error {
	return &tool.Failure{Kind: tool.FailedUnknown, Err: err, Open: true}
}

func decode[T any](j agent.JSON) (v T, err error) {
	err = unmarshal(j, &v)
	return v, err
}

func (r *Run) tool(name string) agent.ToolInfo {
	r.t.Helper()
	info, ok := r.def.Tool(name)
	if !ok {
		var have []string
		for _, t := range r.def.Tools() {
			have = append(have, t.Name)
		}
		r.t.Fatalf("agenttest: agent %s has no tool %s; it has %v", r.def.Name, name, have)
	}
	return info
}

// types are those of a tool's arguments and result, nil where its source does
// not say.
func (r *Run) types(name string) (args, result reflect.Type) {
	r.t.Helper()
	source, ok := r.tool(name).Source.(tool.Runner)
	if !ok {
		return nil, nil
	}
	spec := reflect.ValueOf(source).MethodByName("Spec").Call(nil)[0]
	args, _ = spec.FieldByName("Args").Interface().(reflect.Type)
	result, _ = spec.FieldByName("Result").Interface().(reflect.Type)
	return args, result
}

func (r *Run) checkType(name, what string, v any) {
	r.t.Helper()
	_, want := r.types(name)
	if got := reflect.TypeOf(v); want != nil && got != want {
		r.t.Fatalf("agenttest: the %s of tool %s is a %s, not a %v", what, name, want, got)
	}
}

// serve gives a tool a function, and runs the steps that wait for one.
func (r *Run) serve(name string, run tool.Runner) {
	r.t.Helper()
	r.runners[name] = run
	held := r.held
	r.held = nil
	for _, s := range held {
		if s.task.Tool == name {
			r.finish(s, run, attempts)
		} else {
			r.held = append(r.held, s)
		}
	}
	r.drive()
}

// shadow is a tool under the same name and nearly the same effect, with another
// function and no database.
func (r *Run) shadow(name string, f func(args agent.JSON) (agent.JSON, error)) tool.Runner {
	r.t.Helper()
	info := r.tool(name)
	loud := func(_ context.Context, args agent.JSON) (agent.JSON, error) {
		defer func() {
			if p := recover(); p != nil {
				r.t.Errorf("agenttest: the fake of tool %s panicked: %v\n%s", name, p, debug.Stack())
				panic(p)
			}
		}()
		return f(args)
	}
	switch info.Effect {
	case agent.ReadOnly:
		return tool.ReadOnly[struct{}](name, loud, nil).Within(info.Timeout, info.Deadline)
	case agent.Once:
		return tool.Once[struct{}](name, loud, nil).Within(info.Timeout, info.Deadline)
	}
	return tool.Keyed[struct{}](name, func(ctx context.Context, _ tool.Key, args agent.JSON) (agent.JSON, error) {
		out, err := loud(ctx, args)
		var known *tool.Failure
		if err != nil && info.Effect == agent.Transactional && !tool.IsRefused(err) && !errors.As(err, &known) {
			err = tool.NotApplied(err) // rolled back
		}
		return out, err
	}, nil).Within(info.Timeout, info.Deadline)
}

// finish runs a step's attempts and tells the machine how it ended.
func (r *Run) finish(s *stepRun, run tool.Runner, tries int) {
	r.t.Helper()
	info, _ := r.def.Tool(s.task.Tool)
	result, err := r.attempt(run, s.task, info, tries)
	r.ended(s, result, err)
}

// ended tells the machine how a step ended.
func (r *Run) ended(s *stepRun, result tool.Result, err error) {
	r.t.Helper()
	if err != nil {
		r.lookups = append(r.lookups, s.lookups...)
		in := failed(s.task, err)
		refused, _ := in.(agent.StepNotApplied)
		if step := r.machine.Run().Steps; !refused.ForGood && slices.ContainsFunc(step, func(x agent.Step) bool { return x.ID == s.task.Step && x.Stopping != nil }) {
			r.fence(s.task)
			return
		}
		r.push(in)
		return
	}
	r.undone(s.task)
	r.carried(s.standing)
	r.push(agent.StepFinished{Step: s.task.Step, Result: result.JSON, Whole: result.Whole, Unkept: result.Unkept})
}

// fence tells the machine how a step stands that was told to stop, as a workflow does.
func (r *Run) fence(task agent.Task) {
	r.t.Helper()
	s := r.Step(task.Step)
	reason, undo := "it was told to stop", false
	if s.Stopping != nil {
		reason, undo = s.Stopping.Reason, s.Stopping.Undo
	}
	run, ok := r.runners[task.Tool].(tool.Fencer)
	if !ok {
		run = r.shadow(task.Tool, nil).(tool.Fencer)
	}
	result, err := run.Fence(r.t.Context(), task, reason, r.ports())
	var f *tool.Failure
	switch errors.As(err, &f); {
	case err == nil:
		r.undone(task)
		r.push(agent.StepFinished{Step: task.Step, Result: result.JSON, Whole: result.Whole, Unkept: result.Unkept})
	case f != nil && f.Kind == tool.FailedFenced:
		r.push(agent.StepStopped{Step: task.Step})
	case f != nil && f.Kind == tool.FailedRefused:
		r.push(agent.StepNotApplied{Step: task.Step, Reason: f.Error(), ForGood: true})
	case undo:
		r.push(agent.StepUnknown{Step: task.Step, Reason: err.Error()})
	default:
		r.push(agent.StepBegun{Step: task.Step, Reason: err.Error()})
	}
}

func (r *Run) attempt(run tool.Runner, task agent.Task, info agent.ToolInfo, tries int) (tool.Result, error) {
	for n := 1; ; n++ {
		ctx, cancel := context.WithTimeout(r.t.Context(), info.Timeout)
		result, err := run.Attempt(ctx, task, r.ports())
		cancel()
		var f *tool.Failure
		if err == nil || n >= tries || errors.As(err, &f) && (f.Kind == tool.FailedRefused || f.Kind == tool.FailedFenced || f.Kind == tool.FailedInDoubt) {
			return result, err
		}
	}
}

// failed says what is known of a step whose attempts have ended, as a workflow
// does.
func failed(task agent.Task, err error) agent.Input {
	var f *tool.Failure
	if errors.As(err, &f) {
		switch {
		case f.Kind == tool.FailedFenced:
			return agent.StepStopped{Step: task.Step}
		case f.Kind == tool.FailedRefused:
			return agent.StepNotApplied{Step: task.Step, Reason: f.Error(), ForGood: true}
		case f.Kind == tool.FailedNotApplied && !f.Open:
			return agent.StepNotApplied{Step: task.Step, Reason: f.Error()}
		}
	}
	if task.Effect == agent.ReadOnly && (f == nil || f.Kind != tool.FailedUnknown && f.Kind != tool.FailedInDoubt) {
		return agent.StepNotApplied{Step: task.Step, Reason: err.Error()}
	}
	return agent.StepUnknown{Step: task.Step, Reason: err.Error()}
}

// standing asks whether a step's effect has happened already.
func (r *Run) standing(task agent.Task) (tool.Result, bool, error) {
	run, ok := r.runners[task.Tool]
	if !ok {
		run = r.shadow(task.Tool, nil)
	}
	return run.Standing(r.t.Context(), task, r.ports())
}

func (r *Run) ports() tool.Ports {
	return tool.Ports{Ledger: r.ledger, Keep: func(_ context.Context, whole []byte) (agent.Blob, error) {
		b := agent.Blob{Ref: digestOf(whole), Bytes: len(whole)}
		r.blobs[b.Ref] = whole
		return b, nil
	}}
}
