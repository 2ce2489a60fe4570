package openai_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/llmtest"
	"interlock/llm/openai"
	"interlock/llm/openai/openaitest"
)

var update = flag.Bool("update", false, "write the golden requests anew")

var refundTools = []llm.Tool{
	{Name: "set_fields", Description: "Sets fields of the state.", Schema: agent.JSON(`{"additionalProperties":false,"properties":{"fields":{"properties":{"order_id":{"description":"the order that the user named","type":"string"}},"type":"object"},"quote":{"type":"string"}},"required":["fields"],"type":"object"}`)},
	{Name: "find_order", Description: "Looks an order up.", Schema: agent.JSON(`{"additionalProperties":false,"properties":{"order_id":{"type":"string"}},"required":["order_id"],"type":"object"}`)},
	{Name: "move", Description: "Moves to another phase, if its condition holds.", Schema: agent.JSON(`{"additionalProperties":false,"properties":{"to":{"enum":["collect","declined"],"type":"string"}},"required":["to"],"type":"object"}`)},
}

func use(id, tool, args string) llm.Call { return llm.Call{ID: id, Tool: tool, Args: agent.JSON(args)} }

// refunds are contexts as a run has them.
func refunds() map[string]llm.Request {
	system := llm.System("You help customers.\n\n# Rules\n\n- A proposal is your answer: text, calls, or both.")
	message := llm.User("[user message from \"c-7\"]\n<<<\nrefund 1042, it broke\n>>>")
	set, find := use("c1_1", "set_fields", `{"fields":{"order_id":"1042"},"quote":"refund 1042"}`), use("c1_2", "find_order", `{"order_id":"1042"}`)
	one := []llm.Message{system, message, llm.Assistant("I look it up.", set, find), llm.Answer(set, "done. set: order_id", false),
		llm.Answer(find, "step 1.1: done\nresult: {\"id\":\"1042\",\"total\":{\"currency\":\"EUR\",\"minor\":8990}}", false)}
	move := use("c2_1", "move", `{"to":"pay"}`)
	waiting := append(one[:len(one):len(one)], llm.Assistant("", move), llm.Answer(move, "step 2.1: waiting: at gate 2.1 for a person with role refunds. It has not run", false),
		llm.User("[situation in turn 3]\nPhase: collect\nFacts:\n- turn 1: \"it broke\"\nRulings:\n- find_order {\"order_id\":\"1043\"} was rejected by a reviewer: not theirs\nWaiting for a person:\n- step 2.1, issue_refund\nNow: go on.\n[end of the situation]"))
	cut := append(one[:len(one):len(one)], llm.Assistant("", use("c2_1", "find_order", `{"order_id":"1043"}`), use("c2_2", "move", `{}`)),
		llm.Answer(use("c2_1", "find_order", ""), "step 2.1: cancelled: it did not happen", true),
		llm.Answer(use("c2_2", "move", ""), "refused: to is required", true),
		llm.User("[turn 2 was cut short] a message came"))
	over := use("c1_1", "find_order", `{"order_id":"`+strings.Repeat("x", 1<<20)+`"}`)
	return map[string]llm.Request{
		"refund_first_turn": {Messages: []llm.Message{system, message}, Tools: refundTools},
		"refund_waiting":    {Messages: waiting, Tools: refundTools},
		"refund_cut_short":  {Messages: cut, Tools: refundTools},
		"refund_last_word":  {Messages: append(one[:len(one):len(one)], llm.User("[outcome] Step 2.1: done")), Tools: []llm.Tool{{Name: "finish", Description: "Says the last word.", Schema: agent.JSON(`{"properties":{"text":{"type":"string"}},"required":["text"],"type":"object"}`)}}, Only: "finish", MaxOutput: 400},
		"oversized_arguments": {Messages: []llm.Message{message, llm.Assistant("", over), llm.Answer(over, "refused: the arguments are too large", true)},
			Tools: refundTools},
	}
}

// The bodies that are sent, exactly, but for their indentation. Each keeps the
// provider's rules.
func TestGoldenRequests(t *testing.T) {
	type golden struct {
		o   openai.Options
		req llm.Request
	}
	cases := map[string]golden{}
	for name, req := range llmtest.Conversations() {
		if name != "many_turns" {
			cases[name] = golden{openai.Options{}, req}
		}
	}
	for name, req := range refunds() {
		cases[name] = golden{openai.Options{}, req}
	}
	cases["streamed"] = golden{openai.Options{Stream: true, MaxOutput: 900, OutputLimit: openai.MaxCompletionTokens, Extra: map[string]any{"temperature": 0}}, refunds()["refund_first_turn"]}
	cases["streamed_without_usage"] = golden{openai.Options{Stream: true, NoStreamUsage: true, MaxOutput: 900}, llmtest.Conversations()["one_message"]}
	cases["short_call_ids"] = golden{openai.Options{ShortCallIDs: true}, refunds()["refund_waiting"]}
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	if !*update {
		require.Len(t, files, len(cases), "each file has its case")
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m, server := serve(t, tc.o, openaitest.Say("ok"))
			_, err := m.Generate(t.Context(), tc.req)
			require.NoError(t, err)
			body := server.Requests()[0].Body
			require.Empty(t, openaitest.Check(body))
			var got bytes.Buffer
			require.NoError(t, json.Indent(&got, bytes.TrimSpace(body), "", "  "))
			got.WriteByte('\n')
			file := filepath.Join("testdata", name+".json")
			if *update {
				require.NoError(t, os.WriteFile(file, got.Bytes(), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got.String())
		})
	}
}
