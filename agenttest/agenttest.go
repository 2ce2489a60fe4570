// Package agenttest runs an agent in a test: no Temporal, no network, no disk,
// milliseconds a test.
//
//	func TestRefund(t *testing.T) {
//		run := agenttest.Start(t, refund.Agent(&shop.Shop{}, mail.Client{}), refund.Start{CustomerID: "c-017"})
//		agenttest.Fake(run, "find_order", func(a shop.FindArgs) (shop.Order, error) { return shop.Order{ID: a.OrderID, Total: total}, nil })
//
//		run.Says("refund 1042, it broke")
//		run.Propose(scripted.SetFields("1042", scripted.Args{"order_id": "1042"}), scripted.Call("find_order", shop.FindArgs{OrderID: "1042"}))
//		run.Propose(scripted.Ask("Refund this?", "order_id", "amount"))
//		run.Says("yes, that one")
//		run.Propose(scripted.Confirm("order_id", "amount"), scripted.MoveTo("pay"))
//		run.Approve("3.1", "ann", "refunds")
//		run.Done("3.1", shop.Refund{ID: "r-1"})
//
//		require.Equal(t, "done", run.Phase())
//	}
//
// A test reads in the order in which things happen. Each call is one input to
// the run; it returns when nothing more happens by itself: the run waits for a
// person, a model call waits for [Run.Propose], or a step waits for [Run.Done].
// [Options].Model answers model calls by itself, and [Fake] and [Run.Real] run
// steps by themselves.
//
// It is the same machine that a worker runs, and its commands are carried out as
// a worker does it: a step's attempt goes through the protocol of its effect
// with a ledger in memory; a result is encoded and measured; the context of
// every model call is rendered and checked. The clock stands still unless
// [Run.Advance] moves it.
//
// After every input the test fails where
//   - the same input to other machines of the same definition gives other events:
//     Init, Commit, a guard, a gate's When or Title, Enter or Say read a clock, a
//     random number, a map's order or something that they had changed themselves.
//     The message names which;
//   - one of them changed its arguments, or panicked;
//   - the events do not make the run ([agent.Reduce]);
//   - a call of the model has no answer in the next context.
//
// When the test has failed, its log holds the run as a script (see [Script]).
package agenttest

import (
	"testing"
	"time"

	"interlock/agent"
	"interlock/llm"
	"interlock/tool"
)

// Options change what is not said otherwise. Zero fields take the defaults.
type Options struct {
	// Model answers every model call at once. nil: each waits for [Run.Propose].
	Model llm.Model
	Now   time.Time // when the run starts. 2026-03-01 09:00 UTC
	// Tenant and Key make the run's address, User is whom it serves.
	// "test", "run-1" and "user".
	Tenant, Key, User string
	// Ledger holds the effects of other runs too. A run with the same address
	// as an earlier one is that run after a reset: what stands is not done again.
	Ledger *Ledger
}

// Run is one run of an agent under test. It is not safe for concurrent use.
type Run struct {
	t       testing.TB
	def     *agent.Definition
	model   llm.Model
	ledger  *Ledger
	runners map[string]tool.Runner // by tool

	machine *agent.Machine
	twins   []*agent.Machine // get the same inputs and must do the same
	now     time.Time
	queue   []*entry
	driving bool
	inputs  int
	events  []agent.Event

	open    *modelCall            // waits for an answer
	asked   *llm.Request          // what the model was shown last
	held    []*stepRun            // wait for Done or Fail, in order
	timers  map[string]time.Time  // of open gates: their expiry, and their escalation
	lookups []agent.Task          // to be carried by the next activity
	blobs   map[string]agent.JSON // whole results, by ref
}

// Start starts a run with the agent's start input and no first message.
func Start(t testing.TB, def *agent.Definition, body any) *Run {
	t.Helper()
	return Options{}.Start(t, def, body)
}

// Start starts a run with these options.
func (o Options) Start(t testing.TB, def *agent.Definition, body any) *Run {
	t.Helper()
	r := o.newRun(t, def)
	text, err := agent.Encode(body)
	if err != nil {
		t.Fatalf("agenttest: the start input is no JSON that is accepted: %v", err)
	}
	in := r.started()
	in.Tenant, in.Key, in.User, in.Body = or(o.Tenant, "test"), or(o.Key, "run-1"), or(o.User, "user"), text
	in.FirstRunID = "first-" + in.Key
	r.Input(in)
	return r
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// twins is how many machines get each input beside the first. A map of two keys
// is read in the same order most of the time, so one would not do.
const twins = 15

// newRun is a run without its first input.
func (o Options) newRun(t testing.TB, def *agent.Definition) *Run {
	t.Helper()
	if err := def.Err(); err != nil {
		t.Fatal(err)
	}
	r := &Run{t: t, def: def, model: o.Model, ledger: o.Ledger, runners: map[string]tool.Runner{}, machine: agent.NewMachine(def), now: o.Now,
		timers: map[string]time.Time{}, blobs: map[string]agent.JSON{}}
	if r.now.IsZero() {
		r.now = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	}
	if r.ledger == nil {
		r.ledger = &Ledger{}
	}
	for range twins {
		r.twins = append(r.twins, agent.NewMachine(def))
	}
	t.Cleanup(func() {
		if !t.Failed() || len(r.events) == 0 {
			return
		}
		if script, err := Export(r.events); err == nil {
			t.Logf("the run, as a script:\n%s", script)
		}
	})
	return r
}

// started is the first input with what the definition says.
func (r *Run) started() agent.Started {
	return agent.Started{Version: r.def.Version, Rules: agent.Rules, Limits: r.def.Limits(), Fingerprint: r.def.Fingerprint(),
		Principal: agent.Principal{Subject: "backend"}}
}
