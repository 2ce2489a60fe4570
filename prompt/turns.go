package prompt

import (
	"fmt"
	"slices"
	"strings"

	"interlock/agent"
	"interlock/llm"
)

// builder makes the message list. What is said in the user's role is collected
// and becomes one message, so that there are never two in a row and none stands
// between a call and its answer.
type builder struct {
	messages []llm.Message
	notes    []string
	gates    []agent.ViewGate // open ones
}

// gate is the open gate of a step, whose id it has, or nil.
func (b *builder) gate(step string) *agent.ViewGate {
	for i := range b.gates {
		if b.gates[i].ID == step {
			return &b.gates[i]
		}
	}
	return nil
}

func (b *builder) note(text string) { b.notes = append(b.notes, text) }

func (b *builder) flush() {
	if len(b.notes) == 0 {
		return
	}
	b.messages = append(b.messages, llm.User(strings.Join(b.notes, "\n\n")))
	b.notes = nil
}

// turns writes the conversation. It begins with a user message, whatever the
// first turn shown began with.
func (b *builder) turns(c content) {
	if len(c.turns) > 0 {
		if first := c.turns[0]; first.N > 1 || len(first.Opening) == 0 {
			b.note(fmt.Sprintf("[the conversation is shown from turn %d on]", first.N))
		}
	}
	for _, t := range c.turns {
		b.turn(t)
	}
}

func (b *builder) turn(t turn) {
	told := b.opening(t)
	text := valid(t.Text)
	if strings.TrimSpace(text) == "" {
		text = ""
	}
	if text != "" || len(t.Calls) > 0 {
		b.flush()
		b.proposal(t, text)
	} else if !t.open && t.Cut == "" {
		b.note(fmt.Sprintf("[turn %d: you answered nothing]", t.N))
	}
	if t.Cut != "" {
		b.note(fmt.Sprintf("[turn %d was cut short] %s", t.N, inline(t.Cut)))
	}
	for i, r := range t.Results {
		if told[i] {
			continue
		}
		head := "[" + stepName(r.Step) + ", a call of the program"
		if r.Tool != "" {
			head = "[" + stepName(r.Step) + ", " + inline(r.Tool) + ", called by the program"
		}
		b.note(head + "] " + status(r, b.gate(r.Step)) + t.results[i].lines())
	}
}

// opening writes what the turn began with. An outcome whose step is among the
// turn's results shows that result; told says which were.
func (b *builder) opening(t turn) (told map[int]bool) {
	told = map[int]bool{}
	for n, it := range t.Opening {
		if it.Kind == agent.ItemMessage || it.Step == "" {
			b.note(item(it))
			continue
		}
		sameStep := func(other agent.Item) bool { return other.Kind == it.Kind && other.Step == it.Step }
		i := slices.IndexFunc(t.Results, func(r agent.ViewItem) bool { return r.Step == it.Step })
		if i < 0 || slices.ContainsFunc(t.Opening[n+1:], sameStep) { // a later one shows it
			b.note(item(it))
			continue
		}
		if strings.TrimSpace(it.Text) == "" {
			it.Text = status(t.Results[i], b.gate(it.Step))
		}
		b.note(item(it) + t.results[i].lines())
		told[i] = true
	}
	return told
}

// proposal writes what the model answered, and the one answer to each call.
func (b *builder) proposal(t turn, text string) {
	m := llm.Message{Role: llm.RoleAssistant, Text: text, Model: valid(t.Model), Opaque: t.Opaque}
	answers := make([]llm.Message, len(t.Calls))
	for i, vc := range t.Calls {
		call, note := legal(vc)
		if note != "" {
			m.Opaque = nil // the provider's items would say something else than the call
		}
		m.Calls = append(m.Calls, call)
		answers[i] = llm.Answer(call, answer(vc, t.answers[i], b.gate(vc.Answer.Step))+note, failed(vc.Answer.Status))
	}
	if len(m.Opaque) == 0 {
		m.Opaque = nil
	}
	b.messages = append(append(b.messages, m), answers...)
}

// legal is a call as every provider accepts it again. What had to be changed is
// said in the note, which stands behind the answer.
func legal(vc agent.ViewCall) (call llm.Call, note string) {
	call = llm.Call{ID: vc.ID, ProviderID: valid(vc.ProviderID), Tool: vc.Tool}
	if !llm.ValidName(vc.Tool) {
		call.Tool = "unknown_tool"
		note = fmt.Sprintf("\n(The name of the called tool was %s.)", quote(vc.Tool))
	}
	args, err := agent.Canonical(vc.Args)
	switch {
	case len(vc.Args) == 0:
		args = agent.JSON("{}")
	case err != nil:
		note += fmt.Sprintf("\n(The arguments were %s, which is no JSON.)", quote(string(vc.Args)))
		args = agent.JSON("{}")
	case args[0] != '{':
		note += fmt.Sprintf("\n(The arguments were %s, which is no JSON object.)", args)
		args = agent.JSON("{}")
	}
	call.Args = args
	return call, note
}

// item is one thing that a turn began with.
func item(it agent.Item) string {
	switch {
	case it.Kind == agent.ItemMessage && it.By != "":
		return "[user message from " + quote(it.By) + "]\n" + fenced(it.Text)
	case it.Kind == agent.ItemMessage:
		return "[user message]\n" + fenced(it.Text)
	case it.Step != "" && strings.HasPrefix(it.Text, "Step "+it.Step+", "):
		return "[outcome] " + inline(it.Text)
	case it.Step != "":
		return "[outcome] Step " + inline(it.Step) + ": " + inline(it.Text)
	}
	return "[from the program] " + inline(it.Text)
}

func stepName(id string) string {
	if id == "" {
		return "a step"
	}
	return "step " + inline(id)
}
