package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

func TestEdit(t *testing.T) {
	tr := bank(t, tellers)
	tr.by(teller("ann"), "1.1", edit(payArgs(400), "a fee of 1.00"))
	require.Equal(t, agent.Accepted, tr.receipt.Status)
	require.Equal(t, "step 1.3 takes its place", tr.receipt.Reason)
	require.Equal(t, agent.GateEdited, tr.receipt.Gate.Status)
	require.Equal(t, agent.StepEdited, tr.stepOf("1.1").Status)
	s := tr.stepOf("1.3")
	require.Equal(t, payArgs(400), s.Args.String())
	require.Equal(t, "1.1", s.Replaces)
	require.Equal(t, "ann", s.EditedBy)
	require.Equal(t, []string{"1.3"}, tr.started(), "an editor who may decide has approved it")
	require.NotEqual(t, tr.stepOf("1.1").Key, s.Key)
	tr.done("1.3", `{"id":"p-1"}`)
	// The model is told of the change, by code, with both values.
	a := tr.answer("c1_2")
	require.Equal(t, "edited", a.Status)
	require.Contains(t, a.Text, `ann edited it: a fee of 1.00. Step 1.3 takes its place, with amount {"currency":"EUR","minor":400} instead of {"currency":"EUR","minor":500}`)
	last := tr.lastView().Turns[len(tr.lastView().Turns)-1]
	require.Equal(t, "Step 1.3, pay, is done.", last.Opening[0].Text)
	require.Empty(t, tr.m.Run().Rulings)
	tr.reduces()
}

// The policy is judged of the arguments as they are edited.
func TestEdit_Policy(t *testing.T) {
	over := func(n int64) func(refundArgs) bool { return func(a refundArgs) bool { return a.Amount.Minor > n } }
	for name, c := range map[string]struct {
		policy bankPolicy
		runs   bool
		asks   []string // who may not approve then, and who may
	}{
		"below what needs a person, by who may decide alone": {bankPolicy{roles: []string{"teller"}, when: over(450)}, true, nil},
		"below what needs two persons":                       {bankPolicy{roles: []string{"teller"}, quorum: 2, when: over(450)}, false, []string{"ann", "bob"}},
		"below what needs another person":                    {bankPolicy{roles: []string{"teller"}, distinct: true, when: over(450)}, false, []string{"ann", "bob"}},
		"one of two":                                         {bankPolicy{roles: []string{"teller"}, quorum: 2}, false, []string{"ann", "bob"}},
		"the editor has become asker":                        {bankPolicy{roles: []string{"teller"}, distinct: true}, false, []string{"ann", "bob"}},
		"asker, and two others needed":                       {bankPolicy{roles: []string{"teller"}, distinct: true, quorum: 2}, false, []string{"ann", "bob", "cyd"}},
	} {
		t.Run(name, func(t *testing.T) {
			tr := bank(t, c.policy)
			if c.policy.quorum > 1 { // an approval of other arguments does not count
				tr.by(teller("bob"), "1.1", approve())
			}
			tr.by(teller("ann"), "1.1", edit(payArgs(400), "less"))
			require.Equal(t, agent.Accepted, tr.receipt.Status)
			if c.runs {
				require.Equal(t, []string{"1.3"}, tr.started())
				return
			}
			require.Empty(t, tr.started())
			g := tr.gate("1.3")
			require.Equal(t, "step 1.3 takes its place, and waits at gate 1.3 for teller", tr.receipt.Reason)
			require.Equal(t, "ann", g.Askers[0])
			require.Equal(t, payArgs(400), g.Args.String())
			tr.by(teller(c.asks[0]), "1.3", approve())
			require.Equal(t, agent.Voided, tr.receipt.Status)
			for i, name := range c.asks[1:] {
				tr.by(teller(name), "1.3", approve())
				require.Equal(t, i == len(c.asks)-2, slices.Contains(tr.started(), "1.3"), name)
			}
			tr.reduces()
		})
	}
}

