package agenttest

import (
	"encoding/json"
	"maps"
	"slices"

	"interlock/agent"
	"interlock/llm"
)

// Run is the run as it stands. It must not be changed.
func (r *Run) Run() *agent.Run { return r.machine.Run() }

// State decodes the state into a pointer to the agent's state type.
func (r *Run) State(into any) {
	r.t.Helper()
	if err := json.Unmarshal(r.Run().State, into); err != nil {
		r.t.Fatalf("agenttest: the state does not decode into %T: %v", into, err)
	}
}

// Phase is the phase that the run is in.
func (r *Run) Phase() string { return r.Run().Phase }

// Status is where the run stands; [Run.Run] has the reason.
func (r *Run) Status() agent.RunStatus { return r.Run().Status }

// Step is a step of the run. It fails the test where the run holds none of that
// id.
func (r *Run) Step(id string) agent.Step {
	r.t.Helper()
	for _, s := range r.Run().Steps {
		if s.ID == id {
			return s
		}
	}
	r.t.Fatalf("agenttest: there is no step %s: %s", id, r.stands())
	return agent.Step{}
}

// Gate is a gate of the run, open or not. It fails the test where the run holds
// none of that id.
func (r *Run) Gate(id string) agent.Gate {
	r.t.Helper()
	for _, g := range r.Run().Gates {
		if g.ID == id {
			return g
		}
	}
	r.t.Fatalf("agenttest: there is no gate %s: %s", id, r.stands())
	return agent.Gate{}
}

// Answer is code's answer to the latest call of a tool or control call that the
// model made: its status, and why.
func (r *Run) Answer(tool string) (status, text string) {
	r.t.Helper()
	for _, t := range slices.Backward(r.Run().Turns) {
		if t.Proposal == nil {
			continue
		}
		for _, c := range slices.Backward(t.Proposal.Calls) {
			if c.Tool != tool {
				continue
			}
			if c.Status == "" && c.Step != "" {
				s := r.Step(c.Step)
				return string(s.Status), s.Reason
			}
			return c.Status, c.Text
		}
	}
	r.t.Fatalf("agenttest: the model made no call of %s that the run holds", tool)
	return "", ""
}

// Replies are all texts to the user, oldest first, reminders included.
func (r *Run) Replies() []string {
	var out []string
	for _, e := range r.events {
		var d agent.ReplyData
		if (e.Type == agent.EventReply || e.Type == agent.EventReminded) && json.Unmarshal(e.Data, &d) == nil {
			out = append(out, d.Text)
		}
	}
	return out
}

// Events is the journal of the run.
func (r *Run) Events() []agent.Event { return slices.Clone(r.events) }

// Request is what the model was shown last. It fails the test where the model
// has not been called.
func (r *Run) Request() llm.Request {
	r.t.Helper()
	if r.asked == nil {
		r.t.Fatalf("agenttest: the model has not been called: %s", r.stands())
	}
	return *r.asked
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
