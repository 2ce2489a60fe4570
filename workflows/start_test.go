package workflows_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
)

// errorOf is type and text of the error that a workflow failed with.
func (w *world) errorOf(address string) (kind, message string) {
	w.t.Helper()
	var app *temporal.ApplicationError
	err := w.result(address)
	require.ErrorAs(w.t, err, &app)
	return app.Type(), app.Message()
}

// A start that the agent refuses fails the run, with the reason in the journal.
func TestStart_BadBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, refund.Model())
	for says, body := range map[string]any{
		"customer_id is empty": refund.Start{},
		"customer_id":          nil,
		"extra":                map[string]any{"customer_id": "c-017", "extra": 1},
	} {
		in := w.startInput(w.id("k"))
		in.Body = body
		s, err := w.starter.Start(w.ctx, in)
		require.NoError(t, err)
		run := w.finished(s.Address, agent.RunFailed)
		require.Contains(t, run.Reason, "start input refused")
		require.Contains(t, run.Reason, says)
		kind, message := w.errorOf(s.Address)
		require.Equal(t, signals.ErrInvalid, kind)
		require.Equal(t, run.Reason, message)
		require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_FAILED, w.status(s.Address))
		row, err := w.store.RunRow(w.ctx, store.Chain{Tenant: "acme", Address: s.Address})
		require.NoError(t, err)
		require.Equal(t, agent.RunFailed, row.Head.Status)
		require.Equal(t, run.Reason, row.Head.Reason)
		again, err := w.starter.Start(w.ctx, in)
		require.NoError(t, err)
		require.False(t, again.New)
	}
}

// What could never be a start is refused before anything is made.
func TestStart_Refused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, refund.Model())
	for name, tc := range map[string]struct {
		change func(*starter.Start)
		code   agent.Code
		says   string
	}{
		"agent":        {func(s *starter.Start) { s.Agent = "refnud" }, agent.CodeNotFound, "deployed are [refund/v1]"},
		"version":      {func(s *starter.Start) { s.Version = 7 }, agent.CodeNotFound, "deployed are [refund/v1]"},
		"below 0":      {func(s *starter.Start) { s.Version = -1 }, agent.CodeInvalid, "version -1"},
		"no tenant":    {func(s *starter.Start) { s.Tenant = "" }, agent.CodeInvalid, "tenant"},
		"no key":       {func(s *starter.Start) { s.Key = "" }, agent.CodeInvalid, "key"},
		"blank key":    {func(s *starter.Start) { s.Key = " " }, agent.CodeInvalid, "key"},
		"long key":     {func(s *starter.Start) { s.Key = strings.Repeat("k", 10_000) }, agent.CodeInvalid, "key"},
		"key with /":   {func(s *starter.Start) { s.Key = "a/b" }, agent.CodeInvalid, "key"},
		"no principal": {func(s *starter.Start) { s.Principal = agent.Principal{} }, agent.CodeInvalid, "principal"},
		"large body":   {func(s *starter.Start) { s.Body = map[string]any{"customer_id": strings.Repeat("x", 70_000)} }, agent.CodeInvalid, "the limit is"},
		"3 MB":         {func(s *starter.Start) { s.Body = map[string]any{"customer_id": strings.Repeat("x", 3_000_000)} }, agent.CodeInvalid, "the limit is"},
		"NUL":          {func(s *starter.Start) { s.Body = refund.Start{CustomerID: "a\x00"} }, agent.CodeInvalid, "body"},
	} {
		in := w.startInput("k")
		tc.change(&in)
		_, err := w.starter.Start(w.ctx, in)
		require.Equal(t, tc.code, agent.ErrorCode(err), "%s: %v", name, err)
		require.Contains(t, err.Error(), tc.says, name)
	}
	rows, err := w.store.RunRows(w.ctx, "acme", store.RunFilter{})
	require.NoError(t, err)
	require.Empty(t, rows)
}

