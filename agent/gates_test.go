package agent_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

// What gates promise, by the name of the case that breaks it in other systems:
//
//	stale-tab-approves-next-gate          TestGate_StaleTab
//	double-click                          TestVerdicts_DoubleClick (package workflows)
//	approve-and-reject-at-once            TestVerdicts_AtTheSameTime (workflows)
//	verdict-before-gate                   TestGate_VerdictBeforeIt
//	chatty-user-does-not-void-the-gate    TestRefund_FortyTurnsBetweenConfirmationAndPayment (workflows)
//	message-while-gate-open               the same, and TestEnter_Withdraw
//	message-while-gate-open-withdraws     testdata/refund_withdrawn.txt
//	return-leaves-no-ruling               TestGate_Return, TestGate_ReturnAndWithdrawal (workflows)
//	expiry-leaves-no-ruling               testdata/refund_expired.txt, TestGate_Expires (workflows)
//	ruling-ends-when-fields-change        TestRuling_EndsWhenFieldsChange
//	a-then-b-then-a-again                 testdata/refund_changed_mind.txt, TestRefund_StaleConfirmationPaysNothing (workflows)
//	verdict-after-expiry                  TestGate_Expires (workflows)
//	verdict-after-interrupt               testdata/verdict_after_interrupt.txt
//	verdict-after-continue-as-new         TestContinue_Gates (workflows)
//	edit-invalid-arguments                TestEdit_Refused
//	edit-of-an-edit                       TestEdit_OfAnEdit
//	rejected-digest-proposed-again        testdata/refund_rejected.txt
//	self-approval                         TestGate_SelfApproval
//	two-of-three-with-one-reject          TestQuorum
//	role-revoked-while-pending            TestRevoked_BeforeTheStepStarts (workflows), testdata/unapproved.txt, TestGate_PolicyChanged
//	policy-changed-while-pending          TestGate_PolicyChanged, TestGate_PolicyChangedByADeploy (workflows)
//	two-gates-answered-in-reverse         TestVerdicts_Void (workflows)
//	sibling-runs-while-gate-waits         TestGate_SiblingRuns, and in package workflows
//	key-rotated-with-gates-pending        TestToken_Verdicts (workflows)
//	worker-killed-between-verdict-and-start  TestCrash_Refund, "before refund.issue_refund" (workflows)
//	number-and-nested-types-survive-edit  TestEdit_KeepsEveryType

// bankPolicy is what the bank's gates ask for.
type bankPolicy struct {
	roles    []string
	quorum   int
	distinct bool
	policy   string
	when     func(refundArgs) bool
	escalate agent.Escalate
	expires  time.Duration
	takeBack time.Duration
	edit     []string // nil: all
}

type bankState struct {
	OrderID string `json:"order_id" set:"user"`
	Port    int64  `json:"port" set:"user"`
	Note    string `json:"note" set:"model"`
	Paid    string `json:"paid" set:"tool"`
}

// nested has what an edit must not lose.
type nested struct {
	N    int64          `json:"n"`
	List []int64        `json:"list,omitempty"`
	Map  map[string]any `json:"map,omitempty"`
	In   *inner         `json:"in,omitempty"`
	Text string         `json:"text,omitempty"`
}
type inner struct {
	N    int64   `json:"n"`
	List []int64 `json:"list,omitempty"`
}

