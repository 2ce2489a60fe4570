package workflows_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	sdk "go.temporal.io/sdk/worker"

	"interlock/activities"
	"interlock/agent"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/store"
	"interlock/tool"
	"interlock/worker"
)

// childConfig is what a worker in a process of its own is told. It serves the
// files of a world until it is killed.
type childConfig struct {
	Temporal, Queue, Dir, Mail string
	Store                      string
	Lab                        bool // the lab agent instead of the sample
	Uncached                   bool
	At                         string // where it stops for ever, "" nowhere
}

// barrier is the file that says that a child has come to where it stops.
func barrier(dir string) string { return filepath.Join(dir, "barrier") }

func (c childConfig) reached(point string) {
	if point == c.At {
		_ = os.WriteFile(barrier(c.Dir), nil, 0o600)
		select {}
	}
}

// childWorker is the main function of that process.
func childWorker(text string) int {
	var c childConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	this.Address = c.Temporal
	return withClient(func() int {
		if err := c.serve(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return 1
	})
}

func (c childConfig) serve() error {
	ctx := context.Background()
	st, err := openStore(ctx, c.Store)
	if err != nil {
		return err
	}
	def, model, err := c.agent(ctx)
	if err != nil {
		return err
	}
	registry, err := agent.NewRegistry(def)
	if err != nil {
		return err
	}
	if c.Uncached {
		sdk.SetStickyWorkflowCacheSize(0)
	}
	w := sdk.New(temporalClient, c.Queue, sdk.Options{DisableRegistrationAliasing: true, Interceptors: []interceptor.WorkerInterceptor{&stopper{c: c}}})
	worker.Register(w, registry, &activities.Activities{Agents: registry, Store: marking{st, c}, Log: slog.New(slog.DiscardHandler),
		Model: func(*agent.Definition) (llm.Model, error) { return counted{c.Dir, c, model}, nil }})
	return w.Run(nil)
}

func (c childConfig) agent(ctx context.Context) (*agent.Definition, llm.Model, error) {
	if c.Lab {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(c.Dir, "product.db")+labPragmas)
		return lab{db: db, pay: func(ctx context.Context, tx *sql.Tx, a text) (text, error) {
				r, err := payment(ctx, tx, a)
				c.reached("in the transaction")
				return r, err
			}, fire: func(_ context.Context, a text) (text, error) {
				err := shoot(c.Dir)
				c.reached("after the shot")
				return a, err
			}, send: c.sendOfABatch, undo: &labUndo{unsend: func(context.Context, tool.Key, doneText) (text, error) { return text{"gone"}, shoot(c.Dir) }}}.agent(),
			obeying(firing(batching(crashModel))), err
	}
	s, err := shop.Open(ctx, filepath.Join(c.Dir, "shop.db"))
	if err != nil {
		return nil, nil, err
	}
	return refund.Agent(s, mail.Client{BaseURL: c.Mail}), refund.Model(), nil
}

// marking stops before it marks an effect as undone.
type marking struct {
	store.Store
	c childConfig
}

func (m marking) MarkUndone(ctx context.Context, tenant, key, by string) error {
	m.c.reached("before the mark")
	return m.Store.MarkUndone(ctx, tenant, key, by)
}

// shoot leaves a mark that outlives a process.
func shoot(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "shots"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("x")
	return errors.Join(err, f.Close())
}

// firing has a run fire that was told so, and answer to what came of it.
func firing(otherwise llm.Model) llm.Model {
	return asked(func(req llm.Request) llm.Model {
		v := req.View
		if len(v.Turns) == 0 || len(v.Turns[0].Opening) == 0 || v.Turns[0].Opening[0].Text != "fire" {
			return otherwise
		}
		if v.Turn == 1 {
			return says(call("fire", "1"))
		}
		return says(scripted.Say("I do not know whether it happened."))
	})
}

var crashModel = turns(call("pay", "10"), toEnd)

// stopper stops before and after activities.
type stopper struct {
	interceptor.WorkerInterceptorBase
	interceptor.ActivityInboundInterceptorBase
	c childConfig
}

func (s *stopper) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	out := &stopper{c: s.c}
	out.ActivityInboundInterceptorBase.Next = next
	return out
}

func (s *stopper) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	name := activity.GetInfo(ctx).ActivityType.Name
	if call, ok := in.Args[0].(signals.CallModelInput); ok {
		name = fmt.Sprintf("model call %d", call.View.Turn)
	}
	s.c.reached("before " + name)
	out, err := s.ActivityInboundInterceptorBase.ExecuteActivity(ctx, in)
	s.c.reached("after " + name)
	return out, err
}

// counted notes each call in a file, over processes.
type counted struct {
	dir   string
	child childConfig
	llm.Model
}

