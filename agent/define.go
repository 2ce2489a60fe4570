package agent

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Spec is an agent as its author writes it. In is the start input, S the state.
type Spec[In, S any] struct {
	Name         string
	Version      int // 1, 2, 3 …; a run pins its version
	Instructions string
	// Init makes the first state. An error fails the run before anything ran.
	Init   func(In) (S, error)
	Phases []Phase[S] // the first is where a run starts
	// Tools names tools that only an Enter function calls, and not on a zero
	// state. All others are found through Phases.
	Tools  []Tool[S]
	Budget Budget // zero fields take the defaults
	Limits Limits // zero fields take the defaults
	// OnMessage is what a message does while the run is busy, where it does not say
	// so itself; "": [MessageQueue].
	OnMessage MessagePolicy
	Idle      Idle // what becomes of a run whose user says nothing; off by default
	// Remind is the text of Idle.Remind; nil: a plain one in English.
	Remind func(Situation[S]) string
	// Operators are the roles that may say what became of a step in doubt; none:
	// [DefaultOperator].
	Operators []string
	// Signed agents take verdicts only from people who are proven by a token (package
	// token): any other is recorded, and decides nothing.
	Signed bool
}

// DefaultOperator is the role of operators where a definition names none.
const DefaultOperator = "operator"

// Phase is a position in the agent's state machine.
type Phase[S any] struct {
	Name  string
	Doc   string // what the model is told of it
	Final bool
	Tools []Tool[S] // what the model may call here; elsewhere it is refused
	Moves []Move[S]
	// Enter makes calls on entering, under the same protocol and gates as the
	// model's.
	Enter func(Situation[S]) []Call
	// Say is the run's last word, in a final phase. nil: the model has it.
	Say func(Situation[S]) string
}

// Move is an allowed transition.
type Move[S any] struct {
	To   string
	Doc  string
	Auto bool // taken by code as soon as When allows it
	// When is the guard: nil allows, an error refuses and says what is missing.
	When func(Situation[S]) error
	Gate *MoveGate[S]
}

// MoveGate is the policy of a move; see [GateSpec].
type MoveGate[S any] struct {
	Policy   string
	Roles    []string
	Reads    []string
	Expires  time.Duration
	Quorum   int
	Distinct bool
	Escalate Escalate
	TakeBack time.Duration
	When     func(Situation[S]) bool
	Title    func(Situation[S]) string
	Risk     func(Situation[S]) string
}

// Definition is an agent, ready to run. It never changes after Define.
type Definition struct {
	Name         string
	Version      int
	Instructions string

	limits      Limits
	operators   []string
	signed      bool
	onMessage   MessagePolicy
	remind      func(situation) string
	fields      []Field
	phases      []*phaseDef
	tools       map[string]*toolDef
	fingerprint string
	init        func(body JSON) (JSON, error)
	checkState  func(JSON) (JSON, error)
	zero        JSON // the zero state
	in          *schema
	mistakes    []string
}

type phaseDef struct {
	name, doc string
	final     bool
	tools     []string
	moves     []*moveDef
	enter     func(situation) []Call
	say       func(situation) string
}

type moveDef struct {
	to, doc string
	auto    bool
	when    func(situation) error
	gate    *gateDef
}

type toolDef struct {
	name, doc         string
	effect            Effect
	quick, repeatable bool
	timeout, deadline time.Duration
	verifies          []string
	confirmed         []string // fields whose confirmation a call uses up
	args              *schema
	argsType          reflect.Type
	result            *schema // nil where its type has none
	resultType        reflect.Type
	gate              *gateDef
	undo              string // the tool that compensates for it; "": none
	onCut             OnCut
	commit            func(state, args, result JSON) (JSON, error)
	source            any
}

// Define makes a definition. It reports every mistake at once, through
// [Definition.Err]: a worker refuses a definition that has any.
func Define[In, S any](spec Spec[In, S]) *Definition {
	d := &Definition{Name: spec.Name, Version: spec.Version, Instructions: spec.Instructions, tools: map[string]*toolDef{},
		limits: spec.Limits.withDefaults(spec.Budget), operators: spec.Operators, signed: spec.Signed, onMessage: spec.OnMessage}
	if len(d.operators) == 0 {
		d.operators = []string{DefaultOperator}
	}
	if spec.Idle != (Idle{}) {
		d.limits.Idle = spec.Idle
	}
	if spec.Remind != nil {
		d.remind = func(u situation) string { return spec.Remind(typed[S](u)) }
	}
	c := &checker{def: d}
	c.header(spec.Init == nil)
	before := len(d.mistakes)
	d.fields = stateFields(reflect.TypeFor[S](), c.report)
	if len(d.mistakes) == before {
		if err := roundTrip(reflect.TypeFor[S]()); err != nil {
			c.report("state", "does not survive JSON: %v", err)
		}
	}
	in, err := schemaOf(reflect.TypeFor[In]())
	if err != nil {
		c.report("start input", "%v", err)
	}
	c.state = reflect.TypeFor[S]()
	c.noTags("start input", reflect.TypeFor[In]())
	d.in = in
	d.checkState = checkStateOf[S]
	d.zero, _ = stateOf(*new(S))
	d.init = func(body JSON) (JSON, error) {
		args, err := d.in.arguments(body.String(), reflect.TypeFor[In]())
		if err != nil {
			return nil, err
		}
		var start In
		if err := json.Unmarshal(args, &start); err != nil {
			return nil, err
		}
		s, err := spec.Init(start)
		if err != nil {
			return nil, err
		}
		return checkedState(s)
	}
	for _, p := range spec.Phases {
		d.phases = append(d.phases, erasePhase(c, p))
	}
	enters := slices.ContainsFunc(spec.Phases, func(p Phase[S]) bool { return p.Enter != nil })
	for _, t := range spec.Tools {
		name := addTool(c, t, "tools")
		if !enters && !slices.ContainsFunc(d.phases, func(p *phaseDef) bool { return slices.Contains(p.tools, name) }) {
			c.report("tool "+name, "is in no phase: no phase lists it and none has an Enter that could call it")
		}
	}
	c.phases()
	c.references()
	d.fingerprint = d.print()
	return d
}

