package agent

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// checker collects the mistakes of one definition.
type checker struct {
	def   *Definition
	state reflect.Type
}

func (c *checker) report(where, format string, args ...any) {
	c.def.mistakes = append(c.def.mistakes, where+": "+fmt.Sprintf(format, args...))
}

func (c *checker) header(noInit bool) {
	if !validName(c.def.Name) {
		c.report("name", "%q is not [a-z][a-z0-9_]*, at most 64", c.def.Name)
	}
	if c.def.Version < 1 {
		c.report("version", "is %d; versions start at 1", c.def.Version)
	}
	if strings.TrimSpace(c.def.Instructions) == "" {
		c.report("instructions", "are empty: the model would not know what to do")
	}
	if noInit {
		c.report("init", "is missing: a run needs a first state")
	}
	if err := CheckPolicy(c.def.onMessage); err != nil {
		c.report("on message", "%v", err)
	}
	l := c.def.limits
	for _, p := range []struct {
		name  string
		value int
	}{{"State", l.State}, {"Snapshot", l.Snapshot}, {"View", l.View}, {"Shown", l.Shown}, {"Facts", l.Facts}, {"Rulings", l.Rulings},
		{"Result", l.Result}, {"Message", l.Message}, {"Batch", l.Batch}, {"Window", l.Window}, {"Active", l.Active}, {"Handled", l.Handled}} {
		if p.value < 0 {
			c.report("limits", "%s is %d; only a budget can be without a limit", p.name, p.value)
		}
	}
	if l.History < minHistory || l.HistoryBytes < minHistory*1024 {
		c.report("limits", "History is %d events and HistoryBytes %d: a run must get further than that before it is continued; at least %d and %d", l.History, l.HistoryBytes, minHistory, minHistory*1024)
	}
	c.idle(l.Idle)
	if l.Outage < 0 {
		c.report("limits", "Outage is %s; leave it out for %s", l.Outage, DefaultOutage)
	}
}

// minHistory keeps a run from being continued before it has done anything: a
// turn with one tool call takes about 30 events.
const minHistory = 50

func (c *checker) tool(where string, t *toolDef, result reflect.Type) {
	at := "tool " + t.name
	if !validName(t.name) {
		c.report(where, "tool name %q is not [a-z][a-z0-9_]*, at most 64", t.name)
	}
	if slices.Contains(ControlCalls, t.name) {
		c.report(at, "has the name of a control call")
	}
	var err error
	if t.args, err = schemaOf(t.argsType); err != nil {
		c.report(at, "arguments: %v", err)
	} else if !slices.Equal(t.args.types, []string{"object"}) || !t.args.closed {
		c.report(at, "arguments must be a struct: providers take only an object with named members")
	} else if err := t.args.ownValue(t.argsType); err != nil {
		c.report(at, "arguments: no call could be right: the JSON of %s does not match its schema: %v", t.argsType, err)
	}
	c.noTags(at+": arguments", t.argsType)
	c.noTags(at+": result", result)
	if result.Kind() == reflect.Interface {
		c.report(at, "result: an interface: numbers in it would become floats; name the type")
	}
	if t.quick && t.effect != ReadOnly {
		c.report(at, "is quick, which only a ReadOnly tool may be")
	}
	if !slices.Contains([]Effect{ReadOnly, Keyed, Transactional, Reconcilable, Once}, t.effect) {
		c.report(at, "there is no effect %q", t.effect)
	}
	if t.gate != nil {
		c.gate(at, t.gate)
		c.edits(at, t)
	}
	switch t.onCut {
	case CutWait, CutUndo:
	case CutAbandon:
		if t.effect != ReadOnly {
			c.report(at, "is to be abandoned when its turn is cut short, but it has an effect, which may happen all the same: choose %s, or %s", CutWait, CutUndo)
		}
	default:
		c.report(at, "OnCut %q is none of %s", t.onCut, words([]OnCut{CutWait, CutAbandon, CutUndo}))
	}
}

// ownValue checks that a type's own JSON matches the schema inferred from it:
// where the type has another form (a marshaler, a ",string" tag) it does not.
func (s *schema) ownValue(t reflect.Type) error {
	j, err := Encode(sample(t, 0).Interface())
	if err != nil {
		return nil // a marshaler that refuses a made-up value
	}
	v, err := parseOwn(j)
	if err == nil {
		_, err = s.check(v, nil)
	}
	return err
}

