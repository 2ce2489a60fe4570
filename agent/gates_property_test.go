package agent_test

import (
	"fmt"
	"slices"

	"encoding/json"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"interlock/agent"
)

// binding is a rejected gate, as shown.
type binding struct {
	agent.Gate
	seq    int64
	lifted bool
}

// ruledOut: a rejected call does not come back while what was read is unchanged,
// for good, and nobody has lifted it. Mutations: let ruling return nil; drop the
// look at Seq from rests; drop forbids from editedArgs.
func (w *watcher) ruledOut(e agent.Event, d agent.StepStartedData) {
	for _, g := range w.rulings {
		changed := slices.ContainsFunc(g.Reads, func(f string) bool { return w.set[f] > g.seq })
		if d.Status != agent.StepRefused && d.By != agent.ByUndo && g.Tool == d.Tool && g.Args.Equal(d.Args) && !g.lifted && !changed {
			w.t.Fatalf("step %s, %s %s, was rejected as %s and nothing has changed", e.Step, d.Tool, d.Args, g.ID)
		}
	}
}

// approved: no step that has a gate starts without valid approvals of what was
// shown, by as many different persons as it needs, none of whom asked for it where
// that is barred. Mutations: start the step in Machine.commit although needed is
// true; drop the digest from voids; drop the roles, or Distinct, from mayNot; drop
// approvedBy from voids; let approvedByEditor return true.
func (w *watcher) approved(t agent.Task) {
	var gate *agent.Gate
	by := map[string]bool{}
	edited := false
	for _, e := range w.events {
		if e.Type == agent.EventStepStarted && e.Step == t.Step {
			edited = data[agent.StepStartedData](e).EditedBy != ""
		}
		if e.Step != t.Step {
			continue
		}
		switch e.Type {
		case agent.EventGateOpened:
			if d := data[agent.GateOpenedData](e); d.Gate.Kind != agent.KindDoubt {
				gate = &d.Gate
				for _, a := range gate.Approvals {
					require.True(w.t, edited, "an approval before anybody has looked")
					by[a.By.Subject] = true
				}
			}
		case agent.EventGateEscalated:
			*gate = gate.Escalated(data[agent.GateEscalatedData](e).Roles)
		case agent.EventVerdict:
			d := data[agent.VerdictData](e)
			v := d.Verdict
			by[v.Principal.Subject] = by[v.Principal.Subject] || d.Judgement == "valid" && v.Verdict == agent.Approve && v.Digest == gate.Digest &&
				slices.ContainsFunc(gate.Roles, func(r string) bool { return slices.Contains(v.Principal.Roles, r) }) &&
				(gate.ExpiresAt == nil || v.At.Before(*gate.ExpiresAt))
		}
	}
	if gate == nil { // what was stopped before it began goes on under the approval that it had, as long as that holds
		for _, s := range w.m.Run().Steps {
			if s.ID != t.Step || s.Replaces == "" || s.EditedBy != "" {
				continue
			}
			for _, old := range w.m.Run().Steps {
				if old.ID == s.Replaces && old.Status == agent.StepCancelled {
					t.Step = old.ID
					w.approved(t)
					return
				}
			}
		}
	}
	if gate == nil {
		if t.Tool == "wire" {
			w.t.Fatalf("step %s starts without a gate", t.Step)
		}
		return
	}
	n := 0
	for who, yes := range by {
		if yes {
			n++
		}
		if yes && gate.Distinct && slices.Contains(gate.Askers, who) {
			w.t.Fatalf("step %s starts on the approval of %s, who asked for it", t.Step, who)
		}
	}
	if n < max(gate.Quorum, 1) {
		w.t.Fatalf("step %s starts with %d approvals of its gate", t.Step, n)
	}
	state := map[string]json.RawMessage{}
	must(json.Unmarshal(w.m.Run().State, &state))
	for f, shown := range gate.Shown {
		require.JSONEq(w.t, shown.String(), string(state[f]), "field %s changed after gate %s showed it", f, gate.ID)
	}
}

