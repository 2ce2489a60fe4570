package agent_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"interlock/agent"
)

// watcher checks, after every step of a random run, what must hold for any
// inputs. Each check names a mutation of the machine that it catches.
type watcher struct {
	t       *rapid.T
	m       *agent.Machine
	now     time.Time
	n       int
	events  []agent.Event
	acked   int64
	calling bool
	running map[string]agent.Task
	done    map[string]bool // effect keys that happened
	held    bool            // a snapshot is about to be taken
	story
}

func (w *watcher) step(in agent.Input) agent.Receipt {
	had, status, owed := w.m.Run().Seq, w.m.Run().Status, w.m.Run().Owed
	ended := status.Ended()
	cmds, receipt := w.m.Step(w.now, "", in)
	batch := w.m.Batch()
	fresh := 0
	for _, e := range batch.Events {
		if e.Seq > had {
			w.events = append(w.events, e)
			w.event(e)
			fresh++
			// Until a message is answered the model can withdraw: no verdict
			// starts a step, but one of a run that is being cancelled. Mutation: judge at once in Machine.verdict.
			if _, verdict := in.(agent.VerdictGiven); verdict && owed > 0 && w.m.Run().Cancel == nil && e.Type == agent.EventStepResumed {
				w.t.Fatalf("a verdict starts step %s before message %d is answered", e.Step, owed)
			}
		}
	}
	// A repeat does nothing. Mutation: drop the look at Handled from sent.
	if m, ok := in.(agent.Message); ok {
		if w.ids[m.ID] && fresh > 0 {
			w.t.Fatalf("message %s came again and gave %d events", m.ID, fresh)
		}
		w.ids[m.ID] = w.ids[m.ID] || receipt.Status == agent.Accepted
	}
	// A paused run starts nothing. Mutation: drop RunPaused from once.
	for _, c := range cmds {
		_, runs := c.(agent.RunStep)
		call, calls := c.(agent.CallModel)
		if calls { // Mutation: leave the hidden fields out of ViewAt.
			shown, err := agent.ViewAt(w.events, call.View.Turn)
			require.NoError(w.t, err)
			require.Equal(w.t, call.View, shown, "the journal tells what the model is shown")
		}
		_, resumed := in.(agent.ResumeRun)
		cancel, _ := in.(agent.CancelRun) // which ends a pause: what it undoes is begun
		_, begun := in.(agent.StepBegun)
		if judged, ok := in.(agent.JudgeAgain); ok { // it had begun before the pause
			begun = slices.ContainsFunc(w.m.Run().Steps, func(s agent.Step) bool { return s.ID == judged.Step && s.Begun })
		}
		if status == agent.RunPaused && !begun && !resumed && cancel.ID == "" && (runs || calls) {
			w.t.Fatalf("a paused run gave %T for %T", c, in)
		}
	}
	// Reduce(events) equals the run. Mutation: any write to the run outside
	// apply, e.g. m.run.Due = false at the end of Machine.proposed.
	requireReduces(w.t, w.events, w.m.Run())
	// A terminal run emits no command and no event. Mutation: drop the check of
	// Ended in Machine.sent.
	if ended && (len(cmds) > 0 || fresh > 0) {
		w.t.Fatalf("an ended run gave %d commands and %d events for %T", len(cmds), fresh, in)
	}
	w.batch(batch)
	for _, c := range cmds {
		w.command(c)
	}
	w.takes(in, had, receipt)
	w.rest()
	return receipt
}

// batch: the hash before the first event and the events' own hashes make one
// chain, whatever was acknowledged in between. Mutation: set Machine.before to
// the hash of the last event in Ack.
func (w *watcher) batch(b agent.Batch) {
	before := ""
	for _, e := range w.events {
		if e.Seq == b.First {
			require.Equal(w.t, before, b.Before, "hash before event %d", e.Seq)
		}
		before = e.Chain(b.Salt, before)
	}
	if len(b.Events) > 0 {
		require.Equal(w.t, w.acked+1, b.First)
	}
}

