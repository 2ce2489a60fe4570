package agent_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

// redeployed lets other code of the same version go on with the run.
func (tr *trial) redeployed(def *agent.Definition) {
	s := tr.m.Snapshot()
	m, err := agent.Restore(def, s)
	require.NoError(tr.t, err)
	tr.m = m
	tr.step(agent.SnapshotLoaded{Rules: agent.Rules, RunID: "next"})
}

// A gate keeps what it showed, but no step starts on a decision about a policy that
// is another one now: a new gate shows it.
func TestGate_PolicyChanged(t *testing.T) {
	for name, c := range map[string]struct {
		before, after bankPolicy
		who           agent.Principal
		stale         bool
	}{
		"role revoked":         {bankPolicy{roles: []string{"teller", "clerk"}}, tellers, agent.Principal{Subject: "cyd", Roles: []string{"clerk"}}, true},
		"two instead of one":   {tellers, bankPolicy{roles: []string{"teller"}, quorum: 2}, teller("ann"), true},
		"separated duties":     {tellers, bankPolicy{roles: []string{"teller"}, distinct: true}, teller("ann"), true},
		"other words":          {tellers, bankPolicy{roles: []string{"teller"}, policy: "every payment"}, teller("ann"), true},
		"predicate panics":     {tellers, bankPolicy{roles: []string{"teller"}, when: func(refundArgs) bool { panic("x") }}, teller("ann"), true},
		"nobody needed":        {tellers, bankPolicy{roles: []string{"teller"}, when: func(refundArgs) bool { return false }}, teller("ann"), false},
		"the same":             {tellers, tellers, teller("ann"), false},
		"only the time is new": {tellers, bankPolicy{roles: []string{"teller"}, expires: time.Hour}, teller("ann"), false},
	} {
		t.Run(name, func(t *testing.T) {
			tr := bank(t, c.before)
			tr.redeployed(bankAgent(c.after))
			for _, v := range []agent.Verdict{approve()} {
				tr.by(c.who, "1.1", v)
			}
			if !c.stale {
				require.Equal(t, []string{"1.1"}, tr.started())
				return
			}
			require.Equal(t, agent.Voided, tr.receipt.Status)
			require.Contains(t, tr.receipt.Reason, "the policy of gate 1.1 has changed since it was shown; gate 1.3 shows it as it is now")
			require.Empty(t, tr.started())
			require.Equal(t, agent.GateVoid, tr.gate("1.1").Status)
			require.Equal(t, agent.StepVoid, tr.stepOf("1.1").Status)
			g := tr.gate("1.3")
			require.Equal(t, agent.GateOpen, g.Status)
			require.Equal(t, "1.1", g.Replaces)
			require.Equal(t, tr.stepOf("1.1").Key, tr.stepOf("1.3").Key)
			tr.by(agent.Principal{Subject: "cyd", Roles: []string{"clerk"}}, "1.3", approve())
			require.Equal(t, agent.Voided, tr.receipt.Status)
			for _, name := range []string{"ann", "bob"}[:max(c.after.quorum, 1)] {
				tr.by(teller(name), "1.3", approve())
			}
			require.Equal(t, []string{"1.3"}, tr.started())
			tr.reduces()
		})
	}
}

// An approval that was counted under another policy does not count.
func TestGate_PolicyChangedBetweenApprovals(t *testing.T) {
	tr := bank(t, bankPolicy{roles: []string{"teller", "clerk"}, quorum: 2})
	tr.by(agent.Principal{Subject: "cyd", Roles: []string{"clerk"}}, "1.1", approve())
	tr.redeployed(bankAgent(bankPolicy{roles: []string{"teller"}, quorum: 2}))
	tr.by(teller("ann"), "1.1", approve())
	require.Empty(t, tr.started())
	require.Empty(t, tr.gate("1.3").Approvals)
	tr.by(teller("ann"), "1.3", approve())
	tr.by(teller("bob"), "1.3", approve())
	require.Equal(t, []string{"1.3"}, tr.started())
	tr.reduces()
}

