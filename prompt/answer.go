package prompt

import (
	"encoding/json"
	"fmt"
	"strings"

	"interlock/agent"
)

// statusWords says what became of a call, in words that leave no doubt whether
// it happened. A reason follows them.
var statusWords = map[agent.StepStatus]string{
	agent.StepDone:      "done",
	agent.StepWaiting:   "waiting at its gate: what becomes of it is told later",
	agent.StepRunning:   "running: what becomes of it is told later",
	agent.StepRefused:   "refused: it did not run",
	agent.StepFailed:    "failed: it did not happen",
	agent.StepRejected:  "rejected by a person: it did not run",
	agent.StepReturned:  "returned by a person with a note: it did not run",
	agent.StepEdited:    "edited by a person: it did not run, an edited call takes its place",
	agent.StepExpired:   "expired: nobody decided in time, it did not run",
	agent.StepVoid:      "void: what it rested on has changed, it did not run",
	agent.StepWithdrawn: "withdrawn: it did not run",
	agent.StepCancelled: "cancelled: it did not happen",
	agent.StepAbandoned: "abandoned while it ran: it only reads, and its result is not known",
	agent.StepInDoubt:   "in doubt: nobody knows whether it happened, a person must find out",
	agent.StepUndone:    "undone: it happened and was made good again",
}

// failed reports whether the call did not do what it was made for and will not.
func failed(status string) bool {
	switch agent.StepStatus(status) {
	case agent.StepDone, agent.StepWaiting, agent.StepRunning, agent.StepEdited, agent.StepWithdrawn, agent.StepUndone:
		return false
	}
	return true
}

// answer is the text of a call's one answer.
func answer(vc agent.ViewCall, b body, gate *agent.ViewGate) string {
	text := status(vc.Answer, gate)
	if asked(vc) {
		text = shownByAsk(vc.Args)
	}
	if vc.Answer.Step != "" {
		text = stepName(vc.Answer.Step) + ": " + text
	}
	return text + b.lines()
}

// asked reports whether a call put a question to the user. Its answer says the
// same before and after the user has answered, so that what was sent stays sent.
func asked(vc agent.ViewCall) bool {
	s := agent.StepStatus(vc.Answer.Status)
	return vc.Tool == agent.CallAsk && vc.Answer.Step != "" && (s == agent.StepWaiting || s == agent.StepDone)
}

// shownByAsk says what the user was shown, so that the model need not repeat it
// and knows what a yes is a yes to.
func shownByAsk(args agent.JSON) string {
	var a struct {
		Fields []string `json:"fields"`
	}
	text := "asked. The user has been shown the question"
	if json.Unmarshal(args, &a) == nil && len(a.Fields) > 0 {
		text += ", with the values that the state then had for " + inline(strings.Join(a.Fields, ", "))
	}
	return text + ". The user's next message is the answer."
}

// status is an item's status in words, with its reason.
func status(it agent.ViewItem, gate *agent.ViewGate) string {
	words, known := statusWords[agent.StepStatus(it.Status)]
	switch {
	case it.Status == string(agent.StepWaiting) && strings.TrimSpace(it.Text) != "":
		// As it was told then: it stays the same when the gate closes.
		return "waiting: " + strings.TrimPrefix(inline(it.Text), "waits ") + ". It has not run"
	case it.Status == string(agent.StepWaiting) && gate != nil:
		words = "waiting at gate " + inline(gate.ID) + " " + waitsFor(*gate) + ": not decided yet"
	case it.Status == "":
		words = "not answered: nobody knows what became of it"
	case !known:
		words = inline(it.Status)
	}
	if reason := inline(it.Text); reason != "" {
		words += ". " + reason
	}
	return words
}

// waitsFor says who decides at a gate, and by when.
func waitsFor(g agent.ViewGate) string {
	who := "for the user"
	if len(g.Roles) > 0 {
		who = "for a person with role "
		if g.Quorum > 1 {
			who = fmt.Sprintf("for %d different persons with role ", g.Quorum)
		}
		who += inline(strings.Join(g.Roles, " or "))
	}
	if g.ExpiresAt != nil {
		who += " until " + stamp(*g.ExpiresAt)
	}
	return who
}
