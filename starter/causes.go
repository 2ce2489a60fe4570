package starter

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"

	"interlock/agent"
	"interlock/signals"
)

// causes are what a run may wait for, what matters most first: it has ended; it
// is blocked; it was stopped; something outside is down; a person must decide;
// it is at work. The last one always applies.
func (l *look) causes() []func() (finding, bool) {
	return []func() (finding, bool){
		l.hasEnded, l.wasClosed, l.isForgotten, l.taskFails, l.lostEvents, l.behind, l.diverged, l.notDeployed, l.storeDown, l.noWorker,
		l.cancelling, l.paused, l.modelDown, l.unjudged, l.held, l.stepFails, l.inDoubt, l.atGates, l.forUser, l.atWork,
	}
}

func (l *look) hasEnded() (finding, bool) {
	status, reason := l.runStatus()
	if !status.Ended() {
		return finding{}, false
	}
	f := finding{"has ended: " + string(status), "interlock run get " + l.address}
	if l.row != nil && l.row.EndedAt != nil {
		f.sentence += " at " + stamp(*l.row.EndedAt)
	}
	if reason != "" {
		f.sentence += " (" + brief(reason) + ")"
	}
	switch {
	case l.run == nil || len(l.run.FailedEnd) == 0:
	case l.run.Repairs != nil:
		f.sentence += "; not undone: " + strings.Join(l.run.FailedEnd, ", ")
		f.next = "interlock step undo " + l.address + " STEP --reason …, to try again"
	default:
		f.sentence += "; left: " + strings.Join(l.run.FailedEnd, ", ")
	}
	return f, true
}

// wasClosed: Temporal closed it, and it could not say so itself.
func (l *look) wasClosed() (finding, bool) {
	if !l.known() || l.running() {
		return finding{}, false
	}
	f := finding{fmt.Sprintf("was closed in Temporal as %s at %s", statusWord(l.status), stamp(l.closedAt)), ""}
	if l.closing != "" {
		f.sentence += ": " + l.foreign(l.closing)
	}
	if l.row != nil {
		f.sentence += fmt.Sprintf("; its journal ends at event %d, %s", l.row.Seq, state(l.row.Head.Status, l.row.Head.Reason))
	}
	for _, e := range l.effects {
		f.sentence += fmt.Sprintf("; nobody knows whether step %s (%s) happened", e.Step, e.Tool)
	}
	switch {
	case l.status == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		f.next = "interlock run get " + l.address
	case l.kind == signals.ErrKeyUsed || l.kind == signals.ErrConflict:
		f.next = "interlock run start under a new key"
	case l.kind == signals.ErrInvalid:
		f.next = "mend the start input, and interlock run start under a new key"
	default:
		f.next = fmt.Sprintf("temporal workflow reset --workflow-id %s --type LastWorkflowTask --reason …, to let it go on; or interlock run start under a new key", l.address)
	}
	return f, true
}

func statusWord(s enums.WorkflowExecutionStatus) string { return strings.ToLower(s.String()) }

func state(status agent.RunStatus, reason string) string {
	if reason == "" {
		return string(status)
	}
	return fmt.Sprintf("%s (%s)", status, brief(reason))
}

// isForgotten: the journal has it open, and Temporal does not know it.
func (l *look) isForgotten() (finding, bool) {
	if !l.missing {
		return finding{}, false
	}
	return finding{fmt.Sprintf("is not known to Temporal, though its journal, which ends at event %d, has it as %s: it was deleted there, or lives in another namespace",
		l.row.Seq, state(l.row.Head.Status, l.row.Head.Reason)), "look for it in the right namespace; else interlock run export " + l.address}, true
}

func (l *look) diverged() (finding, bool) {
	a, ok := l.failing(func(p Pending) bool { return p.ofKind(signals.ErrDiverged) })
	if !ok {
		return finding{}, false
	}
	return finding{fmt.Sprintf("diverged: %s (%s)", l.failure(a), a.tries()),
		fmt.Sprintf("deploy the code that wrote the journal; or, so that the run decides anew from there, temporal workflow reset --workflow-id %s --event-id ID --reason …: "+
			"ID is the last WorkflowTaskCompleted in temporal workflow show --workflow-id %s before that event of the journal was recorded (interlock run events %s says when)", l.address, l.address, l.address)}, true
}

// lostEvents: the journal lacks what it had acknowledged. A reset would only have the
// run forget what it did after the copy was made.
func (l *look) lostEvents() (finding, bool) {
	a, ok := l.failing(func(p Pending) bool { return p.ofKind(signals.ErrLost) })
	if !ok {
		return finding{}, false
	}
	return finding{fmt.Sprintf("cannot go on: %s (%s)", l.failure(a), a.tries()), l.afterLoss()}, true
}

