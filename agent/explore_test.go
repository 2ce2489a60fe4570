package agent_test

import (
	"errors"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

func init() { agents["vault"] = vaultAgent }

// vaultAgent has what a person decides in every combination: verdicts that can be
// taken back, quorum, separation, escalation and expiry at the gates of calls, of undos
// and of moves; guards on time; calls of Enter that come again.
func vaultAgent() *agent.Definition {
	type undoOf = tool.Done[mail, sent]
	find := findTool().Verifies("amount").OnCut(agent.CutWait)
	charge := tool.Keyed("charge", keyed[refundArgs, refund], func(s *state, _ refundArgs, r refund) error { s.RefundID = r.ID; return nil }).
		Gate(tool.Gate[state, refundArgs]{Roles: []string{"refunds"}, Edit: []string{agent.EveryArgument}, Reads: []string{"note"}, TakeBack: 5 * time.Minute, Expires: 30 * time.Hour,
			When: func(s agent.Situation[state], a refundArgs) bool { return a.OrderID == "78" || s.State.Note != "" }}).
		Undo(tool.Keyed("void", keyed[tool.Done[refundArgs, refund], sent], func(s *state, _ tool.Done[refundArgs, refund], _ sent) error {
			s.RefundID = ""
			return nil
		}).Gate(tool.Gate[state, tool.Done[refundArgs, refund]]{Roles: []string{"boss"}, Reads: []string{"note", "refund_id"}, Quorum: 2, Expires: 40 * time.Hour,
			Escalate: agent.Escalate{After: time.Hour, Roles: []string{"refunds"}}, TakeBack: 5 * time.Minute,
			When: func(_ agent.Situation[state], d tool.Done[refundArgs, refund]) bool { return d.Args.OrderID != "77" }})).
		OnCut(agent.CutUndo)
	ping := tool.Keyed("ping", keyed[mail, sent], func(s *state, _ mail, m sent) error { s.ReceiptID = m.ID; return nil }).Repeatable().
		Undo(tool.Once("unping", none[undoOf, sent], func(*state, undoOf, sent) error { return errors.New("nothing to take in") }))
	shot := tool.Once("shot", none[mail, sent], func(s *state, _ mail, m sent) error { s.ReceiptID = m.ID; return nil }).
		Gate(tool.Gate[state, mail]{Roles: []string{"boss"}, Edit: []string{agent.EveryArgument}, When: func(_ agent.Situation[state], a mail) bool { return a.RefundID == "b" }}).
		Undo(tool.Once("unshoot", none[undoOf, sent], func(s *state, _ undoOf, _ sent) error { s.ReceiptID = ""; return nil }).
			Gate(tool.Gate[state, undoOf]{Roles: []string{"boss"}, Distinct: true, TakeBack: time.Minute})).OnCut(agent.CutUndo)
	wire := tool.Keyed("wire", keyed[mail, sent], func(s *state, _ mail, m sent) error { s.ReceiptID = m.ID; return nil }).
		Gate(tool.Gate[state, mail]{Roles: []string{"boss"}, Edit: []string{agent.EveryArgument}, Reads: []string{"note", "amount"}, Quorum: 2, Distinct: true, TakeBack: time.Minute,
			Escalate: agent.Escalate{After: time.Hour, Roles: []string{"refunds"}}})
	lately := func(s agent.Situation[state]) error { return s.VerifiedWithin("amount", 2*time.Hour) }
	return agent.Define(agent.Spec[start, state]{
		Name: "vault", Version: 1, Instructions: "Work.",
		Init: func(in start) (state, error) { return state{CustomerID: in.CustomerID}, nil },
		Phases: []agent.Phase[state]{
			{Name: "work", Tools: []agent.Tool[state]{find, charge, ping, shot, wire},
				Moves: []agent.Move[state]{{To: "pay"}, {To: "end"},
					{To: "close", When: lately, Gate: &agent.MoveGate[state]{Roles: []string{"boss"}, Reads: []string{"note"}, TakeBack: time.Minute}}}},
			{Name: "pay", Tools: []agent.Tool[state]{find, charge}, Enter: func(agent.Situation[state]) []agent.Call {
				return []agent.Call{charge.With(refundArgs{"77", agent.Money{Minor: 5, Currency: "EUR"}}), shot.With(mail{"a"})}
			}, Moves: []agent.Move[state]{{To: "work"}, {To: "close"}}},
			{Name: "close", Tools: []agent.Tool[state]{find, ping}, Moves: []agent.Move[state]{{To: "end", Auto: true, When: lately,
				Gate: &agent.MoveGate[state]{Roles: []string{"boss"}, Reads: []string{"note"}, Quorum: 2, Expires: 20 * time.Hour}}, {To: "work"}}},
			{Name: "end", Final: true, Enter: func(agent.Situation[state]) []agent.Call {
				return []agent.Call{ping.With(mail{"81"}), shot.With(mail{"b"})}
			}},
		},
		Limits: agent.Limits{Active: 400, Window: 6},
		Budget: agent.Budget{Refusals: 5, ToolErrors: 5, SameCall: 4, Turns: 60, ModelCalls: 60, Tokens: 100_000},
	})
}

// owed is what a watcher knows of messages: which is unanswered, by the events alone.
type owed struct {
	unanswered int64          // event of the latest message, 0 where it is answered
	turnAt     int64          // event that began the latest turn
	openedBy   map[string]int // message: the turn that its sender was told of
	by         map[string]agent.StepSource
}

// owes checks that no step starts by a verdict, and no Auto move is taken, while a
// message is unanswered: the model may withdraw what is decided about. Mutation: let
// openGate count any gate as an answer.
func (w *watcher) owes(e agent.Event) {
	switch e.Type {
	case agent.EventMessage:
		w.unanswered = e.Seq
	case agent.EventTurnStarted:
		w.turnAt = e.Seq
	case agent.EventCancelRequested, agent.EventCompleted:
		w.unanswered = 0
	case agent.EventProposal:
		if p := data[agent.Proposal](e); len(p.Calls) == 0 && p.Text != "" && p.Excess == 0 && (p.Finish == agent.FinishStop || p.Finish == agent.FinishCalls) {
			w.answeredNow()
		}
	case agent.EventStepStarted:
		w.by[e.Step] = data[agent.StepStartedData](e).By
	case agent.EventGateOpened:
		if w.by[e.Step] != agent.ByUndo && w.ofTurn(w.m.Run(), e.Step, e.Turn) {
			w.answeredNow()
		}
	case agent.EventStepResumed:
		require.Zero(w.t, w.unanswered, "step %s is started by a verdict, and message %d is unanswered", e.Step, w.unanswered)
	case agent.EventPhaseEntered:
		if by := data[agent.PhaseEnteredData](e).By; by == "auto" || by == "gate" {
			require.Zero(w.t, w.unanswered, "the phase is entered by %s, and message %d is unanswered", by, w.unanswered)
		}
	}
}

func (w *watcher) answeredNow() {
	if w.turnAt > w.unanswered {
		w.unanswered = 0
	}
}

// takes checks a receipt: what was accepted is in the event that it names, and takes
// effect as its sender was told. Mutations: return the run's Seq from cancel; leave the
// cut out of interrupt.
func (w *watcher) takes(in agent.Input, had int64, r agent.Receipt) {
	id, want := "", agent.EventType("")
	switch in := in.(type) {
	case agent.Message:
		id, want = in.ID, agent.EventMessage
	case agent.CancelRun:
		id, want = in.ID, agent.EventCancelRequested
	case agent.AmendRun:
		id, want = in.ID, agent.EventAmended
	case agent.PauseRun:
		id, want = in.ID, agent.EventPaused
	case agent.ResumeRun:
		id, want = in.ID, agent.EventResumed
	case agent.UndoSteps:
		id, want = in.ID, agent.EventUndoRequested
	case agent.VerdictGiven:
		id, want = in.Verdict.ID, agent.EventVerdict
	default:
		return
	}
	if r.Status == agent.Refused {
		for _, e := range w.events {
			if e.Seq > had && e.Type == want && want != agent.EventVerdict {
				require.NotContains(w.t, string(e.Data), `"id":"`+id+`"`, "%T %s was refused, and is event %d", in, id, e.Seq)
			}
		}
		return
	}
	if r.Status == agent.Repeated {
		return
	}
	require.Greater(w.t, r.Seq, had, "%T", in)
	e := w.events[r.Seq-1]
	require.Equal(w.t, want, e.Type, "the receipt of %T names event %d", in, r.Seq)
	require.Contains(w.t, string(e.Data), `"id":"`+id+`"`)
	if took := r.Took; took != nil && want == agent.EventMessage {
		w.openedBy[id] = took.Turn
		cut := slices.ContainsFunc(w.events[had:], func(e agent.Event) bool { return e.Type == agent.EventInterrupted })
		require.Equal(w.t, cut, took.How == agent.TookInterrupted || took.How == agent.TookRollingBack || took.How == agent.TookMerged, "message %s took %s", id, took.How)
	}
}

// opens checks that a message opens the turn that its sender was told of.
func (w *watcher) opens(v agent.View) {
	for _, it := range v.Turns[len(v.Turns)-1].Opening {
		if turn, told := w.openedBy[it.ID]; told && it.Kind == agent.ItemMessage {
			require.Equal(w.t, turn, v.Turn, "the turn of message %s", it.ID)
			delete(w.openedBy, it.ID)
		}
	}
}

// ownUndo checks what a cut or a cancel has undone by itself: the last first, each
// effect once, and by a cut nothing that stood before its turn. Mutation: drop
// stoodBefore from wantsUndone.
func (w *watcher) ownUndo(e agent.Event) {
	d := data[agent.UndoRequestedData](e)
	if d.ID != "" {
		return
	}
	r := w.m.Run()
	keys, before := map[string]bool{}, e.Seq
	for _, id := range d.Steps {
		i := slices.IndexFunc(r.Steps, func(s agent.Step) bool { return s.ID == id })
		if i < 0 {
			continue
		}
		s := r.Steps[i]
		require.False(w.t, keys[s.Key], "effect %s is undone twice", s.Key)
		require.Less(w.t, s.Seq, before, "step %s is undone in the wrong order", s.ID)
		keys[s.Key], before = true, s.Seq
		if r.Cut != nil && r.Cancel == nil {
			require.False(w.t, slices.ContainsFunc(r.Steps, func(o agent.Step) bool { return o.Key == s.Key && o.Status == agent.StepDone && o.Turn < s.Turn }),
				"step %s is undone with its turn, and an earlier turn has done it", s.ID)
		}
	}
}

// goesOn checks that a run is never stuck: where nothing runs, it has ended, is paused,
// waits for its user, or for a person at a gate that is open; and that it has judged
// what could be judged. Mutations: leave an undo in doubt in the queue of a cancel; drop
// escalateGates from cancelling.
func (w *watcher) goesOn() {
	r := w.m.Run()
	open := map[string]bool{} // steps
	for _, g := range r.Gates {
		if g.Status != agent.GateOpen {
			require.Nil(w.t, g.Pending, "gate %s is closed, and a verdict waits", g.ID)
			continue
		}
		require.False(w.t, r.Status.Ended(), "the run ended, and gate %s is open", g.ID)
		open[g.StepID()] = true
		if e := g.Escalation; e != nil && !e.Done {
			require.True(w.t, w.now.Before(e.At), "gate %s is not escalated", g.ID)
		}
		if g.Pending != nil && r.Status != agent.RunPaused && r.Owed == 0 {
			require.True(w.t, w.now.Before(g.Pending.Until), "the verdict on gate %s has not taken effect", g.ID)
		}
	}
	if r.Status.Ended() {
		return
	}
	for _, s := range r.Steps {
		waits := s.Status == agent.StepWaiting || s.Status == agent.StepInDoubt && r.Cancel == nil
		require.Equal(w.t, waits, open[s.ID], "step %s is %s; its gate is open: %v", s.ID, s.Status, open[s.ID])
	}
	if w.calling || len(w.running) > 0 || r.Status == agent.RunPaused || w.held {
		return
	}
	if r.Owed == 0 {
		require.Empty(w.t, r.Kept)
	}
	if r.Cancel != nil || r.Reason != "user" {
		require.NotEmpty(w.t, open, "the run is %s (%s), and nothing runs and no gate is open", r.Status, r.Reason)
	}
	for _, u := range r.Undo {
		require.True(w.t, u.Stands != "" || u.As != "", "the undo of step %s has not begun, and nothing runs", u.Step)
		if u.Stands == "" {
			break // the others wait for it
		}
	}
	require.False(w.t, r.Cut != nil && r.Cancel == nil, "nothing runs, and the turn is being cut short")
	if w.unanswered > 0 {
		require.True(w.t, slices.ContainsFunc(r.Steps, func(s agent.Step) bool { return open[s.ID] && s.Turn == r.Turn }), "message %d is unanswered, and nobody is asked", w.unanswered)
	}
}
