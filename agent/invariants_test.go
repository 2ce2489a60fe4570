package agent_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"interlock/agent"
)

// story is what a watcher remembers of a run's events, independently of the
// run, to judge later ones by.
type story struct {
	state       agent.JSON
	messages    []string
	set         map[string]int64 // field: event of its last change
	stepStarted map[string]int64
	gates       map[string]agent.Gate
	closed      map[string]bool
	rulings     []binding
	answers     map[string]string
	dead        map[string]bool // effect keys refused for good
	ids         map[string]bool // of messages that were accepted
	told        map[string]bool // steps that were told to stop
	stands      map[string]agent.StepStatus
	cutting     bool // a turn is being cut short
	owed
}

func newStory() story {
	return story{state: agent.JSON("{}"), set: map[string]int64{}, stepStarted: map[string]int64{}, gates: map[string]agent.Gate{},
		closed: map[string]bool{}, answers: map[string]string{}, dead: map[string]bool{}, ids: map[string]bool{}, told: map[string]bool{}, stands: map[string]agent.StepStatus{},
		owed: owed{openedBy: map[string]int{}, by: map[string]agent.StepSource{}}}
}

func data[T any](e agent.Event) (v T) {
	must(json.Unmarshal(e.Data, &v))
	return v
}

func (s *story) value(field string) string {
	state := map[string]json.RawMessage{}
	must(json.Unmarshal(s.state, &state))
	if v := state[field]; v != nil {
		return string(v)
	}
	return "null"
}

func (s *story) asShown(g agent.Gate) bool {
	for f, v := range g.Shown {
		if s.value(f) != v.String() {
			return false
		}
	}
	return true
}

// event judges one event by those before it.
func (w *watcher) event(e agent.Event) {
	w.cut(e)
	w.rollback(e)
	w.owes(e)
	switch e.Type {
	case agent.EventMessage:
		w.messages = append(w.messages, data[agent.MessageData](e).Text)
	case agent.EventUndoRequested:
		w.ownUndo(e)
	case agent.EventStateSet:
		w.stateSet(e, data[agent.StateSetData](e))
	case agent.EventStepStarted:
		d := data[agent.StepStartedData](e)
		w.stepStarted[e.Step] = e.Seq
		// A rejected call does not come back while what was read is unchanged.
		// Mutation: let ruling return nil.
		w.ruledOut(e, d)
	case agent.EventStepSettled:
		// What was undone never runs again under its key. Mutation: drop ForGood
		// from finish.
		if d := data[agent.StepSettledData](e); d.Status == agent.StepUndone {
			for _, s := range w.m.Run().Steps {
				w.dead[s.Key] = w.dead[s.Key] || s.ID == e.Step
			}
		}
	case agent.EventGateOpened:
		g := data[agent.GateOpenedData](e).Gate
		w.gates[g.ID] = g
	case agent.EventGateClosed:
		d := data[agent.GateClosedData](e)
		// A gate is decided once. Mutation: judgeKept takes without voids.
		if w.closed[d.Gate] {
			w.t.Fatalf("gate %s closes again", d.Gate)
		}
		w.closed[d.Gate] = true
		if d.Status == agent.GateRejected {
			w.rulings = append(w.rulings, binding{Gate: w.gates[d.Gate], seq: e.Seq})
		}
	case agent.EventVerdict:
		if d := data[agent.VerdictData](e); d.Judgement == "valid" && d.Verdict.Answer != nil {
			w.messages = append(w.messages, d.Verdict.Answer.Fields.String()) // the user's words too
		}
	case agent.EventRulingLifted:
		for i := range w.rulings {
			w.rulings[i].lifted = w.rulings[i].lifted || w.rulings[i].ID == data[agent.RulingConfirmedData](e).Ruling
		}
	}
}

