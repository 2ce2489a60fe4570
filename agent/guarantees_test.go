package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

// One short test for each promise that no script covers.

// What a model writes can be refused, and can never stop the machine: it goes
// into an event, whatever it is.
func TestMachine_AnyArguments(t *testing.T) {
	for name, args := range map[string]string{
		"an escaped NUL byte":      "{\"a\":\"\\\x00\"}",
		"a NUL byte":               "{\"a\":\"\x00\"}",
		"U+0000":                   `{"a":"\u0000"}`,
		"invalid UTF-8":            "{\"a\":\"\xff\"}",
		"a deep value":             `{"a":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`,
		"a value that is too deep": `{"a":` + strings.Repeat("[", 90) + strings.Repeat("]", 90) + `}`,
		"a long duplicate key":     `{"` + strings.Repeat("k", 9000) + `":1,"` + strings.Repeat("k", 9000) + `":2}`,
		"a large number":           `{"a":1e400}`,
		"a number beyond reason":   `{"a":1e999999999}`,
		"no JSON":                  `{"a": what?`,
		"a lone surrogate":         `{"a":"\ud83d"}`,
	} {
		tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
		tr.message("go")
		for _, tool := range []string{"charge", agent.CallSetFields, agent.CallAsk, "nothing"} {
			in := agent.Proposed{Turn: tr.m.Run().Turn, Finish: agent.FinishStop, Text: "a\x00b\xff", Model: "m\x00",
				Calls: []agent.RawCall{{Tool: tool, Args: args, ProviderID: "\x00\xff"}, {Tool: "\x00" + args, Args: "{}"}}}
			events := tr.step(in)
			require.Contains(t, types(events), agent.EventCallAnswered, name)
			for _, e := range events {
				require.Less(t, len(e.Data), 8000, "%s: what is refused is shown in part", name)
			}
			if tr.m.Run().Status == agent.RunPaused {
				break // for its refusals
			}
			require.Equal(t, "refused", tr.answer(fmt.Sprintf("c%d_1", in.Turn)).Status, name)
		}
		requireReduces(t, tr.m.Batch().Events, tr.m.Run())
	}
}

type tagged struct {
	Tags  map[string]string `json:"tags,omitempty" set:"model,tool"`
	Count int64             `json:"count" set:"model,tool"`
}

func (s *tagged) Validate() error {
	if s.Count < 0 || s.Tags["forbidden"] != "" {
		return errors.New("count may not be negative, and nothing is forbidden")
	}
	return nil
}

func taggedAgent(first tagged) *agent.Definition {
	type args struct {
		ID int64 `json:"id"`
	}
	type counted struct {
		N int64 `json:"n"`
	}
	count := tool.ReadOnly("count", none[args, counted], func(s *tagged, _ args, r counted) error { s.Count = r.N; return nil })
	store := tool.Keyed("store", keyed[args, counted], func(s *tagged, _ args, r counted) error { s.Count = r.N; return nil }).
		Gate(tool.Gate[tagged, args]{Roles: []string{"boss"}, Reads: []string{"count"}})
	return agent.Define(agent.Spec[start, tagged]{Name: "tagged", Version: 1, Instructions: "x",
		Init: func(start) (tagged, error) { return first, nil },
		Phases: []agent.Phase[tagged]{
			{Name: "work", Tools: []agent.Tool[tagged]{count, store}, Moves: []agent.Move[tagged]{{To: "end",
				When: func(s agent.Situation[tagged]) error { return s.VerifiedWithin("count", time.Hour) }}}},
			{Name: "end", Final: true}}})
}

// A state's own Validate refuses a write of anybody.
func TestState_Validate(t *testing.T) {
	tr := begin(t, taggedAgent(tagged{}), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`set_fields {"fields":{"count":-1}}`, `set_fields {"fields":{"tags":{"forbidden":"x"}}}`, `count {"id":1}`)
	before := tr.m.Run().State.String()
	require.Contains(t, types(tr.done("1.1", `{"n":-5}`)), agent.EventCommitRefused)
	require.Equal(t, before, tr.m.Run().State.String())
	for _, c := range []string{"c1_1", "c1_2"} {
		require.Equal(t, "refused", tr.answer(c).Status)
		require.Contains(t, tr.answer(c).Text, "count may not be negative")
	}
	require.Equal(t, "done", tr.answer("c1_3").Status, "it happened all the same")
	require.Contains(t, tr.answer("c1_3").Text, "not taken into the state: count may not be negative")

	tr = begin(t, taggedAgent(tagged{Count: -1}), `{"customer_id":"c"}`)
	require.Equal(t, agent.RunFailed, tr.m.Run().Status)
}