// A client without our starter may send anything: the workflow itself refuses
// what has no business under its id.
func TestStart_WithoutTheStarter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, refund.Model())
	start := func(id, workflowType string, in any) (kind, message string) {
		t.Helper()
		_, err := temporalClient.ExecuteWorkflow(w.ctx, client.StartWorkflowOptions{ID: id, TaskQueue: w.config.Settings.TaskQueue}, workflowType, in)
		require.NoError(t, err)
		return w.errorOf(id)
	}
	key := w.name()
	good := signals.Start{Agent: "refund", Tenant: "acme", Key: key, Principal: customer, Body: agent.JSON(`{"customer_id":"c-017"}`)}
	kind, message := start("acme/refund/"+key+".other", "refund", good)
	require.Equal(t, signals.ErrInvalid, kind)
	require.Contains(t, message, `belongs under "acme/refund/`+key+`"`)
	_, err := w.starter.Get(w.ctx, "acme/refund/"+key+".other")
	require.ErrorContains(t, err, `belongs under "acme/refund/`, "whoever looks at it learns why")
	kind, message = start("other/refund/"+key, "refund", good)
	require.Equal(t, signals.ErrInvalid, kind)
	require.Contains(t, message, `the workflow id is "other/refund/`)
	wrong := good
	wrong.Agent = "lab"
	kind, message = start("acme/lab/"+key, "refund", wrong)
	require.Equal(t, signals.ErrInvalid, kind)
	require.Contains(t, message, `the workflow type is "refund"`)
	for i, in := range []any{"hello", nil, []byte("x"), map[string]any{"agent": "refund"}, raw("json/plain", `{"agent":`), map[string]any{"agent": "refund", "more": 1}} {
		kind, message = start(strings.Join([]string{"acme/refund/", key, ".", string(rune('a' + i))}, ""), "refund", in)
		require.Equal(t, signals.ErrInvalid, kind)
		require.NotEmpty(t, message)
	}
}

// The same start, at the same time and again, is one run; another body or user
// under the key is a conflict.
func TestStart_Twice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, turns(scripted.Say("Hello.")), lab{db: labDB(t)}.agent())
	for _, s := range []*starter.Starter{w.starter, starter.New(temporalClient, starter.WithTaskQueue(w.config.Settings.TaskQueue))} {
		in := w.startInput(w.id("k"))
		results, errs := make([]starter.Started, 8), make([]error, 8)
		var wg sync.WaitGroup
		for i := range results {
			wg.Go(func() { results[i], errs[i] = s.Start(w.ctx, in) })
		}
		wg.Wait()
		made := 0
		for i, r := range results {
			require.NoError(t, errs[i])
			require.Equal(t, results[0].Address, r.Address)
			require.Equal(t, results[0].FirstRunID, r.FirstRunID)
			if r.New {
				made++
			}
		}
		require.Equal(t, 1, made)
		other := in
		other.Body = labStart{Name: "somebody else"}
		_, err := s.Start(w.ctx, other)
		require.Equal(t, agent.CodeConflict, agent.ErrorCode(err), "%v", err)
		other = in
		other.User = "somebody else"
		_, err = s.Start(w.ctx, other)
		require.Equal(t, agent.CodeConflict, agent.ErrorCode(err), "%v", err)
		other.User = customer.Subject // which is whom the run serves
		same, err := s.Start(w.ctx, other)
		require.NoError(t, err)
		require.False(t, same.New)
	}
}

