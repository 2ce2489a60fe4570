package openaitest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"interlock/agent"
	"interlock/llm"
)

// ChatRequest is a request as the provider reads it.
type ChatRequest struct {
	Model     string
	Messages  []Message
	Tools     []Tool
	Only      string // the tool that must be called, or ""
	MaxOutput int    // whichever member says so
	Stream    bool
	Usage     bool // a stream is to end with its usage

	Header http.Header
	Body   []byte // as it came
	Broken string // the rule that it breaks, or ""
}

// Message is one message. Content is a text, or the texts of its parts.
type Message struct {
	Role    string
	Content string
	Calls   []Call
	CallID  string // that a tool message answers
}

// Call is a call of an assistant message. Arguments are as they stand.
type Call struct{ ID, Name, Arguments string }

// Tool is an offered function.
type Tool struct {
	Name, Description string
	Parameters        json.RawMessage
}

// Last is the last message of a role, or a zero one.
func (r ChatRequest) Last(role string) Message {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == role {
			return r.Messages[i]
		}
	}
	return Message{}
}

// Answer is the latest answer to a call of a tool.
func (r ChatRequest) Answer(tool string) (text string, ok bool) {
	ids := map[string]bool{}
	for _, m := range r.Messages {
		for _, c := range m.Calls {
			if c.Name == tool {
				ids[c.ID] = true
			}
		}
		if m.Role == "tool" && ids[m.CallID] {
			text, ok = m.Content, true
		}
	}
	return text, ok
}

// Says reports whether any message's content contains part.
func (r ChatRequest) Says(part string) bool {
	for _, m := range r.Messages {
		if strings.Contains(m.Content, part) {
			return true
		}
	}
	return false
}

// Neutral is the request in the words of package llm, with the call ids of the
// wire and without a view.
func (r ChatRequest) Neutral() llm.Request {
	out := llm.Request{Only: r.Only, MaxOutput: r.MaxOutput}
	names := map[string]string{}
	for _, m := range r.Messages {
		n := llm.Message{Role: llm.Role(m.Role), Text: m.Content, Call: m.CallID, Tool: names[m.CallID]}
		for _, c := range m.Calls {
			n.Calls = append(n.Calls, llm.Call{ID: c.ID, Tool: c.Name, Args: agent.JSON(c.Arguments)})
			names[c.ID] = c.Name
		}
		out.Messages = append(out.Messages, n)
	}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, llm.Tool{Name: t.Name, Description: t.Description, Schema: agent.JSON(t.Parameters)})
	}
	return out
}

// Answers lets a model, a scripted one for example, answer what came over the
// wire. It sees messages and tools and no view.
func Answers(m llm.Model) Handler {
	return func(req ChatRequest) ChatReply {
		resp, err := m.Generate(context.Background(), req.Neutral())
		if err != nil {
			var e *llm.Error
			if errors.As(err, &e) && e.Kind.Temporary() {
				return Fail(http.StatusServiceUnavailable, "", e.Error())
			}
			return Fail(http.StatusBadRequest, "no_answer", err.Error())
		}
		return FromResponse(resp)
	}
}

// FromResponse is the reply that says what resp says.
func FromResponse(resp llm.Response) ChatReply {
	out := ChatReply{ID: resp.ID, Model: resp.Model, Text: resp.Text, Usage: Usage{
		Prompt: resp.Usage.Input + resp.Usage.CacheRead + resp.Usage.CacheWrite, Cached: resp.Usage.CacheRead, CacheWrite: resp.Usage.CacheWrite,
		Completion: resp.Usage.Output + resp.Usage.Reasoning, Reasoning: resp.Usage.Reasoning}}
	for _, c := range resp.Calls {
		out.Calls = append(out.Calls, Call{ID: c.ProviderID, Name: c.Tool, Arguments: c.Args})
	}
	switch resp.Finish {
	case agent.FinishLength:
		out.Finish = "length"
	case agent.FinishFiltered:
		out.Finish = "content_filter"
	case agent.FinishStop:
		out.Finish = "stop"
	case agent.FinishCalls:
		out.Finish = "tool_calls"
	}
	return out
}