// A map's key may be replaced by one that differs only in case.
func TestState_KeyReplaced(t *testing.T) {
	tr := begin(t, taggedAgent(tagged{Tags: map[string]string{"k": "v"}}), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`set_fields {"fields":{"tags":{"K":"v"}}}`)
	require.JSONEq(t, `{"tags":{"K":"v"},"count":0}`, tr.m.Run().State.String())
	requireReduces(t, tr.m.Batch().Events, tr.m.Run())
}

func TestState_Caps(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.message("go 77")
	tr.model(`set_fields {"fields":{"note":"`+strings.Repeat("n", 1600)+`"}}`, `charge {"order_id":"77","amount":{"minor":5,"currency":"EUR"}}`)
	tr.done("1.1", `{"id":"`+strings.Repeat("r", 780)+`"}`)
	require.Contains(t, tr.answer("c1_1").Text, "state_too_large")
	require.Contains(t, tr.answer("c1_1").Text, "the limit is 1500")
	tr.model(`set_fields {"fields":{"note":"`+strings.Repeat("n", 500)+`"}}`, `ping {"refund_id":"a"}`)
	require.Equal(t, 780, len(tr.state().RefundID), "what fits is taken")

	// The first state has the same caps: what is shown of it is in every view.
	tr = begin(t, taggedAgent(tagged{Tags: map[string]string{"a": strings.Repeat("a", 13<<10)}}), `{"customer_id":"c"}`)
	require.Equal(t, agent.RunFailed, tr.m.Run().Status)
	require.Contains(t, tr.m.Run().Reason, "start input refused: state_too_large")
}

func (tr *trial) state() (s state) {
	return data[state](agent.Event{Data: tr.m.Run().State})
}

// Arguments are, byte for byte, what was validated, gated and runs.
func TestStep_ExactArguments(t *testing.T) {
	for _, id := range []string{"9007199254740993", "9223372036854775807", "-9223372036854775808"} {
		tr := begin(t, taggedAgent(tagged{}), `{"customer_id":"c"}`)
		tr.message("go")
		tr.model(`store {"id": ` + id + `.0}`)
		want := `{"id":` + id + `}`
		require.Equal(t, want, tr.gate("1.1").Args.String())
		tr.verdict("1.1", agent.Approve, "")
		i := slices.IndexFunc(tr.cmds, func(c agent.Command) bool { _, runs := c.(agent.RunStep); return runs })
		require.Equal(t, want, tr.cmds[i].(agent.RunStep).Task.Args.String())
		tr.done("1.1", `{"n":`+id+`}`)
		require.Contains(t, tr.m.Run().State.String()+"refused", map[bool]string{true: "refused", false: id}[id[0] == '-'])
	}
	tr := begin(t, taggedAgent(tagged{}), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`store {"id":9223372036854775808}`)
	require.Equal(t, "/id: number 9223372036854775808 does not fit int64", tr.answer("c1_1").Text)
}

// The key of an effect is the same however its arguments are written, and of
// no other run, tool, argument or ordinal.
func TestStep_Key(t *testing.T) {
	key := func(change func(*agent.Started), calls ...string) string {
		def := deskAgent()
		in := agent.Started{Tenant: "acme", Key: "k", FirstRunID: "r", Rules: agent.Rules, Limits: def.Limits(), User: "u", Body: agent.JSON(`{"customer_id":"c"}`)}
		change(&in)
		tr := &trial{t: t, m: agent.NewMachine(def)}
		tr.step(in)
		tr.message("go")
		tr.model(calls...)
		last := tr.cmds[len(tr.cmds)-1].(agent.RunStep)
		return last.Task.Key
	}
	same := func(*agent.Started) {}
	first := key(same, `charge {"order_id":"7","amount":{"minor":5,"currency":"EUR"}}`)
	require.Equal(t, first, key(same, `charge { "amount": {"currency":"EUR","minor":5e0}, "order_id": "\u0037" }`))
	require.Equal(t, first, key(same, `find_order {"order_id":"7"}`, `charge {"order_id":"7","amount":{"minor":5,"currency":"EUR"}}`),
		"it makes no difference which step it is")
	keys := []string{first,
		key(func(s *agent.Started) { s.Tenant = "b" }, `charge {"order_id":"7","amount":{"minor":5,"currency":"EUR"}}`),
		key(func(s *agent.Started) { s.Key = "b" }, `charge {"order_id":"7","amount":{"minor":5,"currency":"EUR"}}`),
		key(func(s *agent.Started) { s.FirstRunID = "b" }, `charge {"order_id":"7","amount":{"minor":5,"currency":"EUR"}}`),
		key(same, `risky {"order_id":"7","amount":{"minor":5,"currency":"EUR"}}`),
		key(same, `charge {"order_id":"7","amount":{"minor":6,"currency":"EUR"}}`),
		key(same, `ping {"refund_id":"a"}`),
		key(same, `ping {"refund_id":"a"}`, `ping {"refund_id":"a"}`),
	}
	slices.Sort(keys)
	require.Len(t, slices.Compact(keys), 8)
	require.Empty(t, key(same, `find_order {"order_id":"7"}`), "what only reads has no effect to find again")
}

