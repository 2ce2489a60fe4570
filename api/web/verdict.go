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
	Of      string            // the verdict whose form was sent
	IDs     map[string]string // of each form: whatever is sent from this page twice is one verdict
	MayEdit bool
	Confirm string   // yes, no, or nothing
	Again   string   // yes, no, or nothing
	Answer  *control // the fields that an answer may set
	Result  *control // what a tool in doubt would have answered
}

// made is a form with what a page of a gate needs.
func (v *visit) madeForm(f verdictForm, g foundGate, view gateView) verdictForm {
	f.Reasons, f.IDs = reasons, map[string]string{}
	for _, word := range []agent.VerdictValue{agent.Approve, agent.Reject, agent.Return, agent.TakeBack, agent.GiveAnswer, agent.Happened, agent.DidNotHappen} {
		f.IDs[string(word)] = newID("page-")
	}
	f.MayEdit = slices.ContainsFunc(view.Outcomes, func(o outcomeView) bool { return o.Verdict == "Edit" })
	if f.Answer == nil && g.gate.Kind == agent.KindAsk {
		f.Answer = answerControl(g.gate)
	}
	if f.Result == nil && g.gate.Kind == agent.KindDoubt {
		f.Result = v.resultControl(g)
	}
	return f
}

// decideOne takes a verdict from the page of its gate.
func decideOne(v *visit) error {
	word := agent.VerdictValue(v.form("verdict"))
	g, err := v.findGate(access.Verdict, word)
	if err != nil {
		return err
	}
	form := verdictForm{Of: string(word), Chosen: v.form("why"), Text: v.form("reason"), Confirm: v.form("confirm"), Again: v.form("again")}
	verdict, err := v.verdictOf(word, g, &form)
	if err != nil {
		form.Problem = err.Error()
		return v.gatePage(http.StatusUnprocessableEntity, g, form)
	}
	r, err := v.Starter.Decide(v.ctx, g.chain.Address, verdict)
	_ = v.audited(access.Verdict, g.target()+" "+string(word), asError(r, err))
	if o := v.outcomeOf(g.chain, verdict, r, err); o != nil {
		if agent.ErrorCode(o) == agent.CodeInvalid {
			return v.refusedForm(g, verdict, form, o)
		}
		return v.notDecided(g, o)
	}
	v.to(fmt.Sprintf("%s?after=%d", gatePath(g.run.Agent, g.run.Key, g.gate.ID), r.Seq))
	return nil
}

// verdictOf is the verdict that a form says. What the form asks by a schema stays
// in form as it was sent.
func (v *visit) verdictOf(word agent.VerdictValue, g foundGate, form *verdictForm) (signals.Verdict, error) {
	out := signals.Verdict{ID: v.form("id"), Gate: g.gate.ID, Digest: v.form("digest"), Verdict: word, Principal: v.caller.Principal()}
	if out.ID == "" || out.Digest == "" {
		return out, agent.Errorf(agent.CodeInvalid, "the form is not whole: open the gate again and decide there")
	}
	var err error
	switch word {
	case agent.Approve, agent.TakeBack:
	case agent.Reject:
		out.Reason, err = rejection(v.form("why"), v.form("reason"))
	case agent.Return:
		out.Reason, err = v.form("reason"), needed(v.form("reason"), "a return needs a note: the model is told it, and proposes anew")
	case agent.Edit:
		return v.editOf(out)
	case agent.GiveAnswer:
		return v.answerOf(out, g.gate, form)
	case agent.Happened, agent.DidNotHappen:
		return v.resolutionOf(out, g, form)
	default:
		err = agent.Errorf(agent.CodeInvalid, "%q is no verdict of this form: choose one of its buttons", word)
	}
	return out, err
}

// refusedForm shows the form of a verdict that the run did not take, as it was
// sent: nothing was recorded, and the gate stays open.
func (v *visit) refusedForm(g foundGate, sent signals.Verdict, form verdictForm, err error) error {
	switch {
	case sent.Verdict == agent.Edit:
		return v.editAgain(g, sent.Args, err)
	case form.Answer != nil:
		form.Answer.blame(err.Error())
	case form.Result != nil:
		form.Result.blame(err.Error())
	}
	form.Problem = err.Error()
	return v.gatePage(http.StatusUnprocessableEntity, g, form)
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
	case now.gate.Pending != nil:
		view.Heading = "This gate was decided before"
		view.Text = "Gate " + now.gate.ID + " was " + waits(*now.gate.Pending) + ". Your verdict decided nothing."
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
