package agent

import (
	"fmt"
	"slices"
	"strings"
)

// doubt opens the gate at which an operator says whether a step happened. The
// run goes on with other work meanwhile.
func (m *Machine) doubt(s *Step) {
	nth := 0
	for _, g := range m.run.Gates {
		if g.Kind == KindDoubt && g.Step == s.ID {
			nth++
		}
	}
	g := Gate{ID: s.ID + "-doubt", Step: s.ID, Kind: KindDoubt, Tool: s.Tool, Args: s.Args, Title: "Did " + s.Tool + " happen?",
		Policy: clip("nobody knows whether step "+s.ID+" happened: "+s.Reason, 300), Roles: m.def.operators, OpenedAt: m.at, Status: GateOpen}
	if nth > 0 { // it was run again, and is in doubt again
		g.ID += fmt.Sprint(nth + 1)
	}
	g.Digest = m.gateDigest(g)
	m.emit(EventGateOpened, s.ID, GateOpenedData{Gate: g})
}

// closeDoubt closes the gate of a step that asks no operator any more.
func (m *Machine) closeDoubt(step, reason string) {
	for _, g := range slices.Clone(m.run.Gates) {
		if g.Kind == KindDoubt && g.Step == step && g.Status == GateOpen {
			m.emit(EventGateClosed, step, GateClosedData{Gate: g.ID, Status: GateVoid, Reason: reason})
		}
	}
}

// resolves reports whether a verdict says what became of a step in doubt.
func (v Verdict) resolves() bool { return v.Verdict == Happened || v.Verdict == DidNotHappen }

// checkResolution says whether a verdict on a step in doubt is one at all.
func checkResolution(v Verdict) error {
	switch {
	case strings.TrimSpace(v.Reason) == "":
		return Errorf(CodeInvalid, "%s needs a reason: how you found out", v.Verdict)
	case v.Verdict == Happened && len(v.Result) == 0:
		return Errorf(CodeInvalid, "happened needs the result, as the tool would have answered it")
	case v.Verdict == Happened && v.Again, v.Verdict == DidNotHappen && len(v.Result) > 0:
		return Errorf(CodeInvalid, "a result belongs to happened, again to did_not_happen")
	}
	return nil
}

// CheckResult is a result that a person gives for a tool, in canonical form, where
// it is one that the tool could have given.
func (d *Definition) CheckResult(tool string, result JSON) (JSON, error) {
	if _, ok := d.tools[tool]; !ok {
		return nil, Errorf(CodeInvalid, "agent %s/v%d has no tool %s", d.Name, d.Version, tool)
	}
	return d.checkResult(tool, result, d.limits.Result)
}

func (d *Definition) checkResult(tool string, result JSON, limit int) (JSON, error) {
	t := d.tools[tool]
	if size := len(result); size > limit {
		return nil, Errorf(CodeInvalid, "the result has %d bytes, the limit is %d", size, limit)
	}
	if t.result == nil {
		return Canonical(result)
	}
	out, err := t.result.arguments(result.String(), t.resultType)
	if err != nil {
		return nil, Errorf(CodeInvalid, "this is no result of %s: %w", tool, err)
	}
	return out, nil
}

// resolve takes an operator's word for what became of a step in doubt. The ledger
// is told with the next activity, before anything else runs.
func (m *Machine) resolve(v Verdict, g Gate, closed GateClosedData) {
	closed.Status = GateResolved
	m.emit(EventGateClosed, g.Step, closed)
	s := m.run.step(g.Step)
	by := v.Principal.Subject + " found out: " + v.Reason
	switch {
	case v.Verdict == Happened:
		m.command(Resolve{Task: m.task(s), Result: v.Result, By: v.Principal.Subject, How: clip(v.Reason, reasonLimit)})
		m.finish(s, StepDoneData{Result: v.Result, Reason: clip("it happened: "+by, reasonLimit)}, "")
	case v.Again && m.def.tools[s.Tool].effect != Once && m.approvalEnded(s):
		again := *s
		m.emit(EventStepSettled, s.ID, StepSettledData{Status: StepFailed, Reason: clip("it did not happen: "+by, reasonLimit), Again: again.By == ByUndo})
		if again.By != ByUndo {
			m.commit(m.runAgain(again, true))
		}
	case v.Again && m.def.tools[s.Tool].effect != Once:
		// Its own protocol sees to it that it cannot happen twice.
		m.emit(EventStepResumed, s.ID, struct{}{})
	default:
		task, again, ended := m.task(s), *s, m.approvalEnded(s)
		m.command(Resolve{Task: task, Refused: clip("it did not happen: "+by, reasonLimit), By: v.Principal.Subject, How: clip(v.Reason, reasonLimit)})
		m.emit(EventStepSettled, s.ID, StepSettledData{Status: StepFailed, Reason: clip("it did not happen: "+by, reasonLimit), ForGood: true,
			Again: v.Again && again.By == ByUndo})
		if v.Again && again.By != ByUndo { // under a key of its own, since this one is settled
			m.commit(m.runAgain(again, ended))
		}
	}
}

// approvalEnded reports whether a step that is to run again needs a person's leave
// anew: its policy asks for one, and what the approval rested on has changed since,
// or there is no approval.
func (m *Machine) approvalEnded(s *Step) bool {
	t := m.def.tools[s.Tool]
	if _, needed := m.needsGate(t.gate, s.Args); !needed {
		return false
	}
	g := m.run.gate(s.ID)
	return g == nil || g.Status != GateApproved || m.run.changedSince(g.Reads, s.Seq)
}

// runAgain is the call of a step that did not happen, by an operator's word; at its
// gate where it needs a person's leave anew.
func (m *Machine) runAgain(s Step, gated bool) commitment {
	c := commitment{kind: KindTool, tool: s.Tool, args: s.Args, by: ByEnter, t: m.def.tools[s.Tool], replaces: s.ID}
	if gated {
		c.gate = c.t.gate
	}
	return m.undoAgain(c, &s)
}