func TestVerdict_IDReused(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`risky {"order_id":"77","amount":{"minor":50,"currency":"EUR"}}`)
	v := agent.Verdict{ID: "v", Gate: "1.1", Digest: "0123", Verdict: agent.Approve, Principal: agent.Principal{Subject: "kim", Roles: []string{"boss"}}}
	tr.step(agent.VerdictGiven{Verdict: v})
	require.Equal(t, agent.Voided, tr.receipt.Status)
	other := v
	other.Digest = tr.gate("1.1").Digest
	require.Empty(t, tr.step(agent.VerdictGiven{Verdict: other}))
	require.Equal(t, agent.Refused, tr.receipt.Status)
	require.Equal(t, agent.CodeConflict, tr.receipt.Code)
	require.Equal(t, agent.GateOpen, tr.receipt.Gate.Status)
	require.Empty(t, tr.step(agent.VerdictGiven{Verdict: v}))
	require.Equal(t, agent.Repeated, tr.receipt.Status, "the first is acknowledged as before")
	require.Equal(t, agent.CodeStale, tr.receipt.Code, "and says that it decided nothing")
}

// An id is its sender's alone: nobody burns another's.
func TestIDs_AreTheirSendersAlone(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	user := agent.Principal{Subject: tr.m.Run().User}
	tr.step(agent.Message{ID: "verdict-1", Principal: user, Text: "go"})
	tr.model(`risky {"order_id":"77","amount":{"minor":50,"currency":"EUR"}}`)
	v := agent.Verdict{ID: "verdict-1", Gate: "1.1", Digest: tr.gate("1.1").Digest, Verdict: agent.Approve,
		Principal: agent.Principal{Subject: "kim", Roles: []string{"boss"}, Tenant: "elsewhere"}}
	tr.step(agent.VerdictGiven{Verdict: v})
	require.Equal(t, agent.Voided, tr.receipt.Status, "kim of another tenant is another")
	v.Principal.Tenant = ""
	tr.step(agent.VerdictGiven{Verdict: v})
	require.Equal(t, agent.Accepted, tr.receipt.Status, tr.receipt.Reason)
	require.Equal(t, agent.GateApproved, tr.gate("1.1").Status)
	require.Empty(t, tr.step(agent.VerdictGiven{Verdict: v}))
	require.Equal(t, agent.Repeated, tr.receipt.Status)
	v.Principal.Auth = "token:other"
	require.NotEmpty(t, tr.step(agent.VerdictGiven{Verdict: v}), "a kim who is proven is not one whom nothing proves")
}

// A subject of another tenant steers nothing, whatever its name.
func TestSteering_ForeignTenantIsRefused(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	foreign := agent.Principal{Subject: tr.m.Run().User, Tenant: "other", Roles: []string{"boss", "operator"}}
	for _, in := range []agent.Input{
		agent.Message{ID: "a", Principal: foreign, Text: "go"}, agent.CancelRun{ID: "b", Principal: foreign},
		agent.AmendRun{ID: "c", Principal: foreign, Fields: agent.JSON(`{"note":"x"}`)}, agent.PauseRun{ID: "d", Principal: foreign},
		agent.ResumeRun{ID: "e", Principal: foreign}, agent.UndoSteps{ID: "f", Principal: foreign, Steps: []string{"1.1"}, Reason: "x"},
		agent.LiftRuling{ID: "g", Principal: foreign, Ruling: "1.1", Reason: "x"}, agent.ConfirmRuling{ID: "h", Principal: foreign, Ruling: "1.1"},
	} {
		require.Empty(t, tr.step(in))
		require.Equal(t, agent.Refused, tr.receipt.Status)
		require.Contains(t, tr.receipt.Reason, "another tenant")
	}
}