func bankAgent(p bankPolicy) *agent.Definition {
	gate := tool.Gate[bankState, refundArgs]{Roles: p.roles, Quorum: p.quorum, Distinct: p.distinct, Policy: p.policy, Reads: []string{"order_id"},
		Escalate: p.escalate, Expires: p.expires, TakeBack: p.takeBack, Edit: []string{agent.EveryArgument},
		Risk: func(_ agent.Situation[bankState], a refundArgs) string {
			if a.Amount.Minor > 1000 {
				return "high"
			}
			return ""
		}}
	if p.edit != nil {
		gate.Edit = p.edit
	}
	if p.when != nil {
		gate.When = func(_ agent.Situation[bankState], a refundArgs) bool { return p.when(a) }
	}
	pay := tool.Keyed("pay", keyed[refundArgs, refund], func(s *bankState, _ refundArgs, r refund) error { s.Paid = r.ID; return nil }).Gate(gate)
	pay.Undo(tool.Keyed("unpay", keyed[tool.Done[refundArgs, refund], sent], func(s *bankState, _ tool.Done[refundArgs, refund], _ sent) error { s.Paid = ""; return nil }).
		Gate(tool.Gate[bankState, tool.Done[refundArgs, refund]]{Roles: p.roles}))
	deep := tool.Keyed("deep", keyed[nested, sent], func(s *bankState, _ nested, m sent) error { s.Paid = m.ID; return nil }).
		Gate(tool.Gate[bankState, nested]{Roles: p.roles, Edit: []string{agent.EveryArgument}})
	look := tool.ReadOnly("look", none[mail, sent], func(*bankState, mail, sent) error { return nil })
	return agent.Define(agent.Spec[start, bankState]{Name: "bank", Version: 1, Instructions: "x",
		Init: func(start) (bankState, error) { return bankState{}, nil },
		Phases: []agent.Phase[bankState]{
			{Name: "work", Tools: []agent.Tool[bankState]{pay, deep, look}, Moves: []agent.Move[bankState]{
				{To: "end", Gate: &agent.MoveGate[bankState]{Roles: p.roles, Quorum: p.quorum, Distinct: p.distinct, TakeBack: p.takeBack, Reads: []string{"note"}}}}},
			{Name: "end", Final: true, Say: func(agent.Situation[bankState]) string { return "Bye." }}}})
}

var tellers = bankPolicy{roles: []string{"teller"}}

func payArgs(minor int) string {
	return fmt.Sprintf(`{"amount":{"currency":"EUR","minor":%d},"order_id":"7"}`, minor)
}

// bank begins a run whose call of pay waits at gate 1.1.
func bank(t *testing.T, p bankPolicy) *trial {
	tr := begin(t, bankAgent(p), `{"customer_id":"c"}`)
	tr.message("pay 7")
	tr.model(`set_fields {"fields":{"order_id":"7"},"quote":"7"}`, `pay `+payArgs(500), `look {"refund_id":"a"}`)
	tr.done("1.2", `{"id":"seen"}`)
	require.Equal(t, agent.GateOpen, tr.gate("1.1").Status)
	require.Equal(t, "gate", tr.m.Run().Reason)
	return tr
}

func teller(name string) agent.Principal {
	return agent.Principal{Subject: name, Roles: []string{"teller"}}
}

// by gives a verdict as somebody, on a gate as it stands.
func (tr *trial) by(who agent.Principal, gate string, v agent.Verdict) []agent.Event {
	tr.n++
	v.ID, v.Gate, v.Principal = fmt.Sprintf("v%d", tr.n), gate, who
	if v.Digest == "" {
		v.Digest = tr.gate(gate).Digest
	}
	return tr.step(agent.VerdictGiven{Verdict: v})
}

func (tr *trial) stepOf(id string) agent.Step {
	for _, s := range tr.m.Run().Steps {
		if s.ID == id {
			return s
		}
	}
	tr.t.Fatalf("there is no step %s", id)
	return agent.Step{}
}

// started are the steps whose activity the last input started.
func (tr *trial) started() (ids []string) {
	for _, c := range tr.cmds {
		if c, ok := c.(agent.RunStep); ok {
			ids = append(ids, c.Task.Step)
		}
	}
	return ids
}

func (tr *trial) reduces() { requireReduces(tr.t, tr.m.Batch().Events, tr.m.Run()) }

func approve() agent.Verdict          { return agent.Verdict{Verdict: agent.Approve} }
func reject(why string) agent.Verdict { return agent.Verdict{Verdict: agent.Reject, Reason: why} }
func giveBack(n string) agent.Verdict { return agent.Verdict{Verdict: agent.Return, Reason: n} }
func edit(args, why string) agent.Verdict {
	return agent.Verdict{Verdict: agent.Edit, Args: agent.JSON(args), Reason: why}
}

