package workflows_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/workflow"

	"interlock/agent"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/tool"
	"interlock/worker"
)

// newerBuild makes a worker one of a newer build, as far as a snapshot tells: what it
// carries on has something that this build does not know, which it reads again itself.
type newerBuild struct {
	interceptor.InterceptorBase
	add, remove func(snapshot map[string]any)
}

func (b *newerBuild) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &newerInbound{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, b: b}
}

type newerInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	b *newerBuild
}

func (i *newerInbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&newerOutbound{WorkflowOutboundInterceptorBase: interceptor.WorkflowOutboundInterceptorBase{Next: out}, b: i.b})
}

func (i *newerInbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	if raw, ok := in.Args[1].(converter.RawValue); ok && raw.Payload() != nil {
		p := raw.Payload()
		p.Data = changed(p.GetData(), i.b.remove)
		in.Args[1] = converter.NewRawValue(p)
	}
	return i.Next.ExecuteWorkflow(ctx, in)
}

type newerOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	b *newerBuild
}

func (o *newerOutbound) NewContinueAsNewError(ctx workflow.Context, wf any, args ...any) error {
	data, err := json.Marshal(args[1])
	if err != nil {
		panic(err)
	}
	return o.Next.NewContinueAsNewError(ctx, wf, args[0], json.RawMessage(changed(data, o.b.add)))
}

// changed is JSON with a snapshot in it that was changed.
func changed(data []byte, change func(map[string]any)) []byte {
	var all map[string]any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		panic(err)
	}
	change(all["snapshot"].(map[string]any))
	out, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return out
}

func runOf(snapshot map[string]any) map[string]any { return snapshot["run"].(map[string]any) }

// serveNewer serves with a worker of a newer build.
func (w *world) serveNewer(b *newerBuild) {
	c, err := client.Dial(client.Options{HostPort: this.Address, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)), Interceptors: []interceptor.ClientInterceptor{b}})
	require.NoError(w.t, err)
	w.t.Cleanup(c.Close)
	w.config.Client = c
	w.serve(w.config.Model, w.agents...)
	w.config.Client = temporalClient
}

// serveLogged serves with a worker whose log can be read.
func (w *world) serveLogged(agents ...*agent.Definition) *logged {
	log := &logged{}
	c, err := client.Dial(client.Options{HostPort: this.Address, Logger: worker.SDKLog(slog.New(slog.NewTextHandler(log, nil)))})
	require.NoError(w.t, err)
	w.t.Cleanup(c.Close)
	w.config.Client = c
	w.serve(w.config.Model, agents...)
	w.config.Client = temporalClient
	return log
}

// requireBlocked waits until the run's task fails, and why says the reason and what to
// do. Temporal keeps the first failure in a row alone; where it has none, since that task
// went to a worker that was gone, why says that the worker's log has the reason, and so
// it has.
func (w *world) requireBlocked(address string, log *logged, says, next string) (why string) {
	w.t.Helper()
	told, lost := false, false
	eventually(w.t, "the task says why it is blocked", func() bool {
		got, err := w.starter.Why(w.ctx, address)
		require.NoError(w.t, err)
		why = got.Sentence + "\n" + got.Next
		told = strings.Contains(got.Sentence, says)
		lost = strings.HasPrefix(got.Sentence, "blocked: ") && strings.Contains(got.Next, "the worker's log has the reason") && strings.Contains(log.String(), says)
		return told || lost
	})
	if told {
		require.Contains(w.t, why, next)
	}
	return why
}

