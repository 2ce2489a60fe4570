package agenttest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"interlock/agent"
)

// inputs reads the line of each kind of input.
var inputs = map[string]func(*player, words) (agent.Input, error){
	"start": (*player).startInput,
	"message": func(p *player, w words) (agent.Input, error) {
		return agent.Message{ID: p.id(w), Principal: p.who(w, p.run.Run().User), Text: w.text(0), Policy: agent.MessagePolicy(w.optionOr("policy", "")),
			First: w.optionOr("first", "") == "true"}, nil
	},
	"model": (*player).modelInput,
	"model_failed": func(p *player, w words) (agent.Input, error) {
		return agent.ProposalFailed{Turn: p.run.Run().Turn, Reason: w.text(0)}, nil
	},
	"done": func(_ *player, w words) (agent.Input, error) {
		in := agent.StepFinished{Step: w.text(0), Unkept: w.optionOr("unkept", ""), ActiveMS: w.count("active_ms")}
		return in, errors.Join(w.value(1, &in.Result), w.optionJSON("whole", &in.Whole))
	},
	"stands": func(_ *player, w words) (agent.Input, error) {
		in := agent.EffectStands{Step: w.text(0), Unkept: w.optionOr("unkept", "")}
		return in, errors.Join(w.value(1, &in.Result), w.optionJSON("whole", &in.Whole))
	},
	"failed": func(_ *player, w words) (agent.Input, error) {
		return agent.StepNotApplied{Step: w.text(0), Reason: w.text(1)}, nil
	},
	"refused": func(_ *player, w words) (agent.Input, error) {
		return agent.StepNotApplied{Step: w.text(0), Reason: w.text(1), ForGood: true}, nil
	},
	"unapproved": func(_ *player, w words) (agent.Input, error) {
		return agent.StepUnapproved{Step: w.text(0), Reason: w.text(1)}, nil
	},
	"unknown": func(_ *player, w words) (agent.Input, error) {
		return agent.StepUnknown{Step: w.text(0), Reason: w.text(1)}, nil
	},
	"stopped": func(_ *player, w words) (agent.Input, error) { return agent.StepStopped{Step: w.text(0)}, nil },
	"begun": func(_ *player, w words) (agent.Input, error) {
		return agent.StepBegun{Step: w.text(0), Reason: w.text(1)}, nil
	},
	"judge":   func(_ *player, w words) (agent.Input, error) { return agent.JudgeAgain{Step: w.text(0)}, nil },
	"verdict": (*player).verdictInput,
	"amend": func(p *player, w words) (agent.Input, error) {
		j, err := agent.Canonical([]byte(w.raw(0)))
		return agent.AmendRun{ID: p.id(w), Principal: p.who(w, "backend"), Fields: j, Reason: w.optionOr("reason", "")}, err
	},
	"pause": func(p *player, w words) (agent.Input, error) {
		return agent.PauseRun{ID: p.id(w), Principal: p.who(w, "operator"), Reason: w.optionOr("reason", "")}, nil
	},
	"resume": func(p *player, w words) (agent.Input, error) {
		return agent.ResumeRun{ID: p.id(w), Principal: p.who(w, "operator"), Reason: w.optionOr("reason", "")}, nil
	},
	"cancel": func(p *player, w words) (agent.Input, error) {
		return agent.CancelRun{ID: p.id(w), Principal: p.who(w, "operator"), Reason: w.optionOr("reason", ""), Undo: agent.UndoScope(w.optionOr("undo", ""))}, nil
	},
	"undo": func(p *player, w words) (agent.Input, error) {
		in := agent.UndoSteps{ID: p.id(w), Principal: p.who(w, "operator"), Reason: w.optionOr("reason", "")}
		for n := range w.list {
			in.Steps = append(in.Steps, w.text(n))
		}
		return in, nil
	},
	"lift_ruling": func(p *player, w words) (agent.Input, error) {
		return agent.LiftRuling{ID: p.id(w), Ruling: w.text(0), Principal: p.who(w, "reviewer"), Reason: w.optionOr("reason", "")}, nil
	},
	"confirm_ruling": func(p *player, w words) (agent.Input, error) {
		return agent.ConfirmRuling{ID: p.id(w), Ruling: w.text(0), Principal: p.who(w, "reviewer"), Reason: w.optionOr("reason", "")}, nil
	},
	"malformed": func(_ *player, w words) (agent.Input, error) {
		return agent.Malformed{Name: w.text(0), Reason: w.text(1)}, nil
	},
	"pass": func(*player, words) (agent.Input, error) { return agent.GateTimerFired{}, nil },
	"snapshot": func(_ *player, w words) (agent.Input, error) {
		rules, err := strconv.Atoi(w.optionOr("rules", strconv.Itoa(agent.Rules)))
		return agent.SnapshotLoaded{Rules: rules, RunID: w.text(0)}, err
	},
}