// behind: the run knows of events that the journal does not have, and has not asked
// the store since.
func (l *look) behind() (finding, bool) {
	if l.ahead == 0 {
		return finding{}, false
	}
	return finding{fmt.Sprintf("is ahead of the store, which has lost events: the run is at event %d (%s), and its journal ends at event %d: lists and inboxes do not show what came after",
		l.ahead, state(l.run.Status, l.run.Reason), l.row.Seq), l.afterLoss()}, true
}

func (l *look) afterLoss() string {
	return fmt.Sprintf("bring the missing events back: a later copy of the database, or the server that has them; the run then goes on by itself. "+
		"Where there is none, interlock store restored --reason …, find out on the other side what its steps have done (temporal workflow show --workflow-id %s has them), "+
		"and temporal workflow terminate --workflow-id %s --reason …; do not reset it: that would do again what the ledger does not know any more", l.address, l.address)
}

func (l *look) notDeployed() (finding, bool) {
	a, ok := l.failing(func(p Pending) bool { return p.ofKind(signals.ErrNotDeployed) })
	if !ok {
		return finding{}, false
	}
	return finding{fmt.Sprintf("blocked: %s (%s)", l.failure(a), a.tries()), "deploy a worker that has it"}, true
}

func (l *look) storeDown() (finding, bool) {
	a, ok := l.failing(Pending.store)
	if !ok {
		return finding{}, false
	}
	return finding{fmt.Sprintf("its events cannot be recorded (%s): %s", a.tries(), l.failure(a)), "mend the store; the run goes on by itself"}, true
}

func (l *look) cancelling() (finding, bool) {
	if l.run == nil || l.run.Cancel == nil {
		return finding{}, false
	}
	f := finding{"is being cancelled", "wait: interlock run watch " + l.address}
	if running := l.steps(agent.StepRunning); len(running) > 0 {
		f.sentence += " and waits for the end of step " + strings.Join(running, ", ")
	}
	if undo := l.run.Cancel.Undo; undo != "" {
		f.sentence += map[agent.UndoScope]string{agent.UndoTurn: "; what its latest turn did is undone first", agent.UndoRun: "; what it did is undone first"}[undo]
	}
	for _, g := range l.gates { // only an undo's can be open
		f.sentence += fmt.Sprintf("; it waits for %s at gate %s (%s)", deciders(g.Roles), g.ID, brief(g.Title))
		f.next = "interlock gate show " + l.address + " " + g.ID
	}
	if a, ok := l.failing(func(Pending) bool { return true }); ok {
		f.sentence += fmt.Sprintf(", which fails (%s): %s", a.tries(), l.failure(a))
	}
	return f, true
}

func (l *look) paused() (finding, bool) {
	status, reason := l.runStatus()
	if status != agent.RunPaused {
		return finding{}, false
	}
	return finding{fmt.Sprintf("paused (%s) since %s", brief(reason), stamp(l.since())), "interlock run resume " + l.address}, true
}

// since is since when the run is as it is; of a run that does not keep that, when
// its last event was.
func (l *look) since() time.Time {
	if l.run != nil && !l.run.Since.IsZero() {
		return l.run.Since
	}
	if l.row != nil {
		return l.row.UpdatedAt
	}
	return l.run.At
}

func (l *look) modelDown() (finding, bool) {
	a, ok := l.failing(func(p Pending) bool { return p.Type == signals.ActivityCallModel })
	if !ok {
		return finding{}, false
	}
	f := finding{"the model cannot be reached", "wait, or interlock run pause " + l.address}
	if l.run != nil && len(l.run.Turns) > 0 {
		f.sentence += " since " + stamp(l.run.Turns[len(l.run.Turns)-1].At)
	}
	f.sentence += fmt.Sprintf(" (%s): %s", a.tries(), l.failure(a))
	return f, true
}

// unjudged: nobody can say whether who approved a step still may.
func (l *look) unjudged() (finding, bool) {
	a, ok := l.failing(func(p Pending) bool { return p.ofKind(signals.ErrUnjudged) })
	if !ok {
		return finding{}, false
	}
	return finding{fmt.Sprintf("waits to start an approved step (%s, %s): %s", a.Type, a.tries(), l.failure(a)),
		"mend what the workers look roles up in (tokens.revoked); the run goes on by itself"}, true
}

// held: an operator keeps a tool's effects from starting.
func (l *look) held() (finding, bool) {
	a, ok := l.failing(func(p Pending) bool { return p.ofKind(signals.ErrHeld) })
	if !ok {
		return finding{}, false
	}
	return finding{fmt.Sprintf("waits: %s (%s)", l.failure(a), a.Type), "interlock hold list, and interlock hold release once it may go on"}, true
}