// stateSet: who may set a field is its tag. Mutations: drop Settable, or stale,
// from mayCommit; drop quoted from setFields; drop resetFollowers from set.
func (w *watcher) stateSet(e agent.Event, d agent.StateSetData) {
	w.state = agent.ApplyPatch(w.state, d.Patch)
	for _, f := range w.m.Definition().Fields() {
		changed := slices.Contains(d.Fields, f.Name)
		if changed && d.Source == "tool" {
			if !f.Settable("tool") {
				w.t.Fatalf("a tool set %s", f.Name)
			}
			if f.Follows != "" && w.set[f.Follows] > w.stepStarted[e.Step] {
				w.t.Fatalf("step %s set %s, but %s has changed since it started", e.Step, f.Name, f.Follows)
			}
		}
		if v := strings.Trim(w.value(f.Name), `"`); changed && d.Source == "user" && !f.Settable("model") &&
			!slices.ContainsFunc(w.messages, func(m string) bool { return strings.Contains(m, v) }) {
			w.t.Fatalf("%s became %s, which the user never said", f.Name, v)
		}
		if changed || slices.Contains(d.Reset, f.Name) {
			w.set[f.Name] = e.Seq
		}
	}
	for _, f := range w.m.Definition().Fields() {
		// Only amount follows a field in these agents; its zero needs no reset.
		zero := f.Name != "amount" || w.value("amount") == `{"currency":"","minor":0}`
		if f.Follows != "" && !zero && w.set[f.Name] < w.set[f.Follows] {
			w.t.Fatalf("%s stayed %s although %s changed", f.Name, w.value(f.Name), f.Follows)
		}
	}
}

// standing is what holds between any two inputs.
func (w *watcher) standing() {
	r := w.m.Run()
	require.Equal(w.t, w.state.String(), r.State.String(), "the patches in the journal make the state")
	// What was confirmed is what was shown, and what is. Mutations: keep
	// Confirmed, or Shown, in applyStateSet; drop the look at Shown from confirm.
	for f, c := range r.Confirmed {
		if shown := r.Shown[f].Seq; shown == 0 || c.Seq < shown && w.set[f] > c.Seq || w.set[f] > shown {
			w.t.Fatalf("%s is confirmed by event %d, shown by %d and set by %d", f, c.Seq, shown, w.set[f])
		}
	}
	for _, g := range r.Gates {
		if g.Status != agent.GateOpen || r.Status.Ended() {
			continue
		}
		// An open gate shows the present values. Mutation: drop voidGates from set.
		if !w.asShown(g) {
			w.t.Fatalf("gate %s is open and shows %v; the state is %s", g.ID, g.Shown, w.state)
		}
		// No gate outlives its time, but for a verdict that came in time.
		// Mutation: drop expireGates from once and verdict.
		if g.ExpiresAt != nil && !w.now.Before(*g.ExpiresAt) && r.Cancel == nil && g.Pending == nil &&
			!slices.ContainsFunc(r.Kept, func(v agent.Verdict) bool { return v.Gate == g.ID }) {
			w.t.Fatalf("gate %s is open after %s", g.ID, g.ExpiresAt)
		}
	}
}

// effect: no effect runs twice at a time, or under a key that was refused for
// good. Mutations: drop the open steps from forbids; drop ForGood from
// applyStepSettled.
func (w *watcher) effect(t agent.Task) {
	for id, other := range w.running {
		if t.Key != "" && other.Key == t.Key {
			w.t.Fatalf("step %s runs effect %s while %s does", t.Step, t.Key, id)
		}
	}
	if t.Undoes != nil {
		w.undoes(t)
	}
	if w.dead[t.Key] {
		w.t.Fatalf("step %s runs effect %s, which was refused for good", t.Step, t.Key)
	}
}

