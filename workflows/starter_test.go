package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/tool"
)

func (w *world) talk(key, id, text string) starter.Converse {
	in := w.startInput(key)
	return starter.Converse{Agent: in.Agent, Tenant: in.Tenant, Key: in.Key, Principal: in.Principal, Body: in.Body,
		Message: signals.Message{ID: id, Principal: customer, Text: text}}
}

// blind is a starter without a store.
func (w *world) blind() *starter.Starter {
	return starter.New(temporalClient, starter.WithTaskQueue(w.config.Settings.TaskQueue))
}

// Messages at once for a new session land in one run, each once, whichever
// starter brings them.
func TestConverse_AtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(scripted.Say("Hello.")), lab{db: labDB(t)}.agent())
	results, errs := make([]starter.Conversed, 8), make([]error, 8)
	var wg sync.WaitGroup
	for i := range results {
		s := w.starter
		if i%2 == 1 {
			s = w.blind()
		}
		wg.Go(func() {
			results[i], errs[i] = s.Converse(w.ctx, w.talk("k", fmt.Sprint("m", i/2), fmt.Sprint("hello ", i/2)))
		})
	}
	wg.Wait()
	made := 0
	for i, r := range results {
		require.NoError(t, errs[i])
		require.Equal(t, results[0].FirstRunID, r.FirstRunID)
		if r.New {
			made++
		}
	}
	require.Equal(t, 1, made)
	address := results[0].Address
	run := w.until(address, "answers", func(r *agent.Run) bool { return waiting("user")(r) && r.Owed == 0 && r.Turn > 0 })
	require.Equal(t, results[0].FirstRunID, run.FirstRunID)
	require.Len(t, recorded[agent.MessageData](w, address, agent.EventMessage), 4)
	w.requireJournal(run)
	w.requireReplay(address)
}

// starters are one with a store and one without.
var starters = map[string]func(*world) *starter.Starter{
	"with a reader":    func(w *world) *starter.Starter { return w.starter },
	"without a reader": (*world).blind,
}

// talked is a session whose run has ended, after the messages m1 and m2.
func talked(t *testing.T, choose func(*world) *starter.Starter) (w *world, s *starter.Starter, first starter.Conversed) {
	t.Helper()
	w = newWorld(t, asked(func(r llm.Request) llm.Model {
		if r.View.Turn == 1 {
			return says(scripted.Say("Hello."))
		}
		return says(toEnd)
	}), lab{db: labDB(t)}.agent())
	s = choose(w)
	first, err := s.Converse(w.ctx, w.talk("k", "m1", "hi"))
	require.NoError(t, err)
	require.True(t, first.New)
	w.until(first.Address, "an answer", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 1 })
	_, err = s.Converse(w.ctx, w.talk("k", "m2", "that is all"))
	require.NoError(t, err)
	w.finished(first.Address, agent.RunCompleted)
	return w, s, first
}

// A repeat of what an ended run had handled starts nothing.
func TestConverse_Repeated(t *testing.T) {
	t.Parallel()
	for name, choose := range starters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s, first := talked(t, choose)
			for _, m := range []starter.Converse{w.talk("k", "m1", "hi"), w.talk("k", "m2", "that is all")} {
				got, err := s.Converse(w.ctx, m)
				require.NoError(t, err)
				require.Equal(t, first.FirstRunID, got.FirstRunID)
				require.False(t, got.New)
				require.Contains(t, []agent.ReceiptStatus{agent.Accepted, agent.Repeated}, got.Receipt.Status)
			}
			_, err := s.Converse(w.ctx, w.talk("k", "m1", "something else"))
			require.Equal(t, agent.CodeConflict, agent.ErrorCode(err), "%v", err)
			require.Equal(t, first.FirstRunID, w.runID(first.Address), "none of them started a run")
		})
	}
}

// A session goes on after its run has ended, in one run that follows it.
func TestConverse_GoesOn(t *testing.T) {
	t.Parallel()
	for name, choose := range starters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s, first := talked(t, choose)
			results, errs := make([]starter.Conversed, 2), make([]error, 2)
			var wg sync.WaitGroup
			for i := range results {
				wg.Go(func() { results[i], errs[i] = s.Converse(w.ctx, w.talk("k", fmt.Sprint("n", i), "hello again")) })
			}
			wg.Wait()
			require.NoError(t, errors.Join(errs...))
			require.NotEqual(t, first.FirstRunID, results[0].FirstRunID)
			require.Equal(t, results[0].FirstRunID, results[1].FirstRunID)
			require.NotEqual(t, results[0].New, results[1].New)
			run := w.until(first.Address, "the next run", func(r *agent.Run) bool {
				return r.FirstRunID == results[0].FirstRunID && len(r.Handled) == 2 && (r.Owed == 0 || r.Status.Ended())
			})
			require.Equal(t, first.FirstRunID, recorded[agent.StartedData](w, first.Address, agent.EventStarted)[0].After)
			w.requireJournal(run)
		})
	}
}

