package agent

// Description is what a definition promises, as JSON: for whoever shows or steers
// runs of an agent without having its code.
type Description struct {
	Agent   string             `json:"agent"`
	Version int                `json:"version"`
	Start   JSON               `json:"start,omitempty"` // schema of the start input's body
	Fields  []Field            `json:"fields,omitempty"`
	Tools   []ToolDescription  `json:"tools,omitempty"`
	Phases  []PhaseDescription `json:"phases,omitempty"`
}

// ToolDescription is a tool of a [Description].
type ToolDescription struct {
	Name   string `json:"name"`
	Doc    string `json:"doc,omitempty"`
	Effect Effect `json:"effect"`
	Args   JSON   `json:"args,omitempty"`   // schema
	Result JSON   `json:"result,omitempty"` // schema; none where it may be any value
	Gated  bool   `json:"gated,omitempty"`  // it may need a person
	Undo   string `json:"undo,omitempty"`   // the tool that compensates for it
}

// PhaseDescription is a phase of a [Description].
type PhaseDescription struct {
	Name  string            `json:"name"`
	Doc   string            `json:"doc,omitempty"`
	Final bool              `json:"final,omitempty"`
	Tools []string          `json:"tools,omitempty"`
	Moves []MoveDescription `json:"moves,omitempty"`
}

// MoveDescription is a move of a phase.
type MoveDescription struct {
	To    string `json:"to"`
	Doc   string `json:"doc,omitempty"`
	Auto  bool   `json:"auto,omitempty"`
	Gated bool   `json:"gated,omitempty"`
}

// Description describes the definition.
func (d *Definition) Description() Description {
	out := Description{Agent: d.Name, Version: d.Version, Fields: d.Fields()}
	if d.in != nil {
		out.Start = d.in.text
	}
	for _, t := range d.Tools() {
		described := ToolDescription{Name: t.Name, Doc: t.Doc, Effect: t.Effect, Args: t.Args, Gated: t.Gated, Undo: t.Undo}
		if result := d.tools[t.Name].result; result != nil {
			described.Result = result.text
		}
		out.Tools = append(out.Tools, described)
	}
	for _, p := range d.phases {
		described := PhaseDescription{Name: p.name, Doc: p.doc, Final: p.final, Tools: p.tools}
		for _, m := range p.moves {
			described.Moves = append(described.Moves, MoveDescription{m.to, m.doc, m.auto, m.gate != nil})
		}
		out.Phases = append(out.Phases, described)
	}
	return out
}

// Tool is a tool of the description.
func (d Description) Tool(name string) (ToolDescription, bool) {
	for _, t := range d.Tools {
		if t.Name == name {
			return t, true
		}
	}
	return ToolDescription{}, false
}
