package web

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"interlock/agent"
	"interlock/api/access"
	"interlock/signals"
	"interlock/store"
)

// reasons are the named ones of a reject. Their text goes into the reason.
var reasons = []string{"wrong amount", "wrong recipient", "not allowed by policy", "other"}

// verdictForm is what a verdict's forms hold: as made for a page, or as sent and
// not taken, with what was wrong.
type verdictForm struct {
	Problem string
	Reasons []string
	Chosen  string // of Reasons
	Text    string
	IDs     map[string]string // of each form: whatever is sent from this page twice is one verdict
	MayEdit bool
}

func (f verdictForm) made(view gateView) verdictForm {
	f.Reasons = reasons
	f.IDs = map[string]string{}
	for _, v := range []agent.VerdictValue{agent.Approve, agent.Reject, agent.Return} {
		f.IDs[string(v)] = newID("page-")
	}
	f.MayEdit = slices.ContainsFunc(view.Outcomes, func(o outcomeView) bool { return o.Verdict == "Edit" })
	return f
}

// decideOne takes a verdict from the page of its gate.
func decideOne(v *visit) error {
	word := agent.VerdictValue(v.form("verdict"))
	g, err := v.findGate(access.Verdict, word)
	if err != nil {
		return err
	}
	verdict, err := v.verdictOf(word, g.gate.ID)
	if err != nil {
		return v.gatePage(http.StatusUnprocessableEntity, g, v.sentForm(err))
	}
	r, err := v.Starter.Decide(v.ctx, g.chain.Address, verdict)
	_ = v.audited(access.Verdict, g.target()+" "+string(word), asError(r, err))
	if o := v.outcomeOf(g.chain, verdict, r, err); o != nil {
		return v.notDecided(g, o)
	}
	v.to(fmt.Sprintf("%s?after=%d", gatePath(g.run.Agent, g.run.Key, g.gate.ID), r.Seq))
	return nil
}

// verdictOf is the verdict that a form says.
func (v *visit) verdictOf(word agent.VerdictValue, gate string) (signals.Verdict, error) {
	out := signals.Verdict{ID: v.form("id"), Gate: gate, Digest: v.form("digest"), Verdict: word, Principal: v.caller.Principal()}
	if out.ID == "" || out.Digest == "" {
		return out, agent.Errorf(agent.CodeInvalid, "the form is not whole: open the gate again and decide there")
	}
	switch word {
	case agent.Approve:
	case agent.Reject:
		reason, err := rejection(v.form("why"), v.form("reason"))
		if err != nil {
			return out, err
		}
		out.Reason = reason
	case agent.Return:
		if out.Reason = v.form("reason"); out.Reason == "" {
			return out, agent.Errorf(agent.CodeInvalid, "a return needs a note: the model is told it, and proposes anew")
		}
	default:
		return out, agent.Errorf(agent.CodeInvalid, "%q is no verdict of this form: choose one of its buttons", word)
	}
	return out, nil
}

// rejection is the reason of a reject: what was chosen, and why in their words.
func rejection(chosen, text string) (string, error) {
	switch {
	case !slices.Contains(reasons, chosen):
		return "", agent.Errorf(agent.CodeInvalid, "choose what is wrong: the model and the user are told")
	case text == "":
		return "", agent.Errorf(agent.CodeInvalid, "say why in a few words: the model and the user are told, and the next reviewer sees it")
	case chosen == "other":
		return text, nil
	}
	return chosen + ": " + text, nil
}

func (v *visit) sentForm(err error) verdictForm {
	return verdictForm{Problem: err.Error(), Chosen: v.form("why"), Text: v.form("reason")}
}

// asError is what an audit line says of a receipt.
func asError(r agent.Receipt, err error) error {
	if err == nil && r.Status == agent.Voided {
		code := r.Code
		if code == "" {
			code = agent.CodeConflict
		}
		return agent.Errorf(code, "%s", r.Reason)
	}
	return err
}

// outcomeOf is why a verdict decided nothing, nil where it decided, is counted or
// kept. A repeat is answered as the first was.
func (v *visit) outcomeOf(chain store.Chain, sent signals.Verdict, r agent.Receipt, err error) error {
	if err == nil && r.Status == agent.Repeated {
		if first, err := v.judged(chain, sent.ID, r.Seq); err == nil && first.Judgement == "void" {
			r = agent.Receipt{Status: agent.Voided, Code: first.Code, Reason: first.Reason}
		}
	}
	return asError(r, err)
}

// notDecided says why a verdict decided nothing, and how the gate stands now.
func (v *visit) notDecided(g foundGate, err error) error {
	code := agent.ErrorCode(err)
	switch code {
	case agent.CodeInvalid:
		return v.gatePage(http.StatusUnprocessableEntity, g, v.sentForm(err))
	case agent.CodeGateClosed, agent.CodeStale, agent.CodeConflict, agent.CodeEnded, agent.CodeDenied:
	default:
		return err
	}
	now, readErr := v.current(g)
	if readErr != nil {
		now = g
	}
	status, heading := statusOf(code)
	path := gatePath(g.run.Agent, g.run.Key, g.gate.ID)
	view := errorView{Status: status, Heading: heading, Text: "Your verdict decided nothing: " + err.Error() + ".", RequestID: v.id,
		Links: []link{{path, "Look at the gate again"}, {"/", "Inbox"}}}
	switch {
	case now.gate.Status != agent.GateOpen:
		view.Heading = "This gate was decided before"
		if now.gate.By == nil {
			view.Heading = "This gate is closed"
		}
		view.Text = "Gate " + now.gate.ID + " was " + how(now.gate)
		if now.gate.ClosedAt != nil {
			view.Text += ", at " + v.moment(*now.gate.ClosedAt).Abs
		}
		view.Text += ". Your verdict decided nothing."
		view.Links[0].Text = "See how it stands"
	case code == agent.CodeStale:
		view.Heading = "This gate has changed since you opened it"
		view.Text = "What it shows is not what you saw, so your verdict decided nothing. Look again."
	}
	return v.page(status, "error", view.Heading, view)
}

// current is the gate as the run itself has it now.
func (v *visit) current(g foundGate) (foundGate, error) {
	run, err := v.Starter.Get(v.ctx, g.chain.Address)
	if err != nil {
		return g, err
	}
	for _, x := range run.Gates {
		if x.ID == g.gate.ID {
			g.gate, g.run = x, run
			return g, nil
		}
	}
	return g, nil
}

// number reads a number of a form or a query; what is none is 0.
func number(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 {
		return 0
	}
	return n
}
