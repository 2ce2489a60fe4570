package starter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/signals"
	"interlock/starter"
)

// An update whose workflow task failed is one that the run never had: it is sent
// again under its id, until the run takes it or the caller's time is up.
func TestNotTaken(t *testing.T) {
	t.Parallel()
	var ids []string
	fails := 2
	answer := func(o client.UpdateWorkflowOptions) (any, error) {
		if ids = append(ids, o.UpdateID); len(ids) <= fails {
			return nil, serviceerror.NewWorkflowNotReady("Unable to perform workflow execution update due to unexpected workflow task failure.")
		}
		return agent.Receipt{Status: agent.Accepted, Seq: 4}, nil
	}
	f := &fake{polled: time.Now(), updating: answer}
	f.starting = func(_ client.StartWorkflowOptions, o client.UpdateWorkflowOptions) (string, any, error) {
		out, err := answer(o)
		return "run", out, err
	}
	f.describe = func(string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
		return execution("run", "first", enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil), nil
	}
	s := starter.New(f, starter.WithDeadline(time.Second))
	hi := signals.Message{ID: "m", Principal: ann, Text: "hi"}
	for name, send := range map[string]func() (agent.Receipt, error){
		"message":  func() (agent.Receipt, error) { return s.Message(t.Context(), address, hi) },
		"converse": func() (agent.Receipt, error) { c, err := s.Converse(t.Context(), talk); return c.Receipt, err },
	} {
		ids, fails = nil, 2
		r, err := send()
		require.NoError(t, err, name)
		require.Equal(t, agent.Accepted, r.Status, name)
		require.Len(t, ids, 3, name)
		require.Equal(t, ids[0], ids[2], name)

		ids, fails = nil, 1000
		_, err = send()
		require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%s: %v", name, err)
		require.ErrorContains(t, err, "no answer in time", name)
	}
}