func TestGate_Return(t *testing.T) {
	tr := bank(t, tellers)
	tr.by(teller("ann"), "1.1", giveBack(""))
	require.Equal(t, agent.CodeInvalid, tr.receipt.Code)
	require.Contains(t, tr.receipt.Reason, "a return needs a reason")
	events := tr.by(teller("ann"), "1.1", giveBack("ask for the receipt first"))
	require.Equal(t, []agent.EventType{agent.EventVerdict, agent.EventGateClosed, agent.EventStepSettled, agent.EventTurnStarted}, types(events))
	require.Equal(t, agent.GateReturned, tr.gate("1.1").Status)
	require.Equal(t, agent.StepReturned, tr.stepOf("1.1").Status)
	require.Equal(t, agent.StepDone, tr.stepOf("1.2").Status)
	require.Empty(t, tr.m.Run().Rulings)
	require.Equal(t, "returned", tr.answer("c1_2").Status)
	require.Contains(t, tr.answer("c1_2").Text, "returned by ann with a note: ask for the receipt first")
	// The same call again goes to a person again, who sees no refusal.
	tr.model(`pay ` + payArgs(500))
	require.Equal(t, agent.GateOpen, tr.gate("2.1").Status)
	require.Empty(t, tr.gate("2.1").Rulings)
	tr.by(teller("ann"), "2.1", approve())
	require.Equal(t, []string{"2.1"}, tr.started())
	tr.reduces()
}

// A move's gate takes the same verdicts, but an edit.
func TestGate_ReturnedMove(t *testing.T) {
	tr := begin(t, bankAgent(tellers), `{"customer_id":"c"}`)
	tr.message("end it")
	tr.model(`move {"to":"end"}`)
	tr.by(teller("ann"), "1.1", edit(`{"to":"work"}`, "no"))
	require.Equal(t, agent.Refused, tr.receipt.Status)
	require.Contains(t, tr.receipt.Reason, "a move has nothing to edit")
	require.Equal(t, agent.GateOpen, tr.gate("1.1").Status)
	tr.by(teller("ann"), "1.1", giveBack("not yet"))
	require.Equal(t, "work", tr.m.Run().Phase)
	require.Empty(t, tr.m.Run().Rulings)
	tr.model(`move {"to":"end"}`)
	tr.by(teller("ann"), "2.1", approve())
	require.Equal(t, "end", tr.m.Run().Phase)
	tr.reduces()
}

// An approved sibling runs, and one without a gate ran, while a gate waits.
func TestGate_SiblingRuns(t *testing.T) {
	tr := begin(t, bankAgent(tellers), `{"customer_id":"c"}`)
	tr.message("pay 7")
	tr.model(`pay `+payArgs(500), `pay `+payArgs(600), `look {"refund_id":"a"}`)
	require.Equal(t, []string{"1.3"}, tr.started())
	tr.done("1.3", `{"id":"seen"}`)
	tr.by(teller("ann"), "1.2", approve())
	require.Equal(t, []string{"1.2"}, tr.started())
	tr.done("1.2", `{"id":"p-2"}`)
	require.Equal(t, agent.StepDone, tr.stepOf("1.2").Status)
	require.Equal(t, agent.GateOpen, tr.gate("1.1").Status)
	require.Equal(t, 1, tr.m.Run().Turn, "the model is not called while a call of its turn waits")
	tr.by(teller("ann"), "1.1", reject("no"))
	require.Equal(t, 2, tr.lastView().Turn)
	require.Equal(t, "rejected", tr.answer("c1_1").Status)
	require.Equal(t, "done", tr.answer("c1_2").Status)
	require.Equal(t, "done", tr.answer("c1_3").Status)
	tr.reduces()
}

func TestGate_StaleTab(t *testing.T) {
	tr := bank(t, tellers)
	old := tr.gate("1.1")
	tr.by(teller("ann"), "1.1", giveBack("another amount"))
	tr.model(`pay ` + payArgs(900))
	next := tr.gate("2.1")
	require.NotEqual(t, old.Digest, next.Digest)
	for _, v := range []agent.Verdict{{Gate: "1.1", Digest: old.Digest}, {Gate: "2.1", Digest: old.Digest}, {Gate: "1.1", Digest: next.Digest}} {
		v.Verdict = agent.Approve
		tr.by(teller("ann"), v.Gate, v)
		require.Equal(t, agent.Voided, tr.receipt.Status)
		require.Empty(t, tr.started())
		require.Equal(t, agent.GateOpen, tr.gate("2.1").Status)
	}
	tr.reduces()
}

func TestGate_VerdictBeforeIt(t *testing.T) {
	tr := begin(t, bankAgent(tellers), `{"customer_id":"c"}`)
	tr.message("pay 7")
	tr.by(teller("ann"), "1.1", agent.Verdict{Verdict: agent.Approve, Digest: "0123"})
	require.Equal(t, agent.Voided, tr.receipt.Status)
	tr.model(`pay ` + payArgs(500))
	require.Equal(t, agent.GateOpen, tr.gate("1.1").Status)
	require.Empty(t, tr.started())
	tr.by(teller("ann"), "1.1", approve())
	require.Equal(t, []string{"1.1"}, tr.started())
	tr.reduces()
}

