package workflows_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/store"
	"interlock/tool"
)

var chiefs = agent.Principal{Subject: "kim", Roles: []string{"chief"}}

func named(subject string) agent.Principal {
	return agent.Principal{Subject: subject, Roles: []string{"refunds"}}
}

// as gives a verdict as somebody.
func (w *world) as(who agent.Principal, address string, g agent.Gate, v signals.Verdict) agent.Receipt {
	w.t.Helper()
	v.ID, v.Gate, v.Digest, v.Principal = w.id("v"), g.ID, g.Digest, who
	r, err := w.starter.Decide(w.ctx, address, v)
	require.NoError(w.t, err)
	return r
}

func (w *world) gateRows(f store.GateFilter) []store.GateRow {
	w.t.Helper()
	rows, err := w.starter.Gates(w.ctx, "acme", f)
	require.NoError(w.t, err)
	return rows
}

// closings are the statuses with which the journal closes gates, in order.
func (w *world) closings(address string) (out []agent.GateStatus) {
	w.t.Helper()
	for _, c := range recorded[agent.GateClosedData](w, address, agent.EventGateClosed) {
		out = append(out, c.Status)
	}
	return out
}

// A double click, of one id or of two: one decides.
func TestVerdicts_DoubleClick(t *testing.T) {
	t.Parallel()
	db := labDB(t)
	w := newWorld(t, turns(scripted.Say("Done.")), lab{db: db, opening: []string{"1"}, gate: &tool.Gate[labState, text]{Roles: []string{"refunds"}}}.agent())
	for n := 1; n <= 20; n++ {
		address := w.start(w.id("k"))
		gate := lastGate(w.until(address, "gate", waiting("gate")))
		one, other := w.verdict(gate, agent.Approve, ""), w.verdict(gate, agent.Approve, "")
		receipts := make([]agent.Receipt, 6)
		errs := make([]error, 6)
		var wg sync.WaitGroup
		for i := range receipts {
			v := one
			if i%3 == 2 {
				v = other
			}
			wg.Go(func() { receipts[i], errs[i] = w.starter.Decide(w.ctx, address, v) })
		}
		wg.Wait()
		for i := range errs {
			require.NoError(t, errs[i])
			require.Equal(t, agent.GateApproved, receipts[i].Gate.Status)
		}
		w.until(address, "the end of it", waiting("user"))
		w.cancelled(address)
		require.Equal(t, n, payments(t, db), "one payment a run")
		require.Equal(t, []agent.GateStatus{agent.GateApproved}, w.closings(address))
		require.Len(t, recorded[agent.VerdictData](w, address, agent.EventVerdict), 2, "one of each id")
	}
}

// Returned, then withdrawn on the user's word: nothing runs, nothing is remembered.
func TestGate_ReturnAndWithdrawal(t *testing.T) {
	t.Parallel()
	db := labDB(t)
	model := watch(turns(call("pay", "1"), call("pay", "1"), scripted.Call(agent.CallWithdraw, scripted.Args{"step": "2.1", "reason": "the user said so"}), scripted.Say("Well then.")))
	w := newWorld(t, model, lab{db: db, gate: &tool.Gate[labState, text]{Roles: []string{"refunds"}}}.agent())
	address := w.start("k")
	w.say(address, "pay")
	first := lastGate(w.until(address, "gate", waiting("gate")))
	r := w.as(ann, address, first, signals.Verdict{Verdict: agent.Return, Reason: "which account?"})
	require.Equal(t, agent.GateReturned, r.Gate.Status)
	second := lastGate(w.until(address, "another gate", func(r *agent.Run) bool { return waiting("gate")(r) && len(r.Gates) == 2 }))
	require.Empty(t, second.Rulings)
	run := w.chat(address, "no, leave it")
	require.Equal(t, agent.Voided, w.decide(address, second, agent.Approve, "").Status)
	require.Empty(t, run.Rulings)
	w.cancelled(address)
	require.Zero(t, payments(t, db))
	require.Equal(t, []agent.GateStatus{agent.GateReturned, agent.GateWithdrawn}, w.closings(address))
	require.Empty(t, recorded[agent.RulingMadeData](w, address, agent.EventRulingMade))
	told := model.seen(t)[1].Messages
	require.Contains(t, fmt.Sprint(told), "returned by ann with a note: which account?")
}