// undo asks for the undo of some steps, of which the run may hold none; some of
// them were called for it, and one is called again.
func (w *watcher) undo(id string, who agent.Principal) {
	calls := []agent.RawCall{{Tool: "charge", Args: someArgs["charge"][0]}, {Tool: "charge", Args: someArgs["charge"][1]}, {Tool: "shot", Args: someArgs["shot"][0]}}
	call := func(calls ...agent.RawCall) {
		if !w.calling {
			w.step(agent.Message{ID: fmt.Sprintf("%s-%d", id, w.m.Run().Seq), Principal: who, Text: "once more"})
		}
		if w.calling {
			w.calling = false
			w.step(agent.Proposed{Turn: w.m.Run().Turn, Finish: agent.FinishStop, Calls: calls})
		}
	}
	if _, desk := w.m.Definition().Tool("charge"); desk && rapid.Bool().Draw(w.t, "story") {
		call(calls...)
		for range 3 {
			w.finishStep()
		}
		defer func() {
			for range rapid.IntRange(0, 3).Draw(w.t, "undone") {
				w.finishStep()
			}
			call(calls...)
		}()
	}
	ids := []string{"1.1", "2.1"}
	for _, s := range w.m.Run().Steps {
		if s.Status == agent.StepDone && s.Compensation != "" {
			ids = append(ids, s.ID)
		}
	}
	w.step(agent.UndoSteps{ID: id, Principal: who, Reason: "so", Steps: rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 0, 3, rapid.ID[string]).Draw(w.t, "undo")})
}

// undoes: only what stands is undone, by one step at a time; a run that is being
// cancelled does not wait for what is in doubt. Mutations: let
// undoNext begin while As is set; drop undoOf from undoable.
func (w *watcher) undoes(t agent.Task) {
	for _, s := range w.m.Run().Steps {
		if s.ID == t.Undoes.Step && (s.Status != agent.StepDone || s.Key != t.Undoes.Key) {
			w.t.Fatalf("step %s undoes %s, which is %s", t.Step, s.ID, s.Status)
		}
		if s.Undoes != "" && s.Status.Open() && s.ID != t.Step && (s.Status != agent.StepInDoubt || w.m.Run().Cancel == nil) {
			w.t.Fatalf("step %s undoes %s while %s undoes %s", t.Step, t.Undoes.Step, s.ID, s.Undoes)
		}
	}
}

// said: what the model was told of a call is told the same way ever after; only
// its result may be archived. Mutation: drop freezeAnswers.
func (w *watcher) said(c agent.ViewCall) {
	now := c.Answer.Status + " " + c.Answer.Text
	if before, known := w.answers[c.ID]; known {
		require.Equal(w.t, before, now, "the answer of call %s changed", c.ID)
	}
	w.answers[c.ID] = now
}

// combinations are proposals that chance would hardly make: a look-up of the
// order that is chosen after it, and a call that was rejected before.
var combinations = [][]agent.RawCall{
	{{Tool: "find_order", Args: `{"order_id":"78"}`}, {Tool: agent.CallSetFields, Args: `{"fields":{"order_id":"78"},"quote":"or 78"}`}},
	{{Tool: "find_order", Args: `{"order_id":"77"}`}, {Tool: agent.CallSetFields, Args: `{"fields":{"order_id":"77"},"quote":"77"}`}},
	{{Tool: "risky", Args: `{"order_id":"77","amount":{"minor":50,"currency":"EUR"}}`}},
	{{Tool: agent.CallMove, Args: `{"to":"collect"}`}, {Tool: agent.CallMove, Args: `{"to":"pay"}`}},
	{{Tool: agent.CallMove, Args: `{"to":"work"}`}, {Tool: agent.CallMove, Args: `{"to":"pay"}`}, {Tool: agent.CallMove, Args: `{"to":"paid"}`}},
	{{Tool: agent.CallMove, Args: `{"to":"work"}`}, {Tool: agent.CallMove, Args: `{"to":"pay"}`}, {Tool: agent.CallMove, Args: `{"to":"paid"}`}},
	{{Tool: agent.CallMove, Args: `{"to":"paid"}`}, {Tool: agent.CallMove, Args: `{"to":"pay"}`}, {Tool: agent.CallMove, Args: `{"to":"work"}`}},
}

