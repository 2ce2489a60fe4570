package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/starter"
	"interlock/tool"
)

// cell is one run of the matrix: what runs in it goes on when it is let.
type cell struct {
	state    string
	begun    chan string   // what has begun
	free     chan struct{} // closed: all goes on but send
	freeSend chan struct{}
}

// matrix is the agent and the model of all cells. A tool's argument, and the user's
// first message, name the cell.
type matrix struct {
	mu    sync.Mutex
	cells map[string]*cell
}

func (m *matrix) cell(name string) *cell {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cells[name]
}

func (m *matrix) add(name, state string) *cell {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &cell{state: state, begun: make(chan string, 100), free: make(chan struct{}), freeSend: make(chan struct{})}
	m.cells[name] = c
	return c
}

// wait is a function that goes on when the cell lets it.
func (m *matrix) wait(ctx context.Context, what, name string) error {
	c := m.cell(name)
	free := c.free
	if what == "send" {
		free = c.freeSend
	}
	c.begun <- what
	select {
	case <-free:
		return nil
	case <-ctx.Done():
		return tool.NotApplied(ctx.Err())
	}
}

func (m *matrix) agent(version int, limits agent.Limits) *agent.Definition {
	type S = labState
	commit := func(s *S, _, r text) error { s.Sent = r.Text; return nil }
	keyed := func(what string) func(context.Context, tool.Key, text) (text, error) {
		return func(ctx context.Context, _ tool.Key, a text) (text, error) { return a, m.wait(ctx, what, a.Text) }
	}
	undo := func(name string) agent.Tool[S] {
		return tool.Keyed(name, func(ctx context.Context, _ tool.Key, d doneText) (text, error) {
			if m.cell(d.Args.Text).state == "compensation" {
				return text{}, m.wait(ctx, name, d.Args.Text)
			}
			return text{}, nil
		}, func(s *S, _ doneText, _ text) error { s.Sent = ""; return nil })
	}
	tools := []agent.Tool[S]{
		tool.ReadOnly("read", func(ctx context.Context, a text) (text, error) { return a, m.wait(ctx, "read", a.Text) }, func(*S, text, text) error { return nil }),
		tool.Keyed("send", keyed("send"), commit).Undo(undo("unsend")).OnCut(agent.CutUndo),
		tool.Keyed("ship", keyed("ship"), commit).Undo(undo("unship")),
		tool.Keyed("order", func(_ context.Context, _ tool.Key, a text) (text, error) { return a, nil }, commit).Undo(undo("unorder")),
		tool.Keyed("pay", keyed("pay"), commit).Gate(tool.Gate[S, text]{Roles: []string{"refunds"}, Reads: []string{"news"}}),
		tool.Once("fire", func(context.Context, text) (text, error) { return text{}, errors.New("the line went dead") }, commit),
	}
	return agent.Define(agent.Spec[labStart, S]{Name: "matrix", Version: version, Instructions: "Do as you are told.", Limits: limits,
		Init:   func(in labStart) (S, error) { return S{Name: in.Name}, nil },
		Phases: []agent.Phase[S]{{Name: "work", Tools: tools, Moves: []agent.Move[S]{{To: "end"}}}, {Name: "end", Final: true}}})
}

// matrixCalls are what the model proposes first in a state.
var matrixCalls = map[string][]string{
	"three tools": {"read", "send", "ship"}, "one gate": {"pay"}, "two gates": {"pay", "pay"}, "in doubt": {"fire"}, "compensation": {"order"}}

func (m *matrix) Name() string { return "scripted" }

// Generate proposes the calls of the cell's state in the first turn, and only words
// after it.
func (m *matrix) Generate(ctx context.Context, req llm.Request) (llm.Response, error) {
	name := req.View.Turns[0].Opening[0].Text
	c := m.cell(name)
	if req.View.Turn > 1 || c == nil {
		return scripted.Say("Hm."), nil
	}
	if c.state == "model call" {
		if err := m.wait(ctx, "model", name); err != nil {
			return llm.Response{}, err
		}
	}
	var parts []llm.Response
	for i, t := range matrixCalls[c.state] {
		arg := name
		if i > 0 && t == "pay" {
			arg += "+" // another payment
		}
		parts = append(parts, call(t, arg))
	}
	if len(parts) == 0 {
		return scripted.Say("Hello."), nil
	}
	return scripted.Then(parts...), nil
}

