package agenttest

import (
	"encoding/json"

	"interlock/agent"
	"interlock/llm"
	"interlock/prompt"
)

// request is what the model is shown, as the activity renders it.
func (r *Run) request(v agent.View) (llm.Request, error) {
	in, err := prompt.For(r.def, v)
	if err != nil {
		return llm.Request{}, err
	}
	in.Reads = r.reads(v)
	out, err := prompt.Render(in) // it checks that every call has its answer
	if err != nil {
		return llm.Request{}, err
	}
	return llm.Request{Messages: out.Messages, Tools: out.Tools, Only: out.Only, View: v}, nil
}

// reads are the parts of results that the model asked to read on.
func (r *Run) reads(v agent.View) map[string]prompt.Part {
	out := map[string]prompt.Part{}
	for _, t := range v.Turns {
		for _, c := range t.Calls {
			if c.Read == nil {
				continue
			}
			text := r.wholeResult(c.Read.Step)
			out[c.ID] = prompt.Part{Text: text[min(c.Read.Offset, len(text)):], Whole: len(text)}
		}
	}
	return out
}

func (r *Run) wholeResult(step string) string {
	for _, e := range r.events {
		if e.Step != step || e.Type != agent.EventStepDone {
			continue
		}
		var d agent.StepDoneData
		if json.Unmarshal(e.Data, &d) == nil && d.Whole != nil {
			return string(r.blobs[d.Whole.Ref])
		}
		return d.Result.String()
	}
	return ""
}
