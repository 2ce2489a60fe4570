package workflows_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/starter"
	"interlock/tool"
)

func (w *world) signal(address, name string, payload any) {
	w.t.Helper()
	require.NoError(w.t, temporalClient.SignalWorkflow(w.ctx, address, "", name, payload))
}

// Signals do all that updates do, without an answer.
func TestSignals_RefundAndCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, refund.Model())
	address := w.start("k")
	say := func(id, text string) {
		w.signal(address, signals.NameMessage, signals.Message{ID: id, Principal: customer, Text: text})
	}
	say("m1", "Please refund order 1042")
	say("m1", "Please refund order 1042") // a repeat
	w.until(address, "asked", func(r *agent.Run) bool { return waiting("user")(r) && len(r.Shown) == 2 })
	say("m2", "yes, that one")
	gate := lastGate(w.until(address, "gate", waiting("gate")))
	w.signal(address, signals.NameVerdict, map[string]any{"id": "v0", "gate": gate.ID, "digest": "stale", "verdict": "approve", "principal": ann})
	w.signal(address, signals.NameVerdict, signals.Verdict{ID: "v1", Gate: gate.ID, Digest: gate.Digest, Verdict: agent.Approve, Principal: ann})
	run := w.finished(address, agent.RunCompleted)
	require.Len(t, w.refunds(), 1)
	require.Len(t, recorded[agent.MessageData](w, address, agent.EventMessage), 2)
	require.Len(t, run.Handled, 4)

	other := w.start("k2")
	w.signal(other, signals.NameCancel, signals.Cancel{ID: "c1", Principal: customer, Reason: "no need"})
	run = w.finished(other, agent.RunCancelled)
	require.Equal(t, "no need", run.Reason)
}

// raw is a payload as another SDK, or a mistake, may send it.
func raw(encoding, data string) converter.RawValue {
	return converter.NewRawValue(&common.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encoding)}, Data: []byte(data)})
}

// unreadable are payloads that are no message, with what must be said of each.
var unreadable = map[string]struct {
	payload any
	says    string
}{
	"malformed":      {raw("json/plain", `{"id":"x", "text": opn_tab"}`), "JSON"},
	"empty":          {raw("json/plain", ``), ""},
	"wrong type":     {map[string]any{"id": 5, "text": "hi", "principal": map[string]any{"subject": "a"}}, "id"},
	"unknown key":    {map[string]any{"id": "x", "text": "hi", "principal": map[string]any{"subject": "a"}, "priority": 1}, "priority"},
	"duplicate key":  {raw("json/plain", `{"id":"x","id":"y","text":"hi","principal":{"subject":"a"}}`), "id"},
	"key by case":    {raw("json/plain", `{"ID":"x","text":"hi","principal":{"subject":"a"}}`), "ID"},
	"NUL":            {raw("json/plain", `{"id":"x","text":"h\u0000i","principal":{"subject":"a"}}`), ""},
	"text":           {"hello", ""},
	"null":           {nil, "binary/null"},
	"bytes":          {[]byte(`{"id":"x"}`), "binary/plain"},
	"principal gone": {map[string]any{"id": "x", "text": "hi"}, "principal"},
}

// What cannot be read is recorded with the reason, and the run goes on.
func TestSignals_Unreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, turns(scripted.Say("Hello.")), lab{db: labDB(t)}.agent())
	address := w.start("k")
	for _, u := range unreadable {
		w.signal(address, signals.NameMessage, u.payload)
	}
	w.signal(address, signals.NameVerdict, map[string]any{"id": "v", "gate": "1.1", "digest": "d", "verdict": true, "principal": ann})
	w.signal(address, signals.NameCancel, []string{"now"})
	_, err := temporalClient.WorkflowService().SignalWorkflowExecution(w.ctx, &workflowservice.SignalWorkflowExecutionRequest{
		Namespace: client.DefaultNamespace, WorkflowExecution: &common.WorkflowExecution{WorkflowId: address}, SignalName: signals.NameMessage})
	require.NoError(t, err)
	w.signal(address, "unknown_name", "x")
	want := len(unreadable) + 3
	eventually(t, "all of them are recorded", func() bool {
		return len(recorded[agent.InputRefusedData](w, address, agent.EventInputRefused)) >= want
	})
	for _, d := range recorded[agent.InputRefusedData](w, address, agent.EventInputRefused) {
		require.NotEmpty(t, d.Reason)
		require.Contains(t, []string{signals.NameMessage, signals.NameCancel, signals.NameVerdict}, d.Name)
	}
	run := w.chat(address, "hi")
	require.Equal(t, "Hello.", run.Turns[0].Proposal.Text)
	require.Empty(t, run.Turns[0].Opening[1:])
	w.requireJournal(run)
	w.requireReplay(address)
}