// An edit that cannot be made is refused with what is wrong; the gate stays open.
func TestEdit_Refused(t *testing.T) {
	tr := bank(t, tellers)
	refused := func(args string, says string) {
		t.Helper()
		require.Empty(t, tr.by(teller("ann"), "1.1", edit(args, "so")))
		require.Equal(t, agent.Refused, tr.receipt.Status)
		require.Contains(t, tr.receipt.Reason, says)
		require.Equal(t, agent.GateOpen, tr.gate("1.1").Status)
		require.Empty(t, tr.started())
	}
	refused(`{"order_id":"7"}`, "/amount is missing")
	refused(`{"order_id":7,"amount":{"minor":1,"currency":"EUR"}}`, "/order_id must be string, not integer")
	refused(`{"order_id":"7","amount":{"minor":1.5,"currency":"EUR"}}`, "/amount/minor must be integer, not number")
	refused(`{"order_id":"7","amount":{"minor":1,"currency":"EUR"},"then":"x"}`, "/then does not exist")
	refused(`{"order_id":"7","order_id":"8","amount":{"minor":1,"currency":"EUR"}}`, "order_id")
	refused(`{"order_id"`, "these are no arguments of pay")
	refused(`[]`, "must be object")
	refused(payArgs(500), "approve it instead")
	refused("", "an edit needs the new arguments")
	require.Empty(t, tr.by(teller("ann"), "1.1", edit(payArgs(400), " ")))
	require.Contains(t, tr.receipt.Reason, "an edit needs a reason")

	// What a ruling binds, and what happens or happened already, no edit makes.
	tr.model()
	tr.message("and another")
	tr.model(`pay `+payArgs(600), `pay `+payArgs(700))
	tr.by(teller("ann"), "2.2", reject("never 7.00"))
	refused(payArgs(600), "the same call is step 2.1 already")
	refused(payArgs(700), "ann rejected this (never 7.00)")
	tr.by(teller("ann"), "2.1", approve())
	tr.done("2.1", `{"id":"p-1"}`)
	refused(payArgs(600), "with these arguments it happened already, as step 2.1")
	tr.model()

	// An undo has nothing to edit.
	tr.undo("2.1")
	undo := tr.last()
	require.Empty(t, tr.by(teller("ann"), undo, edit(`{"args":`+payArgs(1)+`,"result":{"id":"x"}}`, "so")))
	require.Contains(t, tr.receipt.Reason, "there is nothing to edit")
	tr.reduces()
}

func TestEdit_OfAnEdit(t *testing.T) {
	tr := bank(t, bankPolicy{roles: []string{"teller"}, distinct: true})
	tr.by(teller("ann"), "1.1", edit(payArgs(400), "a fee"))
	tr.by(teller("bob"), "1.3", edit(payArgs(300), "a larger fee"))
	require.Equal(t, agent.StepEdited, tr.stepOf("1.3").Status)
	require.Equal(t, "1.3", tr.stepOf("1.4").Replaces)
	require.Equal(t, "bob", tr.gate("1.4").Askers[0])
	require.Empty(t, tr.started())
	// Back to what the model had proposed, by a third: it is a call like others.
	tr.by(teller("cyd"), "1.4", edit(payArgs(500), "no fee"))
	require.Equal(t, tr.stepOf("1.1").Key, tr.stepOf("1.5").Key, "the same effect")
	for _, editor := range []string{"ann", "bob", "cyd"} { // what any of them wrote may still stand in it
		tr.by(teller(editor), "1.5", approve())
		require.Equal(t, agent.CodeDenied, tr.receipt.Code, editor)
	}
	tr.by(teller("dan"), "1.5", approve())
	require.Equal(t, []string{"1.5"}, tr.started())
	tr.done("1.5", `{"id":"p-1"}`)
	require.Equal(t, "edited", tr.answer("c1_2").Status)
	tr.reduces()
}

func TestEdit_KeepsEveryType(t *testing.T) {
	tr := begin(t, bankAgent(tellers), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`deep {"n":1}`)
	args := `{"in":{"list":[9223372036854775807,-9223372036854775808],"n":0},"list":[],"map":{"a":[1,{"b":null}],"n":9007199254740993,"t":true,"text":"\u00e9\u202e"},"n":9007199254740993,"text":"true"}`
	canonical, err := agent.Canonical([]byte(args))
	require.NoError(t, err)
	tr.by(teller("ann"), "1.1", edit(args, "types"))
	require.Equal(t, agent.Accepted, tr.receipt.Status, tr.receipt.Reason)
	require.Equal(t, []string{"1.2"}, tr.started())
	require.Equal(t, canonical.String(), tr.task("deep").Args.String())
	require.Equal(t, canonical.String(), tr.stepOf("1.2").Args.String())
	tr.reduces()
}

// A kept edit that can be made no more is void, with what is wrong.
func TestEdit_Kept(t *testing.T) {
	tr := bank(t, tellers)
	tr.message("one moment")
	tr.by(teller("ann"), "1.1", edit(payArgs(400), "less"))
	require.Equal(t, agent.KeptBack, tr.receipt.Status)
	tr.model(`pay ` + payArgs(400))
	require.Equal(t, agent.GateOpen, tr.gate("2.1").Status)
	require.Equal(t, agent.GateOpen, tr.gate("1.1").Status, "the same call waits already")
	events := tr.m.Batch().Events
	require.True(t, slices.ContainsFunc(events, func(e agent.Event) bool {
		return e.Type == agent.EventVerdict && strings.Contains(e.Data.String(), "the same call is step 2.1 already")
	}))
	// And one that can is taken.
	tr = bank(t, tellers)
	tr.message("one moment")
	tr.by(teller("ann"), "1.1", edit(payArgs(400), "less"))
	tr.model()
	require.Equal(t, agent.StepEdited, tr.stepOf("1.1").Status)
	require.Equal(t, []string{"2.1"}, tr.started(), "a step of the latest turn")
	tr.reduces()
}

