package prompt_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/prompt"
)

func render(t *testing.T, in prompt.Input) prompt.Output {
	t.Helper()
	out, err := prompt.Render(in)
	require.NoError(t, err)
	return out
}

func toolNames(out prompt.Output) []string {
	var names []string
	for _, t := range out.Tools {
		names = append(names, t.Name)
	}
	return names
}

func textOf(out prompt.Output) string {
	var b strings.Builder
	for _, m := range out.Messages[1:] {
		b.WriteString(m.Text + "\n")
	}
	return b.String()
}

// What was sent stays sent: the next context begins with the same bytes, as far
// as the situation, so that a provider's prefix cache hits.
func TestNextTurnExtendsTheLast(t *testing.T) {
	open := showed
	open.Text, open.Calls = "", nil
	in := collecting(found(agent.View{Turn: 2, Turns: []agent.ViewTurn{looked, open}}, false, ""))
	before := render(t, in)
	in = collecting(found(agent.View{Turn: 3, Turns: []agent.ViewTurn{looked, showed, {N: 3, Opening: agreed.Opening}}}, true, ""))
	after := render(t, in)
	require.Equal(t, before.Tools, after.Tools)

	last := len(before.Messages) - 1
	require.Equal(t, before.Messages[:last], after.Messages[:last])

	// Where the open turn begins with a message, it keeps its place too.
	in = collecting(agent.View{Turn: 1, Turns: []agent.ViewTurn{asked}})
	first := render(t, in)
	opening, _, found := strings.Cut(first.Messages[1].Text, "\n\n[situation in turn 1]")
	require.True(t, found)
	require.Equal(t, opening, before.Messages[1].Text)
}

// The tools stand before all messages, so what the view holds does not change
// them: not what was shown, not what waits, not what can be read.
func TestToolsDependOnTheDefinitionAndThePhase(t *testing.T) {
	all := []string{"set_fields", "ask", "confirm", "record_fact", "withdraw", "rule_out", "read_result", "find_order", "move"}
	first := render(t, golden["first_turn"]()).Tools
	for name, input := range golden {
		in := input()
		if in.Phase.Name != "collect" {
			continue
		}
		require.Equal(t, first, render(t, in).Tools, name)
	}
	base := func() prompt.Input { return collecting(agent.View{Turn: 1, Turns: []agent.ViewTurn{asked}}) }
	require.Equal(t, all, toolNames(render(t, base())))

	in := base()
	in.Fields = in.Fields[:1] // the start sets it
	out := render(t, in)
	require.Equal(t, all[1:], toolNames(out))
	require.Contains(t, out.Messages[0].Text, "answers these calls: ask, confirm")

	in = base()
	in.Phase.Moves = []prompt.Move{{To: "done", Auto: true}}
	out = render(t, in)
	require.Equal(t, all[:len(all)-1], toolNames(out))
	require.Contains(t, textOf(out), "done (the program makes this move itself)")

	in = base()
	in.View.LastWord = true
	out = render(t, in)
	require.Equal(t, []string{"finish"}, toolNames(out))
	require.Equal(t, "finish", out.Only)
}

// An answer to ask says what the user saw, and the same whether the user has
// answered yet or not.
func TestAsk(t *testing.T) {
	const told = "step 2.1: asked. The user has been shown the question, with the values that the state then had for order_id, amount. The user's next message is the answer.\n"
	after := func(answer agent.ViewItem, opening ...agent.Item) prompt.Output {
		ask := showed
		ask.Calls = []agent.ViewCall{call("c2_1", "ask", `{"fields":["order_id","amount"],"question":"This one?"}`, answer)}
		return render(t, collecting(found(agent.View{Turn: 3, Turns: []agent.ViewTurn{looked, ask, {N: 3, Opening: opening}}}, true, "")))
	}
	waiting := agent.ViewItem{Step: "2.1", Tool: "ask", Status: "waiting", Text: "asked; the user's next message is the answer"}
	answered := agent.ViewItem{Step: "2.1", Tool: "ask", Status: "done", Text: "the user's next message is the answer"}
	out := after(answered, message("yes"))
	require.Contains(t, textOf(out), told)
	require.Contains(t, textOf(out), "Now: the last user message above is new and not answered yet. It came after your question, step 2.1.")
	require.Contains(t, textOf(after(answered, message("yes"), message("no"))), "They came after your question, step 2.1.")
	require.Contains(t, textOf(after(waiting)), told)
	require.NotContains(t, textOf(after(waiting)), "after your question")

	void := after(agent.ViewItem{Step: "2.1", Tool: "ask", Status: "void", Text: "amount changed after it was shown"}, message("yes"))
	require.Contains(t, textOf(void), "step 2.1: void: ")
	require.NotContains(t, textOf(void), "after your question")
}

func TestInDoubtAndRunning(t *testing.T) {
	text := textOf(render(t, collecting(agent.View{Turn: 2, Turns: []agent.ViewTurn{{N: 2}}, Running: []string{"1.1", "1.2"}, InDoubt: []string{"1.3"}})))
	require.Contains(t, text, "\nRunning, the outcome is told later: step 1.1, step 1.2\nIn doubt: step 1.3. Nobody knows whether it happened. A person must find out; do not make the call again.\n")
}

