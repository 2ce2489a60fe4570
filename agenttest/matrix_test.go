package agenttest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm/scripted"
	"interlock/tool"
)

type (
	matrixState struct {
		Text string `json:"text" set:"tool"`
		News string `json:"news" set:"system"`
	}
	matrixText struct {
		Text string `json:"text"`
	}
	matrixDone = tool.Done[matrixText, matrixText]
)

// matrixAgent has a tool for each choice of what becomes of a running step when its
// turn is cut short, one with a gate and one that may be in doubt.
func matrixAgent() *agent.Definition {
	keyed := func(context.Context, tool.Key, matrixText) (matrixText, error) { return matrixText{}, nil }
	back := func(context.Context, tool.Key, matrixDone) (matrixText, error) { return matrixText{}, nil }
	commit := func(s *matrixState, _, r matrixText) error { s.Text = r.Text; return nil }
	undo := func(name string) agent.Tool[matrixState] {
		return tool.Keyed(name, back, func(s *matrixState, _ matrixDone, _ matrixText) error { s.Text = ""; return nil })
	}
	tools := []agent.Tool[matrixState]{
		tool.ReadOnly("read", func(context.Context, matrixText) (matrixText, error) { return matrixText{}, nil }, commit),
		tool.Keyed("send", keyed, commit).Undo(undo("unsend")).OnCut(agent.CutUndo),
		tool.Keyed("ship", keyed, commit).Undo(undo("unship")),
		tool.Keyed("pay", keyed, commit).Gate(tool.Gate[matrixState, matrixText]{Roles: []string{"boss"}, Reads: []string{"news"}}),
		tool.Once("fire", func(context.Context, matrixText) (matrixText, error) { return matrixText{}, nil }, commit),
	}
	return agent.Define(agent.Spec[struct{}, matrixState]{Name: "matrix", Version: 1, Instructions: "Try.",
		Init:   func(struct{}) (matrixState, error) { return matrixState{}, nil },
		Phases: []agent.Phase[matrixState]{{Name: "work", Tools: tools, Moves: []agent.Move[matrixState]{{To: "end"}}}, {Name: "end", Final: true}}})
}

// matrixStates bring a run into each state that something may interrupt.
var matrixStates = []struct {
	name  string
	begin func(*Run)
}{
	{"idle", func(r *Run) { r.Says("go"); r.Propose(scripted.Say("Hello.")) }},
	{"model call", func(r *Run) { r.Says("go") }},
	{"three tools", func(r *Run) {
		r.Says("go")
		r.Propose(scripted.Call("read", matrixText{"a"}), scripted.Call("send", matrixText{"b"}), scripted.Call("ship", matrixText{"c"}))
	}},
	{"one gate", func(r *Run) { r.Says("go"); r.Propose(scripted.Call("pay", matrixText{"a"})) }},
	{"two gates", func(r *Run) {
		r.Says("go")
		r.Propose(scripted.Call("pay", matrixText{"a"}), scripted.Call("pay", matrixText{"b"}))
	}},
	{"in doubt", func(r *Run) {
		r.Says("go")
		r.Propose(scripted.Call("fire", matrixText{"a"}))
		r.Fail("1.1", context.DeadlineExceeded)
	}},
	{"compensation", func(r *Run) {
		r.Says("go")
		r.Propose(scripted.Call("send", matrixText{"a"}))
		r.Done("1.1", matrixText{"sent"})
		r.Propose(scripted.Say("Sent."))
		r.Undo("wrong", "1.1")
	}},
}

// matrixInterrupts are what may interrupt it, with the statuses in which the steps
// of each state then end, before any person decides: in the order of the states.
var matrixInterrupts = []struct {
	name  string
	do    func(*Run) agent.Receipt
	ends  [7]string
	took  [7]agent.TookHow // "": it is refused
	final agent.RunStatus
}{
	{"message reject", byMessage(agent.MessageReject), [7]string{"", "", "done done done", "waiting", "waiting waiting", "in_doubt", "undone done"},
		[7]agent.TookHow{"now", "", "", "now", "now", "now", ""}, agent.RunWaiting},
	{"message queue", byMessage(agent.MessageQueue), [7]string{"", "", "done done done", "waiting", "waiting waiting", "in_doubt", "undone done"},
		[7]agent.TookHow{"now", "queued", "queued", "now", "now", "now", "queued"}, agent.RunWaiting},
	{"message interrupt", byMessage(agent.MessageInterrupt), [7]string{"", "", "abandoned cancelled done", "waiting", "waiting waiting", "in_doubt", "undone done"},
		[7]agent.TookHow{"now", "interrupted", "interrupted", "now", "now", "now", "queued"}, agent.RunWaiting},
	{"message rollback", byMessage(agent.MessageRollback), [7]string{"", "", "abandoned cancelled undone done", "waiting", "waiting waiting", "in_doubt", "undone done"},
		[7]agent.TookHow{"now", "rolling_back", "rolling_back", "now", "now", "now", "queued"}, agent.RunWaiting},
	{"cancel none", byCancel(agent.UndoNone), [7]string{"", "", "abandoned cancelled done", "cancelled", "cancelled cancelled", "in_doubt", "undone done"},
		[7]agent.TookHow{"now", "now", "stopping", "now", "now", "now", "stopping"}, agent.RunCancelled},
	{"cancel turn", byCancel(agent.UndoTurn), [7]string{"", "", "abandoned cancelled undone done", "cancelled", "cancelled cancelled", "in_doubt", "undone done"}, stopsTools, agent.RunCancelled},
	{"cancel run", byCancel(agent.UndoRun), [7]string{"", "", "abandoned cancelled undone done", "cancelled", "cancelled cancelled", "in_doubt", "undone done"}, stopsTools, agent.RunCancelled},
	{"amend", func(r *Run) agent.Receipt { return r.Amend(map[string]any{"news": "snow"}) },
		[7]string{"", "", "done done done", "void", "void void", "in_doubt", "undone done"}, [7]agent.TookHow{}, agent.RunWaiting},
	{"pause", func(r *Run) agent.Receipt { return r.Pause("a look") },
		[7]string{"", "", "cancelled done done done", "waiting", "waiting waiting", "in_doubt", "undone done"},
		[7]agent.TookHow{2: "stopping", 6: "stopping"}, agent.RunWaiting},
	{"continue-as-new", nil, [7]string{"", "", "done done done", "waiting", "waiting waiting", "in_doubt", "undone done"}, [7]agent.TookHow{}, agent.RunWaiting},
}