func erasePhase[S any](c *checker, p Phase[S]) *phaseDef {
	where := "phase " + p.Name
	out := &phaseDef{name: p.Name, doc: p.Doc, final: p.Final}
	for _, t := range p.Tools {
		name := addTool(c, t, where)
		if slices.Contains(out.tools, name) {
			c.report(where, "lists tool %s twice", name)
		}
		out.tools = append(out.tools, name)
	}
	for _, m := range p.Moves {
		move := &moveDef{to: m.To, doc: m.Doc, auto: m.Auto}
		if m.When != nil {
			move.when = func(u situation) error { return m.When(typed[S](u)) }
		}
		if g := m.Gate; g != nil {
			move.gate = eraseMoveGate(g)
			c.gate(where+" move "+m.To, move.gate)
		}
		out.moves = append(out.moves, move)
	}
	if p.Enter != nil {
		out.enter = func(u situation) []Call { return p.Enter(typed[S](u)) }
		for _, call := range probe(c, where, p.Enter) {
			if t, ok := call.Source.(Tool[S]); ok {
				addTool(c, t, where+" enter")
			}
		}
	}
	if p.Say != nil {
		out.say = func(u situation) string { return p.Say(typed[S](u)) }
	}
	return out
}

// probe calls an Enter function on a zero state, to learn which tools it calls.
// It may well panic there: then Spec.Tools names them.
func probe[S any](c *checker, where string, enter func(Situation[S]) []Call) (calls []Call) {
	defer func() {
		if u, ok := recover().(unknownField); ok {
			c.report(where, "Enter names %q, which is no field of the state", u.field)
		}
	}()
	return enter(Situation[S]{run: &Run{}, def: c.def})
}

// addTool erases a tool's types and returns its name. The same tool may be
// listed in many phases; two tools of one name are a mistake.
func addTool[S any](c *checker, t Tool[S], where string) string {
	spec := t.Spec()
	if old, ok := c.def.tools[spec.Name]; ok {
		if old.source != spec.Source {
			c.report(where, "two tools are named %s", spec.Name)
		}
		return spec.Name
	}
	d := &toolDef{name: spec.Name, doc: spec.Doc, effect: spec.Effect, quick: spec.Quick, repeatable: spec.Repeatable,
		timeout: spec.Timeout, deadline: spec.Deadline, verifies: spec.Verifies, confirmed: spec.Confirmed, onCut: spec.onCut(), argsType: spec.Args, resultType: spec.Result, source: spec.Source}
	d.result, _ = schemaOf(spec.Result)
	d.commit = func(state, args, result JSON) (JSON, error) {
		var s S
		if err := json.Unmarshal(state, &s); err != nil {
			panic(fmt.Sprintf("agent: state does not decode: %v", err))
		}
		if err := spec.Commit(&s, args, result); err != nil {
			return nil, err
		}
		return checkedState(s)
	}
	if spec.Gate != nil {
		d.gate = eraseGate(spec.Gate)
	}
	c.def.tools[spec.Name] = d
	c.tool(where, d, spec.Result)
	if spec.Undo != nil {
		addUndo(c, d, spec)
	}
	return spec.Name
}

// addUndo adds the compensation of a tool: a tool of the definition that only code
// calls, unless a phase lists it too.
func addUndo[S any](c *checker, d *toolDef, spec ToolSpec[S]) {
	undo := spec.Undo.Spec()
	at := "tool " + d.name
	if undo.Undo != nil {
		c.report(at, "its undo %s names an undo itself: call %s again instead", undo.Name, d.name)
		return
	}
	d.undo = addTool(c, spec.Undo, at+" undo")
	if d.effect == ReadOnly {
		c.report(at, "is ReadOnly and names an undo: there would be nothing to undo")
	}
	if undo.Effect == ReadOnly {
		c.report(at, "its undo %s is ReadOnly: it would undo nothing", undo.Name)
	}
	if undo.Args != spec.UndoArgs {
		c.report(at, "its undo %s takes %s; it must take %s", undo.Name, undo.Args, spec.UndoArgs)
	}
}

// stateOf is the canonical JSON of a state.
func stateOf(s any) (JSON, error) {
	j, err := Encode(s)
	if err != nil {
		return nil, err
	}
	v, err := parseOwn(j)
	if err != nil {
		return nil, err
	}
	return encodeValue(normalState(v)), nil
}

// checkedState also runs the state's own Validate, where it has one.
func checkedState[S any](s S) (JSON, error) {
	if v, ok := any(&s).(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return nil, err
		}
	}
	return stateOf(s)
}

// checkStateOf decodes a state strictly and returns it as Go would write it.
func checkStateOf[S any](j JSON) (JSON, error) {
	var s S
	if err := decodeStrict(j, &s); err != nil {
		return nil, err
	}
	return checkedState(s)
}

// Err lists every mistake of the definition, each with where it is; nil where
// there is none.
func (d *Definition) Err() error {
	if len(d.mistakes) == 0 {
		return nil
	}
	return Errorf(CodeInvalid, "agent %s/v%d has %d mistakes:\n  %s", d.Name, d.Version, len(d.mistakes), strings.Join(d.mistakes, "\n  "))
}