// A kept verdict is judged when its turn comes, by the policy as it is then.
func TestGate_PolicyChangedBehindAKeptVerdict(t *testing.T) {
	tr := bank(t, bankPolicy{roles: []string{"teller", "clerk"}})
	tr.step(agent.PauseRun{ID: "p", Principal: agent.Principal{Subject: "ops"}})
	tr.by(agent.Principal{Subject: "cyd", Roles: []string{"clerk"}}, "1.1", approve())
	require.Equal(t, agent.KeptBack, tr.receipt.Status)
	tr.redeployed(bankAgent(tellers))
	tr.step(agent.ResumeRun{ID: "r", Principal: agent.Principal{Subject: "ops"}})
	require.Empty(t, tr.started())
	require.Equal(t, agent.GateOpen, tr.gate("1.3").Status)
	tr.reduces()
}

// More roles may decide once it is late. That approves nothing, and does not keep
// the gate from expiring.
func TestGate_Escalates(t *testing.T) {
	p := bankPolicy{roles: []string{"teller"}, escalate: agent.Escalate{After: time.Hour, Roles: []string{"chief"}}, expires: 3 * time.Hour}
	chief := agent.Principal{Subject: "kim", Roles: []string{"chief"}}
	tr := bank(t, p)
	i := slices.IndexFunc(tr.m.Batch().Events, func(e agent.Event) bool { return e.Type == agent.EventGateOpened })
	require.Positive(t, i)
	opened := tr.gate("1.1")
	require.Equal(t, opened.OpenedAt.Add(time.Hour), opened.Escalation.At)
	tr.by(chief, "1.1", approve())
	require.Equal(t, agent.Voided, tr.receipt.Status)
	tr.now = opened.Escalation.At.Add(-2 * time.Second)
	tr.step(agent.GateTimerFired{Gate: "1.1"})
	require.Equal(t, []string{"teller"}, tr.gate("1.1").Roles)
	events := tr.step(agent.GateTimerFired{Gate: "1.1"})
	require.Equal(t, []agent.EventType{agent.EventGateEscalated}, types(events))
	require.Contains(t, tr.cmds, agent.Command(agent.Record{}), "it is visible at once")
	g := tr.gate("1.1")
	require.Equal(t, []string{"teller", "chief"}, g.Roles)
	require.True(t, g.Escalation.Done)
	require.Equal(t, opened.Digest, g.Digest, "who looked at it before decides about the same")
	require.Empty(t, tr.started())
	require.Empty(t, tr.step(agent.GateTimerFired{Gate: "1.1"}), "once")
	tr.by(chief, "1.1", approve())
	require.Equal(t, []string{"1.1"}, tr.started())
	tr.reduces()

	// Who decides in time of a late timer is judged by the time.
	tr = bank(t, p)
	tr.now = tr.gate("1.1").Escalation.At
	tr.by(chief, "1.1", approve())
	require.Equal(t, agent.Accepted, tr.receipt.Status)
	// What takes the place of an escalated call is escalated too: it has waited.
	tr = bank(t, p)
	tr.now = tr.gate("1.1").Escalation.At
	tr.by(chief, "1.1", edit(payArgs(400), "less"))
	require.Equal(t, []string{"1.3"}, tr.started())
	two := p
	two.quorum = 2
	tr = bank(t, two)
	tr.now = tr.gate("1.1").Escalation.At
	tr.by(chief, "1.1", edit(payArgs(400), "less"))
	require.Equal(t, []string{"teller", "chief"}, tr.gate("1.3").Roles)
	require.Len(t, tr.gate("1.3").Approvals, 1)
	tr.by(teller("ann"), "1.3", approve())
	require.Equal(t, []string{"1.3"}, tr.started(), "the digest is that of the policy")
	tr.reduces()
	// In the next Temporal run the timers are set anew: what is left of them.
	tr = bank(t, p)
	tr.redeployed(bankAgent(p))
	open := tr.cmds[0].(agent.OpenGate)
	require.Equal(t, tr.gate("1.1").Escalation.At, *open.EscalatesAt)
	tr.now = *open.EscalatesAt
	tr.step(agent.GateTimerFired{})
	tr.redeployed(bankAgent(p))
	open = tr.cmds[0].(agent.OpenGate)
	require.Nil(t, open.EscalatesAt)
	require.NotNil(t, open.ExpiresAt)
	tr.now = *open.ExpiresAt
	tr.step(agent.GateTimerFired{})
	require.Equal(t, agent.GateExpired, tr.gate("1.1").Status)
	require.Empty(t, tr.m.Run().Rulings)
	tr.reduces()
}

