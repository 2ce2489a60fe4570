package workflows_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/store"
	"interlock/tool"
)

func (w *world) cancel(address, reason string) agent.Receipt {
	w.t.Helper()
	r, err := w.starter.Cancel(w.ctx, address, signals.Cancel{ID: w.id("c"), Principal: customer, Reason: reason})
	require.NoError(w.t, err)
	return r
}

func statuses(r *agent.Run) map[string]agent.StepStatus {
	out := map[string]agent.StepStatus{}
	for _, s := range r.Steps {
		out[s.Tool] = s.Status
	}
	return out
}

// busyLab is a run in which a tool of each effect runs.
type busyLab struct {
	*world
	db              *sql.DB
	look, send, pay *blocking
	address         string
}

func newBusyLab(t *testing.T) busyLab {
	t.Helper()
	b := busyLab{db: labDB(t), look: newBlocking(), send: newBlocking(), pay: newBlocking()}
	l := lab{db: b.db,
		look: func(ctx context.Context, a text) (text, error) { return a, b.look.wait(ctx) },
		send: func(ctx context.Context, _ tool.Key, a text) (text, error) { return a, b.send.wait(ctx) },
		pay: func(ctx context.Context, tx *sql.Tx, a text) (text, error) {
			r, err := payment(ctx, tx, a)
			b.pay.begun <- struct{}{}
			<-b.pay.free
			return r, err
		}}
	b.world = newWorld(t, turns(scripted.Then(call("look", "a"), call("send", "b"), call("pay", "c"))), l.agent())
	b.address = b.start("k")
	b.say(b.address, "go")
	b.look.awaitBegun(t)
	b.send.awaitBegun(t)
	b.pay.awaitBegun(t)
	return b
}

// A cancel while tools run: what only reads is let go, what has an effect is
// waited for, and every step ends in a definite status.
func TestCancel_WhileToolsRun(t *testing.T) {
	t.Parallel()
	b := newBusyLab(t)
	require.Equal(t, agent.Accepted, b.cancel(b.address, "changed my mind").Status)
	require.Equal(t, agent.Repeated, b.cancel(b.address, "changed my mind again").Status)
	_, err := b.starter.Message(b.ctx, b.address, signals.Message{ID: "late", Principal: customer, Text: "wait"})
	require.Equal(t, agent.CodeEnded, agent.ErrorCode(err), "%v", err)
	close(b.pay.free)
	close(b.send.free)
	run := b.finished(b.address, agent.RunCancelled)
	require.Equal(t, map[string]agent.StepStatus{"look": agent.StepAbandoned, "send": agent.StepDone, "pay": agent.StepDone}, statuses(run))
	require.Equal(t, 1, payments(t, b.db))
	require.Contains(t, run.State.String(), `"paid":"c","seen":"","sent":"b"`)
	require.Equal(t, "changed my mind", run.Reason)
	require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, b.status(b.address))
	require.ErrorIs(t, await(t, b.look.ended, "the tool hears of it"), context.Canceled)
	effects, err := b.store.Effects(b.ctx, "acme", store.EffectFilter{Address: b.address})
	require.NoError(t, err)
	require.Len(t, effects, 1, "the Transactional effect is in the product's database")
	require.Equal(t, store.EffectApplied, effects[0].Status)
}

// Temporal's own cancel means cancel, and Temporal then says Canceled.
func TestCancel_ThroughTemporal(t *testing.T) {
	t.Parallel()
	b := newBusyLab(t)
	require.NoError(t, b.withTemporalCancel())
	b.until(b.address, "the cancel", func(r *agent.Run) bool { return r.Cancel != nil })
	close(b.pay.free)
	close(b.send.free)
	run := b.finished(b.address, agent.RunCancelled)
	require.Equal(t, map[string]agent.StepStatus{"look": agent.StepAbandoned, "send": agent.StepDone, "pay": agent.StepDone}, statuses(run))
	require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_CANCELED, b.status(b.address))
	require.True(t, temporal.IsCanceledError(b.result(b.address)))
}

func (b busyLab) withTemporalCancel() error { return b.cancelThroughTemporal(b.address) }

func (w *world) cancelThroughTemporal(address string) error {
	return temporalClient.CancelWorkflow(w.ctx, address, "")
}

// result is the error that the workflow ended with.
func (w *world) result(address string) error {
	var end signals.End
	return temporalClient.GetWorkflow(w.ctx, address, "").Get(w.ctx, &end)
}