// An approved call and one without a gate run while another waits at its gate.
func TestGate_SiblingRuns(t *testing.T) {
	t.Parallel()
	db := labDB(t)
	look := newCounter()
	model := watch(turns(scripted.Then(call("pay", "a"), call("pay", "b"), call("look", "c")), scripted.Say("Done.")))
	w := newWorld(t, model, lab{db: db, look: look.look, gate: &tool.Gate[labState, text]{Roles: []string{"refunds"}}}.agent())
	address := w.start("k")
	w.say(address, "go")
	run := w.until(address, "two gates", func(r *agent.Run) bool { return waiting("gate")(r) && len(r.Gates) == 2 })
	require.Equal(t, 1, look.total())
	w.decide(address, run.Gates[1], agent.Approve, "")
	run = w.until(address, "the second has run", func(r *agent.Run) bool { return waiting("gate")(r) && r.Steps[1].Status == agent.StepDone })
	require.Equal(t, agent.GateOpen, run.Gates[0].Status)
	require.Equal(t, 1, payments(t, db))
	require.Equal(t, 1, run.Turn)
	w.decide(address, run.Gates[0], agent.Reject, "not a")
	w.until(address, "the answer", waiting("user"))
	w.cancelled(address)
	require.Equal(t, []agent.GateStatus{agent.GateApproved, agent.GateRejected}, w.closings(address))
	require.Len(t, model.seen(t), 2, "the model has all three answers together")
}

// Three approvals at once, where two are needed: two count, one is void, it runs
// once. Who has approved so far is shown.
func TestQuorum_AtTheSameTime(t *testing.T) {
	t.Parallel()
	db := labDB(t)
	gate := &tool.Gate[labState, text]{Roles: []string{"refunds"}, Quorum: 2, Distinct: true}
	w := newWorld(t, turns(scripted.Say("Done.")), lab{db: db, opening: []string{"1"}, gate: gate}.agent())
	for n := 1; n <= 5; n++ {
		address := w.start(w.id("k"))
		g := lastGate(w.until(address, "gate", waiting("gate")))
		require.Equal(t, agent.Voided, w.as(agent.Principal{Subject: customer.Subject, Roles: []string{"refunds"}}, address, g, signals.Verdict{Verdict: agent.Approve}).Status, "who asked")
		require.Equal(t, "1 of 2 approvals", w.as(named("zoe"), address, g, signals.Verdict{Verdict: agent.Approve}).Reason)
		eventually(t, "the list shows it", func() bool {
			rows := w.gateRows(store.GateFilter{Address: address, Status: agent.GateOpen})
			return len(rows) == 1 && len(rows[0].Gate.Approvals) == 1 && rows[0].Gate.Approvals[0].By.Subject == "zoe"
		})
		var wg sync.WaitGroup
		receipts := make([]agent.Receipt, 3)
		for i, who := range []string{"ann", "bob", "cyd"} {
			wg.Go(func() { receipts[i] = w.as(named(who), address, g, signals.Verdict{Verdict: agent.Approve}) })
		}
		wg.Wait()
		counts := map[agent.ReceiptStatus]int{}
		for _, r := range receipts {
			counts[r.Status]++
		}
		require.Equal(t, map[agent.ReceiptStatus]int{agent.Accepted: 1, agent.Voided: 2}, counts)
		w.until(address, "the end of it", waiting("user"))
		w.cancelled(address)
		require.Equal(t, n, payments(t, db))
		require.Len(t, recorded[agent.GateCountedData](w, address, agent.EventGateCounted), 2)
	}
}

