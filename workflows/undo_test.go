package workflows_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/starter"
	"interlock/tool"
)

type doneText = tool.Done[text, text]

// labUndo is what undoes the lab's tools: a tool of the same effect each. Their
// order is noted.
type labUndo struct {
	unsend func(context.Context, tool.Key, doneText) (text, error)
	unfire func(context.Context, doneText) (text, error)
	gate   *tool.Gate[labState, doneText] // of unsend
	mu     sync.Mutex
	order  []string
}

func (u *labUndo) note(what string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.order = append(u.order, what)
}

func (u *labUndo) noted() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return strings.Join(u.order, " ")
}

func (u *labUndo) send() agent.Tool[labState] {
	t := tool.Keyed("unsend", func(ctx context.Context, k tool.Key, d doneText) (text, error) {
		u.note("unsend:" + d.Args.Text + ":" + d.Result.Text)
		if u.unsend != nil {
			return u.unsend(ctx, k, d)
		}
		return text{"gone"}, nil
	}, func(s *labState, _ doneText, _ text) error { s.Sent = ""; return nil })
	if u.gate != nil {
		t.Gate(*u.gate)
	}
	return t
}

func (u *labUndo) fire() agent.Tool[labState] {
	return tool.Once("unfire", func(ctx context.Context, d doneText) (text, error) {
		u.note("unfire:" + d.Args.Text)
		if u.unfire != nil {
			return u.unfire(ctx, d)
		}
		return text{"gone"}, nil
	}, func(s *labState, _ doneText, _ text) error { s.Sent = ""; return nil }).Within(time.Second, time.Hour)
}

func (u *labUndo) pay(db *sql.DB) agent.Tool[labState] {
	return tool.Transactional("unpay", db, func(ctx context.Context, tx *sql.Tx, d doneText) (text, error) {
		u.note("unpay:" + d.Args.Text)
		_, err := tx.ExecContext(ctx, `DELETE FROM payments WHERE text = $1`, d.Args.Text)
		return text{"gone"}, err
	}, func(s *labState, _ doneText, _ text) error { s.Paid = ""; return nil })
}

// obeying does what it was told, "send 1", "end", and then says so; what it does not
// know goes to another model.
func obeying(otherwise llm.Model) llm.Model {
	return asked(func(req llm.Request) llm.Model {
		said, fresh := scripted.NewMessage(req.View)
		name, arg, _ := strings.Cut(said, " ")
		switch {
		case !fresh && otherwise == nil:
			return says(scripted.Say("Done."))
		case !fresh || otherwise != nil && name != "send":
			if len(req.View.Turns) > 0 && len(req.View.Turns[0].Opening) > 0 && strings.HasPrefix(req.View.Turns[0].Opening[0].Text, "send") {
				return says(scripted.Say("Done."))
			}
			return otherwise
		case name == "end":
			return says(toEnd)
		case arg == "":
			return says(scripted.Say("I see."))
		}
		return says(call(name, arg))
	})
}

// undoWorld is a world whose lab can undo.
func undoWorld(t *testing.T, u *labUndo, l lab) (w *world, model *watched) {
	t.Helper()
	l.db, l.undo = labDB(t), u
	model = watch(obeying(nil))
	w = newWorld(t, model, l.agent())
	w.db = l.db
	return w, model
}

func (w *world) undo(address string, steps ...string) starter.Undone {
	w.t.Helper()
	out, err := w.starter.Undo(w.ctx, address, signals.Undo{ID: w.id("u"), Principal: ops, Steps: steps, Reason: "wrong day"})
	require.NoError(w.t, err)
	return out
}

func stepIs(id string, status agent.StepStatus) func(*agent.Run) bool {
	return func(r *agent.Run) bool {
		for _, s := range r.Steps {
			if s.ID == id && s.Status == status {
				return true
			}
		}
		return false
	}
}

func stepOf(r *agent.Run, id string) agent.Step {
	for _, s := range r.Steps {
		if s.ID == id {
			return s
		}
	}
	return agent.Step{}
}

// undoneBy are the ledger's rows that were undone, by tool.
func (w *world) undoneBy(address string) map[string]string {
	w.t.Helper()
	effects, err := w.effects(address)
	require.NoError(w.t, err)
	out := map[string]string{}
	for _, e := range effects {
		if e.UndoneBy != "" {
			out[e.Tool] = e.UndoneBy
		}
	}
	return out
}

