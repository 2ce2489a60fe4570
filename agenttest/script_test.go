package agenttest_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/agenttest"
)

func TestScripts(t *testing.T) { agenttest.Script(t, refundAgent(), "testdata/*.txt") }

// A script by hand and the export of its run give the same events.
func TestScriptAndItsExport(t *testing.T) {
	script, err := os.ReadFile("testdata/refund.txt")
	require.NoError(t, err)
	played, run := agenttest.Play(t, refundAgent(), script)
	require.Equal(t, string(script), string(played))
	requireRoundTrip(t, refundAgent(), run.Events())
}

func TestMistakesOfAScript(t *testing.T) {
	const begin = "start {\"customer_id\":\"c\"}\n\n"
	for script, want := range map[string]string{
		"message \"hi\"":                                 "a script begins with start",
		begin + "start {}":                               "the run has started already",
		begin + "mesage \"hi\"":                          `there is no input "mesage"`,
		begin + "message \"hi":                           "is no JSON value",
		begin + "message \"hi\" form=c":                  "there is no option form here",
		begin + "message \"hi\" at=tomorrow":             "at: parsing time",
		begin + "message \"hi\" at=2020-01-01T00:00:00Z": "is before the input that came before",
		begin + "message \"hi\"\n  find_order {}":        `"  find_order {}" belongs to no model`,
		begin + "amend {\"a\":1,\"a\":2}":                "amend",
	} {
		require.Contains(t, failing(t, func(tb testing.TB) { agenttest.Play(tb, refundAgent(), []byte(script)) }), want, script)
	}
}

func TestExport_Refuses(t *testing.T) {
	_, err := agenttest.Export(nil)
	require.ErrorContains(t, err, "export all of it")
	run := refundRun(t, agenttest.Options{})
	events := run.Events()
	_, err = agenttest.Export(events[1:])
	require.ErrorContains(t, err, "export all of it")
	_, err = agenttest.Export(append(events, agent.Event{Seq: int64(len(events)) + 1, Type: "unheard_of"}))
	require.ErrorContains(t, err, "of type unheard_of, which this code does not know")
	_, err = agenttest.Export(append(events, events[2]))
	require.ErrorContains(t, err, "has seq")
}

// A type of event that scripts do not know would be refused by every export.
func TestEveryEventTypeIsKnown(t *testing.T) {
	source, err := os.ReadFile("../agent/event.go")
	require.NoError(t, err)
	types := regexp.MustCompile(`(?m)^\tEvent\w+ +EventType += "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	require.Greater(t, len(types), 25)
	for _, m := range types {
		run := refundRun(t, agenttest.Options{})
		events := run.Events()
		_, err := agenttest.Export(append(events, agent.Event{Seq: int64(len(events)) + 1, At: events[0].At, Type: agent.EventType(m[1]), Step: "1.1"}))
		if err != nil {
			require.NotContains(t, err.Error(), "does not know", "add it to shown, and to isCause where it is the trace of an input")
		}
	}
}