// quiet waits until the run has nothing under way, and tells how long its
// history is then.
func (w *world) quiet(address string) (length int) {
	w.t.Helper()
	eventually(w.t, "the run is quiet", func() bool {
		d, err := describe(w.ctx, address)
		length = int(d.GetWorkflowExecutionInfo().GetHistoryLength())
		return err == nil && len(d.GetPendingActivities()) == 0 && d.GetPendingWorkflowTask() == nil
	})
	return length
}

// historyLength is read from Temporal's own row.
func (w *world) historyLength(address string) int {
	return w.describe(address).HistoryLength
}

// An update that can never be accepted is rejected with the reason, and leaves
// nothing in the history.
func TestUpdates_Refused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, turns(scripted.Say("Hello.")), lab{db: labDB(t)}.agent())
	address := w.start("k")
	w.chat(address, "hi")
	before := w.quiet(address)
	send := func(name string, payload any) error {
		ctx, cancel := context.WithTimeout(w.ctx, 30*time.Second)
		defer cancel()
		h, err := temporalClient.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: address, UpdateName: name,
			WaitForStage: client.WorkflowUpdateStageCompleted, Args: []any{payload}})
		if err == nil {
			err = h.Get(ctx, nil)
		}
		return err
	}
	for name, u := range unreadable {
		err := send(signals.NameMessage, u.payload)
		require.Error(t, err, name)
		require.Contains(t, err.Error(), u.says, name)
	}
	require.ErrorContains(t, send(signals.NameMessage, signals.Message{ID: "x", Principal: customer, Text: "  "}), "needs a text")
	require.ErrorContains(t, send(signals.NameMessage, signals.Message{ID: "x", Principal: customer, Text: strings.Repeat("x", 9000)}), "the limit is")
	v := signals.Verdict{ID: "v", Gate: "1.1", Digest: "d", Verdict: "yes", Principal: ann}
	require.ErrorContains(t, send(signals.NameVerdict, v), `none of approve, reject, return and edit`)
	v.Verdict = ""
	require.ErrorContains(t, send(signals.NameVerdict, v), `none of approve, reject, return and edit`)
	v.Verdict = agent.Reject
	require.ErrorContains(t, send(signals.NameVerdict, v), "needs a reason")
	require.ErrorContains(t, send("unknown_name", v), "unknown_name")
	for range 3 {
		_, err := temporalClient.QueryWorkflow(w.ctx, address, "", signals.QueryRun)
		require.NoError(t, err)
	}
	require.Equal(t, before, w.historyLength(address))
	require.Empty(t, recorded[agent.InputRefusedData](w, address, agent.EventInputRefused))

	// Codes reach the caller of the starter.
	_, err := w.starter.Message(w.ctx, address, signals.Message{ID: "x", Principal: customer})
	require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%v", err)
	_, err = w.starter.Message(w.ctx, "acme/lab/nobody", signals.Message{ID: "x", Principal: customer, Text: "hi"})
	require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err), "%v", err)
	_, err = w.starter.Message(w.ctx, "nonsense", signals.Message{ID: "x", Principal: customer, Text: "hi"})
	require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%v", err)
	w.requireReplay(address)
}

// A repeated id is acknowledged and does nothing, during the run and after its
// end; another text under the id is refused.
func TestUpdates_Repeated(t *testing.T) {
	t.Parallel()
	model := watch(turns(scripted.Say("Hello."), toEnd))
	w := newWorld(t, model, lab{db: labDB(t)}.agent())
	address := w.start("k")
	m := signals.Message{ID: "m", Principal: customer, Text: "hi"}
	send := func() agent.Receipt {
		r, err := w.starter.Message(w.ctx, address, m)
		require.NoError(t, err)
		return r
	}
	first := send()
	for range 3 {
		// Temporal answers a repeat of an update with the first receipt.
		require.Equal(t, first.Seq, send().Seq)
	}
	// Through another door it is the run that knows.
	w.signal(address, signals.NameMessage, m)
	w.until(address, "an answer", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 1 })
	other := m
	other.Text = "something else"
	_, err := w.starter.Message(w.ctx, address, other)
	require.Equal(t, agent.CodeConflict, agent.ErrorCode(err), "%v", err)
	other.ID = "m2"
	_, err = w.starter.Message(w.ctx, address, other)
	require.NoError(t, err)
	w.finished(address, agent.RunCompleted)
	require.Len(t, model.seen(t), 2)

	r := send()
	require.Equal(t, first.Seq, r.Seq, "the first receipt, after the end too")
	_, err = w.starter.Message(w.ctx, address, signals.Message{ID: "m3", Principal: customer, Text: "still there?"})
	require.Equal(t, agent.CodeEnded, agent.ErrorCode(err), "%v", err)
	require.Error(t, temporalClient.SignalWorkflow(w.ctx, address, "", signals.NameMessage, m))
	without := starter.New(temporalClient)
	_, err = without.Message(w.ctx, address, signals.Message{ID: "m3", Principal: customer, Text: "still there?"})
	require.Equal(t, agent.CodeEnded, agent.ErrorCode(err), "%v", err)
}

