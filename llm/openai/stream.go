package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"interlock/llm"
)

// readStream assembles a streamed answer. It is an answer only when the stream
// says that it is over: what came before a cut is discarded.
func (m *Model) readStream(raw *http.Response, delta func(text string)) (llm.Response, error) {
	// The decoder drops a last event that no blank line ends.
	raw.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(raw.Body, strings.NewReader("\n\n")), raw.Body}
	events := ssestream.NewDecoder(raw)
	s := stream{delta: delta}
	for events.Next() {
		e := events.Event()
		data := bytes.TrimSpace(e.Data)
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			return s.answer().response()
		}
		if len(data) == 0 {
			continue
		}
		if !json.Valid(data) {
			break
		}
		if broken := s.add(data, e.Type == "error"); broken != nil {
			return llm.Response{}, m.failure(http.StatusOK, raw.Header, broken)
		}
	}
	if err := events.Err(); err != nil {
		return llm.Response{}, err
	}
	return llm.Response{}, &llm.Error{Kind: llm.KindUnavailable, Message: "the stream was cut off"}
}

// stream is what has come so far.
type stream struct {
	got           answer
	text, refusal strings.Builder
	calls         []*assembly
	delta         func(text string) // nil: nobody wants the pieces
}

// add takes a chunk, or returns the error that it brings in place of one.
func (s *stream) add(data []byte, isError bool) (broken []byte) {
	var c completion
	err := json.Unmarshal(data, &c)
	switch {
	case isError || c.Object == "error" || present(c.Error):
		return data
	case err != nil:
		return wrapError(json.RawMessage(`"a chunk of the stream cannot be read"`))
	}
	if s.got.id == "" {
		s.got.id = string(c.ID)
	}
	if c.Model != "" {
		s.got.model = string(c.Model)
	}
	s.got.usage.add(c.Usage)
	for _, ch := range c.Choices {
		if ch.Index != "" && ch.Index != "0" {
			continue // one answer was asked for
		}
		if present(ch.Error) {
			return wrapError(ch.Error)
		}
		s.text.WriteString(string(ch.Delta.Content))
		if s.delta != nil && ch.Delta.Content != "" {
			s.delta(string(ch.Delta.Content))
		}
		s.refusal.WriteString(string(ch.Delta.Refusal))
		for _, t := range ch.Delta.Calls {
			s.fragment(fragment{index: string(t.Index), id: string(t.ID), name: string(t.Function.Name), args: string(t.Function.Arguments)})
		}
		if f := ch.Delta.Function; f != nil {
			s.fragment(fragment{index: "function_call", name: string(f.Name), args: string(f.Arguments)})
		}
		if ch.Finish != "" {
			s.got.finish = string(ch.Finish)
		}
	}
	return nil
}

func (s *stream) answer() *answer {
	s.got.text, s.got.refusal = s.text.String(), s.refusal.String()
	for _, c := range s.calls {
		s.got.calls = append(s.got.calls, fragment{id: c.id, name: c.name, args: c.args.String()})
	}
	return &s.got
}

// fragment is a call, or a piece of one.
type fragment struct{ index, id, name, args string }

// assembly is a call that grows.
type assembly struct {
	index, id, name string
	args            strings.Builder
}

// complete reports that nothing can follow: the arguments are a whole object.
func (a *assembly) complete() bool {
	args := a.args.String()
	return strings.HasPrefix(strings.TrimSpace(args), "{") && json.Valid([]byte(args))
}

// fragment adds a piece to the call that it belongs to. The index says which,
// where servers number their calls. Some send 0, or none, for every call: there
// another id begins a call, and so does a name after whole arguments.
func (s *stream) fragment(f fragment) {
	if f.id == "" && f.name == "" && f.args == "" {
		return
	}
	c := s.find(f)
	switch {
	case c == nil:
	case c.name == "" || f.name == "": // the rest of a call
	case c.complete():
		if f.name == c.name && (f.args == "" || f.id != "" && f.id == c.id && f.args == c.args.String()) {
			return // the same again
		}
		c = nil
	case f.name != c.name && c.args.Len() > 0:
		c = nil
	}
	if c == nil {
		c = &assembly{index: f.index}
		s.calls = append(s.calls, c)
	}
	if c.id == "" {
		c.id = f.id
	}
	if f.name != c.name { // servers repeat it, or send it in pieces
		c.name += f.name
	}
	c.args.WriteString(f.args)
}

// find is the call that a piece can belong to, the latest first, or nil.
func (s *stream) find(f fragment) *assembly {
	for i := len(s.calls) - 1; i >= 0; i-- {
		c := s.calls[i]
		if f.index != "" && c.index != f.index {
			continue
		}
		if f.id != "" && c.id != "" && c.id != f.id {
			continue
		}
		if f.index == "" && f.id == "" && i != len(s.calls)-1 {
			return nil
		}
		return c
	}
	return nil
}
