package agent_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"interlock/agent"
	"interlock/tool"
)

func init() { agents["booth"] = boothAgent }

// boothAgent has a tool for each choice of what becomes of a running step when its
// turn is cut short, and rolls a turn back for a message that says nothing else.
func boothAgent() *agent.Definition {
	find := findTool()
	count := tool.ReadOnly("count", none[mail, sent], func(*state, mail, sent) error { return nil }).OnCut(agent.CutWait)
	charge := tool.Keyed("charge", keyed[refundArgs, refund], func(s *state, _ refundArgs, r refund) error { s.RefundID = r.ID; return nil }).
		Undo(tool.Keyed("void", keyed[tool.Done[refundArgs, refund], sent], func(s *state, d tool.Done[refundArgs, refund], _ sent) error {
			if d.Args.Amount.Minor == 6 {
				return errors.New("not now")
			}
			s.RefundID = ""
			return nil
		})).OnCut(agent.CutUndo)
	ping := tool.Keyed("ping", keyed[mail, sent], func(*state, mail, sent) error { return nil }).Repeatable().
		Undo(tool.Once("unping", none[tool.Done[mail, sent], sent], func(*state, tool.Done[mail, sent], sent) error { return nil }).
			Gate(tool.Gate[state, tool.Done[mail, sent]]{Roles: []string{"boss"}, Expires: time.Hour}))
	shot := tool.Once("shot", none[mail, sent], func(s *state, _ mail, m sent) error { s.ReceiptID = m.ID; return nil })
	risky := tool.Keyed("risky", keyed[refundArgs, refund], func(*state, refundArgs, refund) error { return nil }).
		Gate(tool.Gate[state, refundArgs]{Roles: []string{"boss"}, Reads: []string{"order_id"}})
	return agent.Define(agent.Spec[start, state]{
		Name: "booth", Version: 1, Instructions: "Work.", OnMessage: agent.MessageRollback,
		Init: func(in start) (state, error) { return state{CustomerID: in.CustomerID}, nil },
		Phases: []agent.Phase[state]{
			{Name: "work", Tools: []agent.Tool[state]{find, count, charge, ping, shot, risky},
				Moves: []agent.Move[state]{{To: "end"}, {To: "paid"}}},
			{Name: "paid", Enter: func(agent.Situation[state]) []agent.Call {
				return []agent.Call{charge.With(refundArgs{"80", agent.Money{Minor: 8, Currency: "EUR"}}), shot.With(mail{"80"})}
			}, Moves: []agent.Move[state]{{To: "work"}, {To: "end"}}},
			{Name: "end", Final: true, Enter: func(agent.Situation[state]) []agent.Call { return []agent.Call{ping.With(mail{"81"})} }},
		},
		Limits: agent.Limits{Active: 400, Window: 6},
		Budget: agent.Budget{Refusals: 4, ToolErrors: 3, SameCall: 3, Turns: 40, ModelCalls: 40, Tokens: 100_000},
	})
}

// policy is that of a message, mostly its own.
func (w *watcher) policy() agent.MessagePolicy {
	return rapid.SampledFrom([]agent.MessagePolicy{"", "", agent.MessageQueue, agent.MessageReject, agent.MessageInterrupt, agent.MessageRollback}).Draw(w.t, "policy")
}

// cut checks what holds of a turn that is cut short. The account comes when
// nothing of the turn runs, and never twice; a step that is said to have been
// stopped never runs. Mutations: drop inFlight from settleCut; leave Cut in
// applyInterruptSettled; let notApplied keep its status.
func (w *watcher) cut(e agent.Event) {
	r := w.m.Run()
	switch e.Type {
	case agent.EventStepStarted:
		w.stands[e.Step] = data[agent.StepStartedData](e).Status
	case agent.EventStepResumed:
		w.stands[e.Step] = agent.StepRunning
	case agent.EventStepDone:
		w.stands[e.Step] = agent.StepDone
	case agent.EventInterruptSettled:
		if !w.cutting {
			w.t.Fatalf("event %d settles an interrupt that was none", e.Seq)
		}
		w.cutting = false
		for _, s := range data[agent.InterruptSettledData](e).Steps {
			require.NotEqual(w.t, agent.StepRunning, w.stands[s], "the account tells of step %s, which runs", s)
		}
	case agent.EventInterrupted:
		w.cutting = true
	case agent.EventTurnStarted:
		if w.cutting {
			w.t.Fatalf("turn %d begins before the account of the turn that was cut", r.Turn)
		}
	case agent.EventStepStopping:
		w.told[e.Step] = true
	case agent.EventStepBegun:
		w.told[e.Step] = false
	case agent.EventStepSettled:
		d := data[agent.StepSettledData](e)
		w.stands[e.Step] = d.Status
		if d.Status == agent.StepFailed && w.told[e.Step] && r.Cut != nil {
			w.t.Fatalf("step %s was told to stop, did not happen, and is %s", e.Step, d.Status)
		}
	case agent.EventCancelled:
		w.undone(e)
	}
}

