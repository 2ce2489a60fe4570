package agenttest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/llm/scripted"
	"interlock/tool"
)

type wireStart struct{}

type wireState struct {
	Port int64  `json:"port" set:"user"`
	Sent string `json:"sent" set:"tool"`
}

type wire struct {
	To  string `json:"to"`
	Sum int64  `json:"sum"`
}

func wireAgent() *agent.Definition {
	send := tool.Keyed("send", func(context.Context, tool.Key, wire) (wire, error) { return wire{}, errors.New("not here") },
		func(s *wireState, _ wire, r wire) error { s.Sent = r.To; return nil }).
		Gate(tool.Gate[wireState, wire]{Roles: []string{"clerk"}, Edit: []string{agent.EveryArgument}, Quorum: 2, Distinct: true, Expires: 8 * time.Hour,
			Escalate: agent.Escalate{After: time.Hour, Roles: []string{"chief"}}})
	return agent.Define(agent.Spec[wireStart, wireState]{Name: "wires", Version: 1, Instructions: "Send.",
		Init: func(wireStart) (wireState, error) { return wireState{}, nil },
		Phases: []agent.Phase[wireState]{{Name: "work", Tools: []agent.Tool[wireState]{send}, Moves: []agent.Move[wireState]{{To: "end"}}},
			{Name: "end", Final: true}}})
}

// All that reviewers and users can do at gates, and the script of it.
func TestExport_Gates(t *testing.T) {
	run := agenttest.Start(t, wireAgent(), wireStart{})
	run.Says("send it")
	run.Propose(scripted.Ask("Which port?", "port"))
	require.Equal(t, agent.Refused, run.Answers("1.1", agent.Answer{Fields: agent.JSON(`{"port":"x"}`)}).Status)
	require.Equal(t, agent.Accepted, run.Answers("1.1", agent.Answer{Fields: agent.JSON(`{"port":9007199254740993}`)}).Status)
	run.Propose(scripted.Call("send", wire{"a", 1}), scripted.Call(agent.CallRuleOut, scripted.Args{"tool": "send", "args": wire{"b", 2}, "reason": "never b"}))
	run.Return("2.1", "which \"a\"?", "ann", "clerk")
	run.ConfirmRuling("draft-c2_2", "ann", "clerk")
	run.Propose(scripted.Call("send", wire{"b", 2}), scripted.Call("send", wire{"a", 3}))
	status, why := run.Answer("send")
	require.Equal(t, "waiting", status, why)
	run.Edit("3.1", wire{"a", 4}, "not 3", "ann", "clerk")
	require.Equal(t, agent.StepEdited, run.Step("3.1").Status)
	run.Approve("3.2", "bob", "clerk")
	run.Advance(90 * time.Minute)
	require.Equal(t, []string{"clerk", "chief"}, run.Gate("3.2").Roles)
	run.Approve("3.2", "kim", "chief")
	run.Done("3.2", wire{"a", 4})
	run.Propose(scripted.Call("send", wire{"c", 5}))
	run.Reject("4.1", "no c", "ann", "clerk")
	run.LiftRuling("4.1", "c is fine", "bob", "clerk")
	run.Propose(scripted.Call("send", wire{"c", 5}))
	require.Len(t, run.Gate("5.1").Rulings, 1)
	run.Advance(9 * time.Hour)
	require.Equal(t, agent.GateExpired, run.Gate("5.1").Status)
	run.Propose(scripted.Say("Well."))
	requireRoundTrip(t, wireAgent(), run.Events())
}

// An escalation that a late timer has not told of is found by the verdict.
func TestExport_EscalationFoundByAVerdict(t *testing.T) {
	run := agenttest.Start(t, wireAgent(), wireStart{})
	run.Says("send it")
	run.Propose(scripted.Call("send", wire{"a", 1}))
	script, err := agenttest.Export(run.Events())
	require.NoError(t, err)
	late := strings.Replace(string(script), "\nstate\n", "\nverdict 1.1 approve id=late by=kim roles=chief at=+70m\n\nstate\n", 1)
	_, again := agenttest.Play(t, wireAgent(), []byte(late))
	require.Len(t, again.Gate("1.1").Approvals, 1)
	requireRoundTrip(t, wireAgent(), again.Events())
}