func TestQuorum(t *testing.T) {
	three := bankPolicy{roles: []string{"teller"}, quorum: 3}
	// Two of three, and then one reject: it closes the gate, and binds.
	tr := bank(t, three)
	require.Equal(t, 3, tr.gate("1.1").Quorum)
	tr.by(teller("ann"), "1.1", approve())
	require.Equal(t, agent.Accepted, tr.receipt.Status)
	require.Equal(t, "1 of 3 approvals", tr.receipt.Reason)
	tr.by(teller("ann"), "1.1", approve())
	require.Equal(t, agent.Voided, tr.receipt.Status)
	require.Contains(t, tr.receipt.Reason, "ann has approved gate 1.1 already")
	tr.by(agent.Principal{Subject: "eve"}, "1.1", approve())
	require.Contains(t, tr.receipt.Reason, "needs the role teller")
	tr.by(teller("bob"), "1.1", approve())
	require.Empty(t, tr.started())
	require.Len(t, tr.gate("1.1").Approvals, 2)
	tr.by(teller("cyd"), "1.1", reject("not this month"))
	require.Equal(t, agent.GateRejected, tr.gate("1.1").Status)
	require.Len(t, tr.m.Run().Rulings, 1)
	require.Empty(t, tr.started())
	tr.reduces()

	// Three different persons.
	tr = bank(t, three)
	for i, name := range []string{"ann", "bob", "cyd"} {
		require.Equal(t, agent.GateOpen, tr.gate("1.1").Status)
		events := tr.by(teller(name), "1.1", approve())
		require.Contains(t, types(events), agent.EventGateCounted)
		require.Equal(t, i == 2, slices.Contains(tr.started(), "1.1"))
	}
	g := tr.gate("1.1")
	require.Equal(t, agent.GateApproved, g.Status)
	require.Equal(t, []string{"ann", "bob", "cyd"}, []string{g.Approvals[0].By.Subject, g.Approvals[1].By.Subject, g.Approvals[2].By.Subject})
	tr.reduces()

	// A change of what the gate shows voids what was counted.
	tr = bank(t, three)
	tr.by(teller("ann"), "1.1", approve())
	tr.step(agent.AmendRun{ID: "a", Principal: agent.Principal{Subject: "desk"}, Fields: agent.JSON(`{"order_id":"8"}`)})
	require.Equal(t, agent.GateVoid, tr.gate("1.1").Status)
	// And a move.
	tr = begin(t, bankAgent(three), `{"customer_id":"c"}`)
	tr.message("end it")
	tr.model(`move {"to":"end"}`)
	for _, name := range []string{"ann", "bob", "cyd"} {
		require.Equal(t, "work", tr.m.Run().Phase)
		tr.by(teller(name), "1.1", approve())
	}
	require.Equal(t, "end", tr.m.Run().Phase)
}

// Who asked for it may not decide, where duties are separated.
func TestGate_SelfApproval(t *testing.T) {
	for _, self := range []string{"user-7", "backend"} {
		for _, v := range []agent.Verdict{approve(), reject("no"), giveBack("x"), edit(payArgs(400), "less")} {
			for _, distinct := range []bool{true, false} {
				tr := &trial{t: t, m: agent.NewMachine(bankAgent(bankPolicy{roles: []string{"teller"}, distinct: distinct}))}
				tr.step(agent.Started{Tenant: "acme", Key: "k", FirstRunID: "r", Rules: agent.Rules, Limits: tr.m.Definition().Limits(), User: "user-7",
					Principal: agent.Principal{Subject: "backend"}, Body: agent.JSON(`{"customer_id":"c"}`)})
				tr.message("pay 7")
				tr.model(`pay ` + payArgs(500))
				require.Equal(t, []string{"user-7", "backend"}, tr.gate("1.1").Askers)
				tr.by(teller(self), "1.1", v)
				if distinct {
					require.Equal(t, agent.Voided, tr.receipt.Status)
					require.Contains(t, tr.receipt.Reason, self+" is among those who asked for it")
					require.Equal(t, agent.GateOpen, tr.gate("1.1").Status)
					tr.by(teller("ann"), "1.1", approve())
				}
				require.Equal(t, agent.Accepted, tr.receipt.Status)
				tr.reduces()
			}
		}
	}
}