// The id of Temporal's cancel is nobody's to take.
func TestCancel_ThroughTemporalAlthoughItsIDWasUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, turns(scripted.Say("Hm.")), lab{db: labDB(t)}.agent())
	address := w.start("k")
	_, err := w.starter.Message(w.ctx, address, signals.Message{ID: "temporal-cancel", Principal: customer, Text: "hello"})
	require.NoError(t, err)
	w.until(address, "an answer", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 1 })
	require.NoError(t, w.cancelThroughTemporal(address))
	w.finished(address, agent.RunCancelled)
	require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_CANCELED, w.status(address))
}

// slowModel answers when it is let, or when its call is cancelled.
type slowModel struct{ *blocking }

func (slowModel) Name() string { return "slow" }

func (m slowModel) Generate(ctx context.Context, _ llm.Request) (llm.Response, error) {
	if err := m.wait(ctx); err != nil {
		return llm.Response{}, err
	}
	return call("pay", "1"), nil
}

func TestCancel_DuringAModelCall(t *testing.T) {
	t.Parallel()
	model, db := slowModel{newBlocking()}, labDB(t)
	w := newWorld(t, model, lab{db: db}.agent())
	address := w.start("k")
	w.say(address, "pay")
	model.awaitBegun(t)
	began := time.Now()
	w.cancel(address, "")
	run := w.finished(address, agent.RunCancelled)
	require.Less(t, time.Since(began), 30*time.Second, "nobody waits for the model")
	require.Equal(t, "the run was cancelled", run.Turns[0].Cut)
	require.ErrorIs(t, await(t, model.ended, "the call is cut"), context.Canceled)
	require.Zero(t, payments(t, db))
}

func TestCancel_AtAGate(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]func(w *world, address string){
		"by an update":     func(w *world, address string) { w.cancel(address, "enough") },
		"through Temporal": func(w *world, address string) { require.NoError(w.t, w.cancelThroughTemporal(address)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := labDB(t)
			w := newWorld(t, turns(), lab{db: db, opening: []string{"1", "2"}, gate: &tool.Gate[labState, text]{Roles: []string{"refunds"}, Expires: time.Hour}}.agent())
			address := w.start("k")
			run := w.until(address, "gates", func(r *agent.Run) bool { return len(r.Gates) == 2 })
			require.Equal(t, agent.Accepted, w.decide(address, run.Gates[1], agent.Reject, "no").Status)
			cancel(w, address)
			run = w.finished(address, agent.RunCancelled)
			require.Equal(t, []agent.StepStatus{agent.StepCancelled, agent.StepRejected}, []agent.StepStatus{run.Steps[0].Status, run.Steps[1].Status})
			require.Equal(t, agent.GateVoid, run.Gates[0].Status)
			_, err := w.starter.Decide(w.ctx, address, w.verdict(run.Gates[0], agent.Approve, ""))
			require.Equal(t, agent.CodeEnded, agent.ErrorCode(err))
			require.Zero(t, payments(t, db))
			timers := 0
			for _, e := range w.history(address, "") {
				switch e.GetEventType() {
				case enums.EVENT_TYPE_TIMER_STARTED:
					timers++
				case enums.EVENT_TYPE_TIMER_CANCELED:
					timers--
				}
			}
			require.Zero(t, timers, "no timer is left")
		})
	}
}

// A tool that fails does not take its siblings with it, nor does one that panics.
func TestTools_SiblingsOfAFailure(t *testing.T) {
	t.Parallel()
	db := labDB(t)
	model := watch(turns(scripted.Then(call("look", "bad"), call("look", "panic"), call("look", "good"), call("send", "no"), call("glance", "quick")), scripted.Say("Well.")))
	w := newWorld(t, model, lab{db: db,
		look: func(_ context.Context, a text) (text, error) {
			switch a.Text {
			case "bad":
				return a, tool.Refused(context.DeadlineExceeded)
			case "panic":
				panic("no such page")
			}
			return a, nil
		},
		send: func(context.Context, tool.Key, text) (text, error) {
			return text{}, tool.Refused(context.DeadlineExceeded)
		}}.agent())
	address := w.start("k")
	run := w.chat(address, "go")
	var got []agent.StepStatus
	for _, s := range run.Steps {
		got = append(got, s.Status)
	}
	require.Equal(t, []agent.StepStatus{agent.StepRefused, agent.StepFailed, agent.StepDone, agent.StepRefused, agent.StepDone}, got)
	require.Contains(t, run.Steps[1].Reason, "tool look panicked")
	require.Len(t, model.seen(t), 2, "the model is called once after all of them")
	w.requireJournal(run)
	w.requireReplay(address)
}
