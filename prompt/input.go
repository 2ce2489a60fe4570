package prompt

import "interlock/agent"

// For is what [Render] needs of a definition to render a view, within the view's
// own limit. Reads are the caller's to add. CodeNotFound says that the
// definition lacks the view's phase.
func For(def *agent.Definition, v agent.View) (Input, error) {
	phase, ok := def.Phase(v.Phase)
	if !ok {
		return Input{}, agent.Errorf(agent.CodeNotFound, "agent %s/v%d has no phase %s", def.Name, def.Version, v.Phase)
	}
	in := Input{Instructions: def.Instructions, View: v, Limits: agent.Limits{View: v.Limit},
		Phase: Phase{Name: phase.Name, Doc: phase.Doc, Final: phase.Final}}
	for _, name := range phase.Tools {
		t, _ := def.Tool(name)
		in.Phase.Tools = append(in.Phase.Tools, Tool{Name: t.Name, Doc: t.Doc, Schema: t.Args, Effect: string(t.Effect), Gated: t.Gated})
	}
	for _, m := range phase.Moves {
		in.Phase.Moves = append(in.Phase.Moves, Move{To: m.To, Doc: m.Doc, Auto: m.Auto, Gated: m.Gated})
	}
	for _, f := range def.Fields() {
		if !f.Hidden {
			in.Fields = append(in.Fields, Field{Name: f.Name, Doc: f.Doc, Setters: f.Set, Follows: f.Follows, Schema: f.Schema, Sensitive: f.Sensitive})
		}
	}
	return in, nil
}
