package agenttest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/llm/scripted"
)

// idler is the booth with an idle policy.
func idler(i agent.Idle) *agent.Definition {
	none := func(struct{}) (deskState, error) { return deskState{}, nil }
	return agent.Define(agent.Spec[struct{}, deskState]{Name: "idler", Version: 1, Instructions: "Try.", Init: none, Idle: i,
		Remind: func(s agent.Situation[deskState]) string { return "Still there, in " + s.Phase + "?" },
		Phases: []agent.Phase[deskState]{{Name: "work", Moves: []agent.Move[deskState]{{To: "end"}, {To: "held", Gate: &agent.MoveGate[deskState]{Roles: []string{"boss"}}}}},
			{Name: "held", Moves: []agent.Move[deskState]{{To: "end"}}}, {Name: "end", Final: true}}})
}

func TestIdle(t *testing.T) {
	def := idler(agent.Idle{Remind: 24 * time.Hour, Close: 72 * time.Hour})
	run := agenttest.Start(t, def, struct{}{})
	run.Says("hello")
	run.Propose(scripted.Ask("Which order?"))
	require.Equal(t, []agent.Waiting{{For: agent.WaitsUser, Gate: "1.1", Step: "1.1", What: "Which order?", Who: []string{"user"}, Since: run.Run().At,
		Until: at(run.Run().At.Add(24 * time.Hour)), Then: "the user is reminded"}}, run.Run().Waits())
	run.Advance(23 * time.Hour)
	require.Empty(t, run.Replies())
	run.Advance(2 * time.Hour)
	require.Equal(t, []string{"Still there, in work?"}, run.Replies())
	require.Equal(t, agent.GateOpen, run.Gate("1.1").Status)
	require.Equal(t, "the run is closed", run.Run().Waits()[0].Then)
	run.Advance(24 * time.Hour)
	require.Len(t, run.Replies(), 1, "once a wait")

	run.Says("here I am")
	require.True(t, strings.Contains(run.Request().Messages[len(run.Request().Messages)-1].Text, "was reminded: Still there, in work?"))
	run.Propose(scripted.Say("Good."))
	run.Advance(71 * time.Hour)
	require.Equal(t, agent.RunWaiting, run.Status())
	run.Advance(time.Hour)
	require.Equal(t, agent.RunCancelled, run.Status())
	require.Contains(t, run.Run().Reason, "idle: the user has said nothing since 2026-03-0")
	require.Len(t, run.Replies(), 3)
	requireRoundTrip(t, def, run.Events())
}

func at(t time.Time) *time.Time { return &t }

// Only the user's silence counts: not a reviewer's, and not a pause.
func TestIdle_OthersAreWaitedFor(t *testing.T) {
	def := idler(agent.Idle{Close: time.Hour})
	run := agenttest.Start(t, def, struct{}{})
	run.Says("hello")
	run.Propose(scripted.MoveTo("held"))
	run.Advance(100 * time.Hour)
	require.Equal(t, agent.RunWaiting, run.Status())
	require.Equal(t, agent.WaitsGate, run.Run().Waits()[0].For)
	run.Pause("look")
	run.Reject("1.1", "no", "kim", "boss")
	run.Advance(100 * time.Hour)
	require.Equal(t, agent.RunPaused, run.Status())
	run.Resume()
	run.Propose(scripted.Say("It was rejected."))
	run.Advance(59 * time.Minute)
	require.Equal(t, agent.RunWaiting, run.Status())
	run.Advance(time.Minute)
	require.Equal(t, agent.RunCancelled, run.Status())
	requireRoundTrip(t, def, run.Events())
}

// A run whose worker was down at both times reminds first, and gives the reminder
// its time.
func TestIdle_Late(t *testing.T) {
	def := idler(agent.Idle{Remind: time.Hour, Close: 3 * time.Hour})
	late := "start {}\n\npass at=+100h\n\npass at=+1h59m\n\nstate\n\npass at=+1m\n\nstate\n"
	played, run := agenttest.Play(t, def, []byte(late))
	require.Equal(t, agent.RunCancelled, run.Status())
	require.Contains(t, string(played), "= waiting (user) work")
}

func TestIdle_Off(t *testing.T) {
	run := agenttest.Start(t, idler(agent.Idle{}), struct{}{})
	run.Advance(10000 * time.Hour)
	require.Equal(t, agent.RunWaiting, run.Status())
	require.Nil(t, run.Run().Waits()[0].Until)
}

func TestIdle_Mistakes(t *testing.T) {
	require.ErrorContains(t, idler(agent.Idle{Remind: -1}).Err(), "idle: Remind is -1ns and Close 0s; leave out what is not wanted")
	require.ErrorContains(t, idler(agent.Idle{Remind: time.Hour, Close: time.Hour}).Err(), "the run would end before its user is reminded")
	require.NotEqual(t, idler(agent.Idle{}).Fingerprint(), idler(agent.Idle{Close: time.Hour}).Fingerprint())
}