// race: a verdict arrives between the user's change of mind and the model's
// reading of it.
func (w *watcher) race() {
	gates := w.m.Run().Gates
	i := slices.IndexFunc(gates, func(g agent.Gate) bool { return g.Status == agent.GateOpen && len(g.Roles) > 0 })
	if i < 0 || w.calling || len(w.running) > 0 {
		return
	}
	g, id := gates[i], fmt.Sprintf("race%d", w.n)
	w.step(agent.Message{ID: id + "m", Principal: agent.Principal{Subject: "u"}, Text: "no, or 78"})
	w.step(agent.VerdictGiven{Verdict: agent.Verdict{ID: id + "v", Gate: g.ID, Digest: g.Digest, Reason: "so",
		Verdict:   rapid.SampledFrom([]agent.VerdictValue{agent.Approve, agent.Reject}).Draw(w.t, "race verdict"),
		Principal: agent.Principal{Subject: "ann", Roles: []string{"boss", "refunds"}}}})
	if !w.calling {
		return
	}
	w.calling = false
	in := agent.Proposed{Turn: w.m.Run().Turn, Finish: agent.FinishStop, Text: "I see."}
	in.Calls = rapid.SampledFrom([][]agent.RawCall{nil, {{Tool: agent.CallWithdraw, Args: `{"step":"` + g.ID + `"}`}}, combinations[0][1:]}).Draw(w.t, "race answer")
	w.step(in)
}

// opening brings most runs to where they are worth watching: a gate is open.
func (w *watcher) opening(name string) {
	t := w.t
	if rapid.IntRange(0, 4).Draw(t, "from the start") == 0 {
		return
	}
	model := func(calls ...agent.RawCall) {
		w.calling = false
		w.step(agent.Proposed{Turn: w.m.Run().Turn, Finish: agent.FinishStop, Calls: calls})
	}
	found := func() {
		for _, id := range []string{"1.1"} {
			if task, runs := w.running[id]; runs && task.Tool == "find_order" {
				delete(w.running, id)
				w.step(agent.StepFinished{Step: id, Result: agent.JSON(`{"id":"77","total":{"currency":"EUR","minor":` +
					fmt.Sprint(rapid.SampledFrom([]int{4000, 8990}).Draw(t, "total")) + `}}`)})
			}
		}
	}
	user := agent.Principal{Subject: "u"}
	order := agent.RawCall{Tool: agent.CallSetFields, Args: `{"fields":{"order_id":"77"},"quote":"77"}`}
	w.step(agent.Message{ID: "o1", Principal: user, Text: "77 or 78"})
	model(order, agent.RawCall{Tool: "find_order", Args: `{"order_id":"77"}`})
	found()
	if name == "desk" && rapid.Bool().Draw(t, "wire") {
		model(agent.RawCall{Tool: "wire", Args: someArgs["wire"][0]})
		w.decide(3)
		return
	}
	if name == "vault" {
		model(rapid.SampledFrom([]agent.RawCall{{Tool: "wire", Args: someArgs["wire"][0]}, {Tool: "charge", Args: someArgs["charge"][1]},
			{Tool: agent.CallMove, Args: `{"to":"pay"}`}, {Tool: agent.CallMove, Args: `{"to":"close"}`}}).Draw(t, "vault"))
		return
	}
	if name == "desk" {
		model(agent.RawCall{Tool: "risky", Args: `{"order_id":"77","amount":{"minor":50,"currency":"EUR"}}`})
		return
	}
	model(agent.RawCall{Tool: agent.CallAsk, Args: `{"question":"this?","fields":["order_id","amount"]}`})
	w.step(agent.Message{ID: "o2", Principal: user, Text: "yes"})
	model(agent.RawCall{Tool: agent.CallConfirm, Args: `{"fields":["order_id","amount"]}`}, agent.RawCall{Tool: agent.CallMove, Args: `{"to":"pay"}`})
}
