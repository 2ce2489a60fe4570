package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/api"
	"interlock/store"
)

// An operator is told what the tenant's runs are at and what models took, and nothing
// of another tenant's.
func TestOps(t *testing.T) {
	l := newLab(t)
	l.atGate("k")
	at := time.Now().UTC().Truncate(time.Microsecond)
	for tenant, address := range map[string]string{"acme": "acme/desk/k", "other": "other/desk/k"} {
		_, err := l.store.RecordModelCall(t.Context(), store.ModelCall{Tenant: tenant, Key: "1", Address: address, Turn: 1, Model: "m", Instructions: "x",
			Usage: agent.Usage{Input: 9007199254740993}, Answer: agent.JSON(`{}`), At: at})
		require.NoError(t, err)
	}
	counts := into[api.RunCounts](l.get("op", "/v1/ops/runs").ok(http.StatusOK))
	require.Equal(t, []api.RunCount{{Agent: "desk", Status: agent.RunWaiting, Reason: "gate", Runs: 1}}, counts.Counts)
	for _, by := range []string{"hour", "day"} {
		spent := into[api.SpentList](l.get("op", "/v1/ops/spent?by="+by).ok(http.StatusOK)).Spent
		require.Len(t, spent, 1)
		require.Equal(t, []any{"desk", "m", 1, int64(9007199254740993)}, []any{spent[0].Agent, spent[0].Model, spent[0].Calls, spent[0].Usage.Input})
	}
	require.Empty(t, into[api.RunCounts](l.get("evil", "/v1/ops/runs").ok(http.StatusOK)).Counts)
	l.get("op", "/v1/ops/spent?steps=745").problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
}