func (c *checker) gate(where string, g *gateDef) {
	if len(g.roles) == 0 {
		c.report(where, "has a gate without a role: nobody could decide")
	}
	for _, r := range g.roles {
		if !validName(r) {
			c.report(where, "gate role %q is not [a-z][a-z0-9_]*", r)
		}
	}
	if g.expires < 0 {
		c.report(where, "gate expires %s after it opens", g.expires)
	}
	if g.quorum < 0 || g.quorum > maxQuorum {
		c.report(where, "gate has a quorum of %d; at most %d persons can be asked for", g.quorum, maxQuorum)
	}
	if g.takeBack < 0 || g.takeBack > maxTakeBack {
		c.report(where, "a verdict can be taken back for %s; from 0 to %s are allowed", g.takeBack, maxTakeBack)
	}
	c.escalate(where, g)
}

// edits checks that the arguments which may be edited are arguments.
func (c *checker) edits(where string, t *toolDef) {
	for _, name := range t.gate.edit {
		if name == EveryArgument {
			if len(t.gate.edit) > 1 {
				c.report(where, "gate lets every argument be edited, and names others beside %q", EveryArgument)
			}
		} else if t.args != nil && t.args.properties[name] == nil {
			c.report(where, "gate lets %q be edited, which is no argument", name)
		}
	}
}

// phases checks the graph: names, targets, reachability, a final phase.
func (c *checker) phases() {
	d := c.def
	if len(d.phases) == 0 {
		c.report("phases", "there are none")
		return
	}
	seen := map[string]bool{}
	final := false
	for _, p := range d.phases {
		where := "phase " + p.name
		if !validName(p.name) {
			c.report("phases", "phase name %q is not [a-z][a-z0-9_]*", p.name)
		}
		if seen[p.name] {
			c.report(where, "is defined twice")
		}
		seen[p.name] = true
		final = final || p.final
		if p.final && len(p.moves) > 0 {
			c.report(where, "is final but has moves")
		}
		if p.say != nil && !p.final {
			c.report(where, "has Say, which only a final phase may have")
		}
		if !p.final && len(p.moves) == 0 {
			c.report(where, "is not final and has no moves: a run could never leave it")
		}
		to := map[string]bool{}
		for _, m := range p.moves {
			if _, ok := d.phase(m.to); !ok {
				c.report(where, "moves to %q, which is no phase", m.to)
			}
			if to[m.to] {
				c.report(where, "has two moves to %s", m.to)
			}
			to[m.to] = true
		}
	}
	if !final {
		c.report("phases", "none is final: a run could never end")
	}
	reached := map[string]bool{}
	c.reach(d.phases[0].name, reached)
	for _, p := range d.phases {
		if !reached[p.name] {
			c.report("phase "+p.name, "cannot be reached from %s", d.phases[0].name)
		}
	}
}

func (c *checker) reach(name string, reached map[string]bool) {
	p, ok := c.def.phase(name)
	if !ok || reached[name] {
		return
	}
	reached[name] = true
	for _, m := range p.moves {
		c.reach(m.to, reached)
	}
}

// references checks that field names in policies are fields.
func (c *checker) references() {
	known := func(where, what string, fields []string) {
		for _, f := range fields {
			if _, ok := c.def.field(f); !ok {
				c.report(where, "%s names %q, which is no field of the state", what, f)
			}
		}
	}
	for _, name := range sortedKeys(c.def.tools) {
		t := c.def.tools[name]
		known("tool "+name, "Verifies", t.verifies)
		known("tool "+name, "Confirmed", t.confirmed)
		if len(t.confirmed) > 0 && t.effect == ReadOnly {
			c.report("tool "+name, "is ReadOnly and names a confirmation (Confirmed): there is no effect that would use it up")
		}
		for _, f := range t.confirmed {
			if field, _ := c.def.field(f); field.Sensitive {
				c.report("tool "+name, "Confirmed names %q, which is sensitive: it is shown to nobody who could say yes", f)
			}
		}
		if t.gate != nil {
			known("tool "+name, "the gate's Reads", t.gate.reads)
		}
	}
	for _, p := range c.def.phases {
		for _, m := range p.moves {
			where := "phase " + p.name + " move " + m.to
			if m.gate != nil {
				known(where, "the gate's Reads", m.gate.reads)
			}
			c.tryGuard(where, m)
		}
	}
}

// tryGuard runs a guard on a zero state, only to hear of fields that do not exist.
func (c *checker) tryGuard(where string, m *moveDef) {
	defer func() {
		if u, ok := recover().(unknownField); ok {
			c.report(where, "the guard names %q, which is no field of the state", u.field)
		}
	}()
	if m.when != nil {
		_ = m.when(situation{run: &Run{}, def: c.def})
	}
}
