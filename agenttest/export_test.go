package agenttest_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/tool"
)

// requireRoundTrip checks that the script of a journal gives the same events,
// and expects what came.
func requireRoundTrip(t testing.TB, def *agent.Definition, events []agent.Event) {
	t.Helper()
	script, err := agenttest.Export(events)
	require.NoError(t, err)
	played, run := agenttest.Play(t, def, script)
	require.Equal(t, string(script), string(played))
	require.Len(t, run.Events(), len(events))
	for i, e := range run.Events() {
		was := events[i]
		if e.Type == agent.EventStarted { // recorded before there were as many limits as now
			was.Data, e.Data = decides(t, was.Data), decides(t, e.Data)
		}
		require.Equal(t, text(t, was), text(t, e))
	}
	again, err := agenttest.Export(run.Events())
	require.NoError(t, err)
	require.Equal(t, string(script), string(again))
}

func decides(t testing.TB, started agent.JSON) agent.JSON {
	t.Helper()
	var members map[string]agent.JSON
	require.NoError(t, json.Unmarshal(started, &members))
	delete(members, "limits")
	delete(members, "salt") // of the journal's hashes: no script tells it, and no decision reads it
	j, err := agent.Encode(members)
	require.NoError(t, err)
	return j
}

func text(t testing.TB, v any) string {
	t.Helper()
	j, err := json.Marshal(v)
	require.NoError(t, err)
	return string(j)
}

func TestExport_RefundApproved(t *testing.T) {
	run := refundRun(t, agenttest.Options{})
	untilGate(t, run)
	run.Approve("3.1", "ann", "refunds")
	run.Propose(scripted.Finish("It is on its way."))
	requireRoundTrip(t, refundAgent(), run.Events())
}

func refundAgent() *agent.Definition { return refund.Agent(&shop.Shop{}, mail.Client{}) }

// Everything that a journal can tell of: kept, void and repeated verdicts, an
// expiry found by a verdict, failures, a pause that lets go of the model.
func TestExport_Eventful(t *testing.T) {
	run := agenttest.Options{User: "c-017"}.Start(t, refundAgent(), refund.Start{CustomerID: "c-017"})
	run.Says("line one\nline \"two\" <b> \u00e4")
	run.Propose(scripted.Raw("find_order", `{"order_id":`), scripted.Raw("find_order", `"1042"`), scripted.Raw("no such tool", ""),
		scripted.SetFields("nothing", scripted.Args{"order_id": "1042"}))
	run.Propose(scripted.Say("Which order?"))
	run.Pause("a look")
	run.Resume()
	run.Says("refund 1042")
	run.Pause("") // lets go of the model
	run.Resume()
	run.Propose(scripted.SetFields("1042", scripted.Args{"order_id": "1042"}), scripted.Call("find_order", shop.FindArgs{OrderID: "1042"}))
	run.Advance(1500 * time.Millisecond)
	run.Fail("4.1", errors.New("no \"connection\""))
	run.Says("try again") // it is read while the turn goes on
	run.Propose(scripted.Call("find_order", shop.FindArgs{OrderID: "1042"}))
	run.Fail("5.1", tool.Refused(errors.New("never")))
	run.Propose(scripted.Call("find_order", shop.FindArgs{OrderID: "1042"}))
	run.Done("6.1", shop.Order{ID: "1042", Total: eur(89_90)})
	run.Propose(scripted.Ask("Refund this?", "order_id", "amount"))
	run.Says("yes")
	run.Propose(scripted.Confirm("order_id", "amount"), scripted.MoveTo("pay"))
	gate := run.Gate("8.1")
	run.Approve("8.1", "eve", "support")
	run.Says("hm, wait")
	run.Approve("8.1", "ann", "refunds") // kept
	run.Amend(map[string]any{"order_id": "1042"})
	run.ProposeFails("context too long")
	run.Resume()
	run.Propose(scripted.Say("I wait."))
	run.Fail("8.1", agenttest.Unknown(errors.New("no answer")))
	require.Equal(t, agent.StepInDoubt, run.Step("8.1").Status)
	run.Decide(agent.Verdict{ID: "late", Gate: "8.1", Digest: gate.Digest, Verdict: agent.Reject, Reason: "too late",
		Principal: agent.Principal{Subject: "bob", Roles: []string{"refunds", "team lead"}, Tenant: "other"}})
	run.Propose(scripted.Say("A colleague looks."))
	run.Amend(map[string]any{"order_id": "1043"})
	run.Says("and now?")
	run.Cancel("the end")
	require.Equal(t, agent.RunCancelled, run.Status())
	requireRoundTrip(t, refundAgent(), run.Events())
}

func TestExport_Expiry(t *testing.T) {
	for name, then := range map[string]func(*agenttest.Run){
		"timer": func(run *agenttest.Run) { run.Advance(25 * time.Hour) },
		"verdict": func(run *agenttest.Run) {
			script, err := agenttest.Export(run.Events())
			require.NoError(t, err)
			late := strings.Replace(string(script), "\nstate\n", "\nverdict 3.1 approve by=ann roles=refunds at=+25h\n\nstate\n", 1)
			_, r := agenttest.Play(t, refundAgent(), []byte(late))
			*run = *r
		},
		"message": func(run *agenttest.Run) {
			script, err := agenttest.Export(run.Events())
			require.NoError(t, err)
			late := strings.Replace(string(script), "\nstate\n", "\nmessage \"hello?\" at=+25h\n\nstate\n", 1)
			_, r := agenttest.Play(t, refundAgent(), []byte(late))
			*run = *r
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := refundRun(t, agenttest.Options{})
			untilGate(t, run)
			then(run)
			require.Equal(t, agent.StepExpired, run.Step("3.1").Status)
			requireRoundTrip(t, refundAgent(), run.Events())
		})
	}
}

// journalOf is the journal of a recorded run: what its activities carried.
func journalOf(t *testing.T, file string) []agent.Event {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	require.NoError(t, err)
	var out []agent.Event
	for _, e := range h.Events {
		a := e.GetActivityTaskScheduledEventAttributes()
		if a == nil {
			continue
		}
		var in struct{ signals.Ride }
		require.NoError(t, json.Unmarshal(a.GetInput().GetPayloads()[0].GetData(), &in))
		for _, e := range in.Batch.Events {
			if e.Seq == int64(len(out))+1 {
				out = append(out, e)
			}
		}
	}
	return out
}

// Runs that were recorded on a Temporal server, with its times.
func TestExport_RecordedRuns(t *testing.T) {
	for _, name := range []string{"plain", "approved", "rejected", "worker-killed"} {
		t.Run(name, func(t *testing.T) {
			requireRoundTrip(t, refundAgent(), journalOf(t, filepath.Join("..", "replaytests", "testdata", name+".json")))
		})
	}
}
