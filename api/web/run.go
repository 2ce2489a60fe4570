package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/words"
)

// runView is the page of a run, as it stands or as it stood after an event.
type runView struct {
	Path, Address, Agent, Key string
	Version                   int
	User, StartedBy           string
	Status                    statusView
	Reason, Sentence, Next    string
	Unseen                    []string
	Phase                     string
	Turn                      int
	Seq, Last                 int64
	Started, At               moment
	FirstRunID, Repairs       string
	RepairsPath               string
	RepairedBy                []repairView
	Said                      string // the latest reply
	Waits                     []waitView
	Past                      *pastView    // not how it stands, but how it stood
	Context                   *contextView // what the model was shown
	Turns                     []int
	Acts                      actsView
	Picture                   timeline
	Fields                    []stateField
	Steps                     []stepView
	Gates                     []gateRow
	Facts                     []factView
	Rulings                   []rulingView
	Budget                    []budgetLine
	Events                    []eventView
	Earlier, Later            string
	First, Final              int64 // of the events shown
	TrimmedSteps              int
	FailedEnd                 []string
	Undoing                   []string
	Exports                   []link
	Follows                   bool   // it is the run as it stands, and goes on
	Live                      string // address of what it follows
}

// repairView is a run that undoes steps of the one that is shown.
type repairView struct {
	Path, Address string
	Status        statusView
	Steps         []stepView
}

type waitView struct {
	For, What, Who, Then string
	Gate                 string // path
	Since                moment
	Until                *moment
}

// pastView is which event the page shows the run after, and what that changed.
type pastView struct {
	Seq        int64
	At         moment
	Who, What  string
	Before     string // address of the event before
	After      string
	Changed    []changeView
	Data       codeView
	LaterCount int64
}

type changeView struct{ Field, Old, New, By string }

type stateField struct {
	Name, Value, Origin string
	Set                 bool
	Verified            *moment
}

type gateRow struct {
	ID, Path, Title, Who string
	Status               statusView
	Opened               moment
}

type budgetLine struct {
	Name, Text  string
	Used, Limit string // for the meter; a number of the server's, never read by a script
	Bounded     bool
}

func showRun(v *visit) error {
	f, err := v.find(access.RunGet)
	if err != nil {
		return err
	}
	if v.query("after") != "" && !f.fresh {
		if run, err := v.Starter.Get(v.ctx, f.chain.Address); err == nil && run.FirstRunID == f.run.FirstRunID && run.Seq > f.run.Seq {
			f.run = run
		}
	}
	return v.runPage(http.StatusOK, f, actsView{})
}

// runPage shows a run, with a form of an act as it was sent where one was.
func (v *visit) runPage(status int, f found, sent actsView) error {
	view, err := v.runView(f, sent)
	if err != nil {
		return err
	}
	if v.fragment() {
		return v.part("run", "page", view)
	}
	return v.page(status, "run", "Run "+f.run.Agent+"/"+f.run.Key, view)
}

func (v *visit) runView(f found, sent actsView) (view runView, err error) {
	run, last := f.run, f.run.Seq
	past, err := v.past(f)
	if err != nil {
		return view, err
	}
	if past != nil {
		if run, err = agent.Reduce(f.events[:past.Seq]); err != nil {
			return view, err
		}
	}
	run = agent.Redacted(f.hides(), run)
	view = v.head(run)
	view.Last, view.Past = last, past
	if past == nil {
		v.why(&view, f)
		view.Acts = v.acts(f, sent)
		if view.Follows = !run.Status.Ended() && v.query("turn")+v.query("from") == ""; view.Follows {
			view.Live = liveRun(f)
		}
		if access.Check(v.caller, access.RunExport, f.on()) == nil {
			view.Exports = []link{{view.Path + "/export", "the run and its events, as JSON"}}
		}
	}
	view.Picture = v.timeline(f.events, run, f.hides())
	v.body(&view, run)
	view.Rulings = v.rulings(run, past == nil)
	if view.Context, err = v.context(f); err != nil {
		return view, err
	}
	v.list(&view, f)
	return view, nil
}

// head is what stands above all.
func (v *visit) head(run *agent.Run) runView {
	view := runView{Path: runPath(run.Agent, run.Key), Address: run.Address(), Agent: run.Agent, Key: run.Key, Version: run.Version, User: run.User,
		StartedBy: words.Principal(&run.Principal, run.Principal.Auth != ""), Status: runStatus(run.Status), Phase: run.Phase, Turn: run.Turn,
		Seq: run.Seq, Started: v.moment(run.StartedAt), At: v.moment(run.At), FirstRunID: run.FirstRunID, FailedEnd: run.FailedEnd, TrimmedSteps: run.Trimmed.Steps}
	if run.Status != agent.RunWaiting { // what it waits for is listed
		view.Reason = run.Reason
	}
	if run.Repairs != nil {
		view.Repairs, view.RepairsPath = run.Repairs.Address, pathOf(run.Repairs.Address)
	}
	if run.Reply != nil {
		view.Said = run.Reply.Text
	}
	for _, u := range run.Undo {
		view.Undoing = append(view.Undoing, fmt.Sprintf("step %s, asked for by %s: %s", u.Step, u.By, u.Reason))
	}
	for n := range run.Turn {
		view.Turns = append(view.Turns, n+1)
	}
	for _, w := range run.Waits() {
		wait := waitView{For: string(w.For), What: w.What, Who: strings.Join(w.Who, " or "), Then: w.Then, Since: v.moment(w.Since), Until: v.momentOf(w.Until)}
		if w.Gate != "" {
			wait.Gate = gatePath(run.Agent, run.Key, w.Gate)
		}
		view.Waits = append(view.Waits, wait)
	}
	return view
}