// An escalation adds roles at its time, which the list shows; it approves nothing,
// also over a continue-as-new.
func TestGate_Escalates(t *testing.T) {
	t.Parallel()
	sends := newCounter()
	gate := tool.Gate[labState, text]{Roles: []string{"refunds"}, Expires: time.Hour, Escalate: agent.Escalate{After: 15 * time.Second, Roles: []string{"chief"}},
		When: func(_ agent.Situation[labState], a text) bool { return a.Text == "gated" }}
	model := scripted.Func("scripted", func(req llm.Request) llm.Response {
		switch n := req.View.Turn; {
		case n == 1:
			return call("send", "gated")
		case n%4 == 0:
			return scripted.Say("Done.")
		default:
			return call("send", fmt.Sprintf("of turn %d", n))
		}
	})
	w := newWorld(t, model, lab{db: labDB(t), send: sends.tool, sendGate: &gate, limits: short}.agent())
	address := w.start("k")
	w.say(address, "go")
	g := lastGate(w.until(address, "gate", waiting("gate")))
	require.Equal(t, agent.Voided, w.as(chiefs, address, g, signals.Verdict{Verdict: agent.Approve}).Status)
	for n := 0; len(w.chain(address)) < 2; n++ {
		require.Less(t, n, 12)
		w.chat(address, fmt.Sprintf("more, %d", n))
	}
	eventually(t, "the chief's list has it", func() bool {
		rows := w.gateRows(store.GateFilter{Address: address, Role: "chief", Status: agent.GateOpen})
		return len(rows) == 1 && rows[0].Gate.Escalation.Done
	})
	require.Zero(t, sends.calls["gated"], "it approves nothing")
	require.Equal(t, agent.Accepted, w.as(chiefs, address, g, signals.Verdict{Verdict: agent.Approve}).Status)
	w.until(address, "it runs", func(r *agent.Run) bool { return sends.calls["gated"] == 1 && !waiting("gate")(r) })
	w.cancelled(address)
	require.Equal(t, []agent.GateEscalatedData{{Gate: g.ID, Roles: []string{"chief"}}}, recorded[agent.GateEscalatedData](w, address, agent.EventGateEscalated))
	require.Equal(t, []agent.GateStatus{agent.GateApproved}, w.closings(address))
}

// A worker with another policy for the same version: nothing runs on what was
// decided about the old one. A new gate shows it.
func TestGate_PolicyChangedByADeploy(t *testing.T) {
	t.Parallel()
	sends := newCounter()
	model := scripted.Func("scripted", func(req llm.Request) llm.Response {
		if req.View.Turn == 1 {
			return call("send", "gated")
		}
		return scripted.Say(fmt.Sprintf("turn %d", req.View.Turn))
	})
	of := func(roles ...string) *agent.Definition {
		return lab{db: labDB(t), send: sends.tool, sendGate: &tool.Gate[labState, text]{Roles: roles}, limits: agent.Limits{History: 60}}.agent()
	}
	w := newWorld(t, model, of("refunds", "chief"))
	address := w.start("k")
	w.say(address, "go")
	old := lastGate(w.until(address, "gate", waiting("gate")))
	for n := 0; len(w.chain(address)) < 2; n++ { // what went before is replayed no more
		require.Less(t, n, 12)
		w.chat(address, fmt.Sprintf("more, %d", n))
	}
	w.serve(model, of("chief"))
	r := w.as(ann, address, old, signals.Verdict{Verdict: agent.Approve})
	require.Equal(t, agent.Voided, r.Status, "ann's role decides no more")
	require.Contains(t, r.Reason, "the policy of gate "+old.ID+" has changed")
	fresh := lastGate(w.until(address, "a new gate", func(r *agent.Run) bool {
		return gateOf(r, old.ID).Status == agent.GateVoid && lastGate(r).Status == agent.GateOpen
	}))
	require.Equal(t, []string{"chief"}, fresh.Roles)
	require.Equal(t, old.ID, fresh.Replaces)
	require.Equal(t, agent.Voided, w.as(ann, address, fresh, signals.Verdict{Verdict: agent.Approve}).Status)
	require.Zero(t, sends.total())
	require.Equal(t, agent.Accepted, w.as(chiefs, address, fresh, signals.Verdict{Verdict: agent.Approve}).Status)
	w.until(address, "it runs", func(r *agent.Run) bool { return sends.total() == 1 && r.Status == agent.RunWaiting })
	_, err := w.starter.Cancel(w.ctx, address, signals.Cancel{ID: w.id("c"), Principal: customer})
	require.NoError(t, err)
	run := w.until(address, "end", ended)
	w.requireJournal(run)
	require.Equal(t, []agent.GateStatus{agent.GateVoid, agent.GateApproved}, w.closings(address))
}