func TestGate_Shows(t *testing.T) {
	tr := begin(t, bankAgent(bankPolicy{roles: []string{"teller"}, quorum: 2, policy: "payments"}), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`pay ` + payArgs(5000))
	g := tr.gate("1.1")
	require.Equal(t, "high", g.Risk)
	require.Equal(t, []string{"u"}, g.Askers[:1])
	require.Equal(t, 2, g.Quorum)
	tr.by(teller("ann"), "1.1", approve())
	tr.message("how far is it?")
	v := tr.lastView().Waiting[0]
	require.Equal(t, 2, v.Quorum)
	require.Equal(t, 1, v.Approved)
	require.Contains(t, tr.answer("c1_1").Text, "waits at gate 1.1 for 2 different persons with role teller")
}

// A policy that could never be fulfilled, or that says two things, is a mistake.
func TestGate_Mistakes(t *testing.T) {
	with := func(change func(*bankPolicy)) string {
		p := bankPolicy{roles: []string{"teller"}, expires: 2 * time.Hour}
		change(&p)
		if err := bankAgent(p).Err(); err != nil {
			return err.Error()
		}
		return ""
	}
	chief := []string{"chief"}
	for says, change := range map[string]func(*bankPolicy){
		"":                       func(p *bankPolicy) { p.escalate = agent.Escalate{After: time.Hour, Roles: chief} },
		"has a quorum of -1":     func(p *bankPolicy) { p.quorum = -1 },
		"has a quorum of 11":     func(p *bankPolicy) { p.quorum = 11 },
		"escalates -1h0m0s":      func(p *bankPolicy) { p.escalate = agent.Escalate{After: -time.Hour, Roles: chief} },
		"escalates 0s after":     func(p *bankPolicy) { p.escalate = agent.Escalate{Roles: chief} },
		"has expired after 2h":   func(p *bankPolicy) { p.escalate = agent.Escalate{After: 2 * time.Hour, Roles: chief} },
		"escalates to no role":   func(p *bankPolicy) { p.escalate = agent.Escalate{After: time.Hour} },
		`escalation role "Boss"`: func(p *bankPolicy) { p.escalate = agent.Escalate{After: time.Hour, Roles: []string{"Boss"}} },
		"adds role teller":       func(p *bankPolicy) { p.escalate = agent.Escalate{After: time.Hour, Roles: []string{"teller"}} },
	} {
		if says == "" {
			require.Empty(t, with(change))
			continue
		}
		require.Contains(t, with(change), says)
	}
}

// The fingerprint tells policies apart; without the new parts it is what it was.
func TestGate_Fingerprint(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range []bankPolicy{tellers, {roles: []string{"teller"}, quorum: 2}, {roles: []string{"teller"}, distinct: true},
		{roles: []string{"teller"}, escalate: agent.Escalate{After: time.Hour, Roles: []string{"chief"}}},
		{roles: []string{"teller"}, escalate: agent.Escalate{After: 2 * time.Hour, Roles: []string{"chief"}}}} {
		require.False(t, seen[bankAgent(p).Fingerprint()])
		seen[bankAgent(p).Fingerprint()] = true
	}
}

