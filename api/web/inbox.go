package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/visible"
	"interlock/api/words"
	"interlock/signals"
	"interlock/store"
)

const (
	inboxPage = 50   // gates of one page
	inboxMost = 2000 // gates that are looked through
	ownRuns   = 100  // of a user, that are looked through for questions
)

// fitsRow is how many bytes of arguments a row shows whole. What does not fit is
// not shown, and what was not shown is not approved.
const fitsRow = 400

// inboxFilter narrows the inbox, as the address of the page says it.
type inboxFilter struct {
	Agent, Role, Risk, Older, Order string
	Desk                            string // mine, nobody; "": all
	Page                            int
}

func (v *visit) inboxFilter() inboxFilter {
	f := inboxFilter{Agent: v.query("agent"), Role: v.query("role"), Risk: v.query("risk"), Older: v.query("older"), Order: v.query("order"), Desk: v.query("desk"), Page: max(number(v.query("page")), 1)}
	if f.Desk != "mine" && f.Desk != "nobody" {
		f.Desk = ""
	}
	if f.Order != "oldest" {
		f.Order = "expires"
	}
	return f
}

// address is the inbox with this filter, on one of its pages.
func (f inboxFilter) address(page int) string {
	q := url.Values{}
	for name, value := range map[string]string{"agent": f.Agent, "role": f.Role, "risk": f.Risk, "older": f.Older, "desk": f.Desk} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Order == "oldest" {
		q.Set("order", f.Order)
	}
	if page > 1 {
		q.Set("page", strconv.Itoa(page))
	}
	if len(q) == 0 {
		return "/"
	}
	return "/?" + q.Encode()
}

// inboxView is the inbox, whole or as the part that is refreshed.
type inboxView struct {
	Filter        inboxFilter
	Filtered      bool
	Agents, Roles []string
	Ages          []string
	Rows          []rowView
	Total         int
	Pages         int
	Earlier       string // address of the page before
	Later         string
	More          bool   // not all gates were looked through
	Refresh, Live string // addresses: of the list, of what it follows
	Action        string // of the form
	Reasons       []string
	Problem       string
	Text, Chosen  string
	Several       bool // some row can be chosen
	At            moment
}

// rowView is one gate of the inbox.
type rowView struct {
	N                   int
	ID, Digest          string // of the verdict, of the gate
	Gate                string // which gate, for the form
	Path, Title, Agent  string
	GateID, Tool, Asker string
	Kind                agent.StepKind
	Risk                string
	Since               moment
	Until               *moment
	Soon                bool
	Escalated           bool
	Quorum              string
	Approved            []string
	Args                string
	More                codeView // arguments that do not fit
	Misleading          []string
	Single              string // why it is approved on its own page only
	Choose              bool
	Picked              bool
	WhyNot              string
	Pending             *pendingView
	Look                *lookView // nil: nobody looks at it
}

func showInbox(v *visit) error {
	view, err := v.inbox(nil)
	if err == nil && v.fragment() { // a page that is open asks again and again: the audit has it once
		return v.part("inbox", "list", view)
	}
	if err = v.audited(access.GateList, "", err); err != nil {
		return err
	}
	return v.page(http.StatusOK, "inbox", "Inbox", view)
}

// inbox makes the view; picked are the gates whose boxes are ticked.
func (v *visit) inbox(picked map[string]bool) (inboxView, error) {
	live := v.liveInbox() // before the list is read: what comes between is told
	rows, more, err := v.waiting()
	if err != nil {
		return inboxView{}, err
	}
	f := v.inboxFilter()
	view := inboxView{Filter: f, Live: live, Filtered: f.address(1) != "/" && f.address(1) != "/?order=oldest", Ages: []string{"1h", "4h", "24h"}, Roles: v.caller.Roles, More: more, Reasons: reasons, At: v.moment(v.now)}
	for _, r := range rows {
		if !slices.Contains(view.Agents, r.Agent) {
			view.Agents = append(view.Agents, r.Agent)
		}
	}
	slices.Sort(view.Agents)
	d := v.desk()
	rows = slices.DeleteFunc(rows, func(r store.GateRow) bool { return !f.takes(r, v.now) || !f.ofDesk(v.lookOf(d, v.runOf(r), r.Gate.ID)) })
	f.sort(rows)
	view.Total, view.Pages = len(rows), max((len(rows)+inboxPage-1)/inboxPage, 1)
	f.Page = min(f.Page, view.Pages)
	view.Filter, view.Refresh = f, f.address(f.Page)
	view.Action = "/decide" + strings.TrimPrefix(view.Refresh, "/")
	if f.Page > 1 {
		view.Earlier = f.address(f.Page - 1)
	}
	if f.Page < view.Pages {
		view.Later = f.address(f.Page + 1)
	}
	all := &store.Redactions{Reader: v.Reader}
	for i, r := range rows[(f.Page-1)*inboxPage : min(f.Page*inboxPage, len(rows))] {
		if !access.Decides(v.caller, r.Gate, access.On{Tenant: v.caller.Tenant, Run: r.Address}) {
			r.Gate = agent.Redacted(all.Of(v.ctx, v.runOf(r)), r.Gate)
		}
		row := v.row(i, r)
		row.Look = v.lookOf(d, v.runOf(r), r.Gate.ID)
		row.Picked = picked[row.Gate]
		view.Several = view.Several || row.Choose
		view.Rows = append(view.Rows, row)
	}
	return view, nil
}

