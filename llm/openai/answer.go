package openai

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"interlock/agent"
	"interlock/llm"
)

// What is read of an answer, whole or a chunk. Members that some server sends in
// another form are of lenient types: an answer that was paid for is not lost
// over an id that is a number.
type completion struct {
	ID      loose           `json:"id"`
	Object  loose           `json:"object"`
	Model   loose           `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index   loose           `json:"index"`
	Message reply           `json:"message"`
	Delta   reply           `json:"delta"`
	Finish  loose           `json:"finish_reason"`
	Error   json.RawMessage `json:"error"`
}

type reply struct {
	Content  content `json:"content"`
	Refusal  loose   `json:"refusal"`
	Calls    []call  `json:"tool_calls"`
	Function *named  `json:"function_call"` // the older form of a single call
}

type call struct {
	Index    loose `json:"index"`
	ID       loose `json:"id"`
	Function named `json:"function"`
}

type named struct {
	Name      loose `json:"name"`
	Arguments loose `json:"arguments"`
}

// loose is a JSON string, null as "", or anything else as its JSON.
type loose string

func (l *loose) UnmarshalJSON(data []byte) error {
	var s string
	switch {
	case bytes.Equal(data, []byte("null")):
	case data[0] == '"':
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
	default:
		s = string(data)
	}
	*l = loose(s)
	return nil
}

// content is a text, or the texts of a list of parts.
type content string

func (c *content) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		return (*loose)(c).UnmarshalJSON(data)
	}
	var parts []struct {
		Type string `json:"type"`
		Text loose  `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		if p.Type == "text" {
			*c += content(p.Text)
		}
	}
	return nil
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// readWhole reads an answer that came in one piece.
func (m *Model) readWhole(raw *http.Response, body []byte) (llm.Response, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return llm.Response{}, &llm.Error{Kind: llm.KindUnavailable, Message: "the answer is empty"}
	}
	if !json.Valid(body) { // a proxy's page, or what came before the connection broke
		return llm.Response{}, &llm.Error{Kind: llm.KindUnavailable, Message: "what answered is not the provider, or was cut off: no JSON"}
	}
	var c completion
	err := json.Unmarshal(body, &c)
	switch {
	case err == nil && (present(c.Error) || c.Object == "error"):
		return llm.Response{}, m.failure(http.StatusOK, raw.Header, body)
	case err != nil || len(c.Choices) == 0:
		// Not tried again by itself: it may have been billed.
		return llm.Response{}, &llm.Error{Kind: llm.KindInvalidAnswer, Message: "the answer is no chat completion"}
	case present(c.Choices[0].Error):
		return llm.Response{}, m.failure(http.StatusOK, raw.Header, wrapError(c.Choices[0].Error))
	}
	first := c.Choices[0]
	calls := make([]fragment, 0, len(first.Message.Calls))
	for _, t := range first.Message.Calls {
		calls = append(calls, fragment{id: string(t.ID), name: string(t.Function.Name), args: string(t.Function.Arguments)})
	}
	if f := first.Message.Function; f != nil && len(calls) == 0 {
		calls = append(calls, fragment{name: string(f.Name), args: string(f.Arguments)})
	}
	a := answer{id: string(c.ID), model: string(c.Model), text: string(first.Message.Content), refusal: string(first.Message.Refusal),
		finish: string(first.Finish), calls: calls}
	a.usage.add(c.Usage)
	return a.response()
}

// answer is an answer as it was assembled.
type answer struct {
	id, model     string
	text, refusal string
	finish        string
	calls         []fragment
	usage         usage
}

// response decides what the answer is. That it has calls is decided by the
// calls, not by the reason it gives.
func (a *answer) response() (llm.Response, error) {
	out := llm.Response{Text: a.text, ID: a.id, Model: a.model, Usage: a.usage.normal(), Finish: agent.FinishStop}
	for _, c := range a.calls {
		if c.name == "" && c.id == "" && c.args == "" {
			continue // an empty place in a list
		}
		out.Calls = append(out.Calls, agent.RawCall{ProviderID: c.id, Tool: c.name, Args: c.args})
	}
	if len(out.Calls) > 0 {
		out.Finish = agent.FinishCalls
	}
	switch strings.ToLower(a.finish) {
	case "length", "max_tokens", "model_length":
		out.Finish = agent.FinishLength
	case "content_filter", "safety", "sensitive":
		out.Finish = agent.FinishFiltered
	case "error", "abort", "insufficient_system_resource":
		return llm.Response{}, &llm.Error{Kind: llm.KindUnavailable, Message: "the provider broke the answer off: " + a.finish}
	}
	if a.refusal != "" { // the model's own words for why it does not answer
		out.Finish = agent.FinishFiltered
		if out.Text != "" {
			out.Text += "\n"
		}
		out.Text += a.refusal
	}
	return out, nil
}

// usage is what the provider counted. Of several counts of one answer, as a
// stream can bring, the largest of each holds: they are running totals.
type usage struct {
	Prompt     count `json:"prompt_tokens"`
	Completion count `json:"completion_tokens"`
	Total      count `json:"total_tokens"`
	CacheHit   count `json:"prompt_cache_hit_tokens"` // DeepSeek's
	Input      struct {
		Cached  count `json:"cached_tokens"`
		Written count `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Output struct {
		Reasoning count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// count is a number of tokens. What is no number, or negative, counts nothing.
type count int64

func (c *count) UnmarshalJSON(data []byte) error {
	if f, err := strconv.ParseFloat(string(data), 64); err == nil && f >= 0 && f < 1<<53 {
		*c = count(f)
	}
	return nil
}

func (u *usage) add(raw json.RawMessage) {
	var v usage
	if json.Unmarshal(raw, &v) != nil {
		return
	}
	u.Prompt, u.Completion, u.Total = max(u.Prompt, v.Prompt), max(u.Completion, v.Completion), max(u.Total, v.Total)
	u.CacheHit = max(u.CacheHit, v.CacheHit)
	u.Input.Cached, u.Input.Written = max(u.Input.Cached, v.Input.Cached), max(u.Input.Written, v.Input.Written)
	u.Output.Reasoning = max(u.Output.Reasoning, v.Output.Reasoning)
}

// normal makes the parts disjoint. The provider counts cached tokens into the
// prompt and reasoning into the completion; a few servers count reasoning
// beside it, which their total shows.
func (u *usage) normal() agent.Usage {
	cached := max(u.Input.Cached, u.CacheHit)
	written := min(u.Input.Written, max(0, u.Prompt-cached))
	visible := max(0, u.Completion-u.Output.Reasoning)
	if u.Output.Reasoning > 0 && u.Total == u.Prompt+u.Completion+u.Output.Reasoning {
		visible = u.Completion
	}
	return agent.Usage{Input: int64(max(0, u.Prompt-cached-written)), CacheRead: int64(cached), CacheWrite: int64(written),
		Output: int64(visible), Reasoning: int64(u.Output.Reasoning)}
}
