package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/llm/scripted"
	"interlock/signals"
)

// ask sends an update and decodes its answer.
func ask[T any](w *world, address, name string, payload any) (answer T, err error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	h, err := temporalClient.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: address, UpdateName: name, Args: []any{payload},
		WaitForStage: client.WorkflowUpdateStageCompleted})
	if err == nil {
		err = h.Get(ctx, &answer)
	}
	return answer, err
}

var ops = agent.Principal{Subject: "ops"}

// An amend by update and by signal, a pause that keeps a message waiting, and
// the resume that lets it be answered.
func TestSteer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, turns(scripted.Say("Hello.")), lab{db: labDB(t)}.agent())
	address := w.start("k")
	r, err := ask[agent.Receipt](w, address, signals.NameAmend, signals.Amend{ID: "a1", Principal: ops, Fields: agent.JSON(`{"news":"paid"}`)})
	require.NoError(t, err)
	require.Equal(t, agent.Accepted, r.Status)
	r, err = ask[agent.Receipt](w, address, signals.NameAmend, signals.Amend{ID: "a2", Principal: ops, Fields: agent.JSON(`{"paid":"x"}`)})
	require.NoError(t, err)
	require.Equal(t, agent.CodeDenied, r.Code)
	_, err = ask[agent.Receipt](w, address, signals.NameAmend, signals.Amend{ID: "a3", Principal: ops, Fields: agent.JSON(`[]`)})
	require.ErrorContains(t, err, "as an object")
	w.signal(address, signals.NameAmend, signals.Amend{ID: "a4", Principal: ops, Fields: agent.JSON(`{"note":"by signal"}`)})
	w.signal(address, signals.NameAmend, signals.Amend{ID: "a5", Principal: ops, Fields: agent.JSON(`{"paid":"by signal"}`)})
	eventually(t, "the refusal of a signal is recorded", func() bool {
		return len(recorded[agent.InputRefusedData](w, address, agent.EventInputRefused)) == 1
	})

	r, err = ask[agent.Receipt](w, address, signals.NamePause, signals.Pause{ID: "p1", Principal: ops, Reason: "a look"})
	require.NoError(t, err)
	require.Equal(t, agent.RunPaused, r.Run)
	require.Equal(t, agent.RunPaused, w.say(address, "hi").Run)
	run := w.until(address, "paused", paused)
	require.Equal(t, "asked by ops: a look", run.Reason)
	require.Zero(t, run.Turn)
	w.signal(address, signals.NameResume, signals.Resume{ID: "r1", Principal: ops})
	run = w.until(address, "answered", func(r *agent.Run) bool { return r.Reply != nil })
	require.Equal(t, "Hello.", run.Reply.Text)
	require.JSONEq(t, `{"name":"c-017","news":"paid","note":"by signal","paid":"","seen":"","sent":""}`, string(run.State))
	require.Equal(t, "ops", run.Provenance["news"].By)
	w.cancelled(address)
}

// A wait is answered by what comes, and "again" when nothing does.
func TestWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, turns(scripted.Say("Hello.")), lab{db: labDB(t)}.agent())
	address := w.start("k")
	type answer struct {
		signals.News
		error
	}
	wait := func(after int64) chan answer {
		c := make(chan answer, 1)
		go func() {
			n, err := ask[signals.News](w, address, signals.UpdateWait, signals.Wait{AfterSeq: after})
			c <- answer{n, err}
		}()
		return c
	}
	began := time.Now()
	nothing := await(t, wait(0), "nothing new")
	require.NoError(t, nothing.error)
	require.True(t, nothing.Again)
	require.GreaterOrEqual(t, time.Since(began), signals.WaitFor)
	require.Equal(t, agent.RunWaiting, nothing.Status)

	all := make([]chan answer, signals.WaitMost)
	for i := range all {
		all[i] = wait(0)
	}
	eventually(t, "all of them wait", func() bool {
		accepted := 0
		for _, e := range w.history(address, "") {
			if e.GetWorkflowExecutionUpdateAcceptedEventAttributes() != nil {
				accepted++
			}
		}
		return accepted == 1+len(all)
	})
	require.ErrorContains(t, await(t, wait(0), "one too many").error, "wait for this run already")
	w.say(address, "hi")
	for _, c := range all {
		a := await(t, c, "the reply")
		require.NoError(t, a.error)
		require.False(t, a.Again)
		require.Equal(t, "Hello.", a.Reply.Text)
	}
	last := wait(1000)
	_, err := ask[signals.News](w, address, signals.UpdateWait, signals.Wait{AfterSeq: -1})
	require.ErrorContains(t, err, "after_seq")
	w.cancelled(address)
	end := await(t, last, "the end")
	require.NoError(t, end.error)
	require.Equal(t, agent.RunCancelled, end.Status)
}
