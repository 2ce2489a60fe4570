package agenttest_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/tool"
)

type (
	deskState struct {
		Text string `json:"text" set:"tool"`
		Size int    `json:"size" set:"tool"`
	}
	page struct {
		Name string `json:"name"`
		Text string `json:"text"`
	}
	named struct {
		Name string `json:"name"`
	}
)

// desk has a tool of each effect; its functions are only called where a test
// says so.
func desk(do func(name string) (page, error)) *agent.Definition {
	read := func(_ context.Context, a named) (page, error) { return do(a.Name) }
	keyed := func(_ context.Context, _ tool.Key, a named) (page, error) { return do(a.Name) }
	commit := func(s *deskState, _ named, p page) error { s.Text, s.Size = p.Name, len(p.Text); return nil }
	tools := []agent.Tool[deskState]{
		tool.ReadOnly("read", read, commit).Keep(func(p page) page { p.Text = p.Text[:10]; return p }),
		tool.ReadOnly("glance", read, commit).Quick(),
		tool.Keyed("send", keyed, commit),
		tool.Keyed("ship", keyed, commit).Gate(tool.Gate[deskState, named]{Roles: []string{"boss"}}),
	}
	return agent.Define(agent.Spec[struct{}, deskState]{Name: "desk", Version: 1, Instructions: "Try.",
		Init:   func(struct{}) (deskState, error) { return deskState{}, nil },
		Phases: []agent.Phase[deskState]{{Name: "work", Tools: tools, Moves: []agent.Move[deskState]{{To: "end"}}}, {Name: "end", Final: true}}})
}

// at starts a run whose model calls one tool of the desk.
func calling(t testing.TB, o agenttest.Options, def *agent.Definition, name string) *agenttest.Run {
	run := o.Start(t, def, struct{}{})
	run.Says("go")
	run.Propose(scripted.Call(name, named{"a"}))
	return run
}

func TestErrorsSayWhatIsKnown(t *testing.T) {
	plain, refused, notApplied := errors.New("no answer"), tool.Refused(errors.New("never")), tool.NotApplied(errors.New("not sent"))
	unknown := agenttest.Unknown(errors.New("lost"))
	for name, c := range map[string]struct {
		tool   string
		err    error
		status agent.StepStatus
		calls  int
	}{
		"read, plain":       {"read", plain, agent.StepFailed, 3},
		"read, refused":     {"read", refused, agent.StepRefused, 1},
		"read, not applied": {"read", notApplied, agent.StepFailed, 3},
		"quick, plain":      {"glance", plain, agent.StepFailed, 3},
		"send, plain":       {"send", plain, agent.StepInDoubt, 3},
		"send, refused":     {"send", refused, agent.StepRefused, 1},
		"send, not applied": {"send", notApplied, agent.StepFailed, 3},
		"send, unknown":     {"send", unknown, agent.StepInDoubt, 3},
	} {
		for how, real := range map[string]bool{"fake": false, "real": true} {
			t.Run(name+", "+how, func(t *testing.T) {
				calls := 0
				do := func(string) (page, error) { calls++; return page{}, c.err }
				run := calling(t, agenttest.Options{}, desk(do), c.tool)
				if real {
					run.Real(c.tool)
				} else {
					agenttest.Fake(run, c.tool, func(a named) (page, error) { return do(a.Name) })
				}
				require.Equal(t, c.status, run.Step("1.1").Status)
				require.Equal(t, c.calls, calls)
			})
		}
		t.Run(name+", once", func(t *testing.T) {
			run := calling(t, agenttest.Options{}, desk(nil), c.tool)
			run.Fail("1.1", c.err)
			require.Equal(t, c.status, run.Step("1.1").Status)
		})
	}
}

// What a Transactional tool's function fails with is rolled back.
func TestTransactionalFake(t *testing.T) {
	for want, err := range map[agent.StepStatus]error{agent.StepFailed: errors.New("deadlock"), agent.StepInDoubt: agenttest.Unknown(errors.New("commit: no answer")),
		agent.StepRefused: tool.Refused(errors.New("no funds"))} {
		run := agenttest.Start(t, refundAgent(), refund.Start{CustomerID: "c-017"})
		agenttest.Fake(run, "find_order", func(a shop.FindArgs) (shop.Order, error) { return shop.Order{ID: a.OrderID, Total: eur(10_00)}, nil })
		agenttest.Fake(run, "issue_refund", func(shop.RefundArgs) (shop.Refund, error) { return shop.Refund{}, err })
		run.Says("refund 1042")
		run.Propose(scripted.SetFields("1042", scripted.Args{"order_id": "1042"}), scripted.Call("find_order", shop.FindArgs{OrderID: "1042"}))
		run.Propose(scripted.Ask("This?", "order_id", "amount"))
		run.Says("yes")
		run.Propose(scripted.Confirm("order_id", "amount"), scripted.MoveTo("pay"))
		require.Equal(t, want, run.Step("3.1").Status)
	}
}

