package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

// What the other side has done of one effect, and what the journal says of its steps.
func TestVerify_Steps(t *testing.T) {
	t.Parallel()
	did := func(step string) happening { return happening{tool: send, id: "r-u1", ref: "ref-" + step, step: step} }
	undid := happening{tool: unsend, id: "r-u1", undoes: "ref-1.1", step: "2.1"}
	step11 := func(s agent.StepStatus) *step { return &step{id: "1.1", tool: send, key: "k", status: s} }
	undo := func(s agent.StepStatus) *step {
		return &step{id: "2.1", tool: unsend, key: "u", undoes: "1.1", status: s}
	}
	for name, c := range map[string]struct {
		all   []happening
		steps []*step
		kind  string
		says  string
	}{
		"done":                   {[]happening{did("1.1")}, []*step{step11(agent.StepDone)}, "", ""},
		"undone":                 {[]happening{did("1.1"), undid}, []*step{step11(agent.StepUndone), undo(agent.StepDone)}, "", ""},
		"cancelled":              {nil, []*step{step11(agent.StepCancelled)}, "", ""},
		"cancelled, it happened": {[]happening{did("1.1")}, []*step{step11(agent.StepCancelled)}, lost, "happened all the same"},
		"rejected, it happened":  {[]happening{did("1.1")}, []*step{step11(agent.StepRejected)}, lost, "happened all the same"},
		"in doubt, it happened":  {[]happening{did("1.1")}, []*step{step11(agent.StepInDoubt)}, "", ""},
		"done, it never did":     {nil, []*step{step11(agent.StepDone)}, lost, "never happened"},
		"undone, never sent":     {[]happening{did("1.1")}, []*step{step11(agent.StepUndone), undo(agent.StepDone)}, lost, "not undone on the other side"},
		"undone, not told":       {[]happening{did("1.1"), undid}, []*step{step11(agent.StepDone), undo(agent.StepFailed)}, lost, "the run does not know"},
		"the undo is in doubt":   {[]happening{did("1.1"), undid}, []*step{step11(agent.StepDone), undo(agent.StepInDoubt)}, "", ""},
		"undone twice":           {[]happening{did("1.1"), undid, undid}, []*step{step11(agent.StepUndone), undo(agent.StepDone)}, repeated, "was undone 2 times"},
		"twice, by two steps":    {[]happening{did("1.1"), did("3.1")}, []*step{step11(agent.StepFailed), {id: "3.1", tool: send, key: "k", status: agent.StepDone}}, repeated, "happened 2 times"},
		"anew, as another":       {[]happening{did("1.1"), undid, did("3.1")}, []*step{step11(agent.StepUndone), undo(agent.StepDone), {id: "3.1", tool: send, key: "k2", status: agent.StepDone}}, "", ""},
		"of no step":             {[]happening{did("9.9")}, nil, lost, "of which the run knows nothing"},
	} {
		got := judged(t, func(w *world, r *run) { w.verifySteps(r, c.steps, c.all) })
		if c.kind == "" {
			require.Empty(t, got, name)
			continue
		}
		require.NotEmpty(t, got, name)
		require.Equal(t, c.kind, got[0].Kind, name)
		require.Contains(t, got[0].Text, c.says, name)
	}
}

