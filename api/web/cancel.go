package web

import (
	"fmt"
	"net/http"

	"interlock/agent"
	"interlock/api/access"
	"interlock/signals"
)

// cancelView is the page that says what a cancel would do, before it is sent.
type cancelView struct {
	Path, Address, ID string
	Status            statusView
	Scopes            []scopeView
	Running           []string // steps that end first
	Problem, Reason   string
}

// scopeView is what is undone before the run ends, and what stands.
type scopeView struct {
	Value, Label   string
	Chosen         bool
	Undone, Stands []cancelStep
}

type cancelStep struct{ ID, Text, Why string }

func showCancel(v *visit) error {
	f, err := v.find(access.Cancel)
	if err != nil {
		return err
	}
	return v.cancelPage(http.StatusOK, f, nil)
}

func (v *visit) cancelPage(status int, f found, problem error) error {
	run := f.run
	if run.Status.Ended() {
		return agent.Errorf(agent.CodeEnded, "the run has ended as %s: there is nothing to cancel", run.Status)
	}
	view := cancelView{Path: runPath(run.Agent, run.Key), Address: run.Address(), ID: newID("page-"), Status: runStatus(run.Status), Reason: v.form("reason")}
	if problem != nil {
		view.Problem = problem.Error()
	}
	for _, s := range run.Steps {
		if s.Status == agent.StepRunning {
			view.Running = append(view.Running, s.ID+" ("+s.Tool+")")
		}
	}
	for _, scope := range agent.UndoScopes {
		on := f.on()
		on.Undo = scope
		if access.Check(v.caller, access.Cancel, on) != nil {
			continue
		}
		s := scopeOf(run, scope)
		s.Chosen = v.form("undo") == s.Value || v.form("undo") == "" && scope == agent.UndoNone
		view.Scopes = append(view.Scopes, s)
	}
	return v.page(status, "cancel", "Cancel run "+run.Agent+"/"+run.Key, view)
}

// scopeOf says which steps a cancel would undo. A step that runs now may be among
// them by then: the run's end lists what stands.
func scopeOf(run *agent.Run, scope agent.UndoScope) scopeView {
	out := scopeView{Value: string(scope), Label: map[agent.UndoScope]string{
		agent.UndoNone: "Undo nothing", agent.UndoTurn: fmt.Sprintf("Undo what the latest turn (%d) did", run.Turn), agent.UndoRun: "Undo what the whole run did"}[scope]}
	for i := len(run.Steps) - 1; i >= 0; i-- {
		s := run.Steps[i]
		if s.Status != agent.StepDone && s.Status != agent.StepInDoubt || s.Key == "" {
			continue
		}
		step := cancelStep{ID: s.ID, Text: s.Tool + " " + s.Args.String()}
		wanted := scope == agent.UndoRun || scope == agent.UndoTurn && s.Turn == run.Turn
		switch {
		case !wanted:
			step.Why = "it is not asked to be undone"
		case s.Status == agent.StepInDoubt:
			step.Why = "nobody knows whether it happened"
		case s.Compensation == "":
			step.Why = "its tool has nothing that undoes it"
		default:
			step.Why = "by " + s.Compensation
			out.Undone = append(out.Undone, step)
			continue
		}
		out.Stands = append(out.Stands, step)
	}
	return out
}

func sendCancel(v *visit) error {
	undo := agent.UndoScope(v.form("undo"))
	f, err := v.find(access.Cancel)
	if err != nil {
		return err
	}
	on := f.on()
	on.Undo = undo
	if err := access.Check(v.caller, access.Cancel, on); err != nil {
		return v.audited(access.Cancel, f.chain.Address, err)
	}
	reason := v.form("reason")
	switch {
	case v.form("id") == "":
		return v.cancelPage(http.StatusUnprocessableEntity, f, agent.Errorf(agent.CodeInvalid, "the form is not whole: send it from here"))
	case reason == "":
		return v.cancelPage(http.StatusUnprocessableEntity, f, agent.Errorf(agent.CodeInvalid, "say why the run is cancelled: it is recorded"))
	}
	r, err := v.Starter.Cancel(v.ctx, f.chain.Address, signals.Cancel{ID: v.form("id"), Principal: v.caller.Principal(), Reason: reason, Undo: undo})
	if err = v.audited(access.Cancel, f.chain.Address, asError(r, err)); err != nil {
		if agent.ErrorCode(err) == agent.CodeInvalid {
			return v.cancelPage(http.StatusUnprocessableEntity, f, err)
		}
		return err
	}
	v.to(fmt.Sprintf("%s?after=%d", runPath(f.run.Agent, f.run.Key), r.Seq))
	return nil
}