// A first message starts the first turn, and is part of the start.
func TestStart_WithAMessage(t *testing.T) {
	t.Parallel()
	model := watch(turns(scripted.Say("Hello."), scripted.Say("Again.")))
	w := newWorld(t, model, lab{db: labDB(t)}.agent())
	in := w.startInput("k")
	in.Message = &signals.Message{ID: "m", Principal: customer, Text: "hi"}
	s, err := w.starter.Start(w.ctx, in)
	require.NoError(t, err)
	w.until(s.Address, "an answer", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 1 })
	r, err := w.starter.Message(w.ctx, s.Address, *in.Message)
	require.NoError(t, err)
	require.Equal(t, agent.Repeated, r.Status)
	again, err := w.starter.Start(w.ctx, in)
	require.NoError(t, err)
	require.False(t, again.New)
	in.Message = &signals.Message{ID: "m", Principal: customer, Text: "something else"}
	_, err = w.starter.Start(w.ctx, in)
	require.Equal(t, agent.CodeConflict, agent.ErrorCode(err), "%v", err)
	in.Message = nil
	_, err = w.starter.Start(w.ctx, in)
	require.Equal(t, agent.CodeConflict, agent.ErrorCode(err), "%v", err)
	require.Len(t, model.seen(t), 1)
	w.quiet(s.Address)
	w.requireReplay(s.Address)
}

// forget deletes a run from Temporal, as the end of its retention does.
func (w *world) forget(address string) {
	w.t.Helper()
	_, err := temporalClient.WorkflowService().DeleteWorkflowExecution(w.ctx, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: client.DefaultNamespace, WorkflowExecution: &common.WorkflowExecution{WorkflowId: address}})
	require.NoError(w.t, err)
	eventually(w.t, "Temporal forgets the run", func() bool {
		_, err := describe(w.ctx, address)
		return err != nil
	})
}

// After Temporal's retention the store knows the run: the same start is the
// same run, and without a reader the second chain fails at its first append.
func TestStart_AfterTemporalForgot(t *testing.T) {
	t.Parallel()
	other := labStart{Name: "somebody else"}
	for name, tc := range map[string]struct {
		body any
		want string
	}{
		"the same start": {labStart{Name: "c-017"}, signals.ErrKeyUsed},
		"another body":   {other, signals.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // Temporal takes half a minute to forget
			db := labDB(t)
			w := newWorld(t, turns(toEnd), lab{db: db, opening: []string{"10"}}.agent())
			in := w.startInput("k")
			s, err := w.starter.Start(w.ctx, in)
			require.NoError(t, err)
			address := s.Address
			run := w.finished(address, agent.RunCompleted)
			require.Equal(t, 1, payments(t, db))
			w.forget(address)

			again, err := w.starter.Start(w.ctx, in)
			require.NoError(t, err)
			require.Equal(t, starter.Started{Address: address, FirstRunID: s.FirstRunID}, again)
			in.Body = other
			_, err = w.starter.Start(w.ctx, in)
			require.Equal(t, agent.CodeConflict, agent.ErrorCode(err), "%v", err)
			found, err := w.starter.Get(w.ctx, address)
			require.NoError(t, err)
			require.Equal(t, run.Seq, found.Seq)
			_, err = w.starter.Message(w.ctx, address, signals.Message{ID: "x", Principal: customer, Text: "hello?"})
			require.Error(t, err)

			blind := starter.New(temporalClient, starter.WithTaskQueue(w.config.Settings.TaskQueue))
			in.Body = tc.body
			second, err := blind.Start(w.ctx, in)
			require.NoError(t, err)
			require.True(t, second.New, "nobody could know")
			kind, message := w.errorOf(address)
			require.Equal(t, tc.want, kind)
			require.Contains(t, message, "was started before")
			require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_FAILED, w.status(address))
			require.Equal(t, 1, payments(t, db))
			_, err = blind.Get(w.ctx, address)
			require.ErrorContains(t, err, "was started before", "it does not pass for a run")
			found, err = w.starter.Get(w.ctx, address)
			require.NoError(t, err)
			require.Equal(t, s.FirstRunID, found.FirstRunID, "the journal's run is the one to look at")
			require.Equal(t, run.Seq, int64(len(w.events(address))), "the journal is as it was")
		})
	}
}