func TestVerify_Rows(t *testing.T) {
	t.Parallel()
	happened := []happening{{tool: send, ref: "ref", step: "1.1"}}
	undone := append(happened[:1:1], happening{tool: unsend, undoes: "ref", step: "2.1"})
	for name, c := range map[string]struct {
		status agent.StepStatus
		all    []happening
		row    store.EffectStatus
		marked string
		undo   agent.StepStatus // of the step that undoes it, where there is one
		kind   string
	}{
		"applied":                {agent.StepDone, happened, store.EffectApplied, "", "", ""},
		"undone":                 {agent.StepUndone, undone, store.EffectApplied, "u", agent.StepDone, ""},
		"undone, not marked":     {agent.StepUndone, undone, store.EffectApplied, "", agent.StepDone, lost},
		"marked, not undone":     {agent.StepDone, happened, store.EffectApplied, "u", "", lost},
		"its undo is in doubt":   {agent.StepDone, undone, store.EffectApplied, "u", agent.StepInDoubt, ""},
		"in doubt, marked only":  {agent.StepDone, happened, store.EffectApplied, "u", agent.StepInDoubt, lost},
		"stopped":                {agent.StepCancelled, nil, store.EffectRefused, "", "", ""},
		"closed, and happened":   {agent.StepInDoubt, happened, store.EffectRefused, "", "", lost},
		"in doubt":               {agent.StepInDoubt, happened, store.EffectClaimed, "", "", ""},
		"nobody knows, the run?": {agent.StepCancelled, nil, store.EffectClaimed, "", "", lost},
	} {
		steps := []*step{{id: "1.1", tool: send, key: "k", status: c.status}}
		if c.undo != "" {
			steps = append(steps, &step{id: "2.1", tool: unsend, key: "u", undoes: "1.1", status: c.undo})
		}
		requireKind(t, name, c.kind, judged(t, func(w *world, r *run) {
			w.verifyRows(r, steps, c.all,
				[]store.Effect{{Claim: store.Claim{Tool: send, Key: "k"}, Outcome: store.Outcome{Status: c.row}, UndoneBy: c.marked}})
		}))
	}
}

func event(t *testing.T, seq int64, typ agent.EventType, data any) agent.Event {
	t.Helper()
	j, err := agent.Encode(data)
	require.NoError(t, err)
	return agent.Event{Seq: seq, Type: typ, Data: j}
}

// What was answered, and what stands in the journal.
func TestVerify_Inputs(t *testing.T) {
	t.Parallel()
	message := event(t, 5, agent.EventMessage, agent.MessageData{ID: "i1"})
	cut := event(t, 6, agent.EventInterrupted, agent.InterruptedData{Message: "i1"})
	judgement := func(seq int64, how string) agent.Event {
		return event(t, seq, agent.EventVerdict, agent.VerdictData{Verdict: agent.Verdict{ID: "i1", Gate: "1.1"}, Judgement: how})
	}
	accepted := agent.Receipt{Status: agent.Accepted, Seq: 5}
	interrupted := agent.Receipt{Status: agent.Accepted, Seq: 5, Took: &agent.Took{How: agent.TookInterrupted}}
	refused := agent.Receipt{Status: agent.Refused}
	for name, c := range map[string]struct {
		seen   []agent.Receipt
		events []agent.Event
		kind   string
	}{
		"taken in":                 {[]agent.Receipt{accepted}, []agent.Event{message}, ""},
		"taken in, asked again":    {[]agent.Receipt{accepted, {Status: agent.Repeated, Seq: 5}}, []agent.Event{message}, ""},
		"refused":                  {[]agent.Receipt{refused}, nil, ""},
		"refused, then taken in":   {[]agent.Receipt{refused, accepted}, []agent.Event{message}, ""},
		"the run ended before":     {nil, nil, ""},
		"nobody was told":          {nil, []agent.Event{message}, ""},
		"lost":                     {[]agent.Receipt{accepted}, nil, lost},
		"refused, and taken in":    {[]agent.Receipt{refused}, []agent.Event{message}, lost},
		"another's receipt":        {[]agent.Receipt{{Status: agent.Accepted, Seq: 4}}, []agent.Event{message}, lost},
		"interrupted":              {[]agent.Receipt{interrupted}, []agent.Event{message, cut}, ""},
		"interrupted, and did not": {[]agent.Receipt{interrupted}, []agent.Event{message}, lost},
		"taken in twice":           {[]agent.Receipt{accepted}, []agent.Event{message, event(t, 7, agent.EventMessage, agent.MessageData{ID: "i1"})}, repeated},
		"kept, then valid":         {[]agent.Receipt{{Status: agent.KeptBack, Seq: 5}}, []agent.Event{judgement(5, "kept"), judgement(8, "valid")}, ""},
		"kept, never judged":       {[]agent.Receipt{{Status: agent.KeptBack, Seq: 5}}, []agent.Event{judgement(5, "kept")}, lost},
		"kept, the gate is void": {[]agent.Receipt{{Status: agent.KeptBack, Seq: 5}}, []agent.Event{judgement(5, "kept"),
			event(t, 8, agent.EventGateClosed, agent.GateClosedData{Gate: "1.1", Status: agent.GateVoid})}, ""},
		"void, and valid":           {[]agent.Receipt{{Status: agent.Voided, Seq: 5}}, []agent.Event{judgement(5, "valid")}, lost},
		"valid, and void":           {[]agent.Receipt{accepted}, []agent.Event{judgement(5, "void")}, lost},
		"of somebody who is nobody": {[]agent.Receipt{accepted}, []agent.Event{message, event(t, 9, agent.EventMessage, agent.MessageData{ID: "x"})}, lost},
	} {
		requireKind(t, name, c.kind, judged(t, func(w *world, r *run) {
			r.inputs.add(&input{deed: saysInterrupt, seen: c.seen, times: 1})
			w.verifyInputs(r, c.events, nil)
		}))
	}
}

