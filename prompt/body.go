package prompt

import (
	"fmt"
	"slices"

	"interlock/agent"
)

type bodyKind int

const (
	bodyNone    bodyKind = iota // the answer has no result
	bodyWhole                   // shown whole
	bodyPart                    // shown in part
	bodyOmitted                 // it exists and is not shown
)

// body is what an answer shows of a result.
type body struct {
	kind bodyKind
	read bool   // it answers a read_result
	text string // what is shown of it
	step string // whose result it is
	from int    // offset of text in the whole
	size int    // of the whole; 0: not known
	kept int    // bytes of the larger result that text is the kept form of
}

func makeTurns(in Input) []turn {
	sizes := wholeSizes(in.View)
	turns := make([]turn, 0, len(in.View.Turns))
	for i, vt := range in.View.Turns {
		t := turn{ViewTurn: vt, open: i == len(in.View.Turns)-1 && vt.N == in.View.Turn}
		for _, c := range vt.Calls {
			t.answers = append(t.answers, answerBody(c, in.Reads, sizes))
		}
		t.Results = nil
		for n, r := range vt.Results {
			again := func(other agent.ViewItem) bool { return r.Step != "" && other.Step == r.Step }
			if slices.ContainsFunc(vt.Results[n+1:], again) {
				continue // a step that had two outcomes has one result
			}
			t.Results = append(t.Results, r)
			t.results = append(t.results, resultBody(r))
		}
		turns = append(turns, t)
	}
	return turns
}

// wholeSizes is what the view knows of the sizes of results, by step.
func wholeSizes(v agent.View) map[string]int {
	sizes := map[string]int{}
	note := func(it agent.ViewItem) {
		if it.Step != "" && it.Bytes > 0 {
			sizes[it.Step] = it.Bytes
		}
	}
	for _, t := range v.Turns {
		for _, c := range t.Calls {
			note(c.Answer)
		}
		for _, r := range t.Results {
			note(r)
		}
	}
	return sizes
}

func answerBody(c agent.ViewCall, reads map[string]Part, sizes map[string]int) body {
	if c.Read == nil {
		return resultBody(c.Answer)
	}
	b := body{kind: bodyOmitted, read: true, step: c.Read.Step, from: c.Read.Offset, size: sizes[c.Read.Step]}
	part, ok := reads[c.ID]
	if !ok {
		return b
	}
	if part.Whole > 0 {
		b.size = part.Whole
	}
	text, skipped := whole(part.Text)
	b.kind, b.text, b.from = bodyPart, text, b.from+skipped
	return b
}

func resultBody(it agent.ViewItem) body {
	b := body{step: it.Step, size: it.Bytes}
	switch {
	case len(it.Result) > 0:
		b.kind, b.text, b.size = bodyWhole, it.Result.String(), len(it.Result)
		if it.Bytes > b.size && it.Step != "" {
			b.kept = it.Bytes
		}
	case it.Part != "":
		b.kind = bodyPart
		b.text, b.from = whole(it.Part)
	case it.Omitted:
		b.kind = bodyOmitted
	}
	return b
}

// omit takes the result away, whole.
func (b *body) omit() {
	b.kind, b.text, b.from, b.size = bodyOmitted, "", 0, max(b.size, b.kept)
}

// shorten cuts a read to n bytes, or takes it away where that is too little.
func (b *body) shorten(n int) {
	if n < minPart {
		b.kind, b.text = bodyOmitted, ""
		return
	}
	b.text = cut(b.text, n)
}

// lines is the body as text, "" where there is nothing to show.
func (b body) lines() string {
	switch {
	case b.kind == bodyWhole && b.kept > 0:
		return fmt.Sprintf("\nresult: %s\nThat is what was kept of a result of %d bytes; %s reads it.", valid(b.text), b.kept, b.call(0))
	case b.kind == bodyWhole:
		return "\nresult: " + valid(b.text)
	case b.kind == bodyPart && b.text == "":
		return fmt.Sprintf("\nThere is nothing to read at offset %d%s.", b.from, b.of())
	case b.kind == bodyPart:
		end := b.from + len(b.text)
		if b.size > 0 && end >= b.size {
			return fmt.Sprintf("\nThis is the last part of the result, bytes %d to %d%s.\npart: %s", b.from, end, b.of(), valid(b.text))
		}
		on := "reads on"
		if b.size == 0 {
			on = "reads on if there is more"
		}
		return fmt.Sprintf("\nThis is a part of the result, bytes %d to %d%s; %s %s.\npart: %s",
			b.from, end, b.of(), b.call(end), on, valid(b.text))
	case b.kind == bodyOmitted && b.step == "":
		return "\nThe result is not shown."
	case b.kind == bodyOmitted:
		return fmt.Sprintf("\nThe result%s is not shown; %s reads it.", b.of(), b.call(b.from))
	}
	return ""
}

func (b body) of() string {
	if b.size == 0 {
		return ""
	}
	if b.kind == bodyOmitted {
		return fmt.Sprintf(" (%d bytes)", b.size)
	}
	return fmt.Sprintf(" of %d", b.size)
}

// call is the read_result that reads from offset on.
func (b body) call(offset int) string {
	return fmt.Sprintf(`%s{"offset":%d,"step":%s}`, agent.CallReadResult, offset, quote(b.step))
}