// Another content under an id that was handled is refused after the end too.
func TestUpdates_OtherContentUnderAnIDAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, turns(toEnd), lab{db: labDB(t)}.agent())
	address := w.start("k")
	_, err := w.starter.Message(w.ctx, address, signals.Message{ID: "m", Principal: customer, Text: "end"})
	require.NoError(t, err)
	w.finished(address, agent.RunCompleted)
	_, err = w.starter.Message(w.ctx, address, signals.Message{ID: "m", Principal: customer, Text: "something else"})
	require.Equal(t, agent.CodeConflict, agent.ErrorCode(err), "%v", err)
	_, err = w.starter.Cancel(w.ctx, address, signals.Cancel{ID: "m", Principal: customer})
	require.Equal(t, agent.CodeConflict, agent.ErrorCode(err), "%v", err)
}

// Two verdicts at the same time: one decides, the other learns who did.
func TestVerdicts_AtTheSameTime(t *testing.T) {
	t.Parallel()
	db := labDB(t)
	w := newWorld(t, turns(scripted.Say("Done."), scripted.Say("Done.")),
		lab{db: db, opening: []string{"1"}, gate: &tool.Gate[labState, text]{Roles: []string{"refunds"}}}.agent())
	approved := 0
	for range 50 {
		address := w.start(w.id("k"))
		gate := lastGate(w.until(address, "gate", waiting("gate")))
		people := []string{"ann", "bob"}
		receipts, errs := make([]agent.Receipt, 2), make([]error, 2)
		var wg sync.WaitGroup
		for i, who := range people {
			v := w.verdict(gate, agent.Approve, "")
			v.Principal.Subject = who
			if i == 1 {
				v.Verdict, v.Reason = agent.Reject, "not today"
			}
			wg.Go(func() { receipts[i], errs[i] = w.starter.Decide(w.ctx, address, v) })
		}
		wg.Wait()
		require.NoError(t, errs[0])
		require.NoError(t, errs[1])
		won := 0
		if receipts[1].Status == agent.Accepted {
			won = 1
		}
		require.Equal(t, agent.Accepted, receipts[won].Status)
		require.Equal(t, agent.Voided, receipts[1-won].Status)
		for _, r := range receipts {
			require.Equal(t, people[won], r.Gate.By)
			require.Equal(t, []agent.GateStatus{agent.GateApproved, agent.GateRejected}[won], r.Gate.Status)
		}
		require.Contains(t, receipts[1-won].Reason, "by "+people[won])
		approved += 1 - won
		w.until(address, "the end of it", waiting("user"))
		require.Equal(t, approved, payments(t, db))
		w.cancel(address, "")
		w.finished(address, agent.RunCancelled)
		var judged []string
		for _, v := range recorded[agent.VerdictData](w, address, agent.EventVerdict) {
			judged = append(judged, v.Verdict.Principal.Subject+" "+v.Judgement)
		}
		require.Equal(t, []string{people[won] + " valid", people[1-won] + " void"}, judged)
		require.Len(t, recorded[agent.GateClosedData](w, address, agent.EventGateClosed), 1)
	}
}