var stopsTools = [7]agent.TookHow{"now", "now", "stopping", "now", "now", "now", "now"}

func byMessage(p agent.MessagePolicy) func(*Run) agent.Receipt {
	return func(r *Run) agent.Receipt { return r.Interrupts("actually, not that", p) }
}

func byCancel(u agent.UndoScope) func(*Run) agent.Receipt {
	return func(r *Run) agent.Receipt { return r.CancelUndoing(u, "enough") }
}

// ends lets all that runs end: what was told to stop in time, the model with words.
func (r *Run) runOut() {
	r.t.Helper()
	for n := 0; len(r.held) > 0 || r.open != nil; n++ {
		require.Less(r.t, n, 20, "%s", r.stands())
		switch {
		case r.open != nil:
			r.Propose(scripted.Say("Hm."))
		case r.Step(r.held[0].task.Step).Stopping != nil && r.Step(r.held[0].task.Step).Stopping.Undo: // the others had run
			r.Stops(r.held[0].task.Step)
		default:
			r.Done(r.held[0].task.Step, matrixText{"r"})
		}
	}
}

// Whatever interrupts a run, in whatever state: its steps end in definite statuses,
// the next model request is valid, and the events make the run and give it again
// ([Run] checks all of that after every input).
func TestMatrix(t *testing.T) {
	for _, in := range matrixInterrupts {
		for n, state := range matrixStates {
			t.Run(in.name+"/"+state.name, func(t *testing.T) {
				r := Start(t, matrixAgent(), struct{}{})
				state.begin(r)
				if in.do == nil {
					r.continued()
				} else {
					receipt := in.do(r)
					took := agent.TookHow("")
					if receipt.Took != nil {
						took = receipt.Took.How
					}
					require.Equal(t, in.took[n], took, receipt.Reason)
					require.Equal(t, in.name == "message reject" && took == "", receipt.Status == agent.Refused, receipt.Reason)
				}
				r.runOut()
				if r.Status() == agent.RunPaused {
					r.Resume()
					r.runOut()
				}
				var ends []string
				for _, s := range r.Run().Steps {
					ends = append(ends, string(s.Status))
				}
				require.Equal(t, in.ends[n], strings.Join(ends, " "))
				require.Equal(t, in.final, r.Status(), r.Run().Reason)
				r.goesOn()
				script, err := Export(r.Events())
				require.NoError(t, err)
				played, again := Play(t, matrixAgent(), script)
				require.Equal(t, string(script), string(played))
				require.Equal(t, r.Events(), again.Events())
			})
		}
	}
}

// continued lets a run go on in a new Temporal run as soon as nothing is in flight.
func (r *Run) continued() {
	r.t.Helper()
	for _, m := range append(slices.Clone(r.twins), r.machine) {
		m.Hold()
	}
	r.runOut()
	require.NoError(r.t, r.restore())
	r.Input(agent.SnapshotLoaded{Rules: agent.Rules, RunID: "next"})
}

// goesOn asks the model once more, lets people decide what is open, and ends the
// run.
func (r *Run) goesOn() {
	r.t.Helper()
	if r.Status().Ended() {
		return
	}
	r.now = r.now.Add(time.Second)
	require.Equal(r.t, agent.Accepted, r.Says("and now?").Status)
	require.NotNil(r.t, r.open, r.stands())
	r.runOut()
	for _, g := range slices.Clone(r.Run().Gates) {
		switch {
		case g.Status != agent.GateOpen:
		case g.Kind == agent.KindDoubt:
			r.Decide(agent.Verdict{Gate: g.ID, Verdict: agent.DidNotHappen, Reason: "I looked", Principal: agent.Principal{Subject: "olga", Roles: []string{agent.DefaultOperator}}})
		default:
			r.Reject(g.ID, "no", "kim", "boss")
		}
		r.runOut()
	}
	for _, s := range r.Run().Steps {
		require.False(r.t, s.Status.Open(), "step %s is %s", s.ID, s.Status)
	}
	r.Cancel("the end")
	require.Equal(r.t, agent.RunCancelled, r.Status())
}
