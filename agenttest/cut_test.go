package agenttest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/llm/scripted"
	"interlock/tool"
)

// booth has a tool for each choice of what becomes of a running step when its turn
// is cut short.
func booth() *agent.Definition {
	keyed := func(context.Context, tool.Key, named) (page, error) { return page{}, nil }
	commit := func(s *deskState, _ named, p page) error { s.Text = p.Name; return nil }
	unsend := tool.Keyed("unsend", func(context.Context, tool.Key, tool.Done[named, page]) (page, error) { return page{}, nil },
		func(s *deskState, _ tool.Done[named, page], _ page) error { s.Text = ""; return nil })
	tools := []agent.Tool[deskState]{
		tool.ReadOnly("read", func(context.Context, named) (page, error) { return page{}, nil }, commit),
		tool.Keyed("send", keyed, commit).Undo(unsend).OnCut(agent.CutUndo),
		tool.Keyed("ship", keyed, commit),
	}
	return agent.Define(agent.Spec[struct{}, deskState]{Name: "booth", Version: 1, Instructions: "Try.", OnMessage: agent.MessageInterrupt,
		Init:   func(struct{}) (deskState, error) { return deskState{}, nil },
		Phases: []agent.Phase[deskState]{{Name: "work", Tools: tools, Moves: []agent.Move[deskState]{{To: "end"}}}, {Name: "end", Final: true}}})
}

// threeInFlight is a run with one step of each choice.
func threeInFlight(t testing.TB) *agenttest.Run {
	run := agenttest.Start(t, booth(), struct{}{})
	run.Says("go")
	run.Propose(scripted.Call("read", named{"a"}), scripted.Call("send", named{"b"}), scripted.Call("ship", named{"c"}))
	return run
}

func TestInterrupt_StoppedInTime(t *testing.T) {
	run := threeInFlight(t)
	require.Equal(t, &agent.Took{How: agent.TookInterrupted, Turn: 2, Stopping: []string{"1.2", "1.3"}}, run.Says("actually, cancel that").Took)
	run.Stops("1.2")
	run.Done("1.3", page{Name: "shipped"})
	require.Equal(t, []agent.StepStatus{agent.StepAbandoned, agent.StepCancelled, agent.StepDone},
		[]agent.StepStatus{run.Step("1.1").Status, run.Step("1.2").Status, run.Step("1.3").Status})
	requireRoundTrip(t, booth(), run.Events())
	// It was stopped for good: the same call is another effect.
	run.Propose(scripted.Call("send", named{"b"}))
	run.Done("2.1", page{Name: "sent"})
	require.Equal(t, agent.StepDone, run.Step("2.1").Status)
	require.NotEqual(t, run.Step("1.2").Key, run.Step("2.1").Key)
}

func TestInterrupt_HappenedAllTheSame(t *testing.T) {
	run := threeInFlight(t)
	run.Says("actually, cancel that")
	run.Done("1.3", page{Name: "shipped"})
	run.Done("1.2", page{Name: "sent"})
	require.Equal(t, agent.StepRunning, run.Step("1.4").Status)
	run.Done("1.4", page{})
	require.Equal(t, agent.StepUndone, run.Step("1.2").Status)
	require.Equal(t, agent.StepDone, run.Step("1.3").Status)
	require.Equal(t, 2, run.Run().Turn)
	requireRoundTrip(t, booth(), run.Events())
}

func TestInterrupt_NobodyKnows(t *testing.T) {
	run := threeInFlight(t)
	run.Says("actually, cancel that")
	run.Fail("1.2", context.Canceled)
	run.Done("1.3", page{Name: "shipped"})
	require.Equal(t, agent.StepInDoubt, run.Step("1.2").Status)
	require.Equal(t, agent.GateOpen, run.Gate("1.2-doubt").Status)
	requireRoundTrip(t, booth(), run.Events())
}

func TestCancelUndoing(t *testing.T) {
	run := threeInFlight(t)
	run.Done("1.1", page{Name: "read"})
	run.Done("1.2", page{Name: "sent"})
	run.Done("1.3", page{Name: "shipped"})
	run.CancelUndoing(agent.UndoRun, "enough")
	run.Done("2.1", page{})
	require.Equal(t, agent.RunCancelled, run.Status())
	require.Equal(t, agent.StepUndone, run.Step("1.2").Status)
	require.Equal(t, []string{"1.3 ship: stands, ship names no compensation (Undo): what it did must be undone on the other side"}, run.Run().FailedEnd)
	requireRoundTrip(t, booth(), run.Events())
}