func (w *watcher) randomVerdict(id string, who agent.Principal) {
	gates := w.m.Run().Gates
	if len(gates) == 0 {
		return
	}
	g := gates[rapid.IntRange(0, len(gates)-1).Draw(w.t, "gate")]
	v := agent.Verdict{ID: id, Gate: g.ID, Digest: g.Digest, Principal: who, Reason: "so",
		Verdict: rapid.SampledFrom([]agent.VerdictValue{agent.Approve, agent.Approve, agent.Reject, agent.Return, agent.Edit, agent.TakeBack, "yes", ""}).Draw(w.t, "verdict")}
	if v.Principal.Subject = rapid.SampledFrom([]string{"ann", "bob", "cyd", "u"}).Draw(w.t, "decides"); v.Verdict == agent.Edit {
		v.Args = agent.JSON(rapid.SampledFrom(append(someArgs[g.Tool], `{"no":1}`)).Draw(w.t, "edited"))
	}
	if _, err := agent.Canonical(v.Args); err != nil {
		v.Args = nil // what is no JSON never comes to a machine
	}
	switch {
	case g.Kind == agent.KindAsk && rapid.IntRange(0, 4).Draw(w.t, "answers") > 0:
		yes := rapid.Bool().Draw(w.t, "yes")
		v.Verdict, v.Args, v.Answer, v.Principal.Subject = agent.GiveAnswer, nil, &agent.Answer{Confirm: &yes}, "u"
		v.Answer.Fields = agent.JSON(rapid.SampledFrom([]string{"", "", `{"order_id":"78"}`, `{"amount":1}`}).Draw(w.t, "fields"))
	case g.Kind == agent.KindDoubt && rapid.IntRange(0, 4).Draw(w.t, "found out") > 0:
		v.Verdict, v.Args = rapid.SampledFrom([]agent.VerdictValue{agent.Happened, agent.DidNotHappen}).Draw(w.t, "resolution"), nil
		v.Principal.Roles = append(slices.Clone(v.Principal.Roles), agent.DefaultOperator)
		if v.Verdict == agent.Happened {
			v.Result = agent.JSON(`{"id":"found"}`)
		} else {
			v.Again = rapid.Bool().Draw(w.t, "again")
		}
	}
	if rapid.IntRange(0, 4).Draw(w.t, "stale") == 0 {
		v.Digest = "0123"
	}
	w.step(agent.VerdictGiven{Verdict: v})
}

// decide lets people decide one after the other about the gate that was opened
// last, or about one in whose place it stands.
func (w *watcher) decide(times int) {
	for range times {
		gates := w.m.Run().Gates
		if len(gates) == 0 || gates[len(gates)-1].Kind != agent.KindTool {
			return
		}
		w.n++
		g := gates[len(gates)-1]
		v := agent.Verdict{ID: fmt.Sprintf("d%d", w.n), Gate: g.ID, Digest: g.Digest, Reason: "so",
			Verdict: rapid.SampledFrom([]agent.VerdictValue{agent.Approve, agent.Approve, agent.Approve, agent.Edit}).Draw(w.t, "decision"),
			Principal: agent.Principal{Subject: rapid.SampledFrom([]string{"ann", "bob", "u"}).Draw(w.t, "person"),
				Roles: rapid.SampledFrom([][]string{{"boss"}, {"boss"}, {"refunds"}}).Draw(w.t, "person's roles")}}
		if some := someArgs[g.Tool]; v.Verdict == agent.Edit && len(some) > 1 {
			v.Args = agent.JSON(some[1])
		}
		w.step(agent.VerdictGiven{Verdict: v})
	}
}

// ruling lifts or confirms one, which may not be there. Some runs have a story: a
// wire that somebody edits, approves, approves.
func (w *watcher) ruling(id string, who agent.Principal) {
	if _, desk := w.m.Definition().Tool("wire"); desk && w.calling && rapid.Bool().Draw(w.t, "wire") {
		w.calling = false
		w.step(agent.Proposed{Turn: w.m.Run().Turn, Finish: agent.FinishStop, Calls: []agent.RawCall{{Tool: "wire", Args: someArgs["wire"][0]}}})
		w.decide(3)
		return
	}
	ruling := "1.1"
	if all := w.m.Run().Rulings; len(all) > 0 {
		ruling = all[rapid.IntRange(0, len(all)-1).Draw(w.t, "which")].ID
	}
	if rapid.Bool().Draw(w.t, "lift") {
		w.step(agent.LiftRuling{ID: id, Ruling: ruling, Principal: who, Reason: "so"})
	} else {
		w.step(agent.ConfirmRuling{ID: id, Ruling: ruling, Principal: who})
	}
}