// Equal gates of two runs, and of two runs at one address, have different digests.
func TestGateDigest_NamesItsRun(t *testing.T) {
	seen := map[string]bool{}
	for _, first := range []string{"first-1", "first-2"} {
		tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
		tr.m.Run().FirstRunID = first
		tr.message("go")
		tr.model(`risky {"order_id":"77","amount":{"minor":50,"currency":"EUR"}}`)
		require.False(t, seen[tr.gate("1.1").Digest])
		seen[tr.gate("1.1").Digest] = true
	}
}

// A repeat is answered as the first was: where it takes effect is told again.
func TestRepeat_TellsWhatTheFirstTook(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	m := agent.Message{ID: "m", Principal: agent.Principal{Subject: tr.m.Run().User}, Text: "go"}
	tr.step(m)
	first := tr.receipt
	require.NotNil(t, first.Took)
	tr.step(agent.CancelRun{ID: "m", Principal: agent.Principal{Subject: "ops"}, Reason: "enough"})
	cancel := tr.receipt
	tr.step(m)
	require.Equal(t, first.Took, tr.receipt.Took)
	require.Equal(t, first.Seq, tr.receipt.Seq)
	tr.step(agent.CancelRun{ID: "m", Principal: agent.Principal{Subject: "ops"}, Reason: "enough"})
	require.Equal(t, agent.Repeated, tr.receipt.Status)
	require.Equal(t, cancel.Took, tr.receipt.Took)
}

func TestVerdict_ForeignTenant(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`risky {"order_id":"77","amount":{"minor":50,"currency":"EUR"}}`)
	tr.step(agent.VerdictGiven{Verdict: agent.Verdict{ID: "v", Gate: "1.1", Digest: tr.gate("1.1").Digest, Verdict: agent.Approve,
		Principal: agent.Principal{Subject: "kim", Roles: []string{"boss"}, Tenant: "other"}}})
	require.Equal(t, agent.Voided, tr.receipt.Status)
	require.Equal(t, agent.GateOpen, tr.gate("1.1").Status)
}

// The ids of the last 1,000 inputs are remembered.
func TestHandled_Window(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.message("go")
	others := func(n int) {
		for range n {
			tr.n++
			tr.step(agent.VerdictGiven{Verdict: agent.Verdict{ID: fmt.Sprintf("v%d", tr.n), Gate: "9.9", Digest: "0", Verdict: agent.Approve,
				Principal: agent.Principal{Subject: "kim"}}})
			tr.m.Ack(tr.m.Run().Seq)
		}
	}
	again := agent.Message{ID: "m1", Principal: agent.Principal{Subject: tr.m.Run().User}, Text: "go"}
	others(999)
	require.Empty(t, tr.step(again))
	require.Equal(t, agent.Repeated, tr.receipt.Status)
	require.Len(t, tr.m.Run().Handled, 1000)
	others(1)
	require.Len(t, tr.m.Run().Handled, 1000, "the oldest makes room")
}

func TestMessage_Limits(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	limit := tr.m.Run().Limits.Message
	require.Empty(t, tr.message(strings.Repeat("a", limit+1)))
	require.Equal(t, agent.CodeInvalid, tr.receipt.Code)
	require.Contains(t, tr.receipt.Reason, fmt.Sprintf("the limit is %d", limit))
	require.NotEmpty(t, tr.message(strings.Repeat("a", limit)))
	// While the model is busy messages queue, up to the same limit.
	require.NotEmpty(t, tr.message(strings.Repeat("b", limit-10)))
	require.Empty(t, tr.message("one too many"))
	require.Equal(t, agent.CodeUnavailable, tr.receipt.Code)
	tr.model()
	require.Len(t, tr.lastView().Turns[1].Opening, 1)
	require.NotEmpty(t, tr.message("now it is taken"))
	// A sender's id and name are bounded too.
	for _, in := range []agent.Message{{ID: "", Text: "x"}, {ID: " ", Text: "x"}, {ID: strings.Repeat("i", 201), Text: "x"}, {ID: "a\x00", Text: "x"},
		{ID: "a", Text: "x", Principal: agent.Principal{Subject: strings.Repeat("s", 201)}}, {ID: "a", Text: " \n"}, {ID: "a", Text: "\xff"},
		{ID: "a", Text: "x", Principal: agent.Principal{Roles: make([]string, 51)}}} {
		require.Empty(t, tr.step(in))
		require.Equal(t, agent.CodeInvalid, tr.receipt.Code)
	}
}

