package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/store"
	"interlock/tool"
)

// large is a result of more than 3 MB; every character has four bytes.
var large = strings.Repeat("🙂", 800_000)

func hugeTools(l lab) lab {
	l.look = func(context.Context, text) (text, error) { return text{large}, nil }
	l.send = func(context.Context, tool.Key, text) (text, error) { return text{large}, nil }
	return l
}

// A result beyond every limit of a tool without Keep happened, is recorded as
// such, and the run goes on without it.
func TestLargeResult_WithoutKeep(t *testing.T) {
	t.Parallel()
	model := watch(turns(scripted.Then(call("look", "a"), call("send", "b")), call("send", "b"), scripted.Say("Too much."), toEnd))
	w := newWorld(t, model, hugeTools(lab{db: labDB(t)}).agent())
	address := w.start("k")
	run := w.chat(address, "go")
	require.Equal(t, 3, run.Turn)
	require.Equal(t, map[string]agent.StepStatus{"look": agent.StepDone, "send": agent.StepDone}, statuses(run))
	refused := recorded[agent.CommitRefusedData](w, address, agent.EventCommitRefused)
	require.Len(t, refused, 2)
	for _, r := range refused {
		require.Contains(t, r.Reason, "result_too_large")
		require.Contains(t, r.Reason, "the limit is 16384")
	}
	require.Contains(t, run.State.String(), `"seen":"","sent":""`)
	effects, err := w.effects(address)
	require.NoError(t, err)
	require.Len(t, effects, 1)
	require.Equal(t, store.EffectApplied, effects[0].Status)
	require.Equal(t, 1, effects[0].Attempts, "it is not done again")
	w.say(address, "end")
	w.finished(address, agent.RunCompleted)
	model.seen(t)
	for _, e := range w.history(address, "") {
		require.Less(t, e.Size(), 100_000)
	}
}

// With Keep the run holds a part, the whole is in the blob store, and
// read_result reads on in it, in the next turn, in whole characters.
func TestLargeResult_WithKeep(t *testing.T) {
	t.Parallel()
	read := func(step string, offset int) llm.Response {
		return scripted.Call(agent.CallReadResult, scripted.Args{"step": step, "offset": offset})
	}
	model := watch(turns(scripted.Then(call("look", "a"), call("send", "b")),
		scripted.Then(read("1.1", 10_003), read("1.2", 0), read("1.1", 99_999_999), read("9.9", 0), read("1.1", -1)), scripted.Say("I see.")))
	l := hugeTools(lab{db: labDB(t)})
	l.keep = func(r text) text { return text{r.Text[:40]} }
	w := newWorld(t, model, l.agent())
	address := w.start("k")
	run := w.chat(address, "go")
	require.Equal(t, 3, run.Turn, run.Reason)
	kept := strings.Repeat("🙂", 10)
	require.Contains(t, run.State.String(), fmt.Sprintf(`"seen":"%s","sent":"%s"`, kept, kept))
	for _, s := range run.Steps {
		require.NotNil(t, s.Whole)
		require.Equal(t, len(`{"text":""}`)+len(large), s.Whole.Bytes)
		blob, err := w.store.GetBlob(w.ctx, "acme", s.Whole.Ref, 0, -1)
		require.NoError(t, err)
		require.Equal(t, `{"text":"`+large+`"}`, string(blob))
	}
	answers := map[string]string{}
	for _, m := range model.seen(t)[2].Messages {
		answers[m.Call] += m.Text
		require.NotContains(t, m.Text, "\uFFFD", "no character is cut")
	}
	require.Contains(t, answers["c2_1"], strings.Repeat("🙂", 100))
	require.Contains(t, answers["c2_2"], `{"text":"🙂🙂`)
	require.Contains(t, answers["c2_4"], "no step")
	w.requireJournal(run)
	w.requireReplay(address)
}

func TestModel_AnswerTooLarge(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]llm.Response{
		"text":  scripted.Say(strings.Repeat("x", 2_500_000)),
		"calls": call("look", strings.Repeat("x", 2_500_000)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := watch(turns(answer))
			w := newWorld(t, model, lab{db: labDB(t)}.agent())
			address := w.start("k")
			w.say(address, "tell me all")
			run := w.until(address, "pause", paused)
			require.Contains(t, run.Reason, "the model's answer has 2500")
			require.Contains(t, run.Reason, "the limit is 65536")
			require.Equal(t, 1, model.calls(1), "nobody pays for it twice")
			w.requireJournal(run)
			w.requireReplay(address)
			w.cancel(address, "")
			w.finished(address, agent.RunCancelled)
		})
	}
}

