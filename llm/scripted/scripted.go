// Package scripted is a model that answers by script: for tests, samples and
// benchmarks.
//
// A script is a pure function of the request. It keeps no counter: where it
// stands follows from [llm.Request].View, so that a retry gets the same answer
// and a restarted worker goes on where the run is.
package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"interlock/agent"
	"interlock/llm"
)

// Model is a scripted model. It implements [llm.Model].
type Model struct {
	name   string
	answer func(llm.Request) (llm.Response, error)
	fails  func(llm.Request) error
}

var _ llm.Model = (*Model)(nil)

// New answers turn n of the run with the n-th response. A turn beyond the last
// one is refused. A turn that was cut short counts: it has its number.
func New(name string, turns ...llm.Response) *Model {
	return &Model{name: name, answer: func(req llm.Request) (llm.Response, error) {
		n := req.View.Turn
		if n < 1 || n > len(turns) {
			return llm.Response{}, refused("the script has %d turns and no answer to %s", len(turns), Describe(req.View))
		}
		return turns[n-1], nil
	}}
}

// Func answers with what f makes of the request. f must be pure.
func Func(name string, f func(req llm.Request) llm.Response) *Model {
	return &Model{name: name, answer: func(req llm.Request) (llm.Response, error) { return f(req), nil }}
}

// Rule is one answer of [Rules] and when it applies.
type Rule struct {
	When func(v agent.View) bool // nil: always
	Do   func(v agent.View) llm.Response
}

// Rules answers with the first rule that applies. If none does, the request is
// refused with a short description of the view.
func Rules(name string, rules ...Rule) *Model {
	return &Model{name: name, answer: func(req llm.Request) (llm.Response, error) {
		for _, r := range rules {
			if r.When == nil || r.When(req.View) {
				return r.Do(req.View), nil
			}
		}
		return llm.Response{}, refused("no rule applies to %s", Describe(req.View))
	}}
}

// Failing returns a model that fails with when's error wherever it has one,
// and else answers as m does. when must be pure.
func (m *Model) Failing(when func(req llm.Request) error) *Model {
	return &Model{name: m.name, answer: m.answer, fails: when}
}

// Name implements [llm.Model].
func (m *Model) Name() string { return m.name }

// Generate implements [llm.Model]. It fills in what the script leaves open:
// finish reason, model, ids, and usage as bytes/4 of request and answer. A text is
// handed out word by word.
func (m *Model) Generate(ctx context.Context, req llm.Request) (llm.Response, error) {
	if err := ctx.Err(); err != nil {
		return llm.Response{}, err
	}
	if m.fails != nil {
		if err := m.fails(req); err != nil {
			return llm.Response{}, typed(err)
		}
	}
	res, err := m.answer(req)
	if err != nil {
		return llm.Response{}, err
	}
	if req.Delta != nil {
		for word := range strings.SplitAfterSeq(res.Text, " ") {
			if word != "" {
				req.Delta(word)
			}
		}
	}
	return m.complete(req, res), nil
}

func (m *Model) complete(req llm.Request, res llm.Response) llm.Response {
	res.Calls = slices.Clone(res.Calls) // the script's own stay as they are
	size := len(res.Text)
	for i, c := range res.Calls {
		size += len(c.Tool) + len(c.Args)
		if c.ProviderID == "" {
			res.Calls[i].ProviderID = fmt.Sprintf("s%d_%d", req.View.Turn, i+1)
		}
	}
	if res.Finish == "" {
		res.Finish = agent.FinishStop
		if len(res.Calls) > 0 {
			res.Finish = agent.FinishCalls
		}
	}
	if res.Model == "" {
		res.Model = m.name
	}
	if res.ID == "" {
		res.ID = fmt.Sprintf("%s-%d", m.name, req.View.Turn)
	}
	if res.Usage == (agent.Usage{}) {
		res.Usage = agent.Usage{Input: tokens(req.Bytes()), Output: tokens(size)}
	}
	return res
}

// tokens is bytes/4, rounded up: nothing sent is free.
func tokens(bytes int) int64 { return int64(bytes+3) / 4 }

func refused(format string, args ...any) error {
	return &llm.Error{Kind: llm.KindRefused, Message: fmt.Sprintf(format, args...)}
}

func typed(err error) error {
	var e *llm.Error
	if errors.As(err, &e) {
		return err
	}
	return &llm.Error{Kind: llm.KindUnavailable, Err: err}
}

// Say is an answer of text.
func Say(text string) llm.Response { return llm.Response{Text: text} }

// Call is an answer of one call. nil args are {}. Args that have no JSON are a
// mistake in the script and panic; [Raw] makes a call that is malformed.
func Call(tool string, args any) llm.Response {
	if args == nil {
		return Raw(tool, "{}")
	}
	j, err := agent.Encode(args)
	if err != nil {
		panic(fmt.Sprintf("scripted: arguments of %s: %v", tool, err))
	}
	return Raw(tool, j.String())
}

// Raw is an answer of one call with arguments as they stand, JSON or not.
func Raw(tool, args string) llm.Response {
	return llm.Response{Calls: []agent.RawCall{{Tool: tool, Args: args}}}
}

// Then is one answer of all the parts: their texts, a line each, and their
// calls in order. What else they hold is the last part's that has it.
func Then(parts ...llm.Response) llm.Response {
	var out llm.Response
	for _, p := range parts {
		text, calls := out.Text, append(slices.Clone(out.Calls), p.Calls...)
		switch {
		case text == "":
			text = p.Text
		case p.Text != "":
			text += "\n" + p.Text
		}
		if p.Finish != "" {
			out.Finish = p.Finish
		}
		if p.Usage != (agent.Usage{}) {
			out.Usage = p.Usage
		}
		if len(p.Opaque) > 0 {
			out.Opaque = p.Opaque
		}
		if p.Model != "" {
			out.Model = p.Model
		}
		if p.ID != "" {
			out.ID = p.ID
		}
		out.Text, out.Calls = text, calls
	}
	return out
}

// Args is an object of arguments, to be written in a script without a type.
type Args = map[string]any

// field decodes one top-level field of the state; see [Field].
func field(state agent.JSON, name string, into any) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(state.String()), &fields); err != nil {
		return err
	}
	raw, ok := fields[name]
	if !ok {
		return fmt.Errorf("the shown state has no field %q", name)
	}
	return json.Unmarshal(raw, into)
}