func (w *watcher) command(c agent.Command) {
	switch c := c.(type) {
	case agent.CallModel:
		// One turn at a time. Mutation: drop busy() from Machine.once.
		if w.calling || len(w.running) > 0 {
			w.t.Fatalf("turn %d starts while calling=%v running=%v", c.View.Turn, w.calling, w.running)
		}
		w.calling = true
		w.view(c.View)
		w.opens(c.View)
	case agent.CancelModel:
		w.calling = false
	case agent.RunStep:
		w.run(c.Task)
	case agent.CancelStep:
		delete(w.running, c.Step)
	case agent.StopStep: // until its fence answers
		w.running[c.Task.Step] = c.Task
	}
}

// run: no effect that the run knows to have happened runs again by a call of the
// model (of older ones, and of calls by Enter, the ledger knows): let stands
// return nil.
func (w *watcher) run(t agent.Task) {
	steps := w.m.Run().Steps
	model := slices.ContainsFunc(steps, func(s agent.Step) bool { return s.ID == t.Step && s.By == agent.ByModel })
	for _, s := range steps {
		if model && t.Key != "" && s.Key == t.Key && s.Status == agent.StepDone && w.done[t.Key] {
			w.t.Fatalf("step %s runs effect %s again, which happened as step %s", t.Step, t.Key, s.ID)
		}
	}
	w.effect(t)
	w.running[t.Step] = t
	if !slices.ContainsFunc(steps, func(s agent.Step) bool { return s.ID == t.Step && s.Begun }) { // else it was when it began
		w.approved(t)
	}
}

// view: every call of every shown proposal has exactly one answer, ids are
// unique in the run, and the size is bounded. Mutations: return from
// Machine.call without answering; drop freezeAnswers; drop trim.
func (w *watcher) view(v agent.View) {
	seen := map[string]bool{}
	for _, t := range v.Turns {
		for _, c := range t.Calls {
			if seen[c.ID] {
				w.t.Fatalf("call id %s twice", c.ID)
			}
			seen[c.ID] = true
			w.said(c)
			if c.Answer.Status == "" || c.Answer.Status == string(agent.StepRunning) {
				w.t.Fatalf("turn %d: call %s %s has no answer: %+v", v.Turn, c.ID, c.Tool, c.Answer)
			}
		}
	}
	data, err := json.Marshal(v)
	require.NoError(w.t, err)
	if len(data) > w.m.Run().Limits.View+2048 {
		w.t.Fatalf("the view has %d bytes", len(data))
	}
	require.Equal(w.t, v.Turn, v.Turns[len(v.Turns)-1].N)
}

// rest: at the end every step is definite; a run that is idle says what it
// waits for; nothing that runs is forgotten. Mutation: end a cancel at once.
func (w *watcher) rest() {
	w.standing()
	w.goesOn()
	r := w.m.Run()
	for _, s := range r.Steps {
		if r.Status.Ended() && (s.Status == agent.StepRunning || s.Status == agent.StepWaiting) {
			w.t.Fatalf("the run ended and step %s is %s", s.ID, s.Status)
		}
		if _, runs := w.running[s.ID]; (s.Status == agent.StepRunning) != runs {
			w.t.Fatalf("step %s is %s, its activity runs: %v", s.ID, s.Status, runs)
		}
	}
	if r.Status == agent.RunWaiting && (w.calling || len(w.running) > 0 || r.Reason == "") {
		w.t.Fatalf("waiting for %q while calling=%v running=%v", r.Reason, w.calling, w.running)
	}
	if len(r.Turns) > r.Limits.Window {
		w.t.Fatalf("%d turns are held, the window is %d", len(r.Turns), r.Limits.Window)
	}
}

