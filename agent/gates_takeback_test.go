package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

var patient = bankPolicy{roles: []string{"teller"}, takeBack: time.Minute}

func takeBack() agent.Verdict { return agent.Verdict{Verdict: agent.TakeBack} }

// waits takes the time at which a verdict takes effect from the last commands.
func (tr *trial) waits() (until time.Time) {
	for _, c := range tr.cmds {
		if c, ok := c.(agent.SetPending); ok {
			until = c.Until
		}
	}
	require.False(tr.t, until.IsZero(), "no verdict waits")
	return until
}

// passed lets the time come at which a verdict takes effect.
func (tr *trial) passed(gate string, until time.Time) []agent.Event {
	tr.now = until.Add(-time.Second)
	return tr.step(agent.GateTimerFired{Gate: gate})
}

// A verdict takes effect when its time is over, and not before.
func TestTakeBack_Effect(t *testing.T) {
	for name, c := range map[string]struct {
		v    agent.Verdict
		want agent.GateStatus
	}{
		"approve": {approve(), agent.GateApproved}, "reject": {reject("no"), agent.GateRejected},
		"return": {giveBack("not yet"), agent.GateReturned}, "edit": {edit(payArgs(400), "less"), agent.GateEdited},
	} {
		t.Run(name, func(t *testing.T) {
			tr := bank(t, patient)
			events := tr.by(teller("ann"), "1.1", c.v)
			require.Equal(t, []agent.EventType{agent.EventVerdict, agent.EventGatePending}, types(events))
			require.Equal(t, agent.KeptBack, tr.receipt.Status)
			until := tr.waits()
			require.Contains(t, tr.receipt.Reason, "it takes effect at "+until.Format(time.RFC3339)+"; until then the verdict take_back takes it back")
			g := tr.gate("1.1")
			require.Equal(t, agent.GateOpen, g.Status)
			require.Equal(t, &agent.PendingVerdict{Verdict: c.v.Verdict, By: teller("ann"), Reason: c.v.Reason, At: until.Add(-time.Minute), Until: until}, g.Pending)
			require.Empty(t, tr.m.Run().Rulings)
			tr.now = until.Add(-2 * time.Second)
			require.Empty(t, tr.step(agent.GateTimerFired{Gate: "1.1"}), "a second too early")
			tr.step(agent.GateTimerFired{Gate: "1.1"})
			g = tr.gate("1.1")
			require.Equal(t, c.want, g.Status)
			require.Nil(t, g.Pending)
			require.Equal(t, "ann", g.By.Subject)
			require.Empty(t, tr.m.Run().Pending)
			require.Equal(t, name == "approve" || name == "edit", len(tr.started()) == 1)
			require.Equal(t, name == "reject", len(tr.m.Run().Rulings) == 1)
			tr.reduces()
		})
	}
}

// Who has decided takes it back; nobody else does, and not when it is too late. After
// that the gate is open to all again.
func TestTakeBack(t *testing.T) {
	tr := bank(t, patient)
	tr.by(teller("ann"), "1.1", takeBack())
	require.Equal(t, agent.Voided, tr.receipt.Status)
	require.Contains(t, tr.receipt.Reason, "there is nothing to take back")
	tr.by(teller("ann"), "1.1", approve())
	first := tr.waits()
	tr.by(teller("bob"), "1.1", takeBack())
	require.Equal(t, agent.CodeDenied, tr.receipt.Code)
	require.Contains(t, tr.receipt.Reason, "only ann, whose verdict it is, takes it back")
	tr.by(teller("bob"), "1.1", reject("no"))
	require.Equal(t, agent.CodeGateClosed, tr.receipt.Code)
	require.Contains(t, tr.receipt.Reason, "gate 1.1 was decided by ann at")
	tr.by(teller("ann"), "1.1", agent.Verdict{Verdict: agent.TakeBack, Digest: "other"})
	require.Equal(t, agent.CodeStale, tr.receipt.Code)

	tr.by(teller("ann"), "1.1", takeBack())
	require.Equal(t, agent.Accepted, tr.receipt.Status, tr.receipt.Reason)
	require.Nil(t, tr.gate("1.1").Pending)
	require.Empty(t, tr.passed("1.1", first), "its timer finds nothing")
	require.Empty(t, tr.started())
	tr.by(teller("bob"), "1.1", approve())
	second := tr.waits()
	tr.passed("1.1", second)
	require.Equal(t, []string{"1.1"}, tr.started())
	require.Equal(t, "bob", tr.gate("1.1").By.Subject)
	tr.by(teller("bob"), "1.1", takeBack())
	require.Equal(t, agent.CodeGateClosed, tr.receipt.Code)
	require.Contains(t, tr.receipt.Reason, "closed as approved by bob")
	tr.reduces()
}

// A proven verdict is taken back by a proven one only.
func TestTakeBack_Proven(t *testing.T) {
	tr := bank(t, patient)
	v := approve()
	v.Verified = true
	tr.by(teller("ann"), "1.1", v)
	tr.by(teller("ann"), "1.1", takeBack())
	require.Equal(t, agent.CodeDenied, tr.receipt.Code)
	v = takeBack()
	v.Verified = true
	tr.by(teller("ann"), "1.1", v)
	require.Equal(t, agent.Accepted, tr.receipt.Status)
	tr.reduces()
}