func (m counted) Generate(ctx context.Context, req llm.Request) (llm.Response, error) {
	f, err := os.OpenFile(filepath.Join(m.dir, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return llm.Response{}, err
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%d ", req.View.Turn); err != nil {
		return llm.Response{}, err
	}
	m.child.reached(fmt.Sprintf("in model call %d", req.View.Turn))
	return m.Model.Generate(ctx, req)
}

// billed are the turns of all model calls, in order.
func (w *world) billed() string {
	w.t.Helper()
	b, err := os.ReadFile(w.file("calls"))
	require.NoError(w.t, err)
	return strings.TrimSpace(string(b))
}

// child starts a worker process; kill ends it as kill -9 does.
func (w *world) child(at string, ofLab bool) (kill func()) {
	w.t.Helper()
	c := childConfig{Temporal: this.Address, Store: w.dsn, Queue: w.config.Settings.TaskQueue, Dir: w.dir, Lab: ofLab, Uncached: this.Uncached, At: at}
	if w.mail != nil {
		c.Mail = w.mail.URL()
	}
	j, err := json.Marshal(c)
	require.NoError(w.t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerVariable+"="+string(j))
	cmd.Stderr = os.Stderr
	require.NoError(w.t, cmd.Start())
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	w.t.Cleanup(kill)
	return kill
}

func (w *world) awaitBarrier() {
	w.t.Helper()
	eventually(w.t, "the worker comes to where it is to be killed", func() bool {
		_, err := os.Stat(barrier(w.dir))
		return err == nil
	})
}

// A worker is killed at the worst points of a refund. The next one ends the
// run: one refund, one receipt, and no model call that was recorded is made again.
func TestCrash_Refund(t *testing.T) {
	t.Parallel()
	for at, billed := range map[string]string{
		"before refund.issue_refund": "1 2 3 4",
		"after refund.issue_refund":  "1 2 3 4",
		"after refund.send_receipt":  "1 2 3 4",
		"in model call 3":            "1 2 3 3 4", // no answer was recorded
		"after model call 3":         "1 2 3 4",
		"after model call 4":         "1 2 3 4",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := idleWorld(t, true)
			kill := w.child(at, false)
			address := w.start("k")
			w.say(address, "Please refund order 1042, it broke")
			w.until(address, "asked", func(r *agent.Run) bool { return waiting("user")(r) && len(r.Shown) == 2 })
			w.say(address, "yes, that one")
			decided := !strings.Contains(at, "model call 3")
			if decided {
				w.decide(address, lastGate(w.until(address, "gate", waiting("gate"))), agent.Approve, "")
			}
			w.awaitBarrier()
			kill()
			w.serve(counted{dir: w.dir, Model: refund.Model()}, w.refundAgent())
			if !decided {
				w.decide(address, lastGate(w.until(address, "gate", waiting("gate"))), agent.Approve, "")
			}
			run := w.finished(address, agent.RunCompleted)
			require.Equal(t, "done", run.Phase)
			require.Len(t, w.refunds(), 1)
			require.Len(t, w.receipts(), 1)
			require.Equal(t, billed, w.billed())
			effects, err := w.effects(address)
			require.NoError(t, err)
			require.Len(t, effects, 1)
			require.Len(t, recorded[agent.VerdictData](w, address, agent.EventVerdict), 1)
		})
	}
}

// The mail service has stored the receipt, and its answer reaches nobody.
func TestCrash_ReceiptSentButNotAnswered(t *testing.T) {
	t.Parallel()
	t.Run("the answer is lost", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, refund.Model())
		address := w.start("k")
		gate := w.toGate(address)
		w.mail.DropNext(2)
		w.decide(address, gate, agent.Approve, "")
		run := w.finished(address, agent.RunCompleted)
		require.Len(t, w.receipts(), 1)
		require.Contains(t, run.State.String(), `"receipt_id":"`+w.receipts()[0].ID)
		effects, err := w.effects(address)
		require.NoError(t, err)
		require.Equal(t, 3, effects[0].Attempts)
		require.True(t, effects[0].Unknown)
	})
	t.Run("the worker is killed", func(t *testing.T) {
		t.Parallel()
		w := idleWorld(t, true)
		kill := w.child("", false)
		address := w.start("k")
		gate := w.toGate(address)
		w.mail.Delay(patience)
		w.decide(address, gate, agent.Approve, "")
		eventually(t, "the receipt is stored", func() bool { return len(w.receipts()) == 1 })
		kill()
		w.mail.Delay(0)
		w.serve(refund.Model(), w.refundAgent())
		run := w.finished(address, agent.RunCompleted)
		require.Len(t, w.refunds(), 1)
		require.Len(t, w.receipts(), 1)
		require.Contains(t, run.State.String(), `"receipt_id":"`+w.receipts()[0].ID)
	})
}

// A kill after the effect of a tool that nobody can be asked about: it is in
// doubt, and never run again.
func TestCrash_OnceIsInDoubt(t *testing.T) {
	t.Parallel()
	w := idleWorld(t, false)
	db := openLabDB(t, w.file("product.db"))
	t.Cleanup(func() { _ = db.Close() })
	kill := w.child("after the shot", true)
	address := w.start("k")
	w.say(address, "fire")
	w.awaitBarrier()
	kill()
	fire := func(_ context.Context, a text) (text, error) { return a, shoot(w.dir) }
	w.serve(firing(crashModel), lab{db: db, fire: fire, undo: &labUndo{}}.agent())
	run := w.until(address, "in doubt", waiting("operator"))
	require.Equal(t, map[string]agent.StepStatus{"fire": agent.StepInDoubt}, statuses(run))
	shots, err := os.ReadFile(w.file("shots"))
	require.NoError(t, err)
	require.Equal(t, "x", string(shots))
	effects, err := w.effects(address)
	require.NoError(t, err)
	require.Len(t, effects, 1)
	require.True(t, effects[0].Open())
	w.requireJournal(run)
	w.requireReplay(address)
}

// A kill in the middle of the tool's own transaction leaves nothing of it.
func TestCrash_InTheTransaction(t *testing.T) {
	t.Parallel()
	w := idleWorld(t, false)
	db := openLabDB(t, w.file("product.db"))
	t.Cleanup(func() { _ = db.Close() })
	kill := w.child("in the transaction", true)
	address := w.start("k")
	w.say(address, "pay")
	w.awaitBarrier()
	kill()
	require.Zero(t, payments(t, db))
	w.serve(crashModel, lab{db: db, undo: &labUndo{}}.agent())
	run := w.finished(address, agent.RunCompleted)
	require.Equal(t, 1, payments(t, db))
	require.Contains(t, run.State.String(), `"paid":"10"`)
}