// The size of a result that is not shown is told where it is known.
func TestOmittedWithBytes(t *testing.T) {
	turn := func(bytes int) prompt.Input {
		it := agent.ViewItem{Step: "1.1", Status: "done", Omitted: true, Bytes: bytes}
		return collecting(agent.View{Turn: 2, Turns: []agent.ViewTurn{{N: 1, Opening: asked.Opening, Calls: []agent.ViewCall{call("c1_1", "find_order", `{}`, it)}}, {N: 2}}})
	}
	require.Contains(t, textOf(render(t, turn(20_000))), `The result (20000 bytes) is not shown; read_result{"offset":0,"step":"1.1"} reads it.`)
	require.Contains(t, textOf(render(t, turn(0))), `The result is not shown; read_result{"offset":0,"step":"1.1"} reads it.`)
}

func TestSchemasAreJSONObjects(t *testing.T) {
	in := golden["partial_and_omitted"]()
	in.View = found(in.View, true, "")
	in.View.Waiting = []agent.ViewGate{gate31}
	for _, tool := range render(t, in).Tools {
		var s struct {
			Type       string                     `json:"type"`
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
		}
		require.NoError(t, json.Unmarshal(tool.Schema, &s), tool.Name)
		require.Equal(t, "object", s.Type, tool.Name)
		require.NotEmpty(t, s.Properties, tool.Name)
		for _, r := range s.Required {
			require.Contains(t, s.Properties, r, tool.Name)
		}
		require.True(t, llm.ValidName(tool.Name))
	}
}

func TestRenderRefuses(t *testing.T) {
	in := collecting(agent.View{Turn: 1, Turns: []agent.ViewTurn{asked}})
	in.Phase = pay
	_, err := prompt.Render(in)
	require.ErrorContains(t, err, `the view is in phase "collect", the input describes "pay"`)

	in = collecting(agent.View{Turn: 1, State: agent.JSON(`[]`)})
	_, err = prompt.Render(in)
	require.ErrorContains(t, err, "the shown state is not a JSON object")

	in = collecting(agent.View{Turn: 1, Turns: []agent.ViewTurn{asked}})
	in.Phase.Tools = []prompt.Tool{{Name: "move"}}
	_, err = prompt.Render(in)
	require.ErrorContains(t, err, "the name of a control call")

	twice := looked
	twice.Calls = append(twice.Calls, twice.Calls[0])
	in = collecting(agent.View{Turn: 2, Turns: []agent.ViewTurn{twice, {N: 2}}})
	_, err = prompt.Render(in)
	require.ErrorContains(t, err, "call id c1_1 is used twice")

	in = collecting(agent.View{Turn: 1, Turns: []agent.ViewTurn{asked}})
	in.Limits.View = 99
	_, err = prompt.Render(in)
	require.ErrorContains(t, err, "have 101 bytes, the limit of a view is 99")
}

// What the user has just said is shown whatever its size: a model that does not
// see it cannot answer it.
func TestTheOpenTurnIsNeverStarved(t *testing.T) {
	long := strings.Repeat("please ", 300)
	in := collecting(agent.View{Turn: 2, Facts: []agent.Fact{{Quote: "a fact"}}, Turns: []agent.ViewTurn{looked, {N: 2, Opening: []agent.Item{message(long)}}}})
	in.Limits.View = 500
	out := render(t, in)
	require.Contains(t, textOf(out), long)
	require.Equal(t, 1, out.Report.Dropped)
	require.Greater(t, out.Report.Used, out.Report.Budget)
	require.NotContains(t, textOf(out), "a fact")
}

// An outcome shows the result of its step, once, and before the proposal that
// answered it.
func TestAnOutcomeShowsItsResult(t *testing.T) {
	vt := agent.ViewTurn{N: 2, Opening: []agent.Item{outcome("1.1", "Step 1.1, f: nobody knows."), outcome("1.1", "Step 1.1, f, is done."), outcome("1.2", ""), outcome("1.3", "other words")}, Text: "Good.",
		Results: []agent.ViewItem{done("1.1", `"r"`), done("1.1", `"r"`), {Step: "1.2", Status: "failed", Text: "why"}, {Step: "2.1", Tool: "x", Status: "running"}}}
	in := collecting(agent.View{Turn: 3, Turns: []agent.ViewTurn{{N: 1, Opening: asked.Opening, Text: "I wait."}, vt, {N: 3}}})
	out := render(t, in)
	require.Equal(t, "[outcome] Step 1.1, f: nobody knows.\n\n[outcome] Step 1.1, f, is done.\nresult: \"r\"\n\n"+
		"[outcome] Step 1.2: failed: it did not happen. why\n\n[outcome] Step 1.3: other words", out.Messages[3].Text)
	require.True(t, strings.HasPrefix(out.Messages[5].Text, "[step 2.1, x, called by the program] running"))
	require.Equal(t, 6, out.Report.Delivered)
}