// Two steps of a living run are undone, the last first. The model is told in its
// next turn; the same call then is a new effect.
func TestUndo(t *testing.T) {
	t.Parallel()
	u, sends := &labUndo{}, newCounter()
	w, model := undoWorld(t, u, lab{send: sends.tool})
	address := w.start("k")
	w.chat(address, "send 1")
	w.chat(address, "pay 2")
	before := w.until(address, "both", stepIs("3.1", agent.StepDone))
	first := signals.Undo{ID: "first", Principal: ops, Steps: []string{"3.1", "1.1"}, Reason: "wrong day"}
	out, err := w.starter.Undo(w.ctx, address, first)
	require.NoError(t, err)
	require.Equal(t, agent.Accepted, out.Receipt.Status)
	run := w.until(address, "undone", stepIs("1.1", agent.StepUndone))
	require.Equal(t, "unpay:2 unsend:1:1", u.noted())
	require.Equal(t, agent.StepUndone, stepOf(run, "3.1").Status)
	require.Contains(t, run.State.String(), `"paid":"","seen":"","sent":""`)
	require.Zero(t, payments(t, w.db))
	require.Equal(t, before.Turn, run.Turn, "the model is not called for it")
	require.Equal(t, map[string]string{"send": stepOf(run, stepOf(run, "1.1").UndoneBy).Key}, w.undoneBy(address), "pay's row is in its own database")

	w.chat(address, "send 1")
	requests := model.seen(t)
	told := ""
	for _, it := range requests[len(requests)-2].View.Turns[len(requests[len(requests)-2].View.Turns)-1].Opening {
		told += it.Text + "\n"
	}
	require.Contains(t, told, "Step 1.1, send, was undone by step 4.2, unsend, and has no effect any more. ops asked for it: wrong day.")
	require.Equal(t, 2, sends.total(), "it happened again")
	require.Len(t, sends.keys, 2, "under a key of its own")
	w.chat(address, "pay 2")
	require.Equal(t, 1, payments(t, w.db))

	_, err = w.starter.Undo(w.ctx, address, signals.Undo{ID: "again", Principal: ops, Steps: []string{"1.1"}, Reason: "wrong day"})
	require.Equal(t, agent.CodeConflict, agent.ErrorCode(err))
	require.ErrorContains(t, err, "it was undone by step 4.2 already")
	w.chat(address, "end")
	w.finished(address, agent.RunCompleted)
	// A repeat of what the run has done is known after its end: no repair is started.
	// Named in another order, so that Temporal does not answer from memory.
	first.Steps = []string{"1.1", "3.1"}
	same, err := w.starter.Undo(w.ctx, address, first)
	require.NoError(t, err)
	require.Equal(t, agent.Repeated, same.Receipt.Status)
	require.Nil(t, same.Repair)
}

// A compensation has its own gate: rejected, the step stands; asked for again and
// approved, it is undone. Each by a signal too.
func TestUndo_Gate(t *testing.T) {
	t.Parallel()
	u := &labUndo{gate: &tool.Gate[labState, doneText]{Roles: []string{"refunds"}}}
	w, _ := undoWorld(t, u, lab{})
	address := w.start("k")
	w.chat(address, "send 1")
	require.NoError(t, temporalClient.SignalWorkflow(w.ctx, address, "", signals.NameUndo, signals.Undo{ID: "bad", Principal: ops, Steps: []string{"7.7"}, Reason: "x"}))
	require.NoError(t, temporalClient.SignalWorkflow(w.ctx, address, "", signals.NameUndo, signals.Undo{ID: "u", Principal: ops, Steps: []string{"1.1"}, Reason: "x"}))
	gate := lastGate(w.until(address, "gate", waiting("gate")))
	require.Equal(t, `{"args":{"text":"1"},"result":{"text":"1"}}`, gate.Args.String())
	w.decide(address, gate, agent.Reject, "they wanted it")
	run := w.until(address, "stands", waiting("user"))
	require.Equal(t, agent.StepDone, stepOf(run, "1.1").Status)
	require.Empty(t, u.noted())
	eventually(t, "the bad signal is recorded", func() bool {
		refused := recorded[agent.InputRefusedData](w, address, agent.EventInputRefused)
		return len(refused) == 1 && strings.Contains(refused[0].Reason, "the run has no such step")
	})
	w.undo(address, "1.1")
	w.decide(address, lastGate(w.until(address, "gate", waiting("gate"))), agent.Approve, "")
	w.until(address, "undone", stepIs("1.1", agent.StepUndone))
	require.Equal(t, "unsend:1:1", u.noted())
	w.chat(address, "end")
	w.finished(address, agent.RunCompleted)
}

