package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// What this code does not know it does not go on with, and says what to do.
func TestRestore_RefusesWhatItDoesNotKnow(t *testing.T) {
	def := deskAgent()
	tr := begin(t, def, `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`risky {"order_id":"1","amount":{"minor":50,"currency":"EUR"}}`)
	for name, c := range map[string]struct {
		change func(s *agent.Snapshot, r *agent.Run)
		code   agent.Code
		says   string
	}{
		"no run":        {func(s *agent.Snapshot, _ *agent.Run) { s.Run = nil }, agent.CodeInvalid, "holds no run"},
		"newer rules":   {func(_ *agent.Snapshot, r *agent.Run) { r.Rules = 99 }, agent.CodeUnavailable, "rules 99"},
		"newer run":     {func(_ *agent.Snapshot, r *agent.Run) { r.V = 9 }, agent.CodeUnavailable, "its run's 9"},
		"newer schema":  {func(s *agent.Snapshot, _ *agent.Run) { s.V = 9 }, agent.CodeUnavailable, "schema is 9"},
		"another state": {func(_ *agent.Snapshot, r *agent.Run) { r.State = agent.JSON(`{"customer":"c"}`) }, agent.CodeUnavailable, "customer"},
		"a gate alone":  {func(_ *agent.Snapshot, r *agent.Run) { r.Steps = nil }, agent.CodeInvalid, "gate 1.1 is open, and there is no step 1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := tr.m.Snapshot(), *tr.m.Run()
			s.Run = &r
			c.change(&s, &r)
			_, err := agent.Restore(def, s)
			require.Equal(t, c.code, agent.ErrorCode(err), "%v", err)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// One optional field more is no change; any other is, and is named.
func TestStateShape_Changed(t *testing.T) {
	was := agent.StateShape{"a": "string", "b": "object", "b/c": "integer", "d": "array?", "d/[]": "string"}
	with := func(change func(agent.StateShape)) agent.StateShape {
		now := agent.StateShape{}
		for k, v := range was {
			now[k] = v
		}
		change(now)
		return now
	}
	require.Empty(t, was.Changed(was))
	require.Empty(t, was.Changed(with(func(n agent.StateShape) { n["e"], n["e/f"] = "object?", "string" })))
	require.Contains(t, was.Changed(with(func(n agent.StateShape) { delete(n, "b/c"); n["b/d"] = "integer" })), "b/c (integer) is gone")
	require.Contains(t, was.Changed(with(func(n agent.StateShape) { n["d/[]"] = "integer" })), "d/[] was string and is integer")
	require.Contains(t, was.Changed(with(func(n agent.StateShape) { n["b/e"] = "string" })), "b/e (string) is new and not optional")
	require.NotEmpty(t, deskAgent().StateShape()["amount/minor"])
}