func TestKeptResult(t *testing.T) {
	item := done("1.1", `{"n":1}`)
	item.Bytes = 50_000
	in := collecting(agent.View{Turn: 2, Turns: []agent.ViewTurn{{N: 1, Opening: asked.Opening, Calls: []agent.ViewCall{call("c1_1", "find_order", `{}`, item)}}, {N: 2}}})
	out := render(t, in)
	require.Contains(t, textOf(out), "result: {\"n\":1}\nThat is what was kept of a result of 50000 bytes; read_result{\"offset\":0,\"step\":\"1.1\"} reads it.")
	require.Contains(t, toolNames(out), "read_result")
}

func TestSensitiveFields(t *testing.T) {
	in := collecting(agent.View{Turn: 1, Turns: []agent.ViewTurn{asked}})
	in.Fields = []prompt.Field{{Name: "iban", Setters: []string{"user"}, Sensitive: true}}
	out := render(t, in)
	require.Contains(t, out.Messages[0].Text, "Its value is masked.")
	for _, tool := range out.Tools {
		if tool.Name == "ask" {
			require.NotContains(t, tool.Schema.String(), "iban", "code never shows it")
		}
	}
}

func TestTheOldestGoesFirst(t *testing.T) {
	big := func(n string) agent.ViewItem { return done(n, `"`+strings.Repeat("x", 998)+`"`) }
	in := collecting(agent.View{Turn: 4, Turns: []agent.ViewTurn{
		{N: 1, Opening: asked.Opening, Calls: []agent.ViewCall{call("c1_1", "find_order", `{}`, big("1.1"))}},
		{N: 2, Calls: []agent.ViewCall{call("c2_1", "find_order", `{}`, big("2.1"))}},
		{N: 3, Calls: []agent.ViewCall{call("c3_1", "find_order", `{}`, big("3.1"))}},
		{N: 4},
	}, Facts: []agent.Fact{{Quote: "an old fact", Turn: 1}, {Quote: "a new fact", Turn: 2}}})
	whole := render(t, in)
	require.Equal(t, 6, whole.Report.Delivered)
	require.Zero(t, whole.Report.Starved)

	in.Limits.View = whole.Report.Used - 1
	out := render(t, in)
	require.Equal(t, 1, out.Report.Starved)
	require.Contains(t, textOf(out), `The result (1000 bytes) is not shown; read_result{"offset":0,"step":"1.1"} reads it.`)
	require.Contains(t, toolNames(out), "read_result")

	in.Limits.View = whole.Report.Used - 3000 - 30 // no room for results, nor for the first turn
	out = render(t, in)
	require.Equal(t, 1, out.Report.Dropped)
	require.Equal(t, 4, out.Report.Starved, "a message and three results")
	require.Contains(t, textOf(out), "[the conversation is shown from turn 2 on]")
	require.Contains(t, textOf(out), "No longer shown: 1 earlier turn")

	in.Limits.View = 120
	out = render(t, in)
	require.NotContains(t, textOf(out), "an old fact")
	require.Contains(t, textOf(out), "a new fact")
	require.Contains(t, textOf(out), "1 earlier fact")
}

func TestReadsShareWhatIsLeft(t *testing.T) {
	vt := agent.ViewTurn{N: 1, Opening: asked.Opening}
	reads := map[string]prompt.Part{}
	for _, id := range []string{"c1_1", "c1_2"} {
		c := call(id, "read_result", `{"offset":0,"step":"0.1"}`, ok)
		c.Read = &agent.Read{Step: "0.1"}
		vt.Calls = append(vt.Calls, c)
		reads[id] = prompt.Part{Text: strings.Repeat("é", 1000), Whole: 9000}
	}
	in := collecting(agent.View{Turn: 2, Turns: []agent.ViewTurn{vt, {N: 2}}})
	in.Reads = reads
	used := render(t, in).Report.Used
	in.Limits.View = used - 1001
	out := render(t, in)
	require.Equal(t, 2, out.Report.Partial)
	require.LessOrEqual(t, out.Report.Used, in.Limits.View)
	require.Contains(t, textOf(out), `bytes 0 to 1498 of 9000; read_result{"offset":1498,"step":"0.1"} reads on`)

	in.Limits.View = used - 4000 + 100
	out = render(t, in)
	require.Equal(t, 2, out.Report.Starved)
	require.Contains(t, textOf(out), "The result (9000 bytes) is not shown")

	in.Limits.View, in.Reads = 0, map[string]prompt.Part{"c1_1": {Whole: 9000}, "c1_2": {Text: "x"}}
	require.Contains(t, textOf(render(t, in)), "There is nothing to read at offset 0 of 9000.")
	require.Contains(t, textOf(render(t, in)), `read_result{"offset":1,"step":"0.1"} reads on if there is more`)
}

// Opaque items say what the model wrote. Where a call had to be made legal they
// would contradict it.
func TestOpaqueGoesWithItsCalls(t *testing.T) {
	in := golden["refused"]()
	require.Empty(t, render(t, in).Messages[2].Opaque)
	in = golden["after_calls"]()
	require.Equal(t, looked.Opaque, render(t, in).Messages[2].OpaqueFor("m-1"))
}