// A run that was terminated has no end in its journal. Its session goes on all
// the same, and its gate asks nobody any more.
func TestConverse_AfterATermination(t *testing.T) {
	t.Parallel()
	gate := tool.Gate[labState, text]{Roles: []string{"refunds"}}
	w := newWorld(t, everyFourth("send"), lab{db: labDB(t), sendGate: &gate}.agent())
	first, err := w.starter.Converse(w.ctx, w.talk("k", "m1", "hello"))
	require.NoError(t, err)
	w.until(first.Address, "gate", waiting("gate"))
	eventually(t, "the gate is recorded", func() bool {
		open, err := w.starter.Gates(w.ctx, "acme", store.GateFilter{Status: agent.GateOpen})
		return err == nil && len(open) == 1
	})
	require.NoError(t, temporalClient.TerminateWorkflow(w.ctx, first.Address, "", "by hand"))
	next, err := w.starter.Converse(w.ctx, w.talk("k", "m2", "hello again"))
	require.NoError(t, err)
	require.True(t, next.New)
	run := w.until(first.Address, "the next run", func(r *agent.Run) bool { return r.FirstRunID == next.FirstRunID && waiting("gate")(r) })
	w.requireJournal(run)
	row, err := w.store.RunRow(w.ctx, store.Chain{Tenant: "acme", Address: first.Address, FirstRunID: first.FirstRunID})
	require.NoError(t, err)
	require.Equal(t, agent.RunCancelled, row.Head.Status)
	open, err := w.starter.Gates(w.ctx, "acme", store.GateFilter{Status: agent.GateOpen})
	require.NoError(t, err)
	require.Len(t, open, 1)
	require.Equal(t, next.FirstRunID, open[0].FirstRunID)
}

// A reply, a gate and the end are waited for; a run that cannot answer is looked
// at in the store.
func TestSayAndWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, refund.Model())
	address := w.start("k")
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	var seen []agent.Event
	watched := make(chan error, 1)
	go func() {
		for e, err := range w.starter.Watch(ctx, address, 0) {
			if err != nil {
				watched <- err
				return
			}
			seen = append(seen, e)
		}
		watched <- nil
	}()
	say := func(text string) starter.Said {
		t.Helper()
		said, err := w.starter.Say(ctx, address, signals.Message{ID: w.id("m"), Principal: customer, Text: text})
		require.NoError(t, err)
		return said
	}
	require.NotEmpty(t, say("Please refund order 1042, it broke").News.Gates, "the question")
	said := say("yes, that one")
	for said.News.Reason != "gate" {
		var err error
		said.News, err = w.starter.Wait(ctx, address, said.News.Seq)
		require.NoError(t, err)
	}
	gate := said.News.Gates[0]
	row, err := w.starter.Gate(ctx, address, gate.ID)
	require.NoError(t, err)
	require.Equal(t, gate.Digest, row.Gate.Digest)
	w.quiet(address) // the store has it now
	why, err := w.starter.Why(ctx, address)
	require.NoError(t, err)
	require.Contains(t, why.Sentence, "waits for a person with role refunds at gate "+gate.ID)
	require.Equal(t, "interlock gate show "+address+" "+gate.ID, why.Next)

	short, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	news, err := w.starter.Wait(short, address, said.News.Seq)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
	require.True(t, news.Again)
	w.decide(address, gate, agent.Approve, "")
	for news.Again || !news.Status.Ended() {
		news, err = w.starter.Wait(ctx, address, max(news.Seq, said.News.Seq))
		require.NoError(t, err)
	}
	require.Equal(t, agent.RunCompleted, news.Status)
	w.finished(address, agent.RunCompleted)
	require.NoError(t, await(t, watched, "the watch ends with the run"))
	require.Equal(t, w.events(address), seen)
	news, err = w.starter.Wait(ctx, address, 0)
	require.NoError(t, err)
	require.True(t, news.Reply.Last)
	news, err = w.blind().Wait(ctx, address, 0)
	require.NoError(t, err)
	require.Equal(t, agent.RunCompleted, news.Status)
	why, err = w.starter.Why(ctx, address)
	require.NoError(t, err)
	require.Contains(t, why.Sentence, "has ended: completed")
}