// An edited call of an Enter stands in its place: what it replaces did not fail.
func TestEdit_EnterCall(t *testing.T) {
	risky := tool.Keyed("risky", keyed[mail, refund], func(s *state, _ mail, r refund) error { s.RefundID = r.ID; return nil }).
		Gate(tool.Gate[state, mail]{Roles: []string{"teller"}, Edit: []string{agent.EveryArgument}})
	tr := begin(t, agent.Define(agent.Spec[start, state]{Name: "enter", Version: 1, Instructions: "x",
		Init: func(in start) (state, error) { return state{CustomerID: in.CustomerID}, nil },
		Phases: []agent.Phase[state]{{Name: "end", Final: true, Say: func(agent.Situation[state]) string { return "Bye." },
			Enter: func(s agent.Situation[state]) []agent.Call { return []agent.Call{risky.With(mail{s.State.CustomerID})} }}}}), `{"customer_id":"c"}`)
	tr.by(teller("ann"), "0.1", edit(`{"refund_id":"d"}`, "typo"))
	require.Equal(t, []string{"0.2"}, tr.started())
	require.Equal(t, agent.RunRunning, tr.m.Run().Status)
	tr.done("0.2", `{"id":"r"}`)
	require.Equal(t, agent.RunCompleted, tr.m.Run().Status)
	require.Empty(t, tr.m.Run().FailedEnd)
	tr.reduces()
}

// However long the reason of an edit is, the model is told what was changed.
func TestEdit_WithALongReason(t *testing.T) {
	tr := bank(t, bankPolicy{roles: []string{"teller"}})
	tr.by(teller("ann"), "1.1", agent.Verdict{Verdict: agent.Edit, Reason: strings.Repeat("because ", 124), Args: agent.JSON(payArgs(400))})
	require.Equal(t, agent.StepEdited, tr.stepOf("1.1").Status, tr.receipt)
	why := tr.stepOf("1.1").Reason
	require.LessOrEqual(t, len(why), 1000)
	require.Contains(t, why, "ann edited it: because because")
	require.Contains(t, why, `Step 1.3 takes its place, with amount {"currency":"EUR","minor":400} instead of {"currency":"EUR","minor":500}`)
}

// A reviewer edits the arguments that the gate declares, and no others.
func TestEdit_OnlyWhatIsDeclared(t *testing.T) {
	other := `{"amount":{"currency":"EUR","minor":500},"order_id":"8"}`
	for name, c := range map[string]struct {
		edit   []string
		denies string
	}{
		"nothing": {[]string{}, "nothing of a call of pay may be edited"},
		"amount":  {[]string{"amount"}, "/order_id of a call of pay may not be edited, only amount"},
		"order":   {[]string{"order_id"}, ""},
		"all":     {[]string{agent.EveryArgument}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tr := bank(t, bankPolicy{roles: []string{"teller"}, edit: c.edit})
			require.Equal(t, len(c.edit), len(tr.gate("1.1").Edit))
			tr.by(teller("ann"), "1.1", edit(other, "typo"))
			if c.denies == "" {
				require.Equal(t, []string{"1.3"}, tr.started())
				return
			}
			require.Equal(t, agent.Refused, tr.receipt.Status)
			require.Equal(t, agent.CodeDenied, tr.receipt.Code)
			require.Contains(t, tr.receipt.Reason, c.denies)
			require.Equal(t, agent.GateOpen, tr.gate("1.1").Status)
		})
	}
}

// Under separation of duties whoever amended what a gate reads has asked for it too.
func TestDistinct_WhoAmended(t *testing.T) {
	tr := begin(t, bankAgent(bankPolicy{roles: []string{"teller"}, distinct: true}), `{"customer_id":"c"}`)
	tr.step(agent.AmendRun{ID: "a-1", Principal: teller("ann"), Fields: agent.JSON(`{"order_id":"7"}`), Reason: "as it should be"})
	tr.message("pay 7")
	tr.model(`pay ` + payArgs(500))
	g := tr.gate("1.1")
	require.Contains(t, g.Askers, "ann")
	tr.by(teller("ann"), g.ID, approve())
	require.Equal(t, agent.CodeDenied, tr.receipt.Code)
	require.Empty(t, tr.started())
	tr.by(teller("bob"), g.ID, approve())
	require.Equal(t, []string{g.StepID()}, tr.started())
	tr.reduces()
}