// Calls that cannot be made are answered with the reason, and the next request
// is valid whatever the model wrote.
func TestModel_MalformedCalls(t *testing.T) {
	t.Parallel()
	looks := newCounter()
	args := []string{`{"op": opn_tab"}`, `{"text":"a","text":"b"}`, `{"text":"a","more":1}`, `{"text":9007199254740993}`, `["a"]`, `{"Text":"a"}`, "{\"text\":\"a\\u0000\"}"}
	bad := llm.Response{}
	for _, a := range args {
		bad = scripted.Then(bad, scripted.Raw("look", a))
	}
	for i := range bad.Calls {
		bad.Calls[i].ProviderID = "call_1"
	}
	model := watch(turns(bad, scripted.Then(scripted.Raw("nothing", "{}"), scripted.Raw("", "{}"), call("look", "right")), scripted.Say("At last.")))
	w := newWorld(t, model, lab{db: labDB(t), look: looks.look}.agent())
	address := w.start("k")
	run := w.chat(address, "go")
	require.Equal(t, 3, run.Turn, run.Reason)
	require.Len(t, run.Turns[0].Proposal.Calls, len(args))
	for i, c := range run.Turns[0].Proposal.Calls {
		require.Equal(t, string(agent.StepRefused), c.Status, args[i])
		require.NotEmpty(t, c.Text)
	}
	require.Equal(t, 1, looks.total())
	requests := model.seen(t)
	require.Len(t, requests, 3)
	shown := ""
	for _, m := range requests[1].Messages {
		shown += m.Text
	}
	require.Contains(t, shown, `opn_tab`, "the model sees what it wrote")
	w.requireJournal(run)
	w.requireReplay(address)
}

// Integers keep every digit, from the model to the tool, the ledger and back.
func TestArguments_KeepEveryDigit(t *testing.T) {
	t.Parallel()
	const digits = `{"big":9223372036854775807,"text":"9007199254740993"}`
	type args struct {
		Big  int64  `json:"big"`
		Text string `json:"text"`
	}
	type state struct {
		Big int64 `json:"big" set:"tool"`
	}
	send := tool.Keyed("send", func(_ context.Context, _ tool.Key, a args) (args, error) { return a, nil },
		func(s *state, _ args, r args) error { s.Big = r.Big; return nil })
	def := agent.Define(agent.Spec[labStart, state]{Name: "lab", Version: 1, Instructions: "Count.",
		Init:   func(labStart) (state, error) { return state{}, nil },
		Phases: []agent.Phase[state]{{Name: "work", Tools: []agent.Tool[state]{send}, Moves: []agent.Move[state]{{To: "end"}}}, {Name: "end", Final: true}}})
	model := watch(turns(scripted.Raw("send", `{ "text":"9007199254740993", "big": 9223372036854775807 }`), scripted.Say("Counted.")))
	w := newWorld(t, model, def)
	address := w.start("k")
	run := w.chat(address, "go")
	require.Equal(t, `{"big":9223372036854775807}`, run.State.String())
	effects, err := w.effects(address)
	require.NoError(t, err)
	require.Equal(t, digits, effects[0].Args.String())
	require.Equal(t, digits, effects[0].Result.String())
	require.Equal(t, digits, run.Steps[0].Result.String())
	w.requireJournal(run)
}

// A quick tool runs inside the workflow's task, and past its half second again
// as an activity; its failures are answers too.
func TestQuickTool(t *testing.T) {
	t.Parallel()
	slow := newBlocking()
	first := true
	l := lab{db: labDB(t), glance: func(ctx context.Context, a text) (text, error) {
		switch {
		case a.Text == "slow" && first:
			first = false
			return a, slow.wait(ctx)
		case a.Text == "refused":
			return a, tool.Refused(fmt.Errorf("not there"))
		}
		return a, nil
	}}
	w := newWorld(t, turns(scripted.Then(call("glance", "fast"), call("glance", "refused")), call("glance", "slow"), scripted.Say("Seen.")), l.agent())
	address := w.start("k")
	run := w.chat(address, "go")
	require.Equal(t, []agent.StepStatus{agent.StepDone, agent.StepRefused, agent.StepDone},
		[]agent.StepStatus{run.Steps[0].Status, run.Steps[1].Status, run.Steps[2].Status})
	require.Contains(t, run.State.String(), `"seen":"slow"`)
	w.quiet(address)
	activities := 0
	for _, e := range w.history(address, "") {
		if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == "lab.glance" {
			activities++
		}
	}
	require.Equal(t, 1, activities)
	w.requireJournal(run)
	w.requireReplay(address)
}

// Whatever bytes an error holds, it arrives, and ends its step.
func TestTools_ErrorsThatAreNoText(t *testing.T) {
	t.Parallel()
	noText := "broken \xff\xfe\x00 text " + strings.Repeat("🙂", 1000)
	model := watch(turns(scripted.Then(call("look", "a"), call("send", "b")), scripted.Say("Well.")))
	w := newWorld(t, model, lab{db: labDB(t),
		look: func(context.Context, text) (text, error) { return text{}, fmt.Errorf("%s", noText) },
		send: func(context.Context, tool.Key, text) (text, error) {
			return text{}, tool.Refused(fmt.Errorf("%s", noText))
		}}.agent())
	address := w.start("k")
	run := w.chat(address, "go")
	require.Equal(t, map[string]agent.StepStatus{"look": agent.StepFailed, "send": agent.StepRefused}, statuses(run))
	for _, s := range run.Steps {
		require.Contains(t, s.Reason, "broken ")
		require.Contains(t, s.Reason, "text")
	}
	model.seen(t)
	w.requireJournal(run)
}

func TestModel_ErrorsThatAreNoText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scripted.Func("scripted", nil).Failing(func(llm.Request) error {
		return &llm.Error{Kind: llm.KindRefused, Message: "no \xff\xfe text"}
	}), lab{db: labDB(t)}.agent())
	address := w.start("k")
	w.say(address, "hello")
	require.Contains(t, w.until(address, "pause", paused).Reason, "model refused: no ")
}
