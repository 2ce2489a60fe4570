package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"interlock/agent"
	"interlock/llm/scripted"
	"interlock/signals"
)

// idleTimers counts the timers of one Temporal run that wait for its user.
func (w *world) idleTimers(address, run string) (n int) {
	for _, e := range w.history(address, run) {
		if e.GetEventType() == enums.EVENT_TYPE_TIMER_STARTED && string(e.GetUserMetadata().GetSummary().GetData()) == `"the user says nothing"` {
			n++
		}
	}
	return n
}

// A run whose user says nothing reminds, which is news, and then closes itself:
// also when it goes on in new Temporal runs meanwhile. Waiting costs a timer.
func TestIdle(t *testing.T) {
	t.Parallel()
	l := lab{db: labDB(t), idle: agent.Idle{Remind: 8 * time.Second, Close: 14 * time.Second}, limits: agent.Limits{History: 60}}
	w := newWorld(t, watch(turns(scripted.Say("Hello."))), l.agent())
	address := w.start("k")
	run := w.chat(address, "hello")
	first, since := w.runID(address), run.Since
	var waits []agent.Waiting
	answer, err := temporalClient.QueryWorkflow(w.ctx, address, "", signals.QueryWaiting)
	require.NoError(t, err)
	require.NoError(t, answer.Get(&waits))
	remind := since.Add(8 * time.Second)
	require.Equal(t, []agent.Waiting{{For: agent.WaitsUser, What: "a message", Who: []string{"c-017"}, Since: since, Until: &remind, Then: "the user is reminded"}}, waits)
	for n := 0; w.runID(address) == first; n++ {
		require.Less(t, n, 50)
		w.amend(address, "more "+string(rune('a'+n%26))+string(rune('a'+n/26)))
	}
	news, err := w.starter.Wait(w.ctx, address, run.Seq)
	require.NoError(t, err)
	require.NotNil(t, news.Reply)
	require.Contains(t, news.Reply.Text, "Are you still there?")
	reminded := w.until(address, "the reminder", func(r *agent.Run) bool { return !r.Reminded.IsZero() })
	require.WithinDuration(t, since.Add(8*time.Second), reminded.Reminded, 3*time.Second)
	run = w.finished(address, agent.RunCancelled)
	require.Contains(t, run.Reason, "idle: the user has said nothing since")
	require.WithinDuration(t, since.Add(14*time.Second), run.At, 3*time.Second)
	require.Len(t, w.chain(address), 2)
	require.Equal(t, 1, w.idleTimers(address, first))
	require.LessOrEqual(t, w.idleTimers(address, w.runID(address)), 2)
}

// A conversation sets one timer, not one a turn.
func TestIdle_OneTimer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(scripted.Say("Hello.")), lab{db: labDB(t), idle: agent.Idle{Remind: time.Hour}}.agent())
	address := w.start("k")
	for _, text := range []string{"a", "b", "c", "d"} {
		w.chat(address, text)
	}
	require.Equal(t, 1, w.idleTimers(address, w.runID(address)))
	details := w.describe(address).RawResponse
	require.NotNil(t, details)
	w.cancelled(address)
}