// begin brings a run into its cell's state.
func (m *matrix) begin(w *world, address, name string, c *cell) {
	w.say(address, name)
	settled := func(reason string) {
		w.until(address, c.state, func(r *agent.Run) bool { return waiting(reason)(r) && r.Turn > 0 })
	}
	switch c.state {
	case "idle":
		settled("user")
	case "model call":
		await(w.t, c.begun, "the model is called")
	case "three tools":
		for range 3 {
			await(w.t, c.begun, "a tool runs")
		}
	case "one gate", "two gates":
		settled("gate")
	case "in doubt":
		settled("operator")
	case "compensation":
		settled("user")
		_, err := w.starter.Undo(w.ctx, address, signals.Undo{ID: "u", Principal: ops, Steps: []string{"1.1"}, Reason: "wrong"})
		require.NoError(w.t, err)
		await(w.t, c.begun, "the undo runs")
	}
}

// matrixInterrupts are what interrupts a run, and whether that cuts the turn short:
// then send is told to stop.
var matrixInterrupts = []struct {
	name string
	cuts bool
	do   func(w *world, address string)
}{
	{"message reject", false, sends(agent.MessageReject)},
	{"message queue", false, sends(agent.MessageQueue)},
	{"message interrupt", true, sends(agent.MessageInterrupt)},
	{"message rollback", true, sends(agent.MessageRollback)},
	{"cancel none", true, cancels(agent.UndoNone)},
	{"cancel turn", true, cancels(agent.UndoTurn)},
	{"cancel run", true, cancels(agent.UndoRun)},
	{"cancel through Temporal", true, func(w *world, address string) { require.NoError(w.t, w.cancelThroughTemporal(address)) }},
	{"amend", false, func(w *world, address string) { w.amend(address, "snow") }},
	{"pause", false, func(w *world, address string) {
		_, err := w.starter.Pause(w.ctx, address, signals.Pause{ID: "p", Principal: ops})
		require.NoError(w.t, err)
	}},
	{"continue-as-new", false, func(w *world, address string) {
		first := w.runID(address)
		for n := 0; w.runID(address) == first && w.describe(address).HistoryLength < matrixHistory; n++ {
			require.Less(w.t, n, 100)
			w.amend(address, fmt.Sprintf("news %d", n))
		}
	}},
}

// matrixHistory is how long the history of a run gets that is to be continued.
const matrixHistory = 60

func sends(p agent.MessagePolicy) func(*world, string) {
	return func(w *world, address string) {
		busy := w.until(address, "run", func(*agent.Run) bool { return true }).Status == agent.RunRunning
		r, err := w.starter.Message(w.ctx, address, signals.Message{ID: "i", Principal: customer, Text: "actually, not that", Policy: p})
		if p == agent.MessageReject && busy {
			require.Equal(w.t, agent.CodeConflict, agent.ErrorCode(err), "%v", err)
			return
		}
		require.NoError(w.t, err)
		require.NotNil(w.t, r.Took)
	}
}

func cancels(u agent.UndoScope) func(*world, string) {
	return func(w *world, address string) {
		_, err := w.starter.Cancel(w.ctx, address, signals.Cancel{ID: "i", Principal: customer, Undo: u})
		require.NoError(w.t, err)
	}
}

func (w *world) amend(address, news string) {
	w.t.Helper()
	fields, err := agent.Encode(map[string]string{"news": news})
	require.NoError(w.t, err)
	_, err = w.starter.Amend(w.ctx, address, signals.Amend{ID: "a-" + news, Principal: ops, Fields: fields})
	require.NoError(w.t, err)
}

// of is the same world in a test within its test.
func (w *world) of(t *testing.T) *world {
	return &world{t: t, ctx: w.ctx, dir: w.dir, dsn: w.dsn, store: w.store, starter: w.starter, config: w.config, agents: w.agents, nth: w.nth}
}