// What closes a gate, or holds a run up, does so to a verdict that waits.
func TestTakeBack_WhatComesBetween(t *testing.T) {
	approved := func(t *testing.T, p bankPolicy) (*trial, time.Time) {
		tr := bank(t, p)
		tr.by(teller("ann"), "1.1", approve())
		return tr, tr.waits()
	}
	t.Run("a shown field changes", func(t *testing.T) {
		tr, until := approved(t, patient)
		tr.step(agent.AmendRun{ID: "a", Principal: agent.Principal{Subject: "ops"}, Fields: agent.JSON(`{"order_id":"8"}`)})
		require.Equal(t, agent.GateVoid, tr.gate("1.1").Status)
		require.Nil(t, tr.gate("1.1").Pending)
		tr.passed("1.1", until)
		require.Empty(t, tr.started())
		tr.reduces()
	})
	t.Run("the model withdraws the call", func(t *testing.T) {
		tr, until := approved(t, patient)
		tr.message("no, wait")
		tr.passed("1.1", until)
		require.Empty(t, tr.started(), "a message is unanswered")
		tr.model(`withdraw {"step":"1.1","reason":"the user does not want it"}`)
		require.Equal(t, agent.GateWithdrawn, tr.gate("1.1").Status)
		require.Empty(t, tr.m.Run().Pending)
		tr.reduces()
	})
	t.Run("a message is answered", func(t *testing.T) {
		tr, until := approved(t, patient)
		tr.message("how long?")
		tr.passed("1.1", until)
		require.Empty(t, tr.started())
		tr.model(`look {"refund_id":"b"}`)
		tr.done("2.1", `{"id":"seen"}`)
		tr.step(agent.Proposed{Turn: 3, Text: "Soon.", Finish: agent.FinishStop, Model: "scripted"})
		require.Equal(t, agent.StepRunning, tr.stepOf("1.1").Status)
		tr.reduces()
	})
	t.Run("a pause", func(t *testing.T) {
		tr, until := approved(t, patient)
		tr.step(agent.PauseRun{ID: "p", Principal: agent.Principal{Subject: "ops"}})
		tr.passed("1.1", until)
		require.Empty(t, tr.started())
		tr.step(agent.ResumeRun{ID: "r", Principal: agent.Principal{Subject: "ops"}})
		require.Equal(t, []string{"1.1"}, tr.started())
		tr.reduces()
	})
	t.Run("the gate's own end", func(t *testing.T) {
		p := patient
		p.expires = time.Hour
		tr := bank(t, p)
		tr.now = tr.gate("1.1").ExpiresAt.Add(-3 * time.Second)
		tr.by(teller("ann"), "1.1", approve())
		until := tr.waits()
		tr.now = tr.gate("1.1").ExpiresAt.Add(time.Second)
		tr.step(agent.GateTimerFired{Gate: "1.1"})
		require.Equal(t, agent.GateOpen, tr.gate("1.1").Status, "it was decided in time")
		tr.passed("1.1", until)
		require.Equal(t, []string{"1.1"}, tr.started())
		tr.reduces()
	})
	t.Run("another Temporal run", func(t *testing.T) {
		tr, until := approved(t, patient)
		tr.redeployed(bankAgent(patient))
		require.Equal(t, until, tr.waits())
		tr.passed("1.1", until)
		require.Equal(t, []string{"1.1"}, tr.started())
		tr.reduces()
	})
	t.Run("another policy", func(t *testing.T) {
		tr, until := approved(t, patient)
		p := patient
		p.quorum = 2
		tr.redeployed(bankAgent(p))
		tr.passed("1.1", until)
		require.Empty(t, tr.started())
		require.Equal(t, agent.GateVoid, tr.gate("1.1").Status)
		require.Equal(t, agent.GateOpen, tr.gate("1.3").Status)
		tr.reduces()
	})
	t.Run("a cancel", func(t *testing.T) {
		tr, until := approved(t, patient)
		tr.step(agent.CancelRun{ID: "c", Principal: agent.Principal{Subject: "ops"}})
		require.Equal(t, agent.RunCancelled, tr.m.Run().Status)
		tr.passed("1.1", until)
		require.Empty(t, tr.started())
		tr.reduces()
	})
}

// Of a quorum only the approval waits that decides.
func TestTakeBack_Quorum(t *testing.T) {
	p := patient
	p.quorum = 2
	tr := bank(t, p)
	tr.by(teller("ann"), "1.1", approve())
	require.Equal(t, agent.Accepted, tr.receipt.Status)
	tr.by(teller("ann"), "1.1", takeBack())
	require.Contains(t, tr.receipt.Reason, "there is nothing to take back")
	tr.by(teller("bob"), "1.1", approve())
	tr.by(teller("bob"), "1.1", takeBack())
	require.Len(t, tr.gate("1.1").Approvals, 1, "that of the other stands")
	tr.by(teller("cyd"), "1.1", approve())
	tr.passed("1.1", tr.waits())
	require.Equal(t, []string{"1.1"}, tr.started())
	tr.reduces()
}

func TestTakeBack_Move(t *testing.T) {
	tr := begin(t, bankAgent(patient), `{"customer_id":"c"}`)
	tr.message("end it")
	tr.model(`move {"to":"end"}`)
	tr.by(teller("ann"), "1.1", approve())
	until := tr.waits()
	require.Equal(t, "work", tr.m.Run().Phase)
	tr.passed("1.1", until)
	require.Equal(t, "end", tr.m.Run().Phase)
	tr.reduces()
}

func TestTakeBack_Definition(t *testing.T) {
	for _, wrong := range []time.Duration{-time.Second, 16 * time.Minute} {
		p := patient
		p.takeBack = wrong
		require.ErrorContains(t, bankAgent(p).Err(), "a verdict can be taken back for")
	}
	require.NotEqual(t, bankAgent(tellers).Fingerprint(), bankAgent(patient).Fingerprint())
}