// An edit keeps numbers and nested values to the last digit, from the reviewer to
// the tool, the ledger and the journal; one that does not fit leaves the gate open.
func TestEdit(t *testing.T) {
	t.Parallel()
	type args struct {
		Big  int64          `json:"big"`
		List []int64        `json:"list"`
		Rest map[string]any `json:"rest"`
		Text string         `json:"text"`
	}
	type state struct {
		Big int64 `json:"big" set:"tool"`
	}
	send := tool.Keyed("send", func(_ context.Context, _ tool.Key, a args) (args, error) { return a, nil },
		func(s *state, _ args, r args) error { s.Big = r.Big; return nil }).Gate(tool.Gate[state, args]{Roles: []string{"refunds"}, Edit: []string{agent.EveryArgument}})
	def := agent.Define(agent.Spec[labStart, state]{Name: "lab", Version: 1, Instructions: "Count.",
		Init:   func(labStart) (state, error) { return state{}, nil },
		Phases: []agent.Phase[state]{{Name: "work", Tools: []agent.Tool[state]{send}, Moves: []agent.Move[state]{{To: "end"}}}, {Name: "end", Final: true}}})
	model := watch(turns(scripted.Raw("send", `{"big":1,"list":[],"rest":{},"text":"a"}`), scripted.Say("Counted.")))
	w := newWorld(t, model, def)
	address := w.start("k")
	w.say(address, "go")
	g := lastGate(w.until(address, "gate", waiting("gate")))
	v := signals.Verdict{ID: w.id("v"), Gate: g.ID, Digest: g.Digest, Verdict: agent.Edit, Reason: "the whole of it", Principal: ann, Args: agent.JSON(`{"big":1.5}`)}
	_, err := w.starter.Decide(w.ctx, address, v)
	require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%v", err)
	require.ErrorContains(t, err, "/big must be integer")
	require.Equal(t, agent.GateOpen, lastGate(w.until(address, "gate", waiting("gate"))).Status)

	const edited = `{"big":9007199254740993,"list":[9223372036854775807,-9223372036854775808],"rest":{"deep":[{"n":null,"t":"9007199254740993"}],"no":false},"text":"\u202e"}`
	canonical, err := agent.Canonical([]byte(edited))
	require.NoError(t, err)
	v.ID, v.Args = w.id("v"), agent.JSON(edited)
	w.signal(address, signals.NameVerdict, v)
	run := w.until(address, "the answer", waiting("user"))
	require.Equal(t, agent.GateEdited, gateOf(run, g.ID).Status)
	require.Equal(t, `{"big":9007199254740993}`, run.State.String())
	effects, err := w.effects(address)
	require.NoError(t, err)
	require.Len(t, effects, 1)
	require.Equal(t, canonical.String(), effects[0].Args.String())
	require.Contains(t, fmt.Sprint(model.seen(t)[1].Messages), "edited by a person")
	w.cancelled(address)
	// The same verdict again, also after the end, is known; another one under its id is not.
	r, err := w.starter.Decide(w.ctx, address, v)
	require.NoError(t, err)
	require.Equal(t, agent.Repeated, r.Status)
	v.Args = agent.JSON(`{"big":2,"list":[],"rest":{},"text":"a"}`)
	_, err = w.starter.Decide(w.ctx, address, v)
	require.Equal(t, agent.CodeConflict, agent.ErrorCode(err), "%v", err)
	started := recorded[agent.StepStartedData](w, address, agent.EventStepStarted)
	require.Equal(t, "1.1", started[1].Replaces)
	require.Equal(t, "ann", started[1].EditedBy)
	require.Equal(t, canonical.String(), started[1].Args.String())
}