// A compensation that is refused leaves its step standing, and the next one's turn
// comes; one in doubt is asked about as any step is.
func TestUndo_FailsAndInDoubt(t *testing.T) {
	t.Parallel()
	u := &labUndo{
		unsend: func(context.Context, tool.Key, doneText) (text, error) {
			return text{}, tool.Refused(errors.New("too late"))
		},
		unfire: func(context.Context, doneText) (text, error) { return text{}, errors.New("the line went dead") },
	}
	w, _ := undoWorld(t, u, lab{})
	address := w.start("k")
	w.chat(address, "fire 1")
	w.chat(address, "send 2")
	w.undo(address, "1.1", "3.1")
	run := w.until(address, "in doubt", waiting("operator"))
	require.Equal(t, "unsend:2:2 unfire:1", u.noted())
	require.Equal(t, agent.StepDone, stepOf(run, "3.1").Status, "it stands")
	require.Equal(t, agent.StepDone, stepOf(run, "1.1").Status, "nobody knows")
	gate := lastGate(run)
	require.Equal(t, "unfire", gate.Tool)
	w.resolve(address, gate, signals.Verdict{Verdict: agent.Happened, Result: agent.JSON(`{"text":"gone"}`)})
	run = w.until(address, "undone", stepIs("1.1", agent.StepUndone))
	w.chat(address, "hm") // the next activity settles it in the ledger
	require.Equal(t, map[string]string{"fire": stepOf(run, stepOf(run, "1.1").UndoneBy).Key}, w.undoneBy(address))
	w.chat(address, "end")
	w.finished(address, agent.RunCompleted)
}

// A worker dies between the compensation and the mark of what it undid, or between
// that and its answer: the next one ends the undo, which happened once.
func TestCrash_Undo(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"before the mark", "after lab.unsend"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := idleWorld(t, false)
			db := openLabDB(t, w.file("product.db"))
			t.Cleanup(func() { _ = db.Close() })
			kill := w.child(at, true)
			address := w.start("k")
			w.chat(address, "send 1")
			w.undo(address, "1.1")
			w.awaitBarrier()
			kill()
			u := &labUndo{unsend: func(context.Context, tool.Key, doneText) (text, error) { return text{"gone"}, shoot(w.dir) }}
			w.serve(obeying(nil), lab{db: db, undo: u}.agent())
			run := w.until(address, "undone", stepIs("1.1", agent.StepUndone))
			shots, err := os.ReadFile(w.file("shots"))
			require.NoError(t, err)
			require.Equal(t, "x", string(shots), "the compensation ran once")
			require.Equal(t, map[string]string{"send": stepOf(run, stepOf(run, "1.1").UndoneBy).Key}, w.undoneBy(address))
			w.chat(address, "send 1")
			run = w.until(address, "sent again", stepIs("3.1", agent.StepDone))
			require.NotEqual(t, stepOf(run, "1.1").Key, stepOf(run, "3.1").Key)
			w.cancelled(address)
		})
	}
}

// What is to be undone goes on in the next Temporal run, its gate too.
func TestUndo_Continued(t *testing.T) {
	t.Parallel()
	u := &labUndo{gate: &tool.Gate[labState, doneText]{Roles: []string{"refunds"}}}
	w, _ := undoWorld(t, u, lab{limits: short})
	address := w.start("k")
	w.chat(address, "send 1")
	w.chat(address, "fire 2")
	w.chat(address, "send 3")
	w.undo(address, "1.1", "3.1", "5.1")
	w.until(address, "gate", waiting("gate"))
	for n := 0; len(w.chain(address)) < 3; n++ {
		w.chat(address, "and?")
		require.Less(t, n, 60)
	}
	for _, id := range []string{"5.1", "1.1"} {
		run := w.until(address, "gate", waiting("gate"))
		require.Equal(t, id, stepOf(run, lastGate(run).StepID()).Undoes)
		w.decide(address, lastGate(run), agent.Approve, "")
		w.until(address, "undone", stepIs(id, agent.StepUndone))
	}
	require.Equal(t, "unsend:3:3 unfire:2 unsend:1:1", u.noted())
	w.cancelled(address)
}

// After a reset to before a step that was undone, the step is told so, and the same
// call is a new effect; after one to before the undo, what the undo did stands.
func TestUndo_Reset(t *testing.T) {
	t.Parallel()
	u, sends := &labUndo{}, newCounter()
	w, _ := undoWorld(t, u, lab{send: sends.tool})
	address := w.start("k")
	w.chat(address, "send 1")
	w.undo(address, "1.1")
	before := w.until(address, "undone", stepIs("1.1", agent.StepUndone))
	first := w.runID(address)
	events := w.history(address, first)

	second := w.reset(address, first, taskOf(t, events, "lab.unsend", 1))
	w.until(address, "the new run", func(r *agent.Run) bool { return w.runID(address) == second && stepIs("1.1", agent.StepUndone)(r) })
	require.Equal(t, "unsend:1:1", u.noted(), "the request came again, and its effect stands")

	third := w.reset(address, second, taskOf(t, w.history(address, second), "lab.send", 1))
	run := w.until(address, "refused", func(r *agent.Run) bool { return w.runID(address) == third && stepIs("1.1", agent.StepRefused)(r) })
	require.Contains(t, stepOf(run, "1.1").Reason, "it happened and was undone (by effect "+stepOf(before, "2.1").Key+")")
	require.Equal(t, 1, sends.total())
	w.chat(address, "send 1")
	require.Equal(t, 2, sends.total())
	require.Equal(t, "unsend:1:1", u.noted())
	w.cancelled(address)
}
