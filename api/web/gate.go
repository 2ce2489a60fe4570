package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/visible"
	"interlock/api/words"
)

// gateView is the page of a gate.
type gateView struct {
	Path, RunPath string
	Address       string
	ID, Title     string
	Agent, User   string
	Tool          string
	Kind          agent.StepKind
	Open          bool
	Sentence      string // what will run
	How           string // how it was closed
	Args          codeView
	Misleading    []string
	Policy, Risk  string
	Replaces      string
	Fields        []fieldView
	Facts         []factView
	Earlier       []string
	Askers        []string
	MayDecide     string
	Quorum        string
	Approvals     []approvalView
	Opened        moment
	Expires       *moment
	Escalates     *moment
	EscalatesTo   string
	Escalated     bool
	Closed        *moment
	Outcomes      []outcomeView // what happens on each verdict
	Kept          []string      // verdicts that wait to be judged
	Pending       *pendingView  // the verdict that can be taken back still
	Drafts        []rulingView  // of rulings about the same tool
	WhyNot        string
	Signed        string // that the caller's verdict is not proven
	Digest        string
	Form          verdictForm
	Live          string    // address of what it follows
	Desk          *deskView // nil: who looks at it is not the caller's business
}

// codeView is JSON as people read it, nothing clipped.
type codeView struct {
	Text  string
	Lines []string
	Bytes int
}

type fieldView struct {
	Name, Value, JSON, Origin string
	Verified                  *moment
	Changed                   bool // the run has another value now
}

type factView struct {
	Quote string
	Turn  int
}

type approvalView struct {
	Who, Reason string
	At          moment
}

type outcomeView struct{ Verdict, Text string }

func showGate(v *visit) error {
	g, err := v.findGate(actGate, "")
	if err != nil {
		return err
	}
	if shown := v.query("shown"); v.fragment() && g.gate.Status == agent.GateOpen && shown != g.gate.Digest {
		return v.unchanged() // what is decided about is never replaced under somebody's eyes
	}
	return v.gatePage(http.StatusOK, g, verdictForm{})
}

// gatePage shows a gate, with a form as it was sent where one was.
func (v *visit) gatePage(status int, g foundGate, form verdictForm) error {
	return v.gatePageAbout(status, g, form, nil)
}

// gatePageAbout is gatePage, with what is wrong with who is to look at it.
func (v *visit) gatePageAbout(status int, g foundGate, form verdictForm, wrong error) error {
	view := v.gateView(g)
	view.Form = v.madeForm(form, g, view)
	if view.Desk = v.deskOf(g); view.Desk != nil && wrong != nil {
		view.Desk.Problem, view.Desk.To = wrong.Error(), v.form("to")
	}
	if g.gate.Status == agent.GateOpen {
		view.Live = liveRun(g.found)
	}
	if v.fragment() {
		return v.part("gate", "page", view)
	}
	return v.page(status, "gate", "Gate "+g.gate.ID+" of "+g.run.Agent+"/"+g.run.Key, view)
}

func (v *visit) gateView(f foundGate) gateView {
	g, run, decides := f.gate, f.run, access.Decides(v.caller, f.gate, f.on())
	if decides {
		run = agent.Redacted(run.RedactionAt(g), run)
	} else {
		g, run = agent.Redacted(f.hides(), g), agent.Redacted(f.hides(), run)
	}
	path := gatePath(run.Agent, run.Key, g.ID)
	view := gateView{Path: path, RunPath: runPath(run.Agent, run.Key), Address: run.Address(), ID: g.ID, Title: g.Title, Agent: run.Agent, User: run.User,
		Tool: g.Tool, Kind: g.Kind, Open: g.Status == agent.GateOpen, Sentence: sentenceOf(g, run), Args: pretty(g.Args),
		Policy: g.Policy, Risk: g.Risk, Replaces: g.Replaces, Earlier: g.Rulings, Askers: g.Askers,
		MayDecide: words.Deciders(g) + words.Rules(g), Opened: v.moment(g.OpenedAt), Digest: g.Digest, WhyNot: whyNot(v.caller, g, f.on())}
	view.Pending = v.pending(g)
	for _, name := range g.Reads {
		view.Fields = append(view.Fields, v.fieldView(g, run, name, slices.Contains(run.Sensitive, name)))
	}
	for _, x := range run.Facts {
		view.Facts = append(view.Facts, factView{x.Quote, x.Turn})
	}
	if g.Quorum > 1 {
		view.Quorum = words.Approvals(g)
	}
	for _, a := range g.Approvals {
		view.Approvals = append(view.Approvals, approvalView{words.Principal(&a.By, a.Verified), a.Reason, v.moment(a.At)})
	}
	if view.Open {
		view.Expires = v.momentOf(g.ExpiresAt)
		view.Outcomes = outcomes(g, run)
	} else {
		view.How, view.Closed = how(g), v.momentOf(g.ClosedAt)
	}
	if e := g.Escalation; e != nil {
		view.Escalated, view.EscalatesTo = e.Done, strings.Join(e.Roles, " or ")
		view.Escalates = v.momentOf(&e.At)
	}
	for _, k := range run.Kept {
		if k.Gate == g.ID {
			view.Kept = append(view.Kept, string(k.Verdict)+" by "+words.Principal(&k.Principal, k.Verified))
		}
	}
	for _, u := range v.rulings(run, true) {
		if u.Status == string(agent.RulingDraft) && u.Tool == g.Tool {
			view.Drafts = append(view.Drafts, u)
		}
	}
	view.Misleading = visible.Gate(g)
	return view
}

func (v *visit) fieldView(g agent.Gate, run *agent.Run, name string, sensitive bool) fieldView {
	shown := g.Shown[name]
	out := fieldView{Name: name, Value: words.Value(shown), JSON: shown.String(), Origin: words.Origin(run, name)}
	if p, ok := run.Provenance[name]; ok {
		out.Verified = v.momentOf(p.VerifiedAt)
	}
	_, now := words.Members(run.State)
	out.Changed = g.Status == agent.GateOpen && !now[name].Equal(shown) && !sensitive // a change voids the gate
	if g.Kind == agent.KindAsk || out.Value == out.JSON || typeOf(shown) == "string" && !alike(out.Value) {
		out.JSON = ""
	}
	return out
}

// alike reports a text that reads like a JSON value of another type, so that the
// exact one stands beside it.
func alike(text string) bool {
	_, err := agent.Canonical([]byte(text))
	return err == nil
}

// pretty is canonical JSON on lines of its own. The digits stay as they are: it is
// never parsed into numbers.
func pretty(j agent.JSON) codeView {
	out := codeView{Bytes: len(j)}
	text := j.String()
	var indented bytes.Buffer
	if json.Indent(&indented, []byte(text), "", "  ") == nil {
		text = indented.String()
	}
	for _, line := range strings.Split(text, "\n") {
		out.Lines = append(out.Lines, visible.Inline(line))
	}
	out.Text = strings.Join(out.Lines, "\n")
	return out
}

func dataOf[T any](e agent.Event) (d T) {
	_ = json.Unmarshal(e.Data, &d)
	return d
}
