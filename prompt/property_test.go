package prompt_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"interlock/agent"
	"interlock/llm"
	"interlock/prompt"
)

var (
	anyText = rapid.OneOf(
		rapid.SampledFrom([]string{"", " ", "yes", "\n[situation in turn 1]\nx", "a\n>>>>\nb", "a\xff\xc3", "a\x00b", "🇩🇪é"}),
		rapid.String(),
	)
	anyStatus = rapid.SampledFrom([]string{"", "done", "waiting", "running", "refused", "failed", "rejected", "returned", "edited", "expired", "void",
		"withdrawn", "cancelled", "abandoned", "in_doubt", "undone", "something new"})
	anyTool = rapid.SampledFrom([]string{"find_order", "read_result", "move", "", "find order", "ünknown", strings.Repeat("x", 65)})
	anyArgs = rapid.SampledFrom([]agent.JSON{nil, agent.JSON(`{}`), agent.JSON(`{"a":1}`), agent.JSON(`"{\"op\": x"`), agent.JSON(`null`), agent.JSON(`{"a`)})
)

func drawItem(t *rapid.T, step string) agent.ViewItem {
	it := agent.ViewItem{Status: anyStatus.Draw(t, "status"), Text: anyText.Draw(t, "text")}
	if rapid.Bool().Draw(t, "step") {
		it.Step = step
	}
	switch rapid.IntRange(0, 3).Draw(t, "result") {
	case 1:
		it.Result, _ = agent.Encode(strings.ReplaceAll(strings.ToValidUTF8(anyText.Draw(t, "result"), ""), "\x00", ""))
	case 2:
		it.Part, it.Bytes = anyText.Draw(t, "part"), rapid.IntRange(0, 99999).Draw(t, "bytes")
	case 3:
		it.Omitted, it.Bytes = true, 777
	}
	return it
}

func drawOpening(t *rapid.T) []agent.Item {
	var out []agent.Item
	for range rapid.IntRange(0, 3).Draw(t, "opening") {
		it := agent.Item{Kind: agent.ItemMessage, Text: anyText.Draw(t, "item")}
		if rapid.Bool().Draw(t, "outcome") {
			it = agent.Item{Kind: agent.ItemOutcome, Step: rapid.SampledFrom([]string{"", "1.1"}).Draw(t, "of"), Text: it.Text}
		}
		out = append(out, it)
	}
	return out
}

func drawInput(t *rapid.T) prompt.Input {
	var turns []agent.ViewTurn
	reads := map[string]prompt.Part{}
	first := rapid.IntRange(1, 9).Draw(t, "first")
	last := first + rapid.IntRange(0, 6).Draw(t, "turns")
	for n := first; n < last; n++ {
		vt := agent.ViewTurn{N: n, Opening: drawOpening(t), Text: anyText.Draw(t, "text"), Model: "m"}
		for i := range rapid.IntRange(0, 4).Draw(t, "calls") {
			step := fmt.Sprintf("%d.%d", n, i+1)
			vc := agent.ViewCall{ID: fmt.Sprintf("c%d_%d", n, i+1), ProviderID: rapid.SampledFrom([]string{"", "call_1", "\xff"}).Draw(t, "pid"),
				Tool: anyTool.Draw(t, "tool"), Args: anyArgs.Draw(t, "args"), Answer: drawItem(t, step)}
			if rapid.IntRange(0, 4).Draw(t, "read") == 0 {
				vc.Read = &agent.Read{Step: step, Offset: rapid.IntRange(0, 9999).Draw(t, "offset")}
				if rapid.Bool().Draw(t, "fetched") {
					reads[vc.ID] = prompt.Part{Text: strings.Repeat(anyText.Draw(t, "read"), rapid.IntRange(1, 90).Draw(t, "times")), Whole: rapid.IntRange(0, 9999).Draw(t, "whole")}
				}
			}
			vt.Calls = append(vt.Calls, vc)
		}
		if rapid.Bool().Draw(t, "opaque") {
			vt.Opaque = agent.JSON(`[{"signature":"s"}]`)
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "results") {
			r := drawItem(t, fmt.Sprintf("%d.%d", n, i+5))
			r.Tool = anyTool.Draw(t, "enter")
			vt.Results = append(vt.Results, r)
		}
		if rapid.IntRange(0, 3).Draw(t, "cut") == 0 {
			vt.Text, vt.Calls, vt.Cut = "", nil, anyText.Draw(t, "why")
		}
		turns = append(turns, vt)
	}
	v := agent.View{Turn: last, Turns: append(turns, agent.ViewTurn{N: last, Opening: drawOpening(t)})}
	v.LastWord = rapid.Bool().Draw(t, "last word")
	v.Earlier.Turns = first - 1
	if rapid.Bool().Draw(t, "found") {
		v = found(v, rapid.Bool().Draw(t, "shown"), anyText.Draw(t, "yes"))
	}
	for range rapid.IntRange(0, 2).Draw(t, "rulings") {
		v.Rulings = append(v.Rulings, agent.ViewRuling{Tool: "issue_refund", Title: anyText.Draw(t, "title"), Reason: anyText.Draw(t, "reason"), Binds: rapid.Bool().Draw(t, "binds")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "facts") {
		v.Facts = append(v.Facts, agent.Fact{Turn: 1, Quote: anyText.Draw(t, "fact")})
	}
	if rapid.Bool().Draw(t, "gate") {
		v.Waiting = []agent.ViewGate{{ID: "1.1", Tool: "find_order", Title: anyText.Draw(t, "title"), Roles: []string{anyText.Draw(t, "role")}, ExpiresAt: &expires}}
	}
	in := collecting(v)
	in.Reads = reads
	in.Limits.View = rapid.SampledFrom([]int{0, 400, 1000, 3000, 24 << 10}).Draw(t, "limit")
	return in
}

func TestRenderProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		before := fmt.Sprintf("%#v", in)
		out, err := prompt.Render(in)
		again, errAgain := prompt.Render(in)
		require.Equal(t, before, fmt.Sprintf("%#v", in), "the input is left alone")
		require.Equal(t, out, again, "deterministic")
		if err != nil {
			require.ErrorContains(t, err, "the limit of a view is", "nothing else can be wrong")
			require.EqualError(t, errAgain, err.Error())
			require.NotZero(t, in.Limits.View)
			return
		}
		require.NoError(t, llm.Validate(out.Messages))
		if out.Report.Used > out.Report.Budget {
			require.Equal(t, 1, out.Report.Turns, "only the open turn may be beyond the limit")
		}
		require.Equal(t, len(in.View.Turns), out.Report.Turns+out.Report.Dropped)
		checkMessages(t, in, out)
		checkReport(t, in, out)
	})
}

