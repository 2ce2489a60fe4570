package prompt

import (
	"encoding/json"
	"fmt"

	"interlock/agent"
)

// schema is a JSON Schema under construction, in the few words that every
// provider understands.
type schema map[string]any

type members map[string]schema

func object(m members, required ...string) schema {
	s := schema{"type": "object", "properties": m, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func words(doc string) schema { return schema{"type": "string", "description": doc} }

func (s schema) described(doc string) schema {
	s["description"] = doc
	return s
}

// names is a list of the names of fields that can be shown to the user.
func names(fields []Field, doc string) schema {
	var enum []string
	for _, f := range fields {
		if !f.Sensitive {
			enum = append(enum, f.Name)
		}
	}
	item := schema{"type": "string"}
	if len(enum) > 0 {
		item["enum"] = enum
	}
	return schema{"type": "array", "items": item, "description": doc}
}

// fieldValues are the settable fields with the schemas of their values.
func fieldValues(fields []Field) members {
	m := members{}
	for _, f := range settable(fields) {
		s := schema{}
		if len(f.Schema) > 0 && json.Unmarshal(f.Schema, &s) != nil {
			s = schema{}
		}
		if _, has := s["description"]; !has && f.Doc != "" {
			s["description"] = valid(f.Doc)
		}
		m[f.Name] = s
	}
	return m
}

func (s schema) json() agent.JSON {
	j, err := agent.Encode(s)
	if err != nil { // a field's name or doc that has no JSON: Define refuses it
		panic(fmt.Sprintf("prompt: schema: %v", err))
	}
	return j
}
