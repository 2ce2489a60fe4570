package rules

import (
	"context"
	"encoding/json"

	"interlock/agent"
)

// projectGates brings the gates' rows to what the events say. A gate that is
// closed and has no row is left alone: lists are derived, and may not hold up a
// run.
func projectGates(ctx context.Context, j Journal, events []agent.Event) error {
	f := folding{rows: map[string]*Gate{}}
	if ids := ChangedGates(events); len(ids) > 0 {
		standing, err := j.Gates(ctx, ids)
		if err != nil {
			return err
		}
		for _, g := range standing {
			if err := json.Unmarshal(g.Data, &g.Gate); err != nil {
				return err
			}
			f.rows[g.ID] = &g
		}
	}
	for _, e := range events {
		if err := f.fold(e); err != nil {
			return err
		}
	}
	for _, g := range f.changed {
		if err := putGate(ctx, j, *g); err != nil {
			return err
		}
	}
	return nil
}

// ChangedGates are the gates that events change without having opened them: those
// whose rows must be read.
func ChangedGates(events []agent.Event) (ids []string) {
	known := map[string]bool{}
	for _, e := range events {
		switch e.Type {
		case agent.EventGateOpened:
			var d agent.GateOpenedData
			_ = json.Unmarshal(e.Data, &d) // folding it says what is wrong
			known[d.Gate.ID] = true
		case agent.EventGateClosed, agent.EventGateCounted, agent.EventGateEscalated, agent.EventGatePending:
			var d struct {
				Gate string `json:"gate"`
			}
			_ = json.Unmarshal(e.Data, &d)
			if !known[d.Gate] {
				known[d.Gate] = true
				ids = append(ids, d.Gate)
			}
		}
	}
	return ids
}

// folding is some events' gates as they become.
type folding struct {
	rows    map[string]*Gate
	changed []*Gate // each once, in the order of their first change
}

func (f *folding) fold(e agent.Event) error {
	switch e.Type {
	case agent.EventGateOpened:
		g, err := opened(e.Seq, e.Data)
		if err != nil {
			return err
		}
		f.change(g)
	case agent.EventGateClosed:
		var d agent.GateClosedData
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return agent.Errorf(agent.CodeInvalid, "the gate that event %d closes: %w", e.Seq, err)
		}
		stands := f.rows[d.Gate]
		if stands == nil {
			return nil
		}
		g, at := *stands, e.At.UTC()
		g.Closed, g.Status, g.Reason, g.Verdict, g.By, g.Verified, g.ClosedAt = e.Seq, d.Status, d.Reason, string(d.Verdict), d.By, d.Verified, &at
		g.Pending = nil
		f.change(g)
	case agent.EventGateCounted:
		var d agent.GateCountedData
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return agent.Errorf(agent.CodeInvalid, "the approvals that event %d counts: %w", e.Seq, err)
		}
		if stands := f.rows[d.Gate]; stands != nil {
			g := *stands
			g.Approvals = d.Approvals
			f.change(g)
		}
	case agent.EventGatePending:
		var d agent.GatePendingData
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return agent.Errorf(agent.CodeInvalid, "the verdict that event %d lets wait: %w", e.Seq, err)
		}
		if stands := f.rows[d.Gate]; stands != nil {
			g := *stands
			g.Pending = d.Pending
			f.change(g)
		}
	case agent.EventGateEscalated:
		var d agent.GateEscalatedData
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return agent.Errorf(agent.CodeInvalid, "the gate that event %d escalates: %w", e.Seq, err)
		}
		if stands := f.rows[d.Gate]; stands != nil {
			g := *stands
			g.Gate = g.Escalated(d.Roles)
			f.change(g)
		}
	}
	return nil
}

func (f *folding) change(g Gate) {
	for _, c := range f.changed {
		if c.ID == g.ID {
			*c = g
			return
		}
	}
	f.rows[g.ID] = &g
	f.changed = append(f.changed, &g)
}

// opened is the row that an opening event makes.
func opened(seq int64, data agent.JSON) (g Gate, err error) {
	var d agent.GateOpenedData
	if err := json.Unmarshal(data, &d); err != nil {
		return g, agent.Errorf(agent.CodeInvalid, "the gate that event %d opens: %w", seq, err)
	}
	return Gate{Gate: d.Gate, Opened: seq}, nil
}

func putGate(ctx context.Context, j Journal, g Gate) (err error) {
	if g.Data, err = agent.Encode(g.Gate); err != nil {
		return err
	}
	return j.PutGate(ctx, g)
}

// rewindGates makes the gates what the events before seq say. Those from seq on
// are superseded already.
func rewindGates(ctx context.Context, j Journal, seq int64) error {
	if err := j.DropGates(ctx, seq); err != nil {
		return err
	}
	rows, err := j.Reopened(ctx, seq)
	if err != nil || len(rows) == 0 {
		return err
	}
	counted, err := j.Counted(ctx, seq)
	if err != nil {
		return err
	}
	f := folding{rows: map[string]*Gate{}}
	for _, r := range rows {
		g, err := opened(r.Opened, r.Data)
		if err != nil {
			return err
		}
		f.change(g)
	}
	for _, e := range counted {
		if err := f.fold(e); err != nil {
			return err
		}
	}
	for _, g := range f.changed {
		if err := putGate(ctx, j, *g); err != nil {
			return err
		}
	}
	return nil
}
