// Package effecttest runs a tool through crashes, overlapping attempts, lost and
// late requests and a ledger that fails, and says whether its effect's promise
// held: in `go test`, with your tool and your fake of the other side.
//
//	func TestCharge(t *testing.T) {
//		var net effecttest.Network
//		bank := newBank()
//		server := httptest.NewServer(net.Handler(bank))
//		effecttest.Run(t, effecttest.Target{
//			Tool:     effecttest.Tool(chargeTool(server.URL)),
//			Args:     func(n int) any { return Charge{OrderID: strconv.Itoa(n)} },
//			Happened: func(_ context.Context, c effecttest.Call) (int, error) { return bank.Charges(c.Key), nil },
//			Network:  &net,
//		}, effecttest.Options{})
//	}
//
// A round is one call with arguments of its own. Its attempts run the protocol of
// package tool. They crash before and after the claim, before and after the
// settlement, and before their answer is received; another attempt runs while one
// is under way, as when a worker is taken for dead that is not; each call of the
// ledger may be slow, fail before it is done, or be done and fail. On a [Network]
// and a database of [Network.Connector], requests are lost, answers are lost, and
// requests reach the other side long after the attempt that sent them. Then
// nothing goes wrong any more, the round comes to its end, and what the run was
// told is compared with what has happened.
//
// The clock is virtual: what waits for minutes takes none. Attempts that overlap
// are nested in one another and never run in parallel, so that a seed gives the
// same round again: races within a function are for the race detector.
package effecttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"interlock/agent"
	"interlock/tool"
)

// Subject is a tool under test. [Tool] and [ToolOf] make it.
type Subject struct {
	Name       string
	Effect     agent.Effect
	Timeout    time.Duration // of one attempt. 0: [tool.DefaultTimeout]
	Repeatable bool          // equal arguments again are another effect
	Runner     tool.Runner
}

// Tool is a tool by itself.
func Tool[S any](t agent.Tool[S]) Subject {
	spec := t.Spec()
	runner, _ := spec.Source.(tool.Runner)
	return Subject{Name: spec.Name, Effect: spec.Effect, Timeout: spec.Timeout, Repeatable: spec.Repeatable, Runner: runner}
}

// ToolOf is a tool as an agent has it. Of a tool that is Repeatable take [Tool]:
// a definition does not tell.
func ToolOf(def *agent.Definition, name string) Subject {
	info, _ := def.Tool(name)
	runner, _ := tool.RunnerOf(def, name)
	return Subject{Name: name, Effect: info.Effect, Timeout: info.Timeout, Runner: runner}
}

// Call is one effect that was asked for.
type Call struct {
	N    int // the number that its arguments were made of
	Key  tool.Key
	Args agent.JSON
}

// Target is a tool and the other side that it acts on.
type Target struct {
	Tool Subject
	// Args makes the arguments of the nth call, n > 0. They must differ from those
	// of every other n.
	Args func(n int) any
	// Happened counts on the other side how often the effect of a call is in place.
	// Counting by Args also finds effects under a wrong key; a Repeatable tool, or
	// one that is called again after a refusal, must be counted by Key.
	Happened func(ctx context.Context, c Call) (int, error)
	// Network is what the tool reaches the other side by. nil: the tool and its
	// other side are never disturbed, only what is around them.
	Network *Network
}

// Options change what is not said otherwise. Zero fields take the defaults.
type Options struct {
	Rounds int // 200
	// Seed is that of the first round. 0: one that differs each time. A failure
	// names its own.
	Seed uint64
	// Ledger makes the ledger that effects are recorded in; it must go by now. nil:
	// [NewLedger]. [StoreLedger] makes one of a store.
	Ledger func(now func() time.Time) tool.Ledger
}

// Run fails the test with a [Violation] where a round breaks the promise of the
// tool's effect, or with the reason why nothing could be tried.
func Run(t testing.TB, target Target, o Options) {
	t.Helper()
	if err := Check(t.Context(), target, o); err != nil {
		t.Fatal(err)
	}
}

// Check is Run without a test. A broken promise is a [*Violation]; any other error
// says why nothing could be tried.
func Check(ctx context.Context, target Target, o Options) error {
	if err := target.check(); err != nil {
		return fmt.Errorf("effecttest: %w", err)
	}
	h := newHarness(ctx, target, o)
	if err := target.Network.enter(h); err != nil {
		return fmt.Errorf("effecttest: %w", err)
	}
	defer target.Network.leave()
	seed := o.Seed
	if seed == 0 {
		seed = rand.Uint64()>>1 + 1
	}
	rounds := o.Rounds
	if rounds <= 0 {
		rounds = 200
	}
	// A first round is undisturbed: what a tool or its other side makes at first use
	// is there in all others, so that a seed repeats any of them.
	h.steady = true
	if err := h.play(seed, nil); err != nil {
		return err
	}
	h.steady = false
	for i := range rounds {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("effecttest: after %d rounds: %w", i, err)
		}
		err := h.play(seed+uint64(i), nil)
		if v := (*Violation)(nil); errors.As(err, &v) {
			return h.simplest(h.shrink(v), rounds-i-1)
		}
		if err != nil {
			return err
		}
	}
	// Where nothing ever happens no promise can break.
	if h.happened == 0 {
		return fmt.Errorf("effecttest: in %d rounds the effect of %s never happened: %w", rounds, target.Tool.Name, h.why)
	}
	return nil
}

func (t *Target) check() error {
	name := t.Tool.Name
	switch {
	case t.Tool.Runner == nil:
		return fmt.Errorf("there is no tool %q with a function that can be run", name)
	case t.Tool.Effect == agent.ReadOnly:
		return fmt.Errorf("tool %s is ReadOnly: it has no side effect, so there is nothing to prove", name)
	case t.Args == nil || t.Happened == nil:
		return fmt.Errorf("tool %s: Args and Happened are needed", name)
	}
	if t.Tool.Timeout <= 0 {
		t.Tool.Timeout = tool.DefaultTimeout
	}
	return nil
}
