package agent_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

// trial drives one machine and keeps what it last said.
type trial struct {
	t       *testing.T
	m       *agent.Machine
	now     time.Time
	n       int
	receipt agent.Receipt
	cmds    []agent.Command
	views   []agent.View
}

func begin(t *testing.T, def *agent.Definition, body string) *trial {
	require.NoError(t, def.Err())
	tr := &trial{t: t, m: agent.NewMachine(def), now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	tr.step(agent.Started{Tenant: "acme", Key: "k", FirstRunID: "r", Rules: agent.Rules, Limits: def.Limits(), User: "u", Body: agent.JSON(body)})
	return tr
}

// step returns the events that the input gave.
func (tr *trial) step(in agent.Input) []agent.Event {
	had := tr.m.Run().Seq
	tr.now = tr.now.Add(time.Second)
	tr.cmds, tr.receipt = tr.m.Step(tr.now, "4bf92f3577b34da6a3ce929d0e0e4736", in)
	for _, c := range tr.cmds {
		if c, ok := c.(agent.CallModel); ok {
			tr.views = append(tr.views, c.View)
		}
	}
	var out []agent.Event
	for _, e := range tr.m.Batch().Events {
		if e.Seq > had {
			out = append(out, e)
		}
	}
	return out
}

func (tr *trial) message(text string) []agent.Event {
	tr.n++
	return tr.step(agent.Message{ID: fmt.Sprintf("m%d", tr.n), Principal: agent.Principal{Subject: "u"}, Text: text})
}

// model answers with calls, each a tool and its arguments; with none it says "ok".
func (tr *trial) model(calls ...string) []agent.Event {
	in := agent.Proposed{Turn: tr.m.Run().Turn, Finish: agent.FinishStop}
	for _, c := range calls {
		name, args, _ := strings.Cut(c, " ")
		in.Calls = append(in.Calls, agent.RawCall{Tool: name, Args: args})
	}
	if len(calls) == 0 {
		in.Text = "ok"
	}
	return tr.step(in)
}

func (tr *trial) done(step, result string) []agent.Event {
	return tr.step(agent.StepFinished{Step: step, Result: agent.JSON(result)})
}

func (tr *trial) verdict(gate string, v agent.VerdictValue, reason string) []agent.Event {
	tr.n++
	in := agent.Verdict{ID: fmt.Sprintf("v%d", tr.n), Gate: gate, Verdict: v, Reason: reason, Digest: tr.gate(gate).Digest,
		Principal: agent.Principal{Subject: "kim", Roles: []string{"boss", "refunds"}}}
	return tr.step(agent.VerdictGiven{Verdict: in})
}

func (tr *trial) gate(id string) agent.Gate {
	for _, g := range tr.m.Run().Gates {
		if g.ID == id {
			return g
		}
	}
	tr.t.Fatalf("there is no gate %s", id)
	return agent.Gate{}
}

func (tr *trial) lastView() agent.View {
	require.NotEmpty(tr.t, tr.views)
	return tr.views[len(tr.views)-1]
}

// answer is what the last view says of a call.
func (tr *trial) answer(call string) agent.ViewItem {
	for _, t := range tr.lastView().Turns {
		for _, c := range t.Calls {
			if c.ID == call {
				return c.Answer
			}
		}
	}
	tr.t.Fatalf("the view does not show call %s", call)
	return agent.ViewItem{}
}

func types(events []agent.Event) (out []agent.EventType) {
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

type secrets struct {
	Public string `json:"public" set:"start,tool"`
	Pin    string `json:"pin" set:"start,tool" sensitive:"true"`
	Token  string `json:"token" set:"start,tool" view:"-"`
	Note   string `json:"note" set:"model"`
}

// Fields that are sensitive or hidden are in no view, however they came into
// the state and whatever was done with them.
func TestView_Secrets(t *testing.T) {
	look := tool.ReadOnly("look", none[noArgs, sent], func(s *secrets, _ noArgs, r sent) error {
		s.Pin, s.Token, s.Public = "S3CRET-2", "H1DDEN-2", r.ID
		return nil
	})
	risky := tool.Keyed("risky", keyed[mail, sent], func(s *secrets, _ mail, _ sent) error { return nil }).
		Gate(tool.Gate[secrets, mail]{Roles: []string{"boss"}, Reads: []string{"pin", "token"}})
	def := agent.Define(agent.Spec[start, secrets]{Name: "s", Version: 1, Instructions: "x",
		Init: func(start) (secrets, error) {
			return secrets{Public: "open", Pin: "S3CRET-1", Token: "H1DDEN-1"}, nil
		},
		Phases: []agent.Phase[secrets]{
			{Name: "work", Tools: []agent.Tool[secrets]{look, risky}, Moves: []agent.Move[secrets]{{To: "end"}}},
			{Name: "end", Final: true}}})
	tr := begin(t, def, `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`look {}`, `set_fields {"fields":{"pin":"x"}}`, `set_fields {"fields":{"token":"x"}}`, `ask {"question":"?","fields":["pin"]}`,
		`confirm {"fields":["pin"]}`)
	tr.done("1.1", `{"id":"p"}`)
	tr.model(`risky {"refund_id":"a"}`)
	tr.message("and?")
	tr.model()
	tr.verdict("2.1", agent.Reject, "no")
	tr.model(`risky {"refund_id":"a"}`)
	require.Contains(t, tr.answer("c4_1").Text, "kim rejected this (no); it stays refused while pin and token are unchanged")
	tr.model(`move {"to":"end"}`)

	require.Len(t, tr.views, 6)
	for _, v := range tr.views {
		data, err := json.Marshal(agent.CallModel{View: v})
		require.NoError(t, err)
		require.NotContains(t, string(data), "S3CRET")
		require.NotContains(t, string(data), "H1DDEN")
		require.Contains(t, string(v.State), `"pin":"(masked)"`)
		require.NotContains(t, string(v.State), "token")
		require.NotContains(t, v.Provenance, "token", "that it exists is not shown either")
	}
	require.Contains(t, tr.m.Run().State.String(), "S3CRET-2", "code has them all the same")
	require.Contains(t, tr.m.Run().State.String(), "H1DDEN-2")
}

type wide struct {
	A string `json:"a" set:"model"`
	B string `json:"b" set:"model"`
	C string `json:"c" set:"model"`
	D string `json:"d" set:"start" view:"-"`
}

// Whatever a run has grown to, the view stays within its limit: everything at
// its own cap, and the latest message, which is always shown whole.
func TestView_Bounded(t *testing.T) {
	look := tool.ReadOnly("look", none[mail, sent], func(*wide, mail, sent) error { return nil })
	risky := tool.Keyed("risky", keyed[mail, sent], func(s *wide, _ mail, _ sent) error { return nil }).
		Gate(tool.Gate[wide, mail]{Roles: []string{"boss"}, Title: func(agent.Situation[wide], mail) string { return strings.Repeat("title ", 100) }})
	def := agent.Define(agent.Spec[start, wide]{Name: "w", Version: 1, Instructions: "x", Budget: agent.Budget{Refusals: -1, SameCall: -1},
		Init: func(start) (wide, error) { return wide{D: strings.Repeat("d", 40<<10)}, nil },
		Phases: []agent.Phase[wide]{
			{Name: "work", Tools: []agent.Tool[wide]{look, risky}, Moves: []agent.Move[wide]{{To: "end"}}}, {Name: "end", Final: true}}})
	tr := begin(t, def, `{"customer_id":"c"}`)
	limits := def.Limits()
	long := func(n int) string { // a message of unlike words, to be quoted in part
		var b strings.Builder
		for i := 0; b.Len() < limits.Message-12; i++ {
			fmt.Fprintf(&b, "w%d_%d ", n, i)
		}
		return b.String()
	}
	tr.message(long(0))
	tr.model(`set_fields {"fields":{"a":"`+strings.Repeat("a", 4000)+`","b":"`+strings.Repeat("b", 4000)+`","c":"`+strings.Repeat("c", 4000)+`"}}`,
		`ask {"question":"?","fields":["a","b","c"]}`)
	tr.message(long(1))
	tr.model(`confirm {"fields":["a","b","c"]}`)
	require.Len(t, tr.m.Run().Confirmed, 3)
	var facts []string
	for i := range 1000 {
		facts = append(facts, fmt.Sprintf(`record_fact {"quote":"w1_%d"}`, i))
	}
	for some := range slices.Chunk(facts, 32) { // as many calls as a proposal may have
		tr.model(some...)
	}
	for i := range 30 {
		turn := tr.m.Run().Turn
		tr.model(fmt.Sprintf(`look {"refund_id":"%d"}`, i), fmt.Sprintf(`risky {"refund_id":"%d"}`, i))
		tr.done(fmt.Sprintf("%d.1", turn), `{"id":"`+strings.Repeat("r", 4000)+`"}`)
		tr.verdict(fmt.Sprintf("%d.2", turn), agent.Reject, strings.Repeat("reason ", 100))
		if i%5 == 0 {
			tr.message(long(i + 2))
		}
	}
	run := tr.m.Run()
	require.Len(t, run.Rulings, 30)
	require.Greater(t, len(tr.views), 30)
	for _, v := range tr.views {
		size := len(encoded(t, v))
		require.LessOrEqual(t, size, limits.View+2048, "turn %d", v.Turn)
		require.LessOrEqual(t, len(v.State), limits.Shown)
		require.LessOrEqual(t, len(encoded(t, v.Facts)), limits.Facts+len(v.Facts)+2)
		require.LessOrEqual(t, len(encoded(t, v.Rulings)), limits.Rulings+len(v.Rulings)+2)
		require.Equal(t, v.Turn, v.Turns[len(v.Turns)-1].N, "the latest turn is always there")
	}
	last := tr.lastView()
	require.NotEmpty(t, last.Facts)
	require.NotEmpty(t, last.Rulings)
	require.Positive(t, last.Earlier.Turns, "what is not shown is counted")
	require.Less(t, len(encoded(t, run)), limits.Snapshot)
}

func encoded(t *testing.T, v any) agent.JSON {
	j, err := agent.Encode(v)
	require.NoError(t, err)
	return j
}

// Trimming keeps the latest turn, and a step that waits, however old it is.
func TestView_Trimming(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.message("77")
	tr.model(`risky {"order_id":"77","amount":{"minor":50,"currency":"EUR"}}`)
	window := tr.m.Run().Limits.Window
	for i := range 5 * window {
		tr.message(fmt.Sprintf("message %d", i))
		tr.model()
		v := tr.lastView()
		require.LessOrEqual(t, len(v.Turns), window)
		require.Equal(t, v.Turn, v.Turns[len(v.Turns)-1].N)
		require.Equal(t, fmt.Sprintf("message %d", i), v.Turns[len(v.Turns)-1].Opening[0].Text)
		require.Equal(t, v.Turn, v.Earlier.Turns+len(v.Turns), "every turn is shown or counted")
		require.Len(t, v.Waiting, 1)
		require.Equal(t, "1.1", v.Waiting[0].ID)
	}
	require.Less(t, len(tr.m.Run().Turns), window+1)
	require.Len(t, tr.m.Run().Steps, 1)
	// It can still be decided, and its end is told as an item of its own.
	tr.verdict("1.1", agent.Approve, "")
	require.Equal(t, []agent.Command{agent.CloseGate{Gate: "1.1"}}, tr.cmds[:1])
	tr.done("1.1", `{"id":"r"}`)
	opening := tr.lastView().Turns[len(tr.lastView().Turns)-1]
	require.Equal(t, "Step 1.1, risky, is done.", opening.Opening[0].Text)
	require.JSONEq(t, `{"id":"r"}`, opening.Results[0].Result.String())
}

// A result beyond Active is shown in part. The cut is on a character boundary,
// and no flag is cut in half.
func TestView_Part(t *testing.T) {
	for _, what := range []string{"é", "€", "😀", "🇩🇪", "a🇫🇷", `\"`, `\u0001`} {
		for pad := range 9 {
			tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
			tr.message("77")
			tr.model(`charge {"order_id":"77","amount":{"minor":5,"currency":"EUR"}}`)
			result, err := agent.Canonical([]byte(`{"id":"` + strings.Repeat("x", pad) + strings.Repeat(what, 500/len(what)) + `"}`))
			require.NoError(t, err)
			tr.step(agent.StepFinished{Step: "1.1", Result: result})
			item := tr.answer("c1_1")
			require.Equal(t, "done", item.Status)
			require.Empty(t, item.Result)
			require.Equal(t, len(result), item.Bytes)
			require.True(t, utf8.ValidString(item.Part))
			require.True(t, strings.HasPrefix(result.String(), item.Part))
			require.InDelta(t, 300, len(item.Part), 8, "three quarters of Active")
			letters := strings.Count(item.Part, "🇩") + strings.Count(item.Part, "🇪") + strings.Count(item.Part, "🇫") + strings.Count(item.Part, "🇷")
			require.Zero(t, letters%2, "half a flag: %q", item.Part[len(item.Part)-8:])
			data, err := json.Marshal(tr.lastView())
			require.NoError(t, err)
			require.True(t, utf8.Valid(data) && json.Valid(data))
		}
	}
}

// What Keep made of a larger result is whole or absent: a part of it would be
// read on in another text.
func TestView_Kept(t *testing.T) {
	for size, shown := range map[int]bool{100: true, 700: false} {
		tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
		tr.message("77")
		tr.model(`charge {"order_id":"77","amount":{"minor":5,"currency":"EUR"}}`)
		tr.step(agent.StepFinished{Step: "1.1", Result: agent.JSON(`{"id":"` + strings.Repeat("x", size) + `"}`), Whole: &agent.Blob{Ref: "ab", Bytes: 1 << 20}})
		item := tr.answer("c1_1")
		require.Equal(t, shown, len(item.Result) > 0)
		require.Equal(t, !shown, item.Omitted)
		require.Empty(t, item.Part)
		require.Equal(t, 1<<20, item.Bytes)
	}
}

// An old result is archived: the view says so, and read_result asks for it.
func TestView_Archived(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.message("77")
	for i := range 3 {
		tr.model(fmt.Sprintf(`charge {"order_id":"%d","amount":{"minor":5,"currency":"EUR"}}`, i))
		tr.done(fmt.Sprintf("%d.1", i+1), `{"id":"`+strings.Repeat("x", 250)+`"}`)
	}
	item := tr.answer("c1_1")
	require.True(t, item.Omitted)
	require.Empty(t, item.Result)
	require.Equal(t, 259, item.Bytes)
	require.NotEmpty(t, tr.answer("c3_1").Result, "the newest stays")
	require.Positive(t, tr.lastView().Earlier.Results)
	tr.model(`read_result {"step":"1.1","offset":10}`, `read_result {"step":"1.1","offset":-1}`)
	v := tr.lastView()
	calls := v.Turns[len(v.Turns)-2].Calls
	require.Equal(t, &agent.Read{Step: "1.1", Offset: 10}, calls[0].Read)
	require.Equal(t, "refused", calls[1].Answer.Status)
}
