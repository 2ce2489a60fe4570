package openaitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// ChatReply is what a request is answered. A status other than 0, Body, Events,
// Hang and Drop each stand in place of an answer.
type ChatReply struct {
	Text    string
	Refusal string
	Calls   []Call
	Finish  string // Defaults to tool_calls where there are calls, else stop
	Usage   Usage  // Defaults to a quarter of the bytes
	ID      string // Defaults to chatcmpl-1
	Model   string // Defaults to the request's

	Status int               // of a failure, with Header and Body
	Header map[string]string // added to any answer
	Body   string            // as it stands; at status 0 it is the body of a 200

	Events []string // the lines of a stream as they stand, a blank one behind each
	Cut    bool     // half of the answer, then the connection breaks
	NoDone bool     // the stream ends without saying so
	Hang   bool     // nothing, until the client or the server gives up
	Drop   bool     // the connection is closed at once
}

// Usage is a reply's usage as the provider counts: Prompt includes Cached and
// CacheWrite, Completion includes Reasoning.
type Usage struct{ Prompt, Cached, CacheWrite, Completion, Reasoning int64 }

// Say is an answer of text.
func Say(text string) ChatReply { return ChatReply{Text: text} }

// Calls is an answer of calls.
func Calls(calls ...Call) ChatReply { return ChatReply{Calls: calls} }

// Fail is a failure with the provider's error object.
func Fail(status int, code, message string) ChatReply {
	return ChatReply{Status: status, Body: errorObject(status, code, message)}
}

// With is the reply with a header.
func (r ChatReply) With(name, value string) ChatReply {
	header := map[string]string{name: value}
	for k, v := range r.Header {
		header[k] = v
	}
	r.Header = header
	return r
}

func errorObject(status int, code, message string) string {
	class := "invalid_request_error"
	switch {
	case status >= 500:
		class = "server_error"
	case code == "insufficient_quota":
		class = code
	case status == http.StatusTooManyRequests:
		class = "requests"
	}
	e := map[string]any{"message": message, "type": class, "param": nil, "code": nil}
	if code != "" {
		e["code"] = code
	}
	return encode(map[string]any{"error": e})
}

func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // only what this package made is encoded
	}
	return string(data)
}

func (r ChatReply) write(w http.ResponseWriter, hr *http.Request, req ChatRequest, closing <-chan struct{}) {
	for name, value := range r.Header {
		w.Header().Set(name, value)
	}
	switch {
	case r.Hang:
		select {
		case <-hr.Context().Done():
		case <-closing:
		}
		panic(http.ErrAbortHandler)
	case r.Drop:
		panic(http.ErrAbortHandler)
	case r.Status != 0 || r.Body != "":
		r.writeBody(w, r.Body)
	case len(r.Events) > 0:
		r.writeEvents(w, r.Events)
	case req.Stream:
		r.writeEvents(w, r.events(req))
	default:
		r.writeBody(w, r.whole(req))
	}
}

func (r ChatReply) writeBody(w http.ResponseWriter, body string) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(max(r.Status, http.StatusOK))
	if r.Cut {
		_, _ = w.Write([]byte(body[:len(body)/2]))
		flush(w)
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write([]byte(body))
}

func (r ChatReply) writeEvents(w http.ResponseWriter, events []string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if r.Cut {
		events = events[:(len(events)+1)/2]
	}
	for _, e := range events {
		_, _ = w.Write([]byte(e + "\n\n"))
		flush(w)
	}
	if r.Cut {
		panic(http.ErrAbortHandler)
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

func (r ChatReply) complete(req ChatRequest) ChatReply {
	if r.ID == "" {
		r.ID = "chatcmpl-1"
	}
	if r.Model == "" {
		r.Model = req.Model
	}
	if r.Finish == "" {
		r.Finish = "stop"
		if len(r.Calls) > 0 {
			r.Finish = "tool_calls"
		}
	}
	if r.Usage == (Usage{}) {
		size := len(r.Text)
		for _, c := range r.Calls {
			size += len(c.Name) + len(c.Arguments)
		}
		r.Usage = Usage{Prompt: int64(len(req.Body)+3) / 4, Completion: int64(size+3) / 4}
	}
	return r
}

func (u Usage) wire() map[string]any {
	return map[string]any{"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
		"prompt_tokens_details":     map[string]any{"cached_tokens": u.Cached, "cache_write_tokens": u.CacheWrite},
		"completion_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning}}
}

func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (r ChatReply) whole(req ChatRequest) string {
	r = r.complete(req)
	message := map[string]any{"role": "assistant", "content": text(r.Text), "refusal": text(r.Refusal)}
	if len(r.Calls) > 0 {
		var calls []any
		for _, c := range r.Calls {
			calls = append(calls, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Arguments}})
		}
		message["tool_calls"] = calls
	}
	return encode(map[string]any{"id": r.ID, "object": "chat.completion", "created": 1, "model": r.Model, "usage": r.Usage.wire(),
		"choices": []any{map[string]any{"index": 0, "message": message, "logprobs": nil, "finish_reason": r.Finish}}})
}

// events is the reply as the provider streams it: text and arguments in pieces,
// calls by their index, the reason, the usage without a choice, the end.
func (r ChatReply) events(req ChatRequest) []string {
	r = r.complete(req)
	var out []string
	chunk := func(choices []any, usage any) {
		c := map[string]any{"id": r.ID, "object": "chat.completion.chunk", "created": 1, "model": r.Model, "choices": choices}
		if req.Usage {
			c["usage"] = usage
		}
		out = append(out, "data: "+encode(c))
	}
	delta := func(d map[string]any, finish any) {
		chunk([]any{map[string]any{"index": 0, "delta": d, "logprobs": nil, "finish_reason": finish}}, nil)
	}
	delta(map[string]any{"role": "assistant", "content": nil, "refusal": nil}, nil)
	for _, p := range pieces(r.Text) {
		delta(map[string]any{"content": p}, nil)
	}
	for _, p := range pieces(r.Refusal) {
		delta(map[string]any{"refusal": p}, nil)
	}
	for i, c := range r.Calls {
		delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": c.ID, "type": "function",
			"function": map[string]any{"name": c.Name, "arguments": ""}}}}, nil)
		for _, p := range pieces(c.Arguments) {
			delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": p}}}}, nil)
		}
	}
	delta(map[string]any{}, r.Finish)
	if req.Usage {
		chunk([]any{}, r.Usage.wire())
	}
	if !r.NoDone {
		out = append(out, "data: [DONE]")
	}
	return out
}

// pieces are a text in at most 8 pieces, none of which splits a character.
func pieces(s string) []string {
	var out []string
	size := max(5, len(s)/7)
	var b strings.Builder
	for _, c := range s {
		b.WriteRune(c)
		if b.Len() >= size {
			out = append(out, b.String())
			b.Reset()
		}
	}
	if b.Len() > 0 {
		out = append(out, b.String())
	}
	return out
}