// checkMessages: every call of every turn shown has one answer, no two user
// messages stand in a row, the situation is last and stands nowhere else.
func checkMessages(t *rapid.T, in prompt.Input, out prompt.Output) {
	answers := map[string]int{}
	var last llm.Role
	for _, m := range out.Messages {
		require.False(t, m.Role == llm.RoleUser && last == llm.RoleUser)
		last = m.Role
		require.True(t, utf8.ValidString(m.Text))
		if m.Role == llm.RoleTool {
			answers[m.Call]++
		}
	}
	for i, vt := range in.View.Turns {
		for _, c := range vt.Calls {
			want := 1
			if i < out.Report.Dropped {
				want = 0
			}
			require.Equal(t, want, answers[c.ID], c.ID)
		}
	}
	end := out.Messages[len(out.Messages)-1].Text
	require.True(t, strings.HasSuffix(end, "\n[end of the situation]"))
	for _, name := range []string{"customer_id", "order_id", "amount", "refund_id"} {
		require.Contains(t, end, "\n- "+name+" = ", "the state is never starved")
	}
	require.Equal(t, len(in.View.Rulings), strings.Count(end, ", because "), "nor are rulings")
}

// checkReport: each item is counted once, and a view within its limit is shown
// whole.
func checkReport(t *rapid.T, in prompt.Input, out prompt.Output) {
	items := len(in.View.Facts) + len(in.View.Rulings)
	omitted, parts := 0, 0
	for _, vt := range in.View.Turns {
		items += len(vt.Opening)
		for _, c := range vt.Calls {
			switch {
			case c.Read != nil:
				items++
			case len(c.Answer.Result) > 0:
				items++
			case c.Answer.Part != "":
				items, parts = items+1, parts+1
			case c.Answer.Omitted:
				items, omitted = items+1, omitted+1
			}
		}
		for _, r := range vt.Results {
			switch {
			case len(r.Result) > 0:
				items++
			case r.Part != "":
				items, parts = items+1, parts+1
			case r.Omitted:
				items, omitted = items+1, omitted+1
			}
		}
	}
	require.Equal(t, items, out.Report.Delivered+out.Report.Starved+out.Report.Partial)

	size, err := json.Marshal(in.View)
	if err != nil || len(in.Reads) > 0 || len(size) > out.Report.Budget {
		return
	}
	reads := 0
	for _, vt := range in.View.Turns {
		for _, c := range vt.Calls {
			if c.Read != nil {
				reads++
			}
		}
	}
	require.Zero(t, out.Report.Dropped)
	require.Equal(t, omitted+reads, out.Report.Starved, "a view within its limit is shown whole")
	require.GreaterOrEqual(t, parts, out.Report.Partial)
}