// whyFor bounds the question why a run waits: the page is made without the answer
// where it does not come.
const whyFor = 3 * time.Second

// why says in a sentence how the run stands, as `interlock run why` does.
func (v *visit) why(view *runView, f found) {
	within := *v
	ctx, cancel := withTimeout(v.ctx, whyFor)
	defer cancel()
	within.ctx = ctx
	w, err := within.Starter.Why(ctx, f.chain.Address)
	if err != nil {
		view.Unseen = []string{"why it waits"}
		if slices.Contains(v.caller.May, access.Operator) {
			view.Unseen = []string{f.hides().Text(err.Error())}
		}
		return
	}
	if !slices.Contains(v.caller.May, access.Operator) {
		w = w.Plain()
	}
	view.Sentence, view.Next, view.Unseen = upper(w.Sentence), w.Next, w.Unseen
	for _, r := range w.RepairedBy {
		repair := repairView{Path: pathOf(r.Address), Address: r.Address, Status: runStatus(r.Status)}
		for _, s := range r.Steps {
			repair.Steps = append(repair.Steps, stepView{ID: s.Step, Tool: s.Tool, Status: stepStatus(s.Status)})
		}
		view.RepairedBy = append(view.RepairedBy, repair)
	}
}

// body is the run itself.
func (v *visit) body(view *runView, run *agent.Run) {
	names, values := words.Members(run.State)
	for _, n := range names {
		field := stateField{Name: n, Value: words.Value(values[n]), Origin: words.Origin(run, n), Set: !words.Empty(values[n])}
		if p, ok := run.Provenance[n]; ok {
			field.Verified = v.momentOf(p.VerifiedAt)
		}
		view.Fields = append(view.Fields, field)
	}
	for _, s := range run.Steps {
		view.Steps = append(view.Steps, stepOf(s))
	}
	for _, g := range run.Gates {
		row := gateRow{ID: g.ID, Path: gatePath(run.Agent, run.Key, g.ID), Title: g.Title, Who: words.Deciders(g), Status: gateStatus(g.Status), Opened: v.moment(g.OpenedAt)}
		if g.Status != agent.GateOpen {
			row.Who = words.ByWhom(g)
		}
		view.Gates = append(view.Gates, row)
	}
	for _, x := range run.Facts {
		view.Facts = append(view.Facts, factView{x.Quote, x.Turn})
	}
	view.Budget = budget(run)
}

type stepView struct {
	ID, Tool, By, Reason string
	Status               statusView
	Args, Result         codeView
	HasResult            bool
	Key, Effect          string
	Links                []string // to other steps, in words
}

func stepOf(s agent.Step) stepView {
	out := stepView{ID: s.ID, Tool: s.Tool, By: map[agent.StepSource]string{agent.ByModel: "the model", agent.ByEnter: "code", agent.ByUndo: "an undo"}[s.By],
		Reason: s.Reason, Status: stepStatus(s.Status), Args: pretty(s.Args), Key: s.Key}
	if len(s.Result) > 0 {
		out.Result, out.HasResult = pretty(s.Result), true
	}
	for text, step := range map[string]string{"undoes step ": s.Undoes, "undone by step ": s.UndoneBy, "in the place of step ": s.Replaces} {
		if step != "" {
			out.Links = append(out.Links, text+step)
		}
	}
	if s.EditedBy != "" {
		out.Links = append(out.Links, "edited by "+s.EditedBy)
	}
	if s.Archived > 0 {
		out.Links = append(out.Links, fmt.Sprintf("its result of %d bytes is in the journal", s.Archived))
	}
	if s.Compensation != "" {
		out.Links = append(out.Links, "can be undone by "+s.Compensation)
	}
	slices.Sort(out.Links)
	return out
}

// budget is what is used of what is allowed. A negative limit is none.
func budget(run *agent.Run) (out []budgetLine) {
	b, u := run.Limits.Budget, run.Used
	add := func(name string, used, granted, limit int64, unit func(int64) string) {
		line := budgetLine{Name: name, Text: unit(used) + " without limit"}
		if limit >= 0 {
			line.Text, line.Bounded = unit(used)+" of "+unit(granted+limit), true
			line.Used, line.Limit = fmt.Sprint(used), fmt.Sprint(granted+limit)
		}
		out = append(out, line)
	}
	number := func(n int64) string { return fmt.Sprint(n) }
	add("turns", int64(u.Turns), int64(run.Granted.Turns), int64(b.Turns), number)
	add("model calls", int64(u.ModelCalls), int64(run.Granted.ModelCalls), int64(b.ModelCalls), number)
	add("tokens", u.Usage.Total(), run.Granted.Tokens, b.Tokens, number)
	add("active", u.ActiveMS, run.Granted.ActiveMS, b.Active.Milliseconds(), func(ms int64) string {
		return (time.Duration(ms) * time.Millisecond).Round(time.Second).String()
	})
	add("refusals in a row", int64(u.Refusals), 0, int64(b.Refusals), number)
	add("tool errors in a row", int64(u.ToolErrors), 0, int64(b.ToolErrors), number)
	return out
}
