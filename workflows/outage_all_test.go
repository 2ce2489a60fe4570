package workflows_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm/openai"
	"interlock/llm/openai/openaitest"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/store/pgtest"
	"interlock/store/postgres"
)

// outage is how long the provider may be down here before a run pauses.
const outage = 6 * time.Second

// sendsThenEnds is a model that has each run send its key, and end.
func sendsThenEnds(req openaitest.ChatRequest) openaitest.ChatReply {
	if _, sent := req.Answer("send"); sent {
		return openaitest.Calls(openaitest.Call{ID: "call_2", Name: "move", Arguments: `{"to":"end"}`})
	}
	var key string
	for _, m := range req.Messages {
		if m.Role == "user" && key == "" {
			_, _ = fmt.Sscanf(m.Content[max(0, len(m.Content)-len("key=0000")):], "key=%s", &key)
		}
	}
	return openaitest.Calls(openaitest.Call{ID: "call_1", Name: "send", Arguments: fmt.Sprintf(`{"text":%q}`, key)})
}

// census counts the runs of a store by status.
func (w *world) census() (n map[agent.RunStatus]int, err error) {
	n = map[agent.RunStatus]int{}
	for f := (store.RunFilter{Limit: 500}); ; {
		rows, err := w.store.RunRows(w.ctx, "acme", f)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			n[r.Head.Status]++
		}
		if len(rows) < f.Limit {
			return n, nil
		}
		f.After = rows[len(rows)-1].Cursor
	}
}

// The provider is down for longer than every retry policy, with the database
// restarted in the middle: no run fails, and once somebody resumes them all
// complete, each effect once.
func TestOutage_200Runs(t *testing.T) {
	t.Parallel()
	if !this.Postgres {
		t.Skip("a database that is restarted is PostgreSQL; its pass runs this")
	}
	const runs = 200
	server := pgtest.StartServer(t)
	dsn := server.DSN(t)
	_, _, err := postgres.Migrate(t.Context(), dsn)
	require.NoError(t, err)
	db, err := openStore(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })

	provider := openaitest.Start(t, sendsThenEnds)
	model, err := openai.New(openai.Options{Model: "m", BaseURL: provider.BaseURL(), APIKey: provider.Key()})
	require.NoError(t, err)
	sends := newCounter()
	w := idleWorld(t, false)
	w.store, w.config.Store = db, db
	w.starter = starter.New(temporalClient, starter.WithReader(db), starter.WithTaskQueue(w.config.Settings.TaskQueue))
	w.serve(model, lab{db: labDB(t), send: sends.tool, limits: agent.Limits{Outage: outage}}.agent())

	addresses := w.startMany(runs, func(started int) {
		if started == runs/2 { // some have ended, some are half way, some have not begun
			eventually(t, "some runs complete", func() bool { n, err := w.census(); return err == nil && n[agent.RunCompleted] > 5 })
			provider.SetDown(true)
		}
	})
	server.Stop()
	time.Sleep(2 * time.Second) // the outage itself: nothing can be awaited while it lasts
	server.Start()
	require.Eventually(t, func() bool {
		n, err := w.census()
		return err == nil && n[agent.RunCompleted]+n[agent.RunPaused] == runs
	}, 3*patience, 100*time.Millisecond, "every run has ended or is paused")
	n, err := w.census()
	require.NoError(t, err)
	require.Greater(t, n[agent.RunPaused], runs/4, "the outage was felt")
	require.NotZero(t, n[agent.RunCompleted])
	require.NotZero(t, sends.total())
	t.Logf("%v; %d requests", n, provider.Count())
	provider.SetDown(false)
	resumed, err := w.starter.ResumeAll(w.ctx, "acme", starter.ResumeAll{Reason: "model:", Principal: ops, ID: "after-the-outage", Note: "the provider is back"})
	require.NoError(t, err)
	require.Len(t, resumed, n[agent.RunPaused])
	for _, r := range resumed {
		require.NoError(t, r.Err, r.Address)
	}
	eventually(t, "every run completes", func() bool {
		n, err := w.census()
		return err == nil && n[agent.RunCompleted] == runs
	})
	require.Equal(t, runs, sends.total(), "sent")
	require.Len(t, sends.keys, runs)
	require.Empty(t, provider.Broken())
	for _, address := range addresses[:10] {
		w.finished(address, agent.RunCompleted)
	}
}

// startMany starts runs that are told their key, a few at a time.
func (w *world) startMany(runs int, each func(started int)) (addresses []string) {
	w.t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, runs)
	addresses = make([]string, runs)
	slots := make(chan struct{}, 8)
	for i := range runs {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			in := w.startInput(fmt.Sprint(i))
			in.Message = &signals.Message{ID: "m", Principal: customer, Text: fmt.Sprintf("send key=%04d", i)}
			s, err := w.starter.Start(w.ctx, in)
			addresses[i], errs[i] = s.Address, err
		})
		each(i)
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(w.t, err)
	}
	return addresses
}
