package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/words"
)

// eventsPage is how many events a page lists.
const eventsPage = 50

// eventView is an event in the list.
type eventView struct {
	Seq        int64
	At         moment
	Clock      string
	Turn       int
	Who, What  string
	Type       agent.EventType
	Path       string // of the run as it stood then
	Here       bool
	Data       codeView
	Unremarked bool // it goes without saying
}

// list is a page of the events, of which the latest come first where none is asked
// for.
func (v *visit) list(view *runView, f found) {
	n := int64(len(f.events))
	if n == 0 {
		return
	}
	first := max(n-eventsPage+1, 1)
	if asked, err := strconv.ParseInt(v.query("from"), 10, 64); err == nil {
		first = min(max(asked, 1), n)
	} else if view.Past != nil {
		first = min(max(view.Past.Seq-eventsPage/2, 1), first)
	}
	last := min(first+eventsPage-1, n)
	view.First, view.Final = first, last
	if first > 1 {
		view.Earlier = v.from(view, max(first-eventsPage, 1))
	}
	if last < n {
		view.Later = v.from(view, last+1)
	}
	for _, e := range agent.Redacted(f.hides(), f.events[first-1:last]) {
		view.Events = append(view.Events, v.event(view, e))
	}
}

func (v *visit) from(view *runView, seq int64) string {
	q := url.Values{"from": {strconv.FormatInt(seq, 10)}}
	if view.Past != nil {
		q.Set("seq", strconv.FormatInt(view.Past.Seq, 10))
	}
	return view.Path + "?" + q.Encode() + "#events"
}

func (v *visit) event(view *runView, e agent.Event) eventView {
	who, what := words.Event(e)
	out := eventView{Seq: e.Seq, At: v.moment(e.At), Clock: e.At.UTC().Format("15:04:05"), Turn: e.Turn, Who: who, What: what, Type: e.Type,
		Path: fmt.Sprintf("%s?seq=%d", view.Path, e.Seq), Here: view.Past != nil && view.Past.Seq == e.Seq, Data: pretty(e.Data), Unremarked: what == ""}
	if what == "" {
		out.Who, out.What = "code", string(e.Type)
	}
	return out
}

// past is the event that the page is to show the run after; nil: it shows the run
// as it stands.
func (v *visit) past(f found) (*pastView, error) {
	text := v.query("seq")
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > int64(len(f.events)) {
		return nil, agent.Errorf(agent.CodeNotFound, "the run has no event %q", text)
	}
	e := agent.Redacted(f.hides(), f.events[n-1])
	who, what := words.Event(e)
	if what == "" {
		who, what = "code", string(e.Type)
	}
	path := runPath(f.run.Agent, f.run.Key)
	out := &pastView{Seq: n, At: v.moment(e.At), Who: who, What: what, Data: pretty(e.Data), LaterCount: int64(len(f.events)) - n}
	if n > 1 {
		out.Before = fmt.Sprintf("%s?seq=%d", path, n-1)
	}
	if n < int64(len(f.events)) {
		out.After = fmt.Sprintf("%s?seq=%d", path, n+1)
	}
	out.Changed, err = changed(f.events[:n], f.hides())
	return out, err
}

// changed are the fields that the last of some events changed, and by what.
func changed(events []agent.Event, x *agent.Redaction) (out []changeView, err error) {
	last := events[len(events)-1]
	if last.Type != agent.EventStateSet {
		return nil, nil
	}
	before, err := agent.Reduce(events[:len(events)-1])
	if err != nil {
		return nil, err
	}
	after, err := agent.Reduce(events)
	if err != nil {
		return nil, err
	}
	was, is := agent.Redacted(x, before), agent.Redacted(x, after)
	_, old := words.Members(was.State)
	names, now := words.Members(is.State)
	_, raw := words.Members(before.State)
	_, rawNow := words.Members(after.State)
	for _, n := range names {
		if raw[n].Equal(rawNow[n]) {
			continue
		}
		c := changeView{Field: n, Old: "-", New: "-", By: words.Origin(after, n)}
		if !words.Empty(old[n]) {
			c.Old = words.Value(old[n])
		}
		if !words.Empty(now[n]) {
			c.New = words.Value(now[n])
		}
		out = append(out, c)
	}
	return out, nil
}

