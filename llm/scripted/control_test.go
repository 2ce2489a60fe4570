package scripted_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
)

func TestControlCalls(t *testing.T) {
	for want, res := range map[string]llm.Response{
		`set_fields {"fields":{"n":1},"quote":"one"}`:     scripted.SetFields("one", scripted.Args{"n": 1}),
		`set_fields {"fields":{"n":1}}`:                   scripted.SetFields("", scripted.Args{"n": 1}),
		`ask {"fields":["a","b"],"question":"Sure?"}`:     scripted.Ask("Sure?", "a", "b"),
		`ask {"question":"Which?"}`:                       scripted.Ask("Which?"),
		`confirm {"fields":["a"]}`:                        scripted.Confirm("a"),
		`move {"to":"pay"}`:                               scripted.MoveTo("pay"),
		`record_fact {"quote":"it broke"}`:                scripted.RecordFact("it broke"),
		`withdraw {"reason":"changed mind","step":"1.1"}`: scripted.Withdraw("1.1", "changed mind"),
		`withdraw {"step":"1.1"}`:                         scripted.Withdraw("1.1", ""),
		`finish {"text":"Done."}`:                         scripted.Finish("Done."),
	} {
		require.Len(t, res.Calls, 1)
		require.Equal(t, want, res.Calls[0].Tool+" "+res.Calls[0].Args)
		require.Contains(t, agent.ControlCalls, res.Calls[0].Tool)
	}
}
