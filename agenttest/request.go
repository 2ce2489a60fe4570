package agenttest

import (
	"encoding/json"
	"fmt"

	"interlock/agent"
	"interlock/llm"
	"interlock/prompt"
)

// request is what the model is shown, as the activity renders it.
func (r *Run) request(v agent.View) (llm.Request, error) {
	phase, ok := r.def.Phase(v.Phase)
	if !ok {
		return llm.Request{}, fmt.Errorf("the definition has no phase %s", v.Phase)
	}
	in := prompt.Input{Instructions: r.def.Instructions, View: v, Limits: agent.Limits{View: v.Limit},
		Phase: prompt.Phase{Name: phase.Name, Doc: phase.Doc, Final: phase.Final}, Reads: r.reads(v)}
	for _, name := range phase.Tools {
		t, _ := r.def.Tool(name)
		in.Phase.Tools = append(in.Phase.Tools, prompt.Tool{Name: t.Name, Doc: t.Doc, Schema: t.Args, Effect: string(t.Effect), Gated: t.Gated})
	}
	for _, m := range phase.Moves {
		in.Phase.Moves = append(in.Phase.Moves, prompt.Move{To: m.To, Doc: m.Doc, Auto: m.Auto, Gated: m.Gated})
	}
	for _, f := range r.def.Fields() {
		if !f.Hidden {
			in.Fields = append(in.Fields, prompt.Field{Name: f.Name, Doc: f.Doc, Setters: f.Set, Follows: f.Follows, Schema: f.Schema, Sensitive: f.Sensitive})
		}
	}
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