// takes reports whether the filter lets a gate through.
func (f inboxFilter) takes(r store.GateRow, now time.Time) bool {
	older, _ := time.ParseDuration(f.Older)
	return (f.Agent == "" || r.Agent == f.Agent) && (f.Role == "" || slices.Contains(r.Gate.Roles, f.Role)) &&
		(f.Risk == "" || strings.Contains(strings.ToLower(r.Gate.Risk), strings.ToLower(f.Risk))) &&
		(older <= 0 || now.Sub(r.Gate.OpenedAt) >= older)
}

// ofDesk reports whether the filter lets a gate through that somebody, or nobody,
// looks at.
func (f inboxFilter) ofDesk(l *lookView) bool {
	switch f.Desk {
	case "mine":
		return l != nil && l.Mine
	case "nobody":
		return l == nil
	}
	return true
}

func (v *visit) runOf(r store.GateRow) store.Chain {
	return store.Chain{Tenant: v.caller.Tenant, Address: r.Address, FirstRunID: r.FirstRunID}
}

// sort orders by what expires first, or by what waits longest.
func (f inboxFilter) sort(rows []store.GateRow) {
	slices.SortStableFunc(rows, func(a, b store.GateRow) int {
		if x, y := a.Gate.ExpiresAt, b.Gate.ExpiresAt; f.Order == "expires" && (x != nil || y != nil) {
			switch {
			case x == nil:
				return 1
			case y == nil:
				return -1
			case !x.Equal(*y):
				return x.Compare(*y)
			}
		}
		return cmp.Or(a.Gate.OpenedAt.Compare(b.Gate.OpenedAt), cmp.Compare(a.Address+a.Gate.ID, b.Address+b.Gate.ID))
	})
}

// waiting are the open gates that wait for the caller; more says that not all
// could be looked through.
func (v *visit) waiting() (rows []store.GateRow, more bool, err error) {
	mayList := access.Check(v.caller, access.GateList, access.On{}) == nil
	if !mayList && !v.caller.Is(access.User) {
		return nil, false, access.Check(v.caller, access.GateList, access.On{})
	}
	if mayList {
		f := store.GateFilter{Status: agent.GateOpen, Limit: 500}
		for looked := 0; ; {
			page, err := v.Reader.GateRows(v.ctx, v.caller.Tenant, f)
			if err != nil {
				return nil, false, err
			}
			looked += len(page)
			for _, r := range page {
				if concerns(v.caller, r.Gate) {
					rows = append(rows, r)
				}
			}
			if more = len(page) == f.Limit; !more || looked >= inboxMost {
				break
			}
			f.After = page[len(page)-1].Cursor
		}
	}
	if v.caller.Is(access.User) {
		asked, err := v.questions()
		if err != nil {
			return nil, false, err
		}
		rows = append(rows, asked...)
	}
	return rows, more, nil
}

// questions are those that the caller's own runs ask them.
func (v *visit) questions() (rows []store.GateRow, err error) {
	runs, err := v.Reader.RunRows(v.ctx, v.caller.Tenant, store.RunFilter{User: v.caller.Subject, Limit: ownRuns})
	if err != nil {
		return nil, err
	}
	for _, run := range runs {
		if run.Head.Status.Ended() {
			continue
		}
		gates, err := v.Reader.GateRows(v.ctx, v.caller.Tenant, store.GateFilter{Address: run.Address, Status: agent.GateOpen})
		if err != nil {
			return nil, err
		}
		for _, g := range gates {
			if g.Gate.Kind == agent.KindAsk && (g.FirstRunID == "" || g.FirstRunID == run.FirstRunID) {
				rows = append(rows, g)
			}
		}
	}
	return rows, nil
}

func (v *visit) row(n int, r store.GateRow) rowView {
	g := r.Gate
	_, agentName, key, _ := signals.SplitAddress(r.Address)
	row := rowView{N: n, ID: newID("page-"), Digest: g.Digest, Gate: agentName + "/" + key + "/" + g.ID, Path: gatePath(agentName, key, g.ID),
		Title: g.Title, Agent: r.Agent, GateID: g.ID, Tool: g.Tool, Kind: g.Kind, Asker: words.AskedBy(g), Risk: g.Risk,
		Pending: v.pending(g), Since: v.moment(g.OpenedAt), Until: v.momentOf(g.ExpiresAt), Misleading: visible.Gate(g), Single: single(g)}
	if g.ExpiresAt != nil {
		row.Soon = g.ExpiresAt.Sub(v.now) < time.Hour
	}
	if e := g.Escalation; e != nil {
		row.Escalated = e.Done
	}
	if g.Quorum > 1 {
		row.Quorum = words.Approvals(g)
	}
	for _, a := range g.Approvals {
		row.Approved = append(row.Approved, a.By.Subject)
	}
	if len(g.Args) <= fitsRow {
		row.Args = visible.Inline(g.Args.String())
	} else {
		row.More = pretty(g.Args)
	}
	if g.Kind == agent.KindTool || g.Kind == agent.KindMove {
		row.WhyNot = whyNot(v.caller, g, access.On{Tenant: v.caller.Tenant, Run: r.Address})
		row.Choose = row.WhyNot == ""
		if row.Pending != nil {
			row.WhyNot, row.Single, row.Soon = "", "", false // the row says so by itself
		}
	}
	return row
}

// single says why a gate can be approved on its own page only; "" where its row
// shows all that is approved.
func single(g agent.Gate) string {
	switch {
	case g.Kind == agent.KindAsk || g.Kind == agent.KindDoubt:
		return "it asks for more than a yes"
	case g.Risk != "":
		return "it names a risk"
	case len(g.Args) > fitsRow:
		return "its arguments are too long for this list"
	case len(visible.Gate(g)) > 0:
		return "its texts hold " + strings.Join(visible.Gate(g), ", ")
	}
	return ""
}
