package worker_test

import (
	"log/slog"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"

	"interlock/examples/refund"
	"interlock/store"
	"interlock/worker"
)

// nothing is a Temporal that is never asked.
type nothing struct{ client.Client }

// serveSilent starts a worker that tells nothing.
func (w *telling) serveSilent() (stop func()) {
	w.t.Helper()
	wk, err := worker.New(worker.Config{Settings: w.cfg, Client: w.server.Client(), Store: w.store, Model: refund.Model(), Log: slog.New(slog.DiscardHandler)}, w.def)
	require.NoError(w.t, err)
	require.NoError(w.t, wk.Start(w.t.Context()))
	return wk.Stop
}

// each calls f with every workflow of a notice.
func (w *telling) each(f func(id string, status enums.WorkflowExecutionStatus)) {
	w.t.Helper()
	list, err := w.server.Client().ListWorkflow(w.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: "WorkflowType = 'interlock.notice'", PageSize: 1000})
	require.NoError(w.t, err)
	for _, e := range list.Executions {
		f(e.Execution.WorkflowId, e.Status)
	}
}

// noSecret looks for the secret in every history of a notice, and in the logs.
func (w *telling) noSecret() {
	w.t.Helper()
	found := 0
	w.eventually("Temporal lists them", func() bool {
		found = 0
		w.each(func(string, enums.WorkflowExecutionStatus) { found++ })
		return found > 0
	})
	w.each(func(id string, _ enums.WorkflowExecutionStatus) {
		events := w.server.Client().GetWorkflowHistory(w.t.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			require.NoError(w.t, err)
			j, err := protojson.Marshal(e)
			require.NoError(w.t, err)
			require.NotContains(w.t, string(j), "S3CR3T")
		}
	})
	require.NotContains(w.t, w.log.String(), "S3CR3T")
	all, err := w.store.DeadNotices(w.t.Context(), "acme", store.DeadFilter{Ended: true})
	require.NoError(w.t, err)
	for _, d := range all {
		require.NotContains(w.t, d.Reason+d.Notice.String(), "S3CR3T")
	}
}