// A question is asked until its answer fits, whatever worker takes it; nothing is
// asked or done twice.
func TestAnswer(t *testing.T) {
	t.Parallel()
	ask := scripted.Call(agent.CallAsk, scripted.Args{"question": "Which port?", "fields": []string{"port"}})
	model := watch(turns(ask, scripted.Say("Thank you.")))
	def := lab{db: labDB(t)}.agent()
	w := newWorld(t, model, def)
	address := w.start("k")
	w.say(address, "go")
	g := lastGate(w.until(address, "asked", func(r *agent.Run) bool { return waiting("user")(r) && len(r.Gates) == 1 }))
	answer := func(fields string) (agent.Receipt, error) {
		return w.starter.Decide(w.ctx, address, signals.Verdict{ID: w.id("v"), Gate: g.ID, Digest: g.Digest, Verdict: agent.GiveAnswer,
			Answer: &agent.Answer{Fields: agent.JSON(fields)}, Principal: customer})
	}
	for _, wrong := range []string{`{"port":"abc"}`, `{"port":-5.5}`, `{}`, `{"note":"x"}`} {
		_, err := answer(wrong)
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%v", err)
		w.serve(model, def)
	}
	require.Equal(t, agent.Voided, w.as(ann, address, g, signals.Verdict{Verdict: agent.GiveAnswer, Answer: &agent.Answer{Fields: agent.JSON(`{"port":1}`)}}).Status)
	r, err := answer(`{"port":8080}`)
	require.NoError(t, err)
	require.Equal(t, agent.GateAnswered, r.Gate.Status)
	run := w.until(address, "the reply", func(r *agent.Run) bool { return waiting("user")(r) && r.Reply != nil })
	require.Contains(t, run.State.String(), `"port":8080`)
	require.Len(t, run.Gates, 1)
	w.cancelled(address)
	require.Len(t, model.seen(t), 2)
	require.Contains(t, fmt.Sprint(model.seen(t)[1].Messages), `The question of step 1.1 was answered by c-017: set {"port":8080}.`)
}

// A ruling is lifted and a draft confirmed, by update and by signal.
func TestRulings(t *testing.T) {
	t.Parallel()
	db := labDB(t)
	draft := scripted.Call(agent.CallRuleOut, scripted.Args{"tool": "pay", "args": scripted.Args{"text": "2"}, "reason": "the user said never"})
	model := watch(turns(scripted.Then(call("pay", "1"), draft), scripted.Say("No."), call("pay", "1"), call("pay", "2"), scripted.Say("Done.")))
	w := newWorld(t, model, lab{db: db, gate: &tool.Gate[labState, text]{Roles: []string{"refunds"}}}.agent())
	address := w.start("k")
	w.say(address, "go")
	w.decide(address, lastGate(w.until(address, "gate", waiting("gate"))), agent.Reject, "not today")
	run := w.until(address, "no", waiting("user"))
	require.Len(t, run.Rulings, 2)
	require.Equal(t, "draft-c1_2", run.Rulings[0].ID)
	_, err := w.starter.LiftRuling(w.ctx, address, signals.LiftRuling{ID: "l1", Ruling: "1.1", Principal: customer, Reason: "please"})
	require.Equal(t, agent.CodeDenied, agent.ErrorCode(err), "%v", err)
	lift := signals.LiftRuling{ID: "l2", Ruling: "1.1", Principal: ann, Reason: "it is another day"}
	r, err := w.starter.LiftRuling(w.ctx, address, lift)
	require.NoError(t, err)
	require.Equal(t, agent.Accepted, r.Status)
	r, err = w.starter.LiftRuling(w.ctx, address, lift)
	require.NoError(t, err)
	require.Contains(t, []agent.ReceiptStatus{agent.Accepted, agent.Repeated}, r.Status)
	w.signal(address, signals.NameConfirmRuling, signals.ConfirmRuling{ID: "l3", Ruling: "draft-c1_2", Principal: ann})
	w.say(address, "try again")
	g := lastGate(w.until(address, "the gate again", func(r *agent.Run) bool { return waiting("gate")(r) && len(r.Gates) == 2 }))
	require.Contains(t, g.Rulings[0], "ann rejected this")
	require.Contains(t, g.Rulings[0], "(lifted by ann: it is another day)")
	w.decide(address, g, agent.Approve, "")
	run = w.until(address, "done", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 5 })
	require.Equal(t, 1, payments(t, db), "the other one is refused")
	require.Contains(t, run.Turns[3].Proposal.Calls[0].Text, "ann rejected this (the user said never)")
	w.cancelled(address)
	require.Len(t, recorded[agent.RulingConfirmedData](w, address, agent.EventRulingLifted), 1)
	require.Len(t, recorded[agent.RulingConfirmedData](w, address, agent.EventRulingConfirmed), 1)
}
