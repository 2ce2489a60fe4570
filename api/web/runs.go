package web

import (
	"net/http"
	"net/url"

	"interlock/agent"
	"interlock/api/access"
	"interlock/signals"
	"interlock/store"
)

// runsPage is how many runs a page lists.
const runsPage = 50

// runStatuses are all, in the order of a run's life.
var runStatuses = []agent.RunStatus{agent.RunRunning, agent.RunWaiting, agent.RunPaused, agent.RunCompleted, agent.RunCancelled, agent.RunFailed}

// runsView is the list of runs.
type runsView struct {
	Agent, Status, User, Key string
	Reason                   string // what it begins with
	Statuses                 []agent.RunStatus
	OwnOnly                  bool // the caller sees their own runs only
	Filtered                 bool
	Rows                     []runRow
	Next                     string
}

type runRow struct {
	Path, Agent, Key, User, Phase, Reason string
	Status                                statusView
	Turn                                  int
	Started, Updated                      moment
}

func showRuns(v *visit) error {
	view, err := v.runs()
	if err = v.audited(access.RunList, "", err); err != nil {
		return err
	}
	return v.page(http.StatusOK, "runs", "Runs", view)
}

func (v *visit) runs() (view runsView, err error) {
	if err := access.Check(v.caller, access.RunList, access.On{}); err != nil {
		return view, err
	}
	view = runsView{Agent: v.query("agent"), Status: v.query("status"), User: v.query("user"), Key: v.query("key"), Reason: v.query("reason"),
		Statuses: runStatuses}
	f := store.RunFilter{Agent: view.Agent, Status: agent.RunStatus(view.Status), User: view.User, Reason: view.Reason, After: v.query("after"), Limit: runsPage}
	if view.Key != "" && view.Agent != "" {
		f.Address = signals.Address(v.caller.Tenant, view.Agent, view.Key)
	}
	if access.Check(v.caller, access.RunList, access.On{Run: v.caller.Tenant + "/x/x", User: ""}) != nil {
		view.OwnOnly, f.User = true, v.caller.Subject
	}
	view.Filtered = view.Agent+view.Status+view.User+view.Key+view.Reason != ""
	if view.Key != "" && view.Agent == "" {
		return view, nil // the page says that a key is found within an agent
	}
	rows, err := v.Reader.RunRows(v.ctx, v.caller.Tenant, f)
	if err != nil {
		return view, err
	}
	all := &store.Redactions{Reader: v.Reader}
	for _, r := range rows {
		r = all.Row(v.ctx, v.caller.Tenant, r)
		view.Rows = append(view.Rows, runRow{Path: runPath(r.Agent, r.Key), Agent: r.Agent, Key: r.Key, User: r.User, Phase: r.Head.Phase, Reason: r.Head.Reason,
			Status: runStatus(r.Head.Status), Turn: r.Head.Turn, Started: v.moment(r.StartedAt), Updated: v.moment(r.UpdatedAt)})
	}
	if len(rows) == runsPage {
		q := url.Values{"after": {rows[len(rows)-1].Cursor}}
		for name, value := range map[string]string{"agent": view.Agent, "status": view.Status, "user": view.User, "reason": view.Reason} {
			if value != "" {
				q.Set(name, value)
			}
		}
		view.Next = "/runs?" + q.Encode()
	}
	return view, nil
}