// Real functions run with what the definition was given: here a shop with its
// database.
func TestReal_Transactional(t *testing.T) {
	s, err := shop.Open(t.Context(), filepath.Join(t.TempDir(), "shop.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	run := agenttest.Options{User: "c-017", Model: refund.Model()}.Start(t, refund.Agent(s, mail.Client{}), refund.Start{CustomerID: "c-017"})
	agenttest.Fake(run, "send_receipt", func(mail.Receipt) (mail.Sent, error) { return mail.Sent{ID: "m-1"}, nil })
	run.Real()
	run.Says("Please refund order 1042, it broke")
	run.Says("yes, that one")
	run.Approve("3.1", "ann", "refunds")
	require.Equal(t, agent.RunCompleted, run.Status())
	require.Equal(t, []string{"Order 1042: 89.90 EUR is on its way back to you."}, run.Replies())
	requireRoundTrip(t, refundAgent(), run.Events())
}

func TestKeep(t *testing.T) {
	long := strings.Repeat("x", 20<<10)
	def := desk(func(name string) (page, error) { return page{name, long}, nil })
	run := calling(t, agenttest.Options{}, def, "read")
	run.Real("read")
	require.Equal(t, `{"name":"a","text":"xxxxxxxxxx"}`, run.Step("1.1").Result.String())
	require.Equal(t, 20<<10+22, run.Step("1.1").Whole.Bytes)
	run.Propose(scripted.Call(agent.CallReadResult, scripted.Args{"step": "1.1", "offset": 20 << 10}))
	require.True(t, slices.ContainsFunc(run.Request().Messages, func(m llm.Message) bool {
		return m.Role == llm.RoleTool && strings.Contains(m.Text, `xxxxx"}`) // the end of the whole result
	}))

	run = calling(t, agenttest.Options{}, def, "send")
	run.Done("1.1", page{"a", long})
	_, why := run.Answer("send")
	require.Contains(t, why, "result_too_large")
	requireRoundTrip(t, def, run.Events())
}

func TestSameEffectIsDoneOnce(t *testing.T) {
	calls := 0
	run := agenttest.Start(t, desk(nil), struct{}{})
	agenttest.Fake(run, "send", func(a named) (page, error) { calls++; return page{Name: "p"}, nil })
	run.Says("go")
	run.Propose(scripted.Call("send", named{"a"}))
	run.Propose(scripted.Call("send", named{"a"}))
	status, why := run.Answer("send")
	require.Equal(t, "done", status)
	require.Contains(t, why, "this happened already, as step 1.1")
	require.Equal(t, 1, calls)
}

// A run with an earlier one's address and ledger is that run after a reset.
func TestStandingEffectClosesItsGate(t *testing.T) {
	ledger := &agenttest.Ledger{}
	first := calling(t, agenttest.Options{Ledger: ledger}, desk(nil), "ship")
	first.Approve("1.1", "kim", "boss")
	first.Done("1.1", page{Name: "shipped"})

	again := calling(t, agenttest.Options{Ledger: ledger}, desk(nil), "ship")
	require.Equal(t, agent.GateVoid, again.Gate("1.1").Status)
	require.Equal(t, agent.StepDone, again.Step("1.1").Status)
	require.JSONEq(t, `{"text":"shipped","size":0}`, again.Run().State.String())
	requireRoundTrip(t, desk(nil), again.Events())

	other := calling(t, agenttest.Options{Ledger: ledger, Key: "run-2"}, desk(nil), "ship")
	require.Equal(t, agent.GateOpen, other.Gate("1.1").Status)
}

// What a fake sends to the run arrives while its step runs.
func TestInterruptFromAFake(t *testing.T) {
	run := agenttest.Start(t, desk(nil), struct{}{})
	agenttest.Fake(run, "read", func(named) (page, error) {
		run.Cancel("enough")
		return page{Name: "late"}, nil
	})
	run.Says("go")
	run.Propose(scripted.Call("read", named{"a"}))
	require.Equal(t, agent.StepAbandoned, run.Step("1.1").Status)
	require.Equal(t, agent.RunCancelled, run.Status())
}

func TestCancelLetsGoOfAHeldRead(t *testing.T) {
	run := calling(t, agenttest.Options{}, desk(nil), "read")
	run.Cancel("enough")
	require.Equal(t, agent.RunCancelled, run.Status())
	require.Equal(t, agent.Refused, run.Says("hello?").Status)

	run = calling(t, agenttest.Options{}, desk(nil), "send")
	run.Cancel("enough")
	require.Equal(t, agent.RunRunning, run.Status(), "what has an effect is waited for")
	run.Done("1.1", page{})
	require.Equal(t, agent.RunCancelled, run.Status())
}