func TestFacts_Cap(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`) // 60 bytes
	tr.message("it broke, 77 I said")
	tr.model(`record_fact {"quote":"it broke"}`, `record_fact {"quote":"77 I said"}`, `record_fact {"quote":"it broke"}`, `record_fact {"quote":"brok"}`)
	require.Equal(t, "done", tr.answer("c1_1").Status)
	require.Contains(t, tr.answer("c1_2").Text, "the facts would pass 60 bytes")
	require.Equal(t, "recorded already", tr.answer("c1_3").Text)
	require.Equal(t, "refused", tr.answer("c1_4").Status, "a part of a word is no quote")
	require.Len(t, tr.m.Run().Facts, 1)
}

// A quote is whole words of the user's, and the value a word of the quote.
func TestSetFields_Quote(t *testing.T) {
	for _, c := range []struct{ message, quote, value string }{
		{"refund 1042", "refund 1042", "1042"},
		{"refund 1042, please", "1042", "1042"},
		{"退款1042号", "1042", "1042"}, // no spaces between words
		{"it is #1042.", "#1042.", "1042"},
		{"order A-7_b", "A-7_b", "A-7_b"},
	} {
		require.Empty(t, refusedQuote(t, c.message, c.quote, c.value), c.message)
	}
	for _, c := range []struct{ message, quote, value string }{
		{"refund 1042", "refund 1042", "104"},
		{"refund 1042", "104", "104"},
		{"refund 1042", "042", "042"},
		{"refund 1042", "refund 104", "104"},
		{"I paid 104.20", "I paid 104.20", "104"},
		{"I paid 104.20", "104", "104"},
		{"I paid 1,042", "042", "042"},
		{"refund 1042", "Refund 1042", "1042"},
		{"refund 1042", "", "1042"},
		{"refund 1042", "refund", "1042"},
		{"refund 1042", "refund 1042", ""},
		{"order café", "caf", "caf"},
	} {
		require.NotEmpty(t, refusedQuote(t, c.message, c.quote, c.value), "%+v", c)
	}
}

func refusedQuote(t *testing.T, message, quote, value string) string {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.message(message)
	tr.model(fmt.Sprintf(`set_fields {"fields":{"order_id":%q},"quote":%q}`, value, quote))
	if a := tr.answer("c1_1"); a.Status == "refused" {
		return a.Text
	}
	require.Equal(t, value, tr.state().OrderID)
	return ""
}

// enterAgent calls a gated tool as it starts, and a plain one at its end.
func enterAgent() *agent.Definition {
	risky := tool.Keyed("risky", keyed[mail, refund], func(s *state, _ mail, r refund) error { s.RefundID = r.ID; return nil }).
		Gate(tool.Gate[state, mail]{Roles: []string{"boss"}, When: func(_ agent.Situation[state], a mail) bool { return a.RefundID == "gated" }})
	say := tool.Keyed("say", keyed[mail, sent], func(s *state, _ mail, m sent) error { s.ReceiptID = m.ID; return nil })
	return agent.Define(agent.Spec[start, state]{Name: "enter", Version: 1, Instructions: "x",
		Init: func(in start) (state, error) { return state{CustomerID: in.CustomerID}, nil },
		Phases: []agent.Phase[state]{
			{Name: "work", Moves: []agent.Move[state]{{To: "end"}}, Enter: func(s agent.Situation[state]) []agent.Call {
				return []agent.Call{risky.With(mail{s.State.CustomerID})}
			}},
			{Name: "end", Final: true, Enter: func(s agent.Situation[state]) []agent.Call { return []agent.Call{say.With(mail{"x"})} }}}})
}

// A run starts with its Enter calls, without a message.
func TestEnter_AtStart(t *testing.T) {
	tr := begin(t, enterAgent(), `{"customer_id":"plain"}`)
	require.Equal(t, agent.RunRunning, tr.m.Run().Status)
	require.Len(t, tr.cmds, 1)
	require.Equal(t, "0.1", tr.cmds[0].(agent.RunStep).Task.Step)
	tr.done("0.1", `{"id":"r"}`)
	v := tr.lastView()
	require.Equal(t, 1, v.Turn)
	require.Equal(t, "Step 0.1, risky, is done.", v.Turns[0].Opening[0].Text)
	tr.model()
	require.Equal(t, "user", tr.m.Run().Reason)
}

// An Enter call that waits belongs to no proposal; the model withdraws it by
// its step id.
func TestEnter_Withdraw(t *testing.T) {
	tr := begin(t, enterAgent(), `{"customer_id":"gated"}`)
	require.Equal(t, agent.RunWaiting, tr.m.Run().Status)
	require.Equal(t, "gate", tr.m.Run().Reason)
	require.Empty(t, tr.views, "the gate holds the first turn: there is nothing to tell")
	tr.message("no, stop that")
	require.Equal(t, "0.1", tr.lastView().Waiting[0].ID)
	tr.model(`withdraw {"step":"0.1","reason":"the user said so"}`, `withdraw {"step":"0.1"}`)
	require.Equal(t, agent.GateWithdrawn, tr.gate("0.1").Status)
	require.Equal(t, "done", tr.answer("c1_1").Status)
	require.Equal(t, "refused", tr.answer("c1_2").Status)
	require.Empty(t, tr.lastView().Waiting)
	tr.verdict("0.1", agent.Approve, "")
	require.Equal(t, agent.Voided, tr.receipt.Status)
	require.Empty(t, tr.m.Run().Rulings, "a withdrawal is no refusal")
}

// A final phase has its last word when its calls are settled: in doubt is not.
func TestFinal_WaitsForSettledSteps(t *testing.T) {
	tr := begin(t, enterAgent(), `{"customer_id":"plain"}`)
	tr.done("0.1", `{"id":"r"}`)
	tr.model(`move {"to":"end"}`)
	require.Equal(t, "end", tr.m.Run().Phase)
	tr.step(agent.StepUnknown{Step: "1.1", Reason: "lost"})
	require.Equal(t, agent.RunWaiting, tr.m.Run().Status)
	require.Equal(t, "operator", tr.m.Run().Reason)
	for _, v := range tr.views {
		require.False(t, v.LastWord)
	}
}

// While a final phase waits, the budget holds as anywhere; the last word alone
// is always allowed.
func TestFinal_Budget(t *testing.T) {
	tr := begin(t, enterAgent(), `{"customer_id":"plain"}`)
	tr.done("0.1", `{"id":"r"}`)
	tr.model(`move {"to":"end"}`)
	tr.step(agent.StepUnknown{Step: "1.1", Reason: "lost"})
	tr.message("hello?")
	for i := range 20 {
		tr.model(fmt.Sprintf(`nothing {"n":%d}`, i))
	}
	require.Equal(t, agent.RunPaused, tr.m.Run().Status)
	require.Equal(t, "budget:refusals", tr.m.Run().Reason)
}

// When the last model call fails the run ends completed all the same.
func TestFinal_LastWordFails(t *testing.T) {
	tr := begin(t, enterAgent(), `{"customer_id":"plain"}`)
	tr.done("0.1", `{"id":"r"}`)
	tr.model(`move {"to":"end"}`)
	tr.step(agent.StepNotApplied{Step: "1.1", Reason: "no such address"})
	require.True(t, tr.lastView().LastWord)
	tr.message("wait")
	require.Equal(t, agent.CodeEnded, tr.receipt.Code)
	tr.step(agent.ProposalFailed{Turn: 2, Reason: "unavailable"})
	require.Equal(t, agent.RunCompleted, tr.m.Run().Status)
	require.Equal(t, []string{"1.1 say: failed"}, tr.m.Run().FailedEnd)
}

// A guard can demand that a value was verified lately.
func TestGuard_VerifiedWithin(t *testing.T) {
	tr := begin(t, taggedAgent(tagged{}), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`set_fields {"fields":{"count":3}}`, `move {"to":"end"}`, `count {"id":1}`)
	tr.done("1.1", `{"n":4}`)
	require.Contains(t, tr.answer("c1_2").Text, "count was never verified by an outside source")
	tr.now = tr.now.Add(2 * time.Hour)
	tr.model(`move {"to":"end"}`)
	require.Contains(t, tr.answer("c2_1").Text, "count was verified 2h0m1s ago; at most 1h0m0s is allowed")
	// The same value again is no change, but it is verified. (Other arguments:
	// the same call again and again would use up the budget.)
	tr.model(`count {"id":2}`)
	tr.done("3.1", `{"n":4}`)
	tr.model(`move {"to":"end"}`)
	require.Contains(t, tr.answer("c4_1").Text, "count was verified", "Verifies must name a field that Commit does not change")
}

// Every event says whose it is and which request caused it, in order.
func TestEvent_Envelope(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`risky {"order_id":"77","amount":{"minor":50,"currency":"EUR"}}`)
	tr.step(agent.CancelRun{ID: "c", Principal: agent.Principal{Subject: "u"}})
	chain := ""
	batch := tr.m.Batch()
	for i, e := range batch.Events {
		require.Equal(t, int64(i+1), e.Seq)
		require.Equal(t, "acme", e.Tenant)
		require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", e.TraceID)
		require.Equal(t, 1, e.V)
		require.Equal(t, time.UTC, e.At.Location())
		c, err := agent.Canonical(e.Data)
		require.NoError(t, err)
		require.Equal(t, c.String(), e.Data.String())
		require.NotEqual(t, chain, e.Chain(batch.Salt, chain))
		chain = e.Chain(batch.Salt, chain)
	}
}

func TestReduce_Gap(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	events := tr.m.Batch().Events
	_, err := agent.Reduce(append(events[:1:1], events[2:]...))
	require.ErrorContains(t, err, "seq 3, not 2")
	// What a later build wrote changes nothing but the position.
	r, err := agent.Reduce(append(events, agent.Event{Seq: 4, Type: "from_the_future", Data: agent.JSON(`{"a":[1]}`)},
		agent.Event{Seq: 5, Type: agent.EventStateSet, Data: agent.JSON(`"no object"`)}))
	require.NoError(t, err)
	require.Equal(t, int64(5), r.Seq)
	require.Equal(t, tr.m.Run().State, r.State)
}

// A run starts once, and a machine whose code panicked is not used again.
func TestMachine_StartedTwice(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	require.Empty(t, tr.step(agent.Started{Tenant: "other", Key: "x", Body: agent.JSON(`{"customer_id":"d"}`)}))
	require.Equal(t, "acme/desk/k", tr.m.Run().Address())
	require.Panics(t, func() { tr.step(nil) })
	require.PanicsWithValue(t, "agent: the machine's code panicked before; the run must be rebuilt from its history", func() { tr.message("x") })
}

// What somebody else writes to a run are not the user's words: they set no field of
// theirs, are no fact, and confirm nothing.
func TestQuote_OfSomebodyElse(t *testing.T) {
	tr := begin(t, refundAgent(), `{"customer_id":"c"}`)
	other := func(text string) {
		tr.n++
		tr.step(agent.Message{ID: fmt.Sprintf("o%d", tr.n), Principal: agent.Principal{Subject: "olga", Roles: []string{"operator"}}, Text: text})
	}
	other("refund order 77")
	tr.model(`set_fields {"fields":{"order_id":"77"},"quote":"order 77"}`, `record_fact {"quote":"refund order 77"}`)
	require.Empty(t, tr.state().OrderID)
	require.Contains(t, tr.answer("c1_1").Text, `no user message holds "order 77" word for word`)
	require.Empty(t, tr.m.Run().Facts)
	tr.model()
	tr.message("refund order 77")
	tr.model(`set_fields {"fields":{"order_id":"77"},"quote":"order 77"}`)
	require.Equal(t, "77", tr.state().OrderID)
	tr.model(`ask {"question":"This one?","fields":["order_id"]}`)
	ask := tr.m.Run().Gates[0].ID
	other("yes, that one")
	require.Equal(t, agent.GateOpen, tr.gate(ask).Status, "it asks the user")
	tr.model(`confirm {"fields":["order_id"]}`)
	require.Empty(t, tr.m.Run().Confirmed)
	tr.model()
	tr.message("yes, that one")
	require.Equal(t, agent.GateAnswered, tr.gate(ask).Status)
	tr.model(`confirm {"fields":["order_id"]}`)
	require.Len(t, tr.m.Run().Confirmed, 1)
	tr.reduces()
}