// stepFails: a tool is tried again and again.
func (l *look) stepFails() (finding, bool) {
	a, ok := l.failing(func(Pending) bool { return true })
	if !ok {
		return finding{}, false
	}
	what := a.Type
	_, tool, _ := strings.Cut(a.Type, ".")
	if l.run != nil {
		for _, s := range l.run.Steps {
			if s.Status == agent.StepRunning && s.Tool == tool {
				what = "step " + s.ID + " (" + a.Type + ")"
			}
		}
	}
	return finding{fmt.Sprintf("%s fails (%s): %s", what, a.tries(), l.failure(a)), "wait, or interlock run cancel " + l.address}, true
}

func (l *look) inDoubt() (finding, bool) {
	if l.run == nil {
		return finding{}, false
	}
	i := slices.IndexFunc(l.run.Steps, func(s agent.Step) bool { return s.Status == agent.StepInDoubt })
	if i < 0 {
		return finding{}, false
	}
	s := l.run.Steps[i]
	f := finding{fmt.Sprintf("nobody knows whether step %s (%s) happened: %s", s.ID, s.Tool, brief(s.Reason)), "find out, and interlock run cancel " + l.address}
	for _, g := range l.gates {
		if g.Kind == agent.KindDoubt && g.Step == s.ID {
			f.next = "interlock gate show " + l.address + " " + g.ID
		}
	}
	if more := len(l.steps(agent.StepInDoubt)) - 1; more > 0 {
		f.sentence += fmt.Sprintf("; and %d more", more)
	}
	return f, true
}

func (l *look) steps(status agent.StepStatus) (out []string) {
	for _, s := range l.run.Steps {
		if s.Status == status {
			out = append(out, s.ID+" ("+s.Tool+")")
		}
	}
	return out
}

// atGates: a person other than the user must decide.
func (l *look) atGates() (finding, bool) {
	var open []agent.Gate
	for _, g := range l.gates {
		if g.Kind != agent.KindAsk {
			open = append(open, g)
		}
	}
	if status, _ := l.runStatus(); len(open) == 0 || status == agent.RunRunning {
		return finding{}, false
	}
	g := open[0]
	f := finding{fmt.Sprintf("waits for %s at gate %s (%s)", deciders(g.Roles), g.ID, brief(g.Title)), "interlock gate show " + l.address + " " + g.ID}
	if g.Quorum > 1 {
		f.sentence += fmt.Sprintf(", approved by %d of %d", len(g.Approvals), g.Quorum)
	}
	if g.ExpiresAt != nil {
		f.sentence += " until " + stamp(*g.ExpiresAt)
	}
	if e := g.Escalation; e != nil && !e.Done {
		f.sentence += fmt.Sprintf(", from %s also for role %s", stamp(e.At), strings.Join(e.Roles, " or "))
	}
	if more := len(open) - 1; more > 0 {
		f.sentence += fmt.Sprintf("; and at %d more", more)
		f.next += ", or interlock gate list"
	}
	return f, true
}

func deciders(roles []string) string {
	if len(roles) == 0 {
		return "the user"
	}
	return "a person with role " + strings.Join(roles, " or ")
}

func (l *look) forUser() (finding, bool) {
	status, reason := l.runStatus()
	if status != agent.RunWaiting {
		return finding{}, false
	}
	f := finding{"waits for the user", "interlock run message " + l.address + " …"}
	if reason != "user" {
		return finding{"waits: " + reason, "interlock run get " + l.address}, true
	}
	for _, g := range l.gates {
		if g.Kind == agent.KindAsk {
			f.sentence += ", who was asked: " + brief(g.Title)
		}
	}
	if l.run == nil {
		return f, true
	}
	f.sentence += " since " + stamp(l.since())
	for _, w := range l.run.Waits() {
		if w.For == agent.WaitsUser && w.Until != nil {
			f.sentence += fmt.Sprintf("; at %s %s", stamp(*w.Until), w.Then)
			break
		}
	}
	return f, true
}

func (l *look) atWork() (finding, bool) {
	f := finding{"is at work", "wait: interlock run watch " + l.address}
	status, _ := l.runStatus()
	var doing []string
	for _, a := range l.activities {
		doing = append(doing, a.Type+" ("+a.tries()+")")
	}
	switch {
	case len(doing) > 0:
		f.sentence += ": " + strings.Join(doing, ", ")
	case status == "" && l.err == nil:
		f.sentence = "has been started, and has not recorded anything yet"
	case l.err != nil:
		f.sentence = fmt.Sprintf("was at work at event %d (%s), as far as the journal knows", l.row.Seq, status)
	}
	return f, true
}