// contextView is what the model was shown in a turn.
type contextView struct {
	Turn    int
	Problem string
	Phase   string
	At      moment
	State   []stateField
	Items   []contextItem
	Whole   codeView
}

// contextItem is one thing that the model was shown, who it is from, and of what.
type contextItem struct {
	Turn          int
	Who, Of, Text string
}

// context is nil where no turn is asked for.
func (v *visit) context(f found) (*contextView, error) {
	text := v.query("turn")
	if text == "" {
		return nil, nil
	}
	if err := v.audited(access.RunContext, f.chain.Address, access.Check(v.caller, access.RunContext, f.on())); err != nil {
		return nil, err
	}
	turn, err := strconv.Atoi(text)
	if err != nil || turn < 1 {
		return nil, agent.Errorf(agent.CodeNotFound, "the run has no turn %q", text)
	}
	view, err := agent.ViewAt(f.events, turn)
	out := &contextView{Turn: turn}
	switch agent.ErrorCode(err) {
	case agent.CodeConflict:
		out.Problem = err.Error()
		return out, nil
	default:
		if err != nil {
			return nil, err
		}
	}
	view = agent.Redacted(f.hides(), view)
	out.Phase, out.At = view.Phase, v.moment(view.At)
	names, values := words.Members(view.State)
	for _, n := range names {
		out.State = append(out.State, stateField{Name: n, Value: words.Value(values[n]), Set: !words.Empty(values[n]), Origin: view.Provenance[n].Source})
	}
	for _, t := range view.Turns {
		out.Items = append(out.Items, itemsOf(t)...)
	}
	whole, err := agent.Encode(view)
	out.Whole = pretty(whole)
	return out, err
}

func itemsOf(t agent.ViewTurn) (out []contextItem) {
	for _, it := range t.Opening {
		who := "code"
		if it.Kind == agent.ItemMessage {
			who = "user"
		}
		out = append(out, contextItem{t.N, who, string(it.Kind), it.Text})
	}
	if t.Text != "" {
		out = append(out, contextItem{t.N, "model", "text", t.Text})
	}
	for _, c := range t.Calls {
		out = append(out, contextItem{t.N, "model", "call", c.Tool + " " + c.Args.String()})
		answer := c.Answer.Status
		if c.Answer.Text != "" {
			answer += ": " + c.Answer.Text
		}
		if len(c.Answer.Result) > 0 {
			answer += " " + c.Answer.Result.String()
		}
		out = append(out, contextItem{t.N, "code", "answer", answer})
	}
	return out
}

// rulingView is a ruling with what can be done about it.
type rulingView struct {
	ID, Title, Reason, By, Tool, Status string
	Reads                               []string
	At                                  moment
	Path                                string
	LiftID, ConfirmID                   string // "": the caller can not
}

func (v *visit) rulings(run *agent.Run, now bool) (out []rulingView) {
	for _, u := range slices.Backward(run.Rulings) {
		status := run.RulingStatus(u)
		r := rulingView{ID: u.ID, Title: u.Title, Reason: u.Reason, By: u.By.Subject, Tool: u.Tool, Status: string(status), Reads: u.Reads, At: v.moment(u.At), Path: runPath(run.Agent, run.Key) + "/rulings/" + url.PathEscape(u.ID)}
		if now && !run.Status.Ended() {
			on := access.On{Tenant: run.Tenant, Run: run.Address(), User: run.User}
			if (status == agent.RulingBinds || status == agent.RulingDraft) && access.Check(v.caller, access.RulingLift, on) == nil {
				r.LiftID = newID("page-")
			}
			if status == agent.RulingDraft && access.Check(v.caller, access.RulingConfirm, on) == nil {
				r.ConfirmID = newID("page-")
			}
		}
		out = append(out, r)
	}
	return out
}

func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// exported is a run with all its events, sensitive fields masked.
type exported struct {
	Run    *agent.Run    `json:"run"`
	Events []agent.Event `json:"events"`
}

// export answers with a run and its journal as one file, as the API does to
// programs.
func export(v *visit) error {
	f, err := v.find(access.RunExport)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(agent.Redacted(f.hides(), exported{Run: f.run, Events: append([]agent.Event{}, f.events...)}), "", " ")
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", f.run.Agent+"-"+f.run.Key+".json"))
	_, err = v.w.Write(append(data, '\n'))
	return err
}