var someArgs = map[string][]string{
	agent.CallSetFields: {`{"fields":{"order_id":"77"},"quote":"77"}`, `{"fields":{"order_id":"78"},"quote":"or 78"}`, `{"fields":{"note":"x"}}`,
		`{"fields":{"note":"` + strings.Repeat("long ", 200) + `"}}`, `{"fields":{"order_id":"79"},"quote":"77"}`, `{}`},
	agent.CallMove:       {`{"to":"pay"}`, `{"to":"collect"}`, `{"to":"declined"}`, `{"to":"close"}`, `{"to":"end"}`, `{"to":"work"}`, `{"to":"spin_a"}`},
	agent.CallConfirm:    {`{"fields":["order_id","amount"]}`, `{"fields":["order_id"]}`},
	agent.CallRecordFact: {`{"quote":"77"}`, `{"quote":"nobody said this"}`},
	agent.CallAsk:        {`{"question":"this?","fields":["order_id","amount"]}`, `{"question":"which?"}`},
	agent.CallWithdraw:   {`{"step":"1.1"}`, `{"step":"2.1"}`, `{"step":"3.1"}`},
	agent.CallReadResult: {`{"step":"1.1"}`, `{"step":"2.1","offset":10}`},
	agent.CallFinish:     {`{"text":"bye"}`},
	agent.CallRuleOut: {`{"tool":"risky","args":{"order_id":"77","amount":{"minor":50,"currency":"EUR"}},"reason":"so"}`, `{"tool":"move","args":{"to":"close"},"reason":"so"}`,
		`{"tool":"wire","args":{"refund_id":"a"},"reason":"so"}`, `{"tool":"unknown","args":{},"reason":"so"}`},
	"wire":       {`{"refund_id":"a"}`, `{"refund_id":"b"}`},
	"find_order": {`{"order_id":"77"}`, `{"order_id":"78","hint":null}`, `{"order_id":7}`, `{"order_id":"77"`, ``},
	"charge":     {`{"order_id":"77","amount":{"minor":5,"currency":"EUR"}}`, `{"order_id":"78","amount":{"minor":5,"currency":"EUR"}}`},
	"risky":      {`{"order_id":"77","amount":{"minor":50,"currency":"EUR"}}`, `{"order_id":"77","amount":{"minor":1,"currency":"EUR"}}`},
	"ping":       {`{"refund_id":"a"}`},
	"shot":       {`{"refund_id":"a"}`, `{"refund_id":"b"}`},
	"spoil":      {`{"refund_id":"a"}`},
	"unknown":    {`{}`},
	"count":      {`{"refund_id":"a"}`},
}