// A verdict about a gate that does not exist, or of somebody who may not
// decide, is recorded as void, and the gate stays open.
func TestVerdicts_Void(t *testing.T) {
	t.Parallel()
	db := labDB(t)
	w := newWorld(t, turns(scripted.Say("Done.")), lab{db: db, opening: []string{"1", "2"}, gate: &tool.Gate[labState, text]{Roles: []string{"refunds"}}}.agent())
	address := w.start("k")
	run := w.until(address, "gates", func(r *agent.Run) bool { return len(r.Gates) == 2 })
	one, two := run.Gates[0], run.Gates[1]
	void := func(change func(*signals.Verdict), says string) {
		t.Helper()
		v := w.verdict(one, agent.Approve, "")
		change(&v)
		r, err := w.starter.Decide(w.ctx, address, v)
		require.NoError(t, err)
		require.Equal(t, agent.Voided, r.Status)
		require.Contains(t, r.Reason, says)
	}
	void(func(v *signals.Verdict) { v.Gate = "7.7" }, "no gate 7.7")
	void(func(v *signals.Verdict) { v.Digest = two.Digest }, "digest is not that of gate")
	void(func(v *signals.Verdict) { v.Principal.Roles = []string{"interns"} }, "needs the role refunds")
	void(func(v *signals.Verdict) { v.Principal.Roles = nil }, "needs the role refunds")
	void(func(v *signals.Verdict) { v.Principal.Tenant = "other" }, "another tenant")
	eventually(t, "all are recorded", func() bool { return len(recorded[agent.VerdictData](w, address, agent.EventVerdict)) == 5 })
	require.Zero(t, payments(t, db))
	// In reverse order, each reaches its own gate.
	w.decide(address, two, agent.Reject, "not this one")
	w.decide(address, one, agent.Approve, "")
	run = w.until(address, "the end of it", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn > 0 })
	require.Equal(t, agent.StepDone, run.Steps[0].Status)
	require.Equal(t, agent.StepRejected, run.Steps[1].Status)
	require.Equal(t, 1, payments(t, db))
}

// Queries during a wait change neither the history nor a later replay.
func TestQueries_ChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, refund.Model())
	address := w.start("k")
	gate := w.toGate(address)
	before := w.quiet(address)
	for range 5 {
		eventually(t, "an answer, however busy the machine is", func() bool {
			_, err := temporalClient.QueryWorkflow(w.ctx, address, "", signals.QueryRun)
			return err == nil
		})
	}
	require.Equal(t, before, w.historyLength(address))
	w.requireReplay(address)
	w.decide(address, gate, agent.Approve, "")
	w.finished(address, agent.RunCompleted)
}

// A message that arrives while tools run is shown after all their answers.
func TestMessage_WhileToolsRun(t *testing.T) {
	t.Parallel()
	look, send := newBlocking(), newBlocking()
	model := watch(turns(scripted.Then(call("look", "a"), call("send", "b")), scripted.Say("Now I know.")))
	w := newWorld(t, model, lab{db: labDB(t),
		look: func(ctx context.Context, a text) (text, error) { return a, look.wait(ctx) },
		send: func(ctx context.Context, _ tool.Key, a text) (text, error) { return a, send.wait(ctx) }}.agent())
	address := w.start("k")
	w.say(address, "go")
	look.awaitBegun(t)
	send.awaitBegun(t)
	close(look.free)
	w.until(address, "the first answer", func(r *agent.Run) bool { return statuses(r)["look"] == agent.StepDone })
	w.say(address, "I meant the other one")
	w.say(address, "are you there?")
	close(send.free)
	run := w.until(address, "the answer", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 2 })
	w.requireJournal(run)
	requests := model.seen(t)
	require.Len(t, requests, 2)
	var order []string
	for _, m := range requests[1].Messages {
		switch {
		case m.Role == llm.RoleTool:
			order = append(order, "answer "+m.Tool)
		case m.Role == llm.RoleAssistant:
			order = append(order, "proposal")
		case strings.Contains(m.Text, "I meant the other one") && strings.Contains(m.Text, "are you there?"):
			require.Less(t, strings.Index(m.Text, "I meant the other one"), strings.Index(m.Text, "are you there?"))
			order = append(order, "messages")
		}
	}
	require.Equal(t, []string{"proposal", "answer look", "answer send", "messages"}, order)
}

// A message that meets the run's end is refused, never lost without a word.
func TestMessage_MeetsTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asked(func(req llm.Request) llm.Model {
		if req.View.Phase == "work" {
			return says(toEnd)
		}
		return says(scripted.Say("Goodbye."))
	}), lab{db: labDB(t)}.agent())
	for range 5 {
		address := w.start(w.id("k"))
		w.say(address, "end")
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = w.starter.Message(w.ctx, address, signals.Message{ID: w.id("late"), Principal: customer, Text: "one more thing"})
			})
		}
		wg.Wait()
		w.finished(address, agent.RunCompleted)
		taken := len(recorded[agent.MessageData](w, address, agent.EventMessage)) - 1
		for _, err := range errs {
			if err == nil {
				taken--
				continue
			}
			require.Equal(t, agent.CodeEnded, agent.ErrorCode(err), "%v", err)
		}
		require.Zero(t, taken, "each that is recorded was acknowledged, and the other way round")
	}
}
