package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"interlock/agent"
	"interlock/llm"
)

// machineTime drives the machine alone through a run, without Temporal and
// store, and returns what its decisions take a turn. It is the part of the
// overhead that runs inside workflow tasks, and again in every replay.
func machineTime(turns int) (time.Duration, error) {
	def := definition(ordinary, false)
	m := agent.NewMachine(def)
	var spent time.Duration
	now := time.Now()
	step := func(in agent.Input) []agent.Command {
		now = now.Add(time.Millisecond)
		began := time.Now()
		commands, _ := m.Step(now, "", in)
		m.Batch() // what each activity is given
		spent += time.Since(began)
		m.Ack(m.Run().Seq)
		return commands
	}
	body, err := agent.Encode(begin{Turns: turns})
	if err != nil {
		return 0, err
	}
	who := agent.Principal{Subject: "bench"}
	step(agent.Started{Tenant: tenant, Key: "k", FirstRunID: "r", Version: 1, Rules: agent.Rules, Fingerprint: def.Fingerprint(),
		Limits: def.Limits(), Principal: who, User: who.Subject, Body: body})
	commands := step(agent.Message{ID: "m1", Principal: who, Text: message})
	for !m.Run().Status.Ended() {
		var in agent.Input
		for _, c := range commands {
			if in, err = answer(c); err != nil {
				return 0, err
			}
			if in != nil {
				break
			}
		}
		if in == nil {
			return 0, fmt.Errorf("the machine stands still in turn %d: %s %s", m.Run().Turn, m.Run().Status, m.Run().Reason)
		}
		commands = step(in)
	}
	return spent / time.Duration(turns), nil
}

// answer is what the world makes of a command, nil where it answers nothing.
func answer(c agent.Command) (agent.Input, error) {
	switch c := c.(type) {
	case agent.CallModel:
		r, err := model().Generate(context.Background(), llm.Request{View: c.View})
		return agent.Proposed{Turn: c.View.Turn, Text: r.Text, Calls: r.Calls, Finish: r.Finish, Model: r.Model, Usage: r.Usage}, err
	case agent.RunStep:
		var l lookup
		if err := json.Unmarshal(c.Task.Args, &l); err != nil {
			return nil, err
		}
		p, err := find(context.Background(), l)
		if err != nil {
			return nil, err
		}
		result, err := agent.Encode(p)
		return agent.StepFinished{Step: c.Task.Step, Result: result}, err
	}
	return nil, nil
}