func (w *watcher) randomInput() {
	t := w.t
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "s")) * time.Second)
	w.n++
	id := fmt.Sprintf("i%d", w.n)
	r := w.m.Run()
	who := agent.Principal{Subject: rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "who"),
		Roles: rapid.SampledFrom([][]string{{"boss", "refunds"}, {"refunds"}, nil}).Draw(t, "roles")}
	kind := rapid.SampledFrom([]string{"message", "model", "model", "model", "model", "step", "step", "step", "verdict", "verdict", "timer", "cancel", "ack", "stands", "stray", "race", "amend", "pause", "resume", "snapshot", "undo", "undo", "ruling"}).Draw(t, "input")
	switch kind {
	case "message":
		text := rapid.SampledFrom([]string{"77 or 78", "yes", "no, 78", "hm"}).Draw(t, "text")
		if rapid.IntRange(0, 9).Draw(t, "repeat") == 0 {
			id = "same as " + who.Subject
		}
		w.step(agent.Message{ID: id, Principal: who, Text: text, Policy: w.policy()})
	case "model":
		if !w.calling {
			return
		}
		w.calling = false
		if rapid.IntRange(0, 30).Draw(t, "fails") == 0 {
			w.step(agent.ProposalFailed{Turn: r.Turn, Reason: "no"})
			return
		}
		in := agent.Proposed{Turn: r.Turn, Finish: rapid.SampledFrom([]agent.FinishReason{agent.FinishStop, agent.FinishStop, agent.FinishStop, agent.FinishLength}).Draw(t, "finish"),
			Text: rapid.SampledFrom([]string{"", "I say so."}).Draw(t, "say"), Usage: agent.Usage{Input: 1}}
		names := make([]string, 0, len(someArgs))
		for k := range someArgs {
			names = append(names, k)
		}
		slices.Sort(names)
		if rapid.IntRange(0, 5).Draw(t, "combined") == 0 {
			in.Calls = append(in.Calls, rapid.SampledFrom(combinations).Draw(t, "combination")...)
		}
		for range rapid.IntRange(0, 4).Draw(t, "calls") {
			name := rapid.SampledFrom(names).Draw(t, "tool")
			in.Calls = append(in.Calls, agent.RawCall{Tool: name, Args: rapid.SampledFrom(someArgs[name]).Draw(t, "args")})
		}
		w.step(in)
	case "step":
		w.finishStep()
	case "verdict":
		w.randomVerdict(id, who)
	case "timer":
		w.now = w.now.Add(time.Duration(rapid.IntRange(1, 25).Draw(t, "n")) * rapid.SampledFrom([]time.Duration{time.Hour, time.Minute}).Draw(t, "of"))
		w.step(agent.GateTimerFired{})
	case "cancel":
		if rapid.IntRange(0, 5).Draw(t, "really") == 0 {
			w.step(agent.CancelRun{ID: id, Principal: who, Undo: rapid.SampledFrom([]agent.UndoScope{"", agent.UndoTurn, agent.UndoRun}).Draw(t, "undo")})
		}
	case "ack":
		if b := w.m.Batch(); len(b.Events) > 0 {
			w.acked = b.Events[rapid.IntRange(0, len(b.Events)-1).Draw(t, "to")].Seq
			w.m.Ack(w.acked)
		}
	case "stands":
		for _, s := range r.Steps {
			if s.Status == agent.StepWaiting && s.Kind == agent.KindTool && s.Key != "" && !w.done[s.Key] {
				w.done[s.Key] = true
				w.step(agent.EffectStands{Step: s.ID, Result: agent.JSON(`{"id":"stood"}`)})
				return
			}
		}
	case "race":
		w.race()
	case "amend":
		w.step(agent.AmendRun{ID: id, Principal: who, Fields: agent.JSON(rapid.SampledFrom([]string{`{"order_id":"78"}`, `{"order_id":null}`,
			`{"note":"from outside"}`, `{"amount":{"minor":1,"currency":"EUR"}}`, `{"order_id":7}`, `{}`, `[`}).Draw(t, "fields"))})
	case "pause":
		if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
			w.step(agent.PauseRun{ID: id, Principal: who, Reason: "a look"})
		}
	case "resume":
		w.step(agent.ResumeRun{ID: id, Principal: who})
	case "undo":
		w.undo(id, who)
	case "snapshot":
		w.snapshot()
	case "ruling":
		w.ruling(id, who)
	case "stray":
		w.step(rapid.SampledFrom([]agent.Input{agent.StepFinished{Step: "9.9"}, agent.Proposed{Turn: 99}, agent.StepStopped{Step: "9.8"},
			agent.EffectStands{Step: "9.9"}, agent.Malformed{Name: "message", Reason: "bad\x00"}}).Draw(t, "stray"))
	}
}

// snapshot lets another machine go on, as the next Temporal run of a chain does.
// A held machine starts no turn: what it was told meanwhile is in the snapshot.
// Mutations: leave Kept or Owed out of the snapshot; start turns while held.
func (w *watcher) snapshot() {
	if w.calling || len(w.running) > 0 || w.m.Run().Status.Ended() {
		return
	}
	w.m.Hold()
	w.held = true
	if rapid.Bool().Draw(w.t, "message") {
		w.n++
		w.step(agent.Message{ID: fmt.Sprintf("i%d", w.n), Principal: agent.Principal{Subject: "ann"}, Text: "yes"})
		if w.calling {
			w.t.Fatalf("a held machine started a turn")
		}
	}
	data, err := json.Marshal(w.m.Snapshot())
	require.NoError(w.t, err)
	var s agent.Snapshot
	require.NoError(w.t, json.Unmarshal(data, &s))
	w.m, err = agent.Restore(w.m.Definition(), s)
	require.NoError(w.t, err)
	w.held = false
	w.step(agent.SnapshotLoaded{Rules: agent.Rules, RunID: "next"})
}

