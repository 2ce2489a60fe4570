package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"interlock/agent"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/signals"
)

// report is what came of the demo's run. Its JSON is made for scripts: it holds
// no times.
type report struct {
	Run      runReport      `json:"run"`
	Steps    []stepReport   `json:"steps"`
	Gates    []gateReport   `json:"gates"`
	Rulings  []rulingReport `json:"rulings"`
	Events   int            `json:"events"`
	Refunds  []shop.Refund  `json:"refunds"`  // in the shop's database
	Receipts []receipt      `json:"receipts"` // in the mail service's outbox
	History  historyReport  `json:"history"`
	Model    modelReport    `json:"model"`

	run     *agent.Run
	journal []agent.Event
}

type runReport struct {
	Status     agent.RunStatus `json:"status"`
	Phase      string          `json:"phase"`
	State      agent.JSON      `json:"state"`
	Tenant     string          `json:"tenant"`
	ID         string          `json:"id"` // the address
	Agent      string          `json:"agent"`
	Version    int             `json:"version"`
	Key        string          `json:"key"`
	FirstRunID string          `json:"first_run_id"`
}

type stepReport struct {
	ID     string           `json:"id"`
	Tool   string           `json:"tool"`
	Status agent.StepStatus `json:"status"`
	reason string
}

type gateReport struct {
	ID        string             `json:"id"`
	Title     string             `json:"title"`
	Status    agent.GateStatus   `json:"status"`
	Verdict   agent.VerdictValue `json:"verdict"`   // "" where a message or code closed it
	Principal *agent.Principal   `json:"principal"` // null where nobody did
	Verified  bool               `json:"verified"`
	Reason    string             `json:"reason"`
	kind      agent.StepKind
}

type rulingReport struct {
	ID     string          `json:"id"` // of its gate
	Tool   string          `json:"tool"`
	Title  string          `json:"title"`
	Reads  []string        `json:"reads"`
	Reason string          `json:"reason"`
	By     agent.Principal `json:"by"`
}

type receipt struct {
	ID string `json:"id"`
	mail.Message
}

type historyReport struct {
	Events int64 `json:"events"`
	Bytes  int64 `json:"bytes"`
}

type modelReport struct {
	Calls      int   `json:"calls"`
	BytesTotal int64 `json:"bytes_total"` // of the requests
	BytesLast  int   `json:"bytes_last"`
	Tokens     int64 `json:"tokens"`
}

// collect reads the outcome from where it is: Temporal, the store, the shop and
// the mail service.
func (d *demo) collect(ctx context.Context) (*report, error) {
	var end signals.End
	if err := d.stage.client.GetWorkflow(ctx, d.story.address, "").Get(ctx, &end); err != nil {
		return nil, fmt.Errorf("the run's workflow did not end well: %w", err)
	}
	if err := d.story.read(ctx); err != nil {
		return nil, err
	}
	r := &report{Events: len(d.story.events), run: d.story.run, journal: d.story.events,
		Steps: []stepReport{}, Gates: []gateReport{}, Rulings: []rulingReport{}, Refunds: []shop.Refund{}, Receipts: []receipt{}}
	run := d.story.run
	r.Run = runReport{run.Status, run.Phase, run.State, run.Tenant, run.Address(), run.Agent, run.Version, run.Key, run.FirstRunID}
	for _, e := range r.journal {
		r.take(e)
	}
	refunds, err := d.stage.shop.Refunds(ctx)
	if err != nil {
		return nil, err
	}
	r.Refunds = append(r.Refunds, refunds...)
	sent, err := d.stage.mail.Messages(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range sent {
		r.Receipts = append(r.Receipts, receipt{m.ID, m.Message})
	}
	usage, err := d.stage.store.ModelUsage(ctx, demoTenant, d.story.address)
	if err != nil {
		return nil, err
	}
	r.Model = modelReport{usage.Calls, usage.BytesTotal, usage.BytesLast, usage.Usage.Total()}
	about, err := d.stage.client.DescribeWorkflow(ctx, d.story.address, "")
	if err != nil {
		return nil, fmt.Errorf("describe the run's workflow: %w", err)
	}
	info := about.RawResponse.GetWorkflowExecutionInfo()
	r.History = historyReport{info.GetHistoryLength(), info.GetHistorySizeBytes()}
	return r, nil
}

// take adds an event. Steps and gates are read from the events because the run
// itself forgets those of older turns.
func (r *report) take(e agent.Event) {
	switch e.Type {
	case agent.EventStepStarted:
		d := data[agent.StepStartedData](e)
		r.Steps = append(r.Steps, stepReport{ID: e.Step, Tool: d.Tool, Status: d.Status, reason: d.Reason})
	case agent.EventStepResumed:
		r.settle(e.Step, agent.StepRunning, "")
	case agent.EventStepDone:
		r.settle(e.Step, agent.StepDone, data[agent.StepDoneData](e).Reason)
	case agent.EventCommitRefused:
		r.settle(e.Step, agent.StepDone, "not taken into the state: "+data[agent.CommitRefusedData](e).Reason)
	case agent.EventStepSettled:
		d := data[agent.StepSettledData](e)
		r.settle(e.Step, d.Status, d.Reason)
	case agent.EventGateOpened:
		g := data[agent.GateOpenedData](e).Gate
		r.Gates = append(r.Gates, gateReport{ID: g.ID, Title: g.Title, Status: agent.GateOpen, kind: g.Kind})
	case agent.EventGateClosed:
		d := data[agent.GateClosedData](e)
		i := slices.IndexFunc(r.Gates, func(g gateReport) bool { return g.ID == d.Gate })
		if i >= 0 {
			g := &r.Gates[i]
			g.Status, g.Verdict, g.Principal, g.Verified, g.Reason = d.Status, d.Verdict, d.By, d.Verified, d.Reason
		}
	case agent.EventRulingMade:
		g := data[agent.RulingMadeData](e).Ruling
		r.Rulings = append(r.Rulings, rulingReport{g.ID, g.Tool, g.Title, g.Reads, g.Reason, g.By})
	}
}

func (r *report) settle(step string, status agent.StepStatus, reason string) {
	i := slices.IndexFunc(r.Steps, func(s stepReport) bool { return s.ID == step })
	if i >= 0 {
		r.Steps[i].Status, r.Steps[i].reason = status, reason
	}
}

// data reads an event's data. What does not fit is left empty: a report must
// not fail for an event that a newer version has written.
func data[T any](e agent.Event) T {
	var v T
	_ = json.Unmarshal(e.Data, &v)
	return v
}
