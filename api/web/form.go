package web

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"interlock/agent"
	"interlock/api/words"
)

// Kinds of controls.
const (
	kindText    = "text"
	kindInteger = "integer" // of any size: its digits are a text until it is JSON
	kindNumber  = "number"
	kindChoice  = "choice"
	kindObject  = "object"
	kindJSON    = "json"
)

// control is one value of a form that is made from a schema: an input, or a set of
// them.
type control struct {
	Name     string // in the form: a JSON pointer
	ID       string // in the page
	Label    string
	Doc      string
	Kind     string
	Types    string // what a person reads of its type
	Text     string // as it stands in the input
	Options  []option
	Members  []control
	Optional bool // it may be left out
	Nullable bool // it may be null
	Given    bool // of an object that may be left out, and of an empty text: it is there
	Problem  string

	was agent.JSON // the value that it was made of; nil: there is none
}

type option struct {
	Value, Label string
	Chosen       bool
}

// Empty text is a value too: a control that may be left out says which is meant.
func (c control) EmptyName() string { return "empty" + c.Name }

// Hint is what a person must know of the input beside its name.
func (c control) Hint() string {
	var all []string
	if c.Kind == kindJSON {
		all = append(all, "JSON")
	}
	if c.Optional {
		all = append(all, "may be left out")
	}
	return strings.Join(all, ", ")
}

// GivenName is the box of an object that may be left out.
func (c control) GivenName() string { return "given" + c.Name }

// MayBeEmpty reports a text that may be left out, or be null.
func (c control) MayBeEmpty() bool { return c.Kind == kindText && (c.Optional || c.Nullable) }

// controlOf makes the control of a value; nil stands for none.
func controlOf(s *schema, value agent.JSON, name, label string, optional bool) control {
	c := control{Name: name, ID: idOf(name), Label: label, Kind: kindJSON, Optional: optional, was: value, Given: value != nil}
	if s == nil {
		c.Text = indented(value)
		return c
	}
	c.Doc, c.Nullable = s.Description, s.nullable()
	if value != nil && typeOf(value) == "null" && c.Nullable {
		value = nil
	}
	base := s.base()
	if value != nil && base != "" && !fits(value, base) {
		base = "" // it is edited as what it is
	}
	c.Types = base
	switch {
	case len(s.Enum) > 0 && slices.ContainsFunc(s.Enum, func(e agent.JSON) bool { return value == nil || e.Equal(value) }):
		return c.choice(s.Enum, value)
	case base == "boolean":
		return c.choice([]agent.JSON{agent.JSON("true"), agent.JSON("false")}, value)
	case base == "string":
		c.Kind = kindText
		if value != nil {
			_ = json.Unmarshal(value, &c.Text)
		}
		c.Given = value != nil && c.Text == ""
	case base == "integer", base == "number":
		c.Kind = base
		if value != nil {
			c.Text = value.String()
		}
	case base == "object" && len(s.Properties) > 0 && s.knows(value):
		return c.object(s, value)
	default:
		c.Text = indented(value)
	}
	return c
}

// knows reports whether all members of an object are in the schema.
func (s *schema) knows(value agent.JSON) bool {
	names, _ := words.Members(value)
	return !slices.ContainsFunc(names, func(n string) bool { return s.Properties[n] == nil })
}

// choice makes a control with a few values. One that may be left out has a value
// for that, too.
func (c control) choice(values []agent.JSON, value agent.JSON) control {
	c.Kind = kindChoice
	switch {
	case c.Optional:
		c.Options = append(c.Options, option{"", "left out", value == nil})
	case c.Nullable:
		c.Options = append(c.Options, option{"", "null", value == nil})
	case value == nil:
		c.Options = append(c.Options, option{"", "choose", true})
	}
	for _, v := range values {
		c.Options = append(c.Options, option{v.String(), words.Value(v), value != nil && v.Equal(value)})
		if value != nil && v.Equal(value) {
			c.Text = v.String()
		}
	}
	return c
}

func (c control) object(s *schema, value agent.JSON) control {
	c.Kind = kindObject
	_, members := words.Members(value)
	for _, name := range sortedKeys(s.Properties) {
		c.Members = append(c.Members, controlOf(s.Properties[name], members[name], c.Name+"/"+pointer(name), name, !slices.Contains(s.Required, name)))
	}
	return c
}

// pointer is a name as it stands in a JSON pointer.
func pointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// idOf is a name as an id of the page.
func idOf(name string) string {
	id := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '-'
	}, name)
	return "v" + id
}

// indented is JSON on lines of its own, digit for digit; nothing of nothing.
func indented(j agent.JSON) string {
	if j == nil {
		return ""
	}
	var b bytes.Buffer
	if json.Indent(&b, []byte(j.String()), "", "  ") != nil {
		return j.String()
	}
	return b.String()
}