func TestVerify_Turns(t *testing.T) {
	t.Parallel()
	opened := event(t, 1, agent.EventGateOpened, agent.GateOpenedData{Gate: agent.Gate{ID: "1.1"}})
	closed := event(t, 2, agent.EventGateClosed, agent.GateClosedData{Gate: "1.1"})
	cut, settled := event(t, 3, agent.EventInterrupted, agent.InterruptedData{}), event(t, 4, agent.EventInterruptSettled, agent.InterruptSettledData{})
	undoes := event(t, 5, agent.EventCancelRequested, agent.CancelRequestedData{Undo: agent.UndoRun})
	done := []*step{{id: "1.1", tool: order, key: "k", status: agent.StepDone}}
	for name, c := range map[string]struct {
		events []agent.Event
		steps  []*step
		kind   string
	}{
		"one ending":            {[]agent.Event{opened, closed}, nil, ""},
		"none":                  {[]agent.Event{opened}, nil, lost},
		"two":                   {[]agent.Event{opened, closed, closed}, nil, lost},
		"an account":            {[]agent.Event{cut, settled}, nil, ""},
		"no account":            {[]agent.Event{cut, settled, cut}, nil, lost},
		"cancelled meanwhile":   {[]agent.Event{cut, undoes, event(t, 6, agent.EventCancelled, agent.EndedData{})}, nil, ""},
		"it stands, and says":   {[]agent.Event{undoes, event(t, 6, agent.EventCancelled, agent.EndedData{Failed: []string{"1.1 order: stands"}})}, done, ""},
		"it stands, and counts": {[]agent.Event{undoes, event(t, 6, agent.EventCancelled, agent.EndedData{Failed: []string{"1 earlier effects, whose steps the run holds no more: they stand"}})}, done, ""},
		"it stands, in silence": {[]agent.Event{undoes, event(t, 6, agent.EventCancelled, agent.EndedData{})}, done, lost},
		"it never ended":        {nil, []*step{{id: "1.1", tool: order, status: agent.StepRunning}}, stuck},
	} {
		requireKind(t, name, c.kind, judged(t, func(w *world, r *run) { w.verifyTurns(r, c.events, c.steps) }))
	}
}

func TestHasUsers(t *testing.T) {
	t.Parallel()
	w := &world{kind: sqliteKind, size: size{users: 5}}
	n := 0
	for i := range 10 {
		r := w.newRun(i + 1)
		require.Equal(t, hasUsers(r.id), len(r.acts) > 0)
		require.Equal(t, hasUsers(r.id), hasUsers(r.address))
		tenantOf, _, _, ok := signals.SplitAddress(r.address)
		require.True(t, ok)
		require.Equal(t, tenant, tenantOf)
		if hasUsers(r.id) {
			n++
		}
	}
	require.Equal(t, 5, n)
}
