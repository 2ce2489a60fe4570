package words

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"interlock/agent"
)

// Event says who did what in an event, as two short texts. What is "" goes
// without saying.
func Event(e agent.Event) (who, what string) {
	if f, ok := descriptions[e.Type]; ok {
		return f(e)
	}
	return "code", string(e.Type)
}

var descriptions = map[agent.EventType]func(agent.Event) (who, what string){
	agent.EventStarted: func(e agent.Event) (string, string) {
		d := data[agent.StartedData](e)
		text := fmt.Sprintf("started %s version %d for %s", d.Agent, d.Version, d.User)
		if d.Repair != nil {
			text += ", to undo steps of " + d.Repair.Address
		}
		return "code", text
	},
	agent.EventMessage: func(e agent.Event) (string, string) {
		return "user", fmt.Sprintf("%q", data[agent.MessageData](e).Text)
	},
	agent.EventReply: func(e agent.Event) (string, string) { return "model", fmt.Sprintf("%q", data[agent.ReplyData](e).Text) },
	agent.EventTurnStarted: func(e agent.Event) (string, string) {
		return "code", fmt.Sprintf("turn %d: the model is called", e.Turn)
	},
	agent.EventTurnCut: func(e agent.Event) (string, string) {
		return "code", "the turn was cut short: " + data[agent.TurnCutData](e).Reason
	},
	agent.EventProposal: describeProposal,
	agent.EventCallAnswered: func(e agent.Event) (string, string) {
		d := data[agent.CallAnsweredData](e)
		if d.Status != "refused" {
			return "", ""
		}
		return "code", "refused the call: " + d.Text
	},
	agent.EventStateSet: describeState,
	agent.EventConfirmed: func(e agent.Event) (string, string) {
		d := data[agent.ConfirmedData](e)
		return "code", fmt.Sprintf("took %q for a yes to %s as shown", d.Quote, strings.Join(d.Fields, " and "))
	},
	agent.EventFactRecorded: func(e agent.Event) (string, string) {
		return "code", fmt.Sprintf("noted the fact %q", data[agent.FactData](e).Quote)
	},
	agent.EventPhaseEntered: func(e agent.Event) (string, string) {
		return "code", "entered phase " + data[agent.PhaseEnteredData](e).Phase
	},
	agent.EventStepStarted: describeStep,
	agent.EventStepResumed: func(e agent.Event) (string, string) { return "code", "step " + e.Step + " runs now" },
	agent.EventStepDone: func(e agent.Event) (string, string) {
		return "tool", "step " + e.Step + " done: " + clip(Assigned(data[agent.StepDoneData](e).Result), 100)
	},
	agent.EventCommitRefused: func(e agent.Event) (string, string) {
		return "code", "did not take the result into the state: " + data[agent.CommitRefusedData](e).Reason
	},
	agent.EventStepSettled: func(e agent.Event) (string, string) {
		d := data[agent.StepSettledData](e)
		if d.Status == agent.StepUndone {
			return "code", fmt.Sprintf("step %s was undone by step %s", e.Step, d.By)
		}
		return "code", strings.TrimSuffix(fmt.Sprintf("step %s %s: %s", e.Step, d.Status, d.Reason), ": ")
	},
	agent.EventGateOpened: func(e agent.Event) (string, string) {
		g := data[agent.GateOpenedData](e).Gate
		if g.Kind == agent.KindAsk {
			return "code", "asked the user: " + Question(g)
		}
		return "code", fmt.Sprintf("opened gate %s for %s: %s", g.ID, Deciders(g), g.Title)
	},
	agent.EventGateClosed: func(e agent.Event) (string, string) {
		d := data[agent.GateClosedData](e)
		return "code", strings.TrimSuffix(fmt.Sprintf("gate %s %s: %s", d.Gate, d.Status, d.Reason), ": ")
	},
	agent.EventVerdict: func(e agent.Event) (string, string) {
		d := data[agent.VerdictData](e)
		text := fmt.Sprintf("%s gate %s as %s", d.Verdict.Verdict, d.Verdict.Gate, Principal(&d.Verdict.Principal, d.Verdict.Verified))
		return "reviewer", strings.TrimSuffix(fmt.Sprintf("%s (%s): %s", text, d.Judgement, cmp.Or(d.Verdict.Reason, d.Reason)), ": ")
	},
	agent.EventRulingMade: func(e agent.Event) (string, string) {
		r := data[agent.RulingMadeData](e).Ruling
		return "code", fmt.Sprintf("will refuse the same call while %s are unchanged", strings.Join(r.Reads, " and "))
	},
	agent.EventGateCounted: func(e agent.Event) (string, string) {
		d := data[agent.GateCountedData](e)
		return "code", fmt.Sprintf("gate %s has %d approvals", d.Gate, len(d.Approvals))
	},
	agent.EventGatePending: func(e agent.Event) (string, string) {
		d := data[agent.GatePendingData](e)
		if d.Pending == nil {
			return "code", fmt.Sprintf("no verdict on gate %s waits any more", d.Gate)
		}
		return "code", fmt.Sprintf("the verdict on gate %s takes effect at %s, unless it is taken back", d.Gate, Stamp(d.Pending.Until))
	},
	agent.EventGateEscalated: func(e agent.Event) (string, string) {
		d := data[agent.GateEscalatedData](e)
		return "code", fmt.Sprintf("escalated gate %s: role %s may decide too", d.Gate, strings.Join(d.Roles, " or "))
	},
	agent.EventRulingDrafted: func(e agent.Event) (string, string) {
		r := data[agent.RulingDraftedData](e).Ruling
		return "model", fmt.Sprintf("drafted ruling %s against %s: %s", r.ID, r.Title, r.Reason)
	},
	agent.EventRulingConfirmed: func(e agent.Event) (string, string) {
		d := data[agent.RulingConfirmedData](e)
		return "reviewer", strings.TrimSuffix(fmt.Sprintf("%s makes ruling %s binding: %s", Principal(&d.Principal, false), d.Ruling, d.Reason), ": ")
	},
	agent.EventRulingLifted: func(e agent.Event) (string, string) {
		d := data[agent.RulingConfirmedData](e)
		return "reviewer", fmt.Sprintf("%s lifts ruling %s: %s", Principal(&d.Principal, false), d.Ruling, d.Reason)
	},
	agent.EventCancelRequested: func(e agent.Event) (string, string) {
		d := data[agent.CancelRequestedData](e)
		text := "asked to cancel"
		if d.Undo != "" {
			text += ", and to undo what the " + string(d.Undo) + " did"
		}
		if d.ID == "" {
			return "code", "closes the run: " + d.Reason
		}
		return "user", strings.TrimSuffix(text+": "+d.Reason, ": ")
	},
	agent.EventReminded: func(e agent.Event) (string, string) {
		return "code", fmt.Sprintf("reminded the user: %q", data[agent.RemindedData](e).Text)
	},
	agent.EventInterrupted: func(e agent.Event) (string, string) {
		d := data[agent.InterruptedData](e)
		text := "the message cuts the turn short"
		if d.Undo != "" {
			text += ", and what the turn did is undone"
		}
		return "code", text
	},
	agent.EventStepStopping: func(e agent.Event) (string, string) {
		return "code", "step " + e.Step + " is told to stop: " + data[agent.Stopping](e).Reason
	},
	agent.EventStepBegun: func(e agent.Event) (string, string) {
		return "code", "step " + e.Step + " had begun before it was told to stop, and goes on"
	},
	agent.EventInterruptSettled: func(e agent.Event) (string, string) {
		return "code", "tells the model: " + data[agent.InterruptSettledData](e).Account
	},
	agent.EventAmended: func(e agent.Event) (string, string) {
		d := data[agent.AmendedData](e)
		return "user", strings.TrimSuffix(fmt.Sprintf("%s sets %s from outside: %s", Principal(&d.Principal, false), strings.Join(d.Fields, ", "), d.Reason), ": ")
	},
	agent.EventUndoRequested: func(e agent.Event) (string, string) {
		d := data[agent.UndoRequestedData](e)
		if d.ID == "" {
			text := "undoes step " + strings.Join(d.Steps, ", then step ")
			if len(d.Steps) == 0 {
				text = "can undo nothing"
			}
			for _, s := range d.Stands {
				text += "; step " + s.Step + " stands: " + s.Why
			}
			return "code", text
		}
		return "user", fmt.Sprintf("%s asks that step %s be undone: %s", Principal(&d.Principal, false), strings.Join(d.Steps, ", then step "), d.Reason)
	},
	agent.EventResumed: func(e agent.Event) (string, string) {
		d := data[agent.ResumedData](e)
		return "user", strings.TrimSuffix(fmt.Sprintf("resumed by %s: %s", Principal(&d.Principal, false), d.Reason), ": ")
	},
	agent.EventInputRefused: func(e agent.Event) (string, string) {
		d := data[agent.InputRefusedData](e)
		return "code", fmt.Sprintf("refused a signal %s: %s", d.Name, d.Reason)
	},
	agent.EventSnapshotLoaded: func(e agent.Event) (string, string) {
		return "code", "Temporal run " + data[agent.SnapshotLoadedData](e).RunID + " goes on"
	},
	agent.EventTrimmed:   func(agent.Event) (string, string) { return "", "" },
	agent.EventPaused:    func(e agent.Event) (string, string) { return "code", "paused: " + data[agent.PausedData](e).Reason },
	agent.EventCompleted: ended("completed"),
	agent.EventCancelled: ended("cancelled"),
	agent.EventFailed:    ended("failed"),
}