// What keeps a run from going on is said, whatever it is.
func TestWhy_Blocked(t *testing.T) {
	t.Parallel()
	w := idleWorld(t, false)
	requireWhy := func(address, says string) {
		t.Helper()
		var why starter.Why
		var err error
		defer func() { t.Logf("%s; next: %s", why.Sentence, why.Next) }()
		require.Eventually(t, func() bool {
			why, err = w.starter.Why(w.ctx, address)
			return err == nil && len(why.Unseen) == 0 && strings.Contains(why.Sentence, says)
		}, patience, 50*time.Millisecond, says)
	}
	address := w.start("k")
	requireWhy(address, "no worker polls task queue "+w.name())
	_, err := w.starter.Why(w.ctx, address+"x")
	require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err), "%v", err)

	down := scripted.Func("scripted", func(llm.Request) llm.Response { return scripted.Say("Hello.") }).Failing(func(llm.Request) error {
		return &llm.Error{Kind: llm.KindRateLimited, Message: "come back later"}
	})
	block := newBlocking()
	defer close(block.free)
	l := lab{db: labDB(t), send: func(ctx context.Context, _ tool.Key, a text) (text, error) { return a, block.wait(ctx) }}
	w.serve(down, l.agent())
	requireWhy(address, "waits for the user")
	w.say(address, "hi")
	requireWhy(address, "the model cannot be reached since ")
	_, err = w.starter.Pause(w.ctx, address, signals.Pause{ID: "p", Principal: ops, Reason: "until it is up"})
	require.NoError(t, err)
	requireWhy(address, "paused (asked by ops: until it is up) since ")

	w.serve(turns(call("send", "1")), l.agent())
	second := w.start("k2")
	w.say(second, "send")
	block.awaitBegun(t)
	requireWhy(second, "is at work: lab.send (attempt 1 is under way)")
	require.NoError(t, temporalClient.TerminateWorkflow(w.ctx, second, "", "by mistake"))
	requireWhy(second, "nobody knows whether step 1.1 (send) happened")

	w.serve(turns(toEnd), lab{db: l.db, guard: func(agent.Situation[labState]) error { panic("nobody thought of this") }}.agent())
	third := w.start("k3")
	w.say(third, "end")
	requireWhy(third, "blocked: its workflow task has failed")
	requireWhy(third, "nobody thought of this") // the reason is in the history a moment after the failure is

	w.serve(turns(toEnd), l.agent())
	fourth := w.start("k4")
	w.until(fourth, "started", waiting("user"))
	w.serve(turns(toEnd), lab{db: l.db, version: 2}.agent())
	w.signal(fourth, signals.NameMessage, signals.Message{ID: "m", Principal: customer, Text: "hi"})
	requireWhy(fourth, "agent lab/v1 is not deployed on this worker; it serves lab/v2")
}

// All runs that a budget has paused go on, once each.
func TestResumeAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(scripted.Say("Hello.")), lab{db: labDB(t), budget: agent.Budget{Turns: 1}}.agent())
	var all []string
	for i := range 3 {
		address := w.start(fmt.Sprint("k", i))
		w.chat(address, "hi")
		w.say(address, "and again")
		w.until(address, "pause", func(r *agent.Run) bool { return paused(r) && r.Reason == "budget:turns" })
		w.quiet(address)
		all = append(all, address)
	}
	in := starter.ResumeAll{Agent: "lab", Reason: "model:", Principal: ops, ID: "r1"}
	got, err := w.starter.ResumeAll(w.ctx, "acme", in)
	require.NoError(t, err)
	require.Empty(t, got)
	in.Reason = "budget:"
	got, err = w.starter.ResumeAll(w.ctx, "acme", in)
	require.NoError(t, err)
	require.Len(t, got, len(all))
	for _, r := range got {
		require.NoError(t, r.Err)
		require.Equal(t, agent.Accepted, r.Receipt.Status)
		w.until(r.Address, "an answer", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 2 })
		w.say(r.Address, "and once more")
		w.until(r.Address, "pause", paused)
		w.quiet(r.Address)
	}
	got, err = w.starter.ResumeAll(w.ctx, "acme", in)
	require.NoError(t, err)
	for _, r := range got {
		require.NoError(t, r.Err)
		require.True(t, paused(w.until(r.Address, "still paused", paused)), "a repeat resumes nothing")
	}
	rows, err := w.starter.List(w.ctx, "acme", store.RunFilter{Status: agent.RunPaused})
	require.NoError(t, err)
	require.Len(t, rows, len(all))
}
