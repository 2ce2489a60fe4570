package web

import (
	"encoding/json"
	"slices"

	"interlock/agent"
)

// schema is what a form needs of a JSON Schema of package agent.
type schema struct {
	Description string             `json:"description"`
	Type        oneOrMore          `json:"type"`
	Types       []string           `json:"types"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Enum        []agent.JSON       `json:"enum"`
}

// oneOrMore is a name, or a list of names.
type oneOrMore []string

func (o *oneOrMore) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*o = []string{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(o))
}

// schemaOf reads a schema; nil where there is none that a form can be made of.
func schemaOf(text agent.JSON) *schema {
	s := &schema{}
	if len(text) == 0 || json.Unmarshal(text, s) != nil {
		return nil
	}
	return s
}

// base is the one type beside null; "" where there are none or several.
func (s *schema) base() string {
	all := slices.DeleteFunc(append(slices.Clone([]string(s.Type)), s.Types...), func(t string) bool { return t == "null" })
	if len(all) != 1 {
		return ""
	}
	return all[0]
}

func (s *schema) nullable() bool {
	return slices.Contains(s.Type, "null") || slices.Contains(s.Types, "null")
}

// typeOf is the type of a canonical value.
func typeOf(j agent.JSON) string {
	switch text := j.String(); text[0] {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '[':
		return "array"
	case '{':
		return "object"
	default:
		for _, c := range text {
			if c == '.' || c == 'e' || c == 'E' {
				return "number"
			}
		}
		return "integer"
	}
}

// fits reports whether a value is of a type.
func fits(j agent.JSON, of string) bool {
	t := typeOf(j)
	return t == of || t == "integer" && of == "number"
}