// The undo of a step is asked for anew too, and what it is to undo waits for it.
func TestGate_PolicyOfAnUndoChanged(t *testing.T) {
	tr := bank(t, bankPolicy{roles: []string{"clerk"}})
	clerk := agent.Principal{Subject: "cyd", Roles: []string{"clerk"}}
	tr.by(clerk, "1.1", approve())
	tr.done("1.1", `{"id":"p-1"}`)
	tr.model()
	tr.undo("1.1")
	first := tr.last()
	tr.redeployed(bankAgent(tellers))
	tr.by(clerk, first, approve())
	require.Equal(t, agent.Voided, tr.receipt.Status)
	require.Equal(t, agent.GateVoid, tr.gate(first).Status)
	second := tr.last()
	require.NotEqual(t, first, second)
	require.Equal(t, []string{"teller"}, tr.gate(second).Roles)
	require.Len(t, tr.m.Run().Undo, 1)
	require.Equal(t, second, tr.m.Run().Undo[0].As)
	require.Equal(t, agent.StepDone, tr.stepOf("1.1").Status)
	tr.by(teller("ann"), second, approve())
	tr.done(second, `{"id":"u-1"}`)
	require.Equal(t, agent.StepUndone, tr.stepOf("1.1").Status)
	require.Empty(t, tr.m.Run().Undo)
	tr.reduces()
}

// An undo that is returned leaves what it was to undo standing.
func TestGate_ReturnedUndo(t *testing.T) {
	tr := bank(t, tellers)
	tr.by(teller("ann"), "1.1", approve())
	tr.done("1.1", `{"id":"p-1"}`)
	tr.model()
	tr.undo("1.1")
	require.Equal(t, "ops", tr.gate(tr.last()).Askers[0], "who asked for the undo")
	tr.by(teller("ann"), tr.last(), giveBack("which one?"))
	require.Equal(t, agent.StepDone, tr.stepOf("1.1").Status)
	require.Empty(t, tr.m.Run().Undo)
	require.Contains(t, told(tr.m.Run()), "stands as it was: its undo, step 2.1, unpay, was returned by ann with a note: which one?")
	tr.reduces()
}

// An Auto move that was approved too late for its guard is asked for anew once the
// guard allows it again: the model cannot make it, and nobody else would.
func TestAuto_ApprovedTooLate(t *testing.T) {
	find := findTool().Verifies("amount")
	tr := begin(t, agent.Define(agent.Spec[start, state]{Name: "shop", Version: 1, Instructions: "x",
		Init: func(in start) (state, error) { return state{CustomerID: in.CustomerID}, nil },
		Phases: []agent.Phase[state]{
			{Name: "work", Tools: []agent.Tool[state]{find}, Moves: []agent.Move[state]{{To: "end", Auto: true,
				When: func(s agent.Situation[state]) error { return s.VerifiedWithin("amount", time.Hour) },
				Gate: &agent.MoveGate[state]{Roles: []string{"boss"}, Reads: []string{"amount"}}}}},
			{Name: "end", Final: true}}}), `{"customer_id":"c"}`)
	found := func(step string) { tr.done(step, `{"id":"77","total":{"minor":5,"currency":"EUR"}}`) }
	tr.message("77")
	tr.model(`set_fields {"fields":{"order_id":"77"},"quote":"77"}`, `find_order {"order_id":"77"}`)
	found("1.1")
	tr.model()
	tr.now = tr.now.Add(2 * time.Hour)
	tr.verdict("2.1", agent.Approve, "")
	require.Equal(t, agent.StepVoid, tr.stepOf("2.1").Status)
	require.Contains(t, tr.stepOf("2.1").Reason, "approved, but now amount was verified 2h0m")
	tr.model(`find_order {"order_id":"77","hint":"anew"}`)
	found("3.1")
	require.Equal(t, agent.RunWaiting, tr.m.Run().Status)
	require.Equal(t, "gate", tr.m.Run().Reason)
	tr.verdict("3.2", agent.Approve, "")
	require.Equal(t, "end", tr.m.Run().Phase)
	tr.reduces()
}

