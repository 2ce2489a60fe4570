package agenttest_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/llm/scripted"
	"interlock/tool"
)

// trial is a test that is expected to fail.
type trial struct {
	testing.TB
	failed bool
	log    strings.Builder
}

func (f *trial) Helper()                   {}
func (f *trial) Failed() bool              { return f.failed }
func (f *trial) Logf(s string, a ...any)   { fmt.Fprintf(&f.log, s+"\n", a...) }
func (f *trial) Errorf(s string, a ...any) { f.failed = true; f.Logf(s, a...) }
func (f *trial) Fatalf(s string, a ...any) { f.Errorf(s, a...); runtime.Goexit() }
func (f *trial) Fatal(a ...any)            { f.Fatalf("%s", fmt.Sprint(a...)) }

// failing is what a test says that must fail.
func failing(t *testing.T, test func(t testing.TB)) string {
	t.Helper()
	f := &trial{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(f)
	}()
	<-done
	require.True(t, f.failed, "it passes")
	return f.log.String()
}

type (
	start struct{}
	state struct {
		List []string `json:"list" set:"tool"`
		Text string   `json:"text" set:"tool,start"`
		Note string   `json:"note" set:"user,system"`
	}
	look struct {
		Tags map[string]string `json:"tags"`
	}
)

// parts are the code of an agent, to be made worse one by one.
type parts struct {
	init   func() string
	commit func(*state, look, look) error
	guard  func(agent.Situation[state]) error
	when   func(agent.Situation[state], look) bool
	title  func(agent.Situation[state], look) string
	enter  func(agent.Situation[state]) []agent.Call
	say    func(agent.Situation[state]) string
}

func (p parts) agent() *agent.Definition {
	if p.init == nil {
		p.init = func() string { return "" }
	}
	if p.commit == nil {
		p.commit = func(*state, look, look) error { return nil }
	}
	find := tool.ReadOnly("find", func(context.Context, look) (look, error) { return look{}, errors.New("never called") }, p.commit)
	send := tool.Keyed("send", func(context.Context, tool.Key, look) (look, error) { return look{}, errors.New("never called") },
		func(*state, look, look) error { return nil }).
		Gate(tool.Gate[state, look]{Roles: []string{"boss"}, Reads: []string{"note"}, Expires: time.Hour, When: p.when, Title: p.title})
	return agent.Define(agent.Spec[start, state]{Name: "lab", Version: 1, Instructions: "Try.",
		Init: func(start) (state, error) { return state{Text: p.init()}, nil },
		Phases: []agent.Phase[state]{
			{Name: "work", Tools: []agent.Tool[state]{find, send}, Moves: []agent.Move[state]{{To: "end", When: p.guard}, {To: "more"}}},
			{Name: "more", Enter: p.enter, Moves: []agent.Move[state]{{To: "end"}}},
			{Name: "end", Final: true, Say: p.say},
		}, Tools: []agent.Tool[state]{find}})
}

var four = look{Tags: map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}}

func TestCheck_FindsWhatIsNotPure(t *testing.T) {
	count := 0
	text := func() string { count++; return fmt.Sprint(count) }
	for name, c := range map[string]struct {
		parts parts
		want  string
	}{
		"init":   {parts{init: text}, "Init decides one input in two ways"},
		"commit": {parts{commit: func(s *state, _, r look) error { s.Text = time.Now().String(); return nil }}, "Commit of find decides one input in two ways"},
		"commit, by the order of a map": {parts{commit: func(s *state, _, r look) error {
			for k := range r.Tags {
				s.List = append(s.List, k)
			}
			return nil
		}}, "Commit of find decides one input in two ways"},
		"commit, by its error": {parts{commit: func(*state, look, look) error { return errors.New(text()) }}, "Commit of find decides one input in two ways"},
		"guard":                {parts{guard: func(agent.Situation[state]) error { return errors.New(text()) }}, `what answers the call move {"to":"end"} in phase work`},
		"when":                 {parts{when: func(agent.Situation[state], look) bool { count++; return count%3 == 0 }}, "the gate of send"},
		"title":                {parts{title: func(agent.Situation[state], look) string { return text() }}, "the gate of send"},
		"enter": {parts{enter: func(agent.Situation[state]) []agent.Call {
			return []agent.Call{{Tool: "find", Args: look{Tags: map[string]string{"n": text()}}}}
		}}, "Enter of phase more"},
		"say":   {parts{say: func(agent.Situation[state]) string { return text() }}, "Say of phase end"},
		"panic": {parts{guard: func(agent.Situation[state]) error { panic("oops") }}, "the agent's code panicked, which blocks a run: oops"},
	} {
		t.Run(name, func(t *testing.T) {
			said := failing(t, func(tb testing.TB) {
				run := agenttest.Start(tb, c.parts.agent(), start{})
				run.Says("go")
				run.Propose(scripted.Call("find", four), scripted.Call("send", four))
				run.Done("1.1", four)
				run.Says("and?")
				if c.parts.enter != nil {
					run.Propose(scripted.MoveTo("more"))
				}
				run.Propose(scripted.MoveTo("end"))
				run.Cancel("enough")
			})
			require.Contains(t, said, c.want)
			require.Contains(t, said, "agenttest: ")
		})
	}
}

