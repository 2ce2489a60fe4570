package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"interlock/agent"
	"interlock/api/access"
	"interlock/store"
)

// opsView is what all runs of a tenant are at, for operators.
type opsView struct {
	Done        string // what was just done, in a sentence
	Counts      []countView
	Paused      []countView
	Doubts      []doubtRow
	MoreDoubts  bool
	Dead        []deadRow
	MoreDead    bool
	Holds       []holdRow
	Spent       []spentView
	Deployments []deploymentRow
	Problems    []string // parts that could not be read
	At          moment
	Lately      string
}

// countView is how many runs stand alike, and where they are listed.
type countView struct {
	Status statusView
	Kind   string
	N      int
	Path   string
	Ended  bool
}

type doubtRow struct {
	Path, Title, Agent, Tool string
	Since                    moment
}

type deadRow struct {
	ID, Target, Kind, Address, Path, Reason string
	Retry                                   int
	Buried                                  moment
}

type holdRow struct {
	What, By, Reason string
	At               moment
}

type deploymentRow struct {
	Agent       string
	Version     int
	Fingerprint string
	At          moment
}

const (
	opsList = 50                 // rows of each list
	lately  = 7 * 24 * time.Hour // ended runs that are counted
)

// opsDone are the acts of the page, in the words that tell of them.
var opsDone = map[string]string{
	"retry": "A worker tells the notice again. It is in this list until a target has taken it.",
	"drop":  "The notice was dropped: nobody is told.",
}

func showOps(v *visit) error {
	if err := v.audited(access.Ops, "", access.Check(v.caller, access.Ops, access.On{})); err != nil {
		return err
	}
	view := opsView{Done: opsDone[v.query("done")], At: v.moment(v.now), Lately: lasting(lately)}
	for _, part := range []struct {
		name string
		read func(*opsView) error
	}{{"the counts of runs", v.counts}, {"the steps in doubt", v.doubts}, {"the dead notices", v.dead}, {"the holds", v.holds}, {"what models took", v.spent}, {"the deployments", v.deployments}} {
		if err := part.read(&view); err != nil {
			v.Log.WarnContext(v.ctx, "a part of the operators' page cannot be read", "part", part.name, "request_id", v.id, "error", err)
			view.Problems = append(view.Problems, part.name+" cannot be read just now")
		}
	}
	return v.page(http.StatusOK, "ops", "Operations", view)
}

// counts are the runs by status, and the paused ones by reason.
func (v *visit) counts(view *opsView) error {
	all, err := v.Reader.CountRuns(v.ctx, v.caller.Tenant, v.now.Add(-lately))
	by, why := map[agent.RunStatus]int{}, map[string]int{}
	for _, c := range all {
		by[c.Status] += c.Runs
		if c.Status == agent.RunPaused {
			why[c.Kind] += c.Runs
		}
	}
	for _, s := range runStatuses {
		view.Counts = append(view.Counts, countView{Status: runStatus(s), N: by[s], Ended: s.Ended(), Path: "/runs?" + url.Values{"status": {string(s)}}.Encode()})
	}
	for _, kind := range sortedKeys(why) {
		view.Paused = append(view.Paused, countView{Kind: kind, N: why[kind], Path: "/runs?" + url.Values{"status": {string(agent.RunPaused)}, "reason": {kind}}.Encode()})
	}
	return err
}

func (v *visit) doubts(view *opsView) error {
	rows, err := v.Reader.GateRows(v.ctx, v.caller.Tenant, store.GateFilter{Status: agent.GateOpen, Kind: agent.KindDoubt, Limit: opsList})
	view.MoreDoubts = len(rows) == opsList
	for _, r := range rows {
		view.Doubts = append(view.Doubts, doubtRow{Path: pathOf(r.Address) + "/gates/" + url.PathEscape(r.Gate.ID), Title: r.Gate.Title, Agent: r.Agent, Tool: r.Gate.Tool, Since: v.moment(r.Gate.OpenedAt)})
	}
	return err
}

func (v *visit) dead(view *opsView) error {
	rows, err := v.Reader.DeadNotices(v.ctx, v.caller.Tenant, store.DeadFilter{Limit: opsList})
	view.MoreDead = len(rows) == opsList
	for _, d := range rows {
		view.Dead = append(view.Dead, deadRow{ID: d.ID, Target: d.Target, Kind: d.Kind, Address: d.Address, Path: pathOf(d.Address), Reason: d.Reason, Retry: d.Retry, Buried: v.moment(d.BuriedAt)})
	}
	return err
}

func (v *visit) holds(view *opsView) error {
	rows, err := v.Reader.AllHolds(v.ctx, v.caller.Tenant, false)
	for _, h := range rows {
		what := []string{}
		for _, part := range [][2]string{{"agent ", h.Agent}, {"tool ", h.Tool}} {
			if part[1] != "" {
				what = append(what, part[0]+part[1])
			}
		}
		if len(what) == 0 {
			what = []string{"every tool of every agent"}
		}
		if h.Tenant == "" {
			what = append(what, "of every tenant")
		}
		view.Holds = append(view.Holds, holdRow{What: strings.Join(what, ", "), By: h.By, Reason: h.Reason, At: v.moment(h.At)})
	}
	return err
}

func (v *visit) deployments(view *opsView) error {
	rows, err := v.Reader.AllDeployed(v.ctx)
	for _, d := range rows {
		view.Deployments = append(view.Deployments, deploymentRow{Agent: d.Agent, Version: d.Version, Fingerprint: d.Fingerprint, At: v.moment(d.At)})
	}
	return err
}

func retryDead(v *visit) error {
	return v.settling("retry", func(d store.DeadNotice) error {
		return v.Starter.TellAgain(v.ctx, d, v.GiveUp, v.caller.Subject)
	})
}

func dropDead(v *visit) error {
	return v.settling("drop", func(d store.DeadNotice) error {
		_, err := v.Reader.SettleDead(v.ctx, d.Tenant, d.ID, d.Target, store.DeadDropped, v.caller.Subject)
		return err
	})
}

// settling does something to the dead notice that a form names.
func (v *visit) settling(word string, do func(store.DeadNotice) error) error {
	id, target := v.form("notice"), v.form("target")
	err := access.Check(v.caller, access.Ops, access.On{})
	if err == nil {
		err = v.settle(id, target, do)
	}
	if err = v.audited(access.Ops, "notice "+id+" for "+target+" "+word, err); err != nil {
		return err
	}
	v.to("/ops?done=" + word + "#dead")
	return nil
}

func (v *visit) settle(id, target string, do func(store.DeadNotice) error) error {
	if id == "" || target == "" {
		return agent.Errorf(agent.CodeInvalid, "the form is not whole: open the page again and send it there")
	}
	rows, err := v.Reader.DeadNotices(v.ctx, v.caller.Tenant, store.DeadFilter{ID: id, Target: target, Ended: true, Limit: 1})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return access.NotFound()
	}
	return do(rows[0])
}