func (w *watcher) finishStep() {
	ids := make([]string, 0, len(w.running))
	for id := range w.running {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	id := rapid.SampledFrom(ids).Draw(w.t, "step")
	task := w.running[id]
	delete(w.running, id)
	end := rapid.IntRange(0, 9).Draw(w.t, "end")
	if s := w.m.Run().Steps; slices.ContainsFunc(s, func(s agent.Step) bool { return s.ID == id && s.Stopping != nil }) {
		w.fenced(id, task)
		return
	}
	switch {
	case task.Approved != nil && rapid.Bool().Draw(w.t, "unapproved"):
		end = -1
	case task.Key != "" && rapid.IntRange(0, 5).Draw(w.t, "waits") == 0:
		end = -2 - rapid.IntRange(0, 3).Draw(w.t, "an older fence")/3
	}
	switch end {
	case -1:
		w.step(agent.StepUnapproved{Step: id, Reason: "not started: the role is gone"})
	case -2:
		w.step(agent.JudgeAgain{Step: id})
	case -3: // of a branch before a reset
		w.dead[task.Key] = true
		w.step(agent.StepStopped{Step: id})
	case 0:
		w.step(agent.StepNotApplied{Step: id, Reason: "no"})
	case 1:
		w.dead[task.Key] = task.Key != ""
		w.step(agent.StepNotApplied{Step: id, Reason: "never", ForGood: true})
	case 2:
		w.step(agent.StepUnknown{Step: id, Reason: "lost"})
	case 3:
		w.done[task.Key] = true
		w.step(agent.StepFinished{Step: id, Unkept: "result_too_large"})
	default:
		w.done[task.Key] = true
		result := `{"id":"r"}`
		if task.Tool == "find_order" {
			result = `{"id":"77","total":{"currency":"EUR","minor":` + fmt.Sprint(rapid.IntRange(1, 9000).Draw(w.t, "minor")) + `}}`
		}
		w.step(agent.StepFinished{Step: id, Result: agent.JSON(result)})
	}
}

// fenced answers a fence: what it says has not begun never runs again under its key.
func (w *watcher) fenced(id string, task agent.Task) {
	switch rapid.IntRange(0, 5).Draw(w.t, "stands") {
	case 0:
		w.done[task.Key] = true
		w.step(agent.StepFinished{Step: id, Result: agent.JSON(`{"id":"r"}`)})
	case 1:
		w.dead[task.Key] = true
		w.step(agent.StepNotApplied{Step: id, Reason: "never", ForGood: true})
	case 2:
		w.step(agent.StepUnknown{Step: id, Reason: "lost"})
	case 3:
		w.step(agent.StepBegun{Step: id, Reason: "lost"})
	default:
		w.dead[task.Key] = true
		w.step(agent.StepStopped{Step: id})
	}
}

func TestMachine_Properties(t *testing.T) {
	for _, name := range []string{"refund", "desk", "booth", "vault"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				def := agents[name]()
				w := &watcher{t: t, m: agent.NewMachine(def), now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
					running: map[string]agent.Task{}, done: map[string]bool{}, story: newStory()}
				w.step(agent.Started{Tenant: "acme", Key: "k", FirstRunID: "r", Rules: agent.Rules, Limits: def.Limits(), User: "u",
					Body: agent.JSON(`{"customer_id":"c-1"}`)})
				w.opening(name)
				for range rapid.IntRange(1, 80).Draw(t, "inputs") {
					w.randomInput()
				}
			})
		})
	}
}