// A call that an operator has run again, since it did not happen, runs under its old
// approval: who gave that is judged once more as it starts, and the run's end does not
// list the attempt in whose place it stands.
func TestApproved_RunAgain(t *testing.T) {
	shot := tool.Once("shot", none[mail, sent], func(s *state, _ mail, m sent) error { s.ReceiptID = m.ID; return nil }).
		Gate(tool.Gate[state, mail]{Roles: []string{"boss"}})
	tr := begin(t, agent.Define(agent.Spec[start, state]{Name: "shop", Version: 1, Instructions: "x",
		Init: func(in start) (state, error) { return state{CustomerID: in.CustomerID}, nil },
		Phases: []agent.Phase[state]{
			{Name: "work", Moves: []agent.Move[state]{{To: "end"}}},
			{Name: "end", Final: true, Enter: func(agent.Situation[state]) []agent.Call { return []agent.Call{shot.With(mail{"81"})} }}}}), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`move {"to":"end"}`)
	tr.verdict("1.1", agent.Approve, "")
	approved := tr.task("shot").Approved
	require.NotNil(t, approved)
	again := func(step string) {
		tr.step(agent.StepUnknown{Step: step, Reason: "lost"})
		tr.by(agent.Principal{Subject: "ops", Roles: []string{agent.DefaultOperator}}, step+"-doubt", agent.Verdict{Verdict: agent.DidNotHappen, Reason: "asked them", Again: true})
	}
	again("1.1")
	require.Equal(t, []string{"1.2"}, tr.started())
	require.Equal(t, approved, tr.task("shot").Approved)
	// Once that approval counts no more, somebody else is asked.
	tr.step(agent.StepUnapproved{Step: "1.2", Reason: "not started: kim has the role no more"})
	tr.step(agent.StepStopped{Step: "1.2"})
	require.Equal(t, agent.GateOpen, tr.gate("1.3").Status)
	tr.verdict("1.3", agent.Approve, "")
	tr.done("1.3", `{"id":"x"}`)
	tr.model()
	require.Equal(t, agent.RunCompleted, tr.m.Run().Status)
	require.Empty(t, tr.m.Run().FailedEnd)
	tr.reduces()
}

// Whose edit was enough to start a call is judged once more before it starts, as who
// approves one is, and where the role was taken from them somebody else is asked.
func TestApproved_ByItsEditor(t *testing.T) {
	tr := bank(t, bankPolicy{roles: []string{"teller"}})
	tr.by(teller("ann"), "1.1", agent.Verdict{Verdict: agent.Edit, Reason: "less", Args: agent.JSON(payArgs(400))})
	edited := tr.last()
	require.Equal(t, []string{edited}, tr.started())
	approved := tr.task("pay").Approved
	require.NotNil(t, approved)
	require.Equal(t, []string{"teller"}, approved.Roles)
	require.Len(t, approved.By, 1)
	require.Equal(t, "ann", approved.By[0].Subject)

	tr.step(agent.StepUnapproved{Step: edited, Reason: "ann has not the role teller any more"})
	require.Equal(t, agent.StepRunning, tr.stepOf(edited).Status, "until it is known that it has not begun")
	tr.step(agent.StepStopped{Step: edited})
	require.Equal(t, agent.StepVoid, tr.stepOf(edited).Status)
	require.Equal(t, agent.GateOpen, tr.gate(tr.last()).Status)
	require.JSONEq(t, payArgs(400), tr.stepOf(tr.last()).Args.String())
	tr.by(teller("bob"), tr.last(), agent.Verdict{Verdict: agent.Approve})
	require.Equal(t, "bob", tr.task("pay").Approved.By[0].Subject)
	tr.reduces()
}