// A rolling deploy, forward and back: what a newer build carries on, with a verdict
// that waits, is never gone on with by an older one. It blocks and says what it does
// not know and what to do; back on the newer build nothing is lost.
func TestBuilds_ForwardAndBack(t *testing.T) {
	t.Parallel()
	pending := func(s map[string]any) map[string]any {
		for _, v := range runOf(s)["pending"].([]any) {
			return v.(map[string]any)
		}
		panic("no verdict waits")
	}
	for name, c := range map[string]struct {
		newerBuild
		says string
	}{
		"newer rules": {newerBuild{add: func(s map[string]any) { runOf(s)["rules"] = agent.Rules + 1 }, remove: func(s map[string]any) { runOf(s)["rules"] = agent.Rules }},
			"the run goes on by rules 2, and this build knows rules up to 1"},
		"a newer schema": {newerBuild{add: func(s map[string]any) { runOf(s)["v"] = agent.RunSchema + 1 }, remove: func(s map[string]any) { runOf(s)["v"] = agent.RunSchema }},
			"the snapshot's schema is 1, and its run's 2"},
		"a member of the verdict that waits": {newerBuild{add: func(s map[string]any) { pending(s)["weight"] = 2 }, remove: func(s map[string]any) { delete(pending(s), "weight") }},
			"/snapshot/run/pending/0/weight"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := labDB(t)
			w := newWorld(t, turns(call("pay", "1"), toEnd), lab{db: db, limits: short,
				gate: &tool.Gate[labState, text]{Roles: []string{"refunds"}, TakeBack: 12 * time.Second}}.agent())
			address := w.start("k")
			w.say(address, "go")
			gate := lastGate(w.until(address, "the gate", waiting("gate")))
			w.quiet(address) // else a record of the older worker's may be under way for as long as its heartbeat
			w.serveNewer(&c.newerBuild)
			require.Equal(t, agent.KeptBack, w.as(named("ann"), address, gate, w.verdict(gate, agent.Approve, "")).Status)
			for n := 0; len(w.chain(address)) < 2; n++ {
				require.Less(t, n, 300, "it is continued while the verdict waits")
				w.amend(address, fmt.Sprint(n))
			}
			w.stop()
			log := w.serveLogged(w.agents...) // back to the older build
			why := w.requireBlocked(address, log, c.says, "deploy the newer build on every worker of task queue")
			require.NotContains(t, why, "nil pointer")
			require.Zero(t, payments(t, db))
			w.serveNewer(&c.newerBuild) // and forward again
			run := w.until(address, "the end", func(r *agent.Run) bool { return r.Status == agent.RunCompleted })
			require.Equal(t, "ann", run.Gates[0].By.Subject)
			require.Equal(t, 1, payments(t, db))
			w.requireJournal(run)
		})
	}
}

type (
	noteState struct {
		Name string `json:"name" set:"start"`
		Note string `json:"note" set:"model"`
	}
	noteRenamed struct {
		Name string `json:"name" set:"start"`
		Text string `json:"text" set:"model"`
	}
	noteRetyped struct {
		Name string `json:"name" set:"start"`
		Note int    `json:"note" set:"model"`
	}
	noteMore struct {
		Name string `json:"name" set:"start"`
		Note string `json:"note" set:"model"`
		More string `json:"more" set:"model"`
	}
	noteOptional struct {
		Name string `json:"name" set:"start"`
		Note string `json:"note" set:"model"`
		More string `json:"more,omitempty" set:"model"`
	}
)

// notes is an agent of one version, by the type of its state.
func notes[S any]() *agent.Definition {
	return agent.Define(agent.Spec[struct{}, S]{Name: "notes", Version: 1, Instructions: "Take notes.",
		Init:   func(struct{}) (s S, err error) { return s, nil },
		Phases: []agent.Phase[S]{{Name: "work", Moves: []agent.Move[S]{{To: "end"}}}, {Name: "end", Final: true}}})
}

// The state changed under its version: a run that began before stops at its next
// load, and is told the field; one optional field more is no change.
func TestBuilds_ChangedState(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		def  *agent.Definition
		says string
	}{
		"same":     {notes[noteState](), ""},
		"renamed":  {notes[noteRenamed](), "state field note (string) is gone, or has another name"},
		"retyped":  {notes[noteRetyped](), "state field note was string and is integer"},
		"required": {notes[noteMore](), "state field more (string) is new and not optional: tag it omitempty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := watch(turns(scripted.Say("One."), scripted.Say("Two.")))
			w := newWorld(t, model, notes[noteState]())
			in := w.startInput("k")
			in.Agent, in.Body = "notes", struct{}{}
			started, err := w.starter.Start(w.ctx, in)
			require.NoError(t, err)
			w.chat(started.Address, "hello")
			w.quiet(started.Address)
			second := signals.Message{ID: "second", Principal: customer, Text: "and now?"}
			if c.says != "" {
				log := w.serveLogged(c.def)
				_, err = w.impatient().Message(w.ctx, started.Address, second)
				require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
				w.requireBlocked(started.Address, log, c.says, "a changed state is a new version of the agent")
			}
			w.serve(model, notes[noteOptional]())
			_, err = w.starter.Message(w.ctx, started.Address, second) // it may have waited for a worker meanwhile
			require.NoError(t, err)
			run := w.until(started.Address, "the answer", func(r *agent.Run) bool { return r.Reply != nil && r.Reply.Text == "Two." && waiting("user")(r) })
			w.requireJournal(run)
		})
	}
}