// scribbler is a tool by hand whose Commit writes into what it was given.
type scribbler struct{ into string }

func (s scribbler) Spec() agent.ToolSpec[state] {
	return agent.ToolSpec[state]{Name: "scribble", Effect: agent.ReadOnly, Args: reflect.TypeFor[look](), Result: reflect.TypeFor[look](), Source: s,
		Timeout: time.Second, Deadline: time.Second,
		Commit: func(_ *state, args, result agent.JSON) error {
			copy(map[string]agent.JSON{"args": args, "result": result}[s.into], `{"TAGS`)
			return nil
		}}
}

func TestCheck_FindsACommitThatChangesWhatItWasGiven(t *testing.T) {
	for into, want := range map[string]string{"result": "Commit of scribble changed what it was given", "args": "the events do not make the run"} {
		said := failing(t, func(tb testing.TB) {
			def := agent.Define(agent.Spec[start, state]{Name: "lab", Version: 1, Instructions: "Try.",
				Init: func(start) (state, error) { return state{}, nil },
				Phases: []agent.Phase[state]{{Name: "work", Tools: []agent.Tool[state]{scribbler{into}}, Moves: []agent.Move[state]{{To: "end"}}},
					{Name: "end", Final: true}}})
			run := agenttest.Start(tb, def, start{})
			run.Says("go")
			run.Propose(scripted.Call("scribble", four))
			run.Done("1.1", four)
		})
		require.Contains(t, said, want)
	}
}

func TestCheck_PureCodePasses(t *testing.T) {
	run := agenttest.Start(t, parts{commit: func(s *state, _, r look) error {
		r.Tags["e"] = "5" // its own copy
		s.Text = fmt.Sprint(len(r.Tags))
		return nil
	}}.agent(), start{})
	run.Says("go")
	run.Propose(scripted.Call("find", four))
	run.Done("1.1", four)
	var s state
	run.State(&s)
	require.Equal(t, "5", s.Text)
}

// The log of a failed test holds what it takes to do the run again.
func TestFailedTestShowsTheRun(t *testing.T) {
	f := &trial{}
	t.Run("inner", func(t *testing.T) {
		f.TB = t
		run := agenttest.Start(f, parts{}.agent(), start{})
		run.Says("go")
		f.failed = true
	})
	require.Contains(t, f.log.String(), "the run, as a script:")
	require.Contains(t, f.log.String(), "message \"go\" id=i1 by=user")
}

func TestMistakesOfATest(t *testing.T) {
	for name, c := range map[string]struct {
		test func(run *agenttest.Run)
		want string
	}{
		"propose": {func(run *agenttest.Run) { run.Propose(scripted.Say("hi")) }, "Propose: the model is not called now: the run is waiting (user) in phase work"},
		"done": {func(run *agenttest.Run) { run.Says("go"); run.Done("1.1", look{}) },
			"Done: step 1.1 does not run: the run is running in phase work; the model call of turn 1 waits for Propose"},
		"no result of this tool": {func(run *agenttest.Run) {
			run.Says("go")
			run.Propose(scripted.Call("find", four))
			run.Done("1.1", "found")
		}, "the result of tool find is a agenttest_test.look, not a string"},
		"no such tool": {func(run *agenttest.Run) {
			agenttest.Fake(run, "fnid", func(look) (look, error) { return look{}, nil })
		}, "agent lab has no tool fnid; it has [find send]"},
		"another type": {func(run *agenttest.Run) {
			agenttest.Fake(run, "find", func(string) (look, error) { return look{}, nil })
		}, "tool find takes agenttest_test.look and gives agenttest_test.look; the fake takes string"},
		"no such step": {func(run *agenttest.Run) { run.Step("7.1") }, "there is no step 7.1"},
		"no such gate": {func(run *agenttest.Run) { run.Approve("7.1", "ann") }, "there is no gate 7.1"},
		"no request":   {func(run *agenttest.Run) { run.Request() }, "the model has not been called"},
		"no answer":    {func(run *agenttest.Run) { run.Answer("find") }, "the model made no call of find"},
		"back in time": {func(run *agenttest.Run) { run.Advance(-1) }, "the clock cannot go back"},
		"panic of a fake": {func(run *agenttest.Run) {
			agenttest.Fake(run, "find", func(look) (look, error) { panic("oops") })
			run.Says("go")
			run.Propose(scripted.Call("find", four))
		}, "the fake of tool find panicked: oops"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, failing(t, func(tb testing.TB) { c.test(agenttest.Start(tb, parts{}.agent(), start{})) }), c.want)
		})
	}
	require.Contains(t, failing(t, func(tb testing.TB) {
		agenttest.Start(tb, agent.Define(agent.Spec[start, state]{}), start{})
	}), "mistakes")
}