// Whatever interrupts a run in whatever state: its steps end in definite statuses,
// the next model request is valid, the journal reduces to the run, and its history
// replays.
func TestMatrix(t *testing.T) {
	t.Parallel()
	m := &matrix{cells: map[string]*cell{}}
	model := watch(m)
	w := newWorld(t, model, m.agent(1, agent.Limits{}), m.agent(2, agent.Limits{History: matrixHistory}))
	t.Run("cells", func(t *testing.T) {
		for _, in := range matrixInterrupts {
			for _, state := range []string{"idle", "model call", "three tools", "one gate", "two gates", "in doubt", "compensation"} {
				t.Run(in.name+" in "+state, func(t *testing.T) {
					t.Parallel()
					w, name := w.of(t), in.name+"/"+state
					c := m.add(name, state)
					if state == "two gates" {
						m.mu.Lock()
						m.cells[name+"+"] = c
						m.mu.Unlock()
					}
					version := 1
					if in.name == "continue-as-new" {
						version = 2
					}
					s, err := w.starter.Start(w.ctx, starter.Start{Agent: "matrix", Version: version, Tenant: "acme", Key: strings.NewReplacer(" ", "_", "/", ".").Replace(w.name()),
						Principal: customer, Body: labStart{Name: "c-017"}})
					require.NoError(t, err)
					m.begin(w, s.Address, name, c)
					in.do(w, s.Address)
					close(c.free)
					if !in.cuts {
						close(c.freeSend)
					}
					w.goesOn(s.Address, in.name, state)
				})
			}
		}
	})
	model.seen(t)
}

// goesOn lets an interrupted run come to rest, asks its model once more, lets
// people decide what is open, and ends it.
func (w *world) goesOn(address, interrupt, state string) {
	rests := func(r *agent.Run) bool {
		return r.Status != agent.RunRunning && (r.Owed == 0 || r.Status == agent.RunPaused)
	}
	run := w.until(address, "rest", rests)
	if interrupt == "pause" {
		require.Equal(w.t, agent.RunPaused, run.Status)
		_, err := w.starter.Resume(w.ctx, address, signals.Resume{ID: "r", Principal: ops})
		require.NoError(w.t, err)
		run = w.until(address, "rest", rests)
	}
	if state == "three tools" && !run.Status.Ended() {
		w.requireThree(run, interrupt)
	}
	if !run.Status.Ended() {
		require.False(w.t, strings.HasPrefix(interrupt, "cancel"), run.Reason)
		w.say(address, "and now?")
		turn := run.Turn
		run = w.until(address, "an answer", func(r *agent.Run) bool { return rests(r) && r.Turn > turn })
		if interrupt == "continue-as-new" {
			eventually(w.t, "it goes on in a new Temporal run", func() bool { return len(w.chain(address)) > 1 })
		}
		for _, g := range run.Gates {
			switch {
			case g.Status != agent.GateOpen:
			case g.Kind == agent.KindDoubt:
				w.resolve(address, g, signals.Verdict{Verdict: agent.DidNotHappen})
			default:
				w.decide(address, g, agent.Reject, "no")
			}
		}
		w.cancel(address, "the end")
	}
	run = w.until(address, "end", ended)
	w.until(address, "the workflow's end", func(*agent.Run) bool { return w.status(address) != enums.WORKFLOW_EXECUTION_STATUS_RUNNING })
	require.Equal(w.t, agent.RunCancelled, run.Status)
	for _, s := range run.Steps {
		doubtful := s.Status == agent.StepInDoubt && strings.HasPrefix(interrupt, "cancel") && slices.ContainsFunc(run.FailedEnd, func(l string) bool { return strings.HasPrefix(l, s.ID+" ") })
		require.True(w.t, doubtful || !s.Status.Open(), "step %s %s is %s", s.ID, s.Tool, s.Status)
	}
	if state == "three tools" {
		w.requireThree(run, interrupt)
	}
	w.requireJournal(run)
	w.requireReplay(address)
}

// requireThree checks what became of the three tools in flight.
func (w *world) requireThree(run *agent.Run, interrupt string) {
	want := map[string]agent.StepStatus{"read": agent.StepAbandoned, "send": agent.StepCancelled, "ship": agent.StepDone}
	switch interrupt {
	case "message rollback", "cancel turn", "cancel run":
		want["ship"], want["unship"] = agent.StepUndone, agent.StepDone
	case "message reject", "message queue", "amend", "pause", "continue-as-new":
		want["read"], want["send"] = agent.StepDone, agent.StepDone
	}
	require.Equal(w.t, want, statuses(run))
}