// undone checks the end of a cancel that was to undo: what was to be undone is, or
// is listed as standing. Mutations: end in cancelling although undoing is not nil;
// drop Stands from askUndo.
func (w *watcher) undone(e agent.Event) {
	var undo agent.UndoScope
	for _, c := range w.events {
		if c.Type == agent.EventCancelRequested {
			if d := data[agent.CancelRequestedData](c); d.Undo == agent.UndoRun {
				undo = d.Undo
			}
		}
	}
	if undo == "" {
		return
	}
	r := w.m.Run()
	listed := data[agent.EndedData](e).Failed
	for _, s := range r.Steps {
		if s.Status != agent.StepDone || s.Key == "" || s.Undoes != "" || slices.ContainsFunc(listed, func(l string) bool { return len(l) > len(s.ID) && l[:len(s.ID)+1] == s.ID+" " }) {
			continue
		}
		same := slices.ContainsFunc(r.Steps, func(o agent.Step) bool { return o.ID != s.ID && o.Key == s.Key })
		if !same {
			w.t.Fatalf("the run was cancelled with all undone, and step %s, %s, stands unsaid: %q", s.ID, s.Tool, listed)
		}
	}
}

// What cannot be chosen is a mistake of the definition.
func TestDefine_Interrupts(t *testing.T) {
	keep := func(*plain, noArgs, sent) error { return nil }
	undo := func() agent.Tool[plain] {
		return tool.Keyed("back", keyed[tool.Done[noArgs, sent], sent], func(*plain, tool.Done[noArgs, sent], sent) error { return nil })
	}
	with := func(tools ...agent.Tool[plain]) *agent.Definition {
		s := plainSpec()
		s.Phases[0].Tools = append(s.Phases[0].Tools, tools...)
		return agent.Define(s)
	}
	require.Equal(t, []string{
		`tool a: is to be abandoned when its turn is cut short, but it has an effect, which may happen all the same: choose wait, or undo`,
		`tool d: OnCut "stop" is none of wait, abandon or undo`,
	}, mistakes(t, with(tool.Keyed("a", keyed[noArgs, sent], keep).OnCut(agent.CutAbandon), tool.Once("b", none[noArgs, sent], keep).OnCut(agent.CutUndo),
		tool.ReadOnly("c", none[noArgs, sent], keep).OnCut(agent.CutUndo), tool.ReadOnly("d", none[noArgs, sent], keep).OnCut("stop"))))
	s := plainSpec()
	s.OnMessage = "shout"
	require.Equal(t, []string{`on message: there is no message policy "shout": it is queue, reject, interrupt or rollback, or left out for the agent's own`}, mistakes(t, agent.Define(s)))

	// The defaults are no part of the fingerprint; other choices are.
	a := func() *tool.Tool[plain, noArgs, sent] { return tool.Keyed("a", keyed[noArgs, sent], keep).Undo(undo()) }
	require.Equal(t, with(a()).Fingerprint(), with(a().OnCut(agent.CutWait)).Fingerprint())
	require.NotEqual(t, with(a()).Fingerprint(), with(a().OnCut(agent.CutUndo)).Fingerprint())
	s.OnMessage = agent.MessageQueue
	require.Equal(t, with().Fingerprint(), agent.Define(s).Fingerprint())
	s.OnMessage = agent.MessageReject
	require.NotEqual(t, with().Fingerprint(), agent.Define(s).Fingerprint())
}