func ended(how string) func(agent.Event) (string, string) {
	return func(e agent.Event) (string, string) {
		return "code", strings.TrimSuffix("the run is "+how+": "+data[agent.EndedData](e).Reason, ": ")
	}
}

// describeProposal lists the calls of a proposal.
func describeProposal(e agent.Event) (string, string) {
	p := data[agent.Proposal](e)
	var calls []string
	for _, c := range p.Calls {
		if c.Tool == agent.CallFinish {
			calls = append(calls, c.Tool) // its text is a reply, which is an event of its own
			continue
		}
		args := c.Args
		if len(args) == 0 {
			args = agent.JSON(c.Raw)
		}
		calls = append(calls, Call(c.Tool, args))
	}
	if len(calls) == 0 {
		return "", "" // a reply, which is an event of its own
	}
	return "model", "proposed " + strings.Join(calls, "\n+ ")
}

func describeState(e agent.Event) (string, string) {
	d := data[agent.StateSetData](e)
	return "code", fmt.Sprintf("state: %s (source: %s)", Assigned(d.Patch), d.Source)
}

func describeStep(e agent.Event) (string, string) {
	d := data[agent.StepStartedData](e)
	if d.Kind == agent.KindAsk {
		return "", "" // its gate opens next
	}
	state := map[agent.StepStatus]string{agent.StepRunning: "runs", agent.StepWaiting: "waits for a person"}[d.Status]
	how := cmp.Or(state, string(d.Status))
	if d.Undoes != "" {
		how += ", to undo step " + d.Undoes
	}
	if d.Replaces != "" {
		how += ", in the place of step " + d.Replaces
	}
	text := fmt.Sprintf("step %s %s: %s", e.Step, how, Call(d.Tool, d.Args))
	return "code", strings.TrimSuffix(text+": "+d.Reason, ": ")
}

// data is an event's data; of one that cannot be read, nothing.
func data[T any](e agent.Event) (v T) {
	_ = json.Unmarshal(e.Data, &v)
	return v
}