func (p *player) id(w words) string {
	if id, ok := w.option("id"); ok {
		return id
	}
	return p.run.id()
}

// who is the sender of an input.
func (p *player) who(w words, otherwise string) agent.Principal {
	who := agent.Principal{Subject: w.optionOr("by", otherwise), Tenant: w.optionOr("of", ""), Auth: w.optionOr("auth", "")}
	roles, _ := w.option("roles")
	if strings.HasPrefix(roles, "[") {
		_ = w.optionJSON("roles", &who.Roles)
	} else if roles != "" {
		who.Roles = strings.Split(roles, ",")
	}
	return who
}

func (p *player) startInput(w words) (agent.Input, error) {
	if p.run.Run().Seq > 0 {
		return nil, fmt.Errorf("the run has started already")
	}
	in := p.run.started()
	body, err := agent.Canonical([]byte(or(w.raw(0), "{}")))
	if err != nil {
		return nil, err
	}
	in.Tenant, in.Key, in.User, in.Body = w.optionOr("tenant", "test"), w.optionOr("key", "run-1"), w.optionOr("user", "user"), body
	in.FirstRunID, in.Digest, in.After = w.optionOr("first_run", "first-"+in.Key), w.optionOr("digest", ""), w.optionOr("after", "")
	in.Principal = p.who(w, "backend")
	if in.Rules, err = strconv.Atoi(w.optionOr("rules", strconv.Itoa(in.Rules))); err != nil {
		return nil, err
	}
	if _, ok := w.options["limits"]; ok { // what differs from the defaults
		in.Limits = agent.DefaultLimits()
	}
	return in, errors.Join(w.optionJSON("limits", &in.Limits), w.optionJSON("repair", &in.Repair))
}

func (p *player) modelInput(w words) (agent.Input, error) {
	in := agent.Proposed{Turn: p.run.Run().Turn, Text: w.text(0), Finish: agent.FinishReason(w.optionOr("finish", "")),
		Model: w.optionOr("model", "script"), Instructions: w.optionOr("instructions", p.run.def.InstructionsDigest())}
	in.ActiveMS = w.count("active_ms")
	if err := w.optionJSON("usage", &in.Usage); err != nil {
		return nil, err
	}
	return in, w.optionJSON("opaque", &in.Opaque)
}

// withCalls reads the calls of a model's answer: tool, id=, and the arguments as
// the rest of the line. Arguments in quotes are no JSON, or text that begins so.
func withCalls(in agent.Proposed, lines []string) (agent.Input, error) {
	for _, line := range lines {
		tool, rest, err := readWord(strings.TrimSpace(line))
		if err != nil {
			return nil, err
		}
		c := agent.RawCall{Tool: plain(tool)}
		if id, ok := strings.CutPrefix(strings.TrimSpace(rest), "id="); ok {
			if id, rest, err = readWord(id); err != nil {
				return nil, err
			}
			c.ProviderID = plain(id)
		}
		c.Args = plain(strings.TrimSpace(rest))
		in.Calls = append(in.Calls, c)
	}
	if in.Finish == "" {
		in.Finish = agent.FinishStop
		if len(in.Calls) > 0 {
			in.Finish = agent.FinishCalls
		}
	}
	return in, nil
}

func (p *player) verdictInput(w words) (agent.Input, error) {
	v := agent.Verdict{ID: p.id(w), Gate: w.text(0), Verdict: agent.VerdictValue(w.text(1)), Reason: w.optionOr("reason", ""),
		Principal: p.who(w, "reviewer"), Digest: w.optionOr("digest", ""), Verified: w.optionOr("verified", "") == "true",
		Args: agent.JSON(w.optionOr("args", "")), Result: agent.JSON(w.optionOr("result", "")), Again: w.optionOr("again", "") == "true"}
	for _, e := range p.run.events { // the run may hold the gate no more
		if e.Type == agent.EventGateOpened && v.Digest == "" {
			if g := dataOf[agent.GateOpenedData](e).Gate; g.ID == v.Gate {
				v.Digest = g.Digest
			}
		}
	}
	err := w.optionJSON("answer", &v.Answer)
	return agent.VerdictGiven{Verdict: v}, err
}
