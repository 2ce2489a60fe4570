package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"
)

// ToolInfo is what others than the machine may know of a tool.
type ToolInfo struct {
	Name     string
	Doc      string
	Effect   Effect
	Quick    bool
	Timeout  time.Duration
	Deadline time.Duration
	Args     JSON   // schema
	Gated    bool   // it may need a person
	Undo     string // the tool that compensates for it; "": none
	OnCut    OnCut  // what becomes of a running call when its turn is cut short
	Source   any    // the value given to the definition
}

// PhaseInfo is what others than the machine may know of a phase.
type PhaseInfo struct {
	Name  string
	Doc   string
	Final bool
	Tools []string
	Moves []MoveInfo
}

// MoveInfo is one move of a phase.
type MoveInfo struct {
	To    string
	Doc   string
	Auto  bool
	Gated bool
}

// Tools are the definition's tools, by name.
func (d *Definition) Tools() []ToolInfo {
	var out []ToolInfo
	for _, name := range sortedKeys(d.tools) {
		t, _ := d.Tool(name)
		out = append(out, t)
	}
	return out
}

// Tool is one tool of the definition.
func (d *Definition) Tool(name string) (ToolInfo, bool) {
	t, ok := d.tools[name]
	if !ok {
		return ToolInfo{}, false
	}
	info := ToolInfo{Name: t.name, Doc: t.doc, Effect: t.effect, Quick: t.quick, Timeout: t.timeout, Deadline: t.deadline,
		Gated: t.gate != nil, Undo: t.undo, OnCut: t.onCut, Source: t.source}
	if t.args != nil {
		info.Args = t.args.text
	}
	return info, true
}

// Phase is one phase of the definition.
func (d *Definition) Phase(name string) (PhaseInfo, bool) {
	p, ok := d.phase(name)
	if !ok {
		return PhaseInfo{}, false
	}
	info := PhaseInfo{Name: p.name, Doc: p.doc, Final: p.final, Tools: slices.Clone(p.tools)}
	for _, m := range p.moves {
		info.Moves = append(info.Moves, MoveInfo{To: m.to, Doc: m.doc, Auto: m.auto, Gated: m.gate != nil})
	}
	return info, true
}

// Phases are the names of all phases, in order.
func (d *Definition) Phases() []string {
	var out []string
	for _, p := range d.phases {
		out = append(out, p.name)
	}
	return out
}

// Fields are the state's fields, in order.
func (d *Definition) Fields() []Field { return slices.Clone(d.fields) }

// Limits are the limits that a new run of this definition gets.
func (d *Definition) Limits() Limits { return d.limits }

// StartSchema is the JSON Schema of the start input's body.
func (d *Definition) StartSchema() JSON { return d.in.text }

// Fingerprint is a digest of what the definition promises: phases, schemas,
// effects, gates and state type, not instructions and not code. It is recorded
// and reported. A changed state has a reason to fail of its own: [Definition.CheckState].
func (d *Definition) Fingerprint() string { return d.fingerprint }

// InstructionsDigest tells one text of the instructions from another.
func (d *Definition) InstructionsDigest() string {
	sum := sha256.Sum256([]byte(d.Instructions))
	return hex.EncodeToString(sum[:8])
}

func (d *Definition) phase(name string) (*phaseDef, bool) {
	for _, p := range d.phases {
		if p.name == name {
			return p, true
		}
	}
	return nil, false
}

func (d *Definition) field(name string) (Field, bool) {
	for _, f := range d.fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

func (d *Definition) print() string {
	type gate struct {
		Roles, Reads []string
		Expires      time.Duration
		// Left out where they are not used, so that a definition without them keeps its
		// fingerprint.
		Quorum   int           `json:",omitempty"`
		Distinct bool          `json:",omitempty"`
		Edit     []string      `json:",omitempty"`
		Escalate *Escalate     `json:",omitempty"`
		TakeBack time.Duration `json:",omitempty"`
	}
	gateOf := func(g *gateDef) *gate {
		if g == nil {
			return nil
		}
		out := &gate{Roles: g.roles, Reads: g.reads, Expires: g.expires, Quorum: g.quorum, Distinct: g.distinct, Edit: g.edit, TakeBack: g.takeBack}
		if g.escalate.After > 0 {
			out.Escalate = &g.escalate
		}
		return out
	}
	type tool struct {
		Name, Effect      string
		Quick, Repeatable bool
		Args              JSON
		Gate              *gate
		Undo              string `json:",omitempty"`
		OnCut             OnCut  `json:",omitempty"` // where it is not the default
	}
	type move struct {
		To   string
		Auto bool
		Gate *gate
	}
	type phase struct {
		Name  string
		Final bool
		Tools []string
		Moves []move
	}
	var tools []tool
	for _, name := range sortedKeys(d.tools) {
		t := d.tools[name]
		e := tool{Name: name, Effect: string(t.effect), Quick: t.quick, Repeatable: t.repeatable, Gate: gateOf(t.gate), Undo: t.undo}
		if def := (ToolSpec[struct{}]{Effect: t.effect}).onCut(); t.onCut != def {
			e.OnCut = t.onCut
		}
		if t.args != nil {
			e.Args = t.args.text
		}
		tools = append(tools, e)
	}
	var phases []phase
	for _, p := range d.phases {
		e := phase{Name: p.name, Final: p.final, Tools: p.tools}
		for _, m := range p.moves {
			e.Moves = append(e.Moves, move{m.to, m.auto, gateOf(m.gate)})
		}
		phases = append(phases, e)
	}
	var in JSON
	if d.in != nil {
		in = d.in.text
	}
	return digest(struct {
		Name    string
		Version int
		In      JSON
		Fields  []Field
		Tools   []tool
		Phases  []phase
		Signed  bool `json:",omitempty"`
		// OnMessage is left out where it is the default.
		OnMessage MessagePolicy `json:",omitempty"`
		Idle      Idle          `json:",omitzero"`
	}{d.Name, d.Version, in, d.fields, tools, phases, d.signed, d.onMessage.unlessQueue(), d.limits.Idle})[:16]
}
