package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// schema is as much of a JSON Schema as the document uses.
type schema struct {
	Ref         string             `json:"$ref"`
	Type        any                `json:"type"` // a text, or several
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Enum        []any              `json:"enum"`
	Items       *schema            `json:"items"`
	Additional  json.RawMessage    `json:"additionalProperties"`
	MaxLength   *int               `json:"maxLength"`
	Description string             `json:"description"`
}

type content map[string]struct {
	Schema *schema `json:"schema"`
}

type operation struct {
	Parameters []struct {
		Name     string  `json:"name"`
		In       string  `json:"in"`
		Required bool    `json:"required"`
		Schema   *schema `json:"schema"`
	} `json:"parameters"`
	RequestBody struct {
		Required bool    `json:"required"`
		Content  content `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content content `json:"content"`
	} `json:"responses"`
}

type document struct {
	Paths      map[string]map[string]*operation `json:"paths"`
	Components struct {
		Schemas map[string]*schema `json:"schemas"`
	} `json:"components"`
}

// breaks lists what a client of the old document could not do with the new one:
// a path, operation, response, response member or enum value that is gone, a type
// that has changed, something that a request must have now or may have no more.
func breaks(old, fresh []byte) ([]string, error) {
	var was, is document
	for _, d := range []struct {
		text []byte
		into *document
	}{{old, &was}, {fresh, &is}} {
		if err := json.Unmarshal(d.text, d.into); err != nil {
			return nil, fmt.Errorf("a document that cannot be read: %w", err)
		}
	}
	c := &comparing{was: was, is: is, seen: map[string]bool{}}
	for _, path := range slices.Sorted(maps.Keys(was.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(was.Paths[path])) {
			at := strings.ToUpper(method) + " " + path
			now := is.Paths[path][method]
			if now == nil {
				c.note("%s is gone", at)
				continue
			}
			c.operation(at, was.Paths[path][method], now)
		}
	}
	return c.found, nil
}

type comparing struct {
	was, is document
	found   []string
	seen    map[string]bool
}

func (c *comparing) note(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

func (c *comparing) operation(at string, was, is *operation) {
	for _, p := range was.Parameters {
		i := slices.IndexFunc(is.Parameters, func(q struct {
			Name     string  `json:"name"`
			In       string  `json:"in"`
			Required bool    `json:"required"`
			Schema   *schema `json:"schema"`
		}) bool {
			return q.Name == p.Name && q.In == p.In
		})
		if i < 0 {
			c.note("%s: parameter %s is gone", at, p.Name)
			continue
		}
		if is.Parameters[i].Required && !p.Required {
			c.note("%s: parameter %s is needed now", at, p.Name)
		}
		c.request(at+" "+p.Name, p.Schema, is.Parameters[i].Schema)
	}
	for _, p := range is.Parameters {
		known := false
		for _, q := range was.Parameters {
			known = known || q.Name == p.Name && q.In == p.In
		}
		if p.Required && !known {
			c.note("%s: parameter %s is new, and needed", at, p.Name)
		}
	}
	if is.RequestBody.Required && !was.RequestBody.Required {
		c.note("%s: a body is needed now", at)
	}
	for media, body := range was.RequestBody.Content {
		c.request(at+" request", body.Schema, is.RequestBody.Content[media].Schema)
	}
	for _, status := range slices.Sorted(maps.Keys(was.Responses)) {
		if _, ok := is.Responses[status]; !ok {
			c.note("%s: response %s is gone", at, status)
			continue
		}
		for media, body := range was.Responses[status].Content {
			c.response(at+" "+status, body.Schema, is.Responses[status].Content[media].Schema)
		}
	}
}

// request: whatever could be sent can still be.
func (c *comparing) request(at string, was, is *schema) {
	was, is, again := c.pair("request", was, is)
	if was == nil || again {
		return
	}
	if is == nil {
		c.note("%s is gone", at)
		return
	}
	c.types(at, was, is)
	for _, name := range is.Required {
		if !slices.Contains(was.Required, name) {
			c.note("%s.%s is needed now", at, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was.Properties)) {
		c.request(at+"."+name, was.Properties[name], is.Properties[name])
	}
	if was.Items != nil {
		c.request(at+"[]", was.Items, is.Items)
	}
	if is.MaxLength != nil && (was.MaxLength == nil || *is.MaxLength < *was.MaxLength) {
		c.note("%s may be %d long at most now", at, *is.MaxLength)
	}
	c.enum(at, was, is)
	if was.Enum == nil && is.Enum != nil {
		c.note("%s takes some values only now", at)
	}
}

// response: whatever was answered still is.
func (c *comparing) response(at string, was, is *schema) {
	was, is, again := c.pair("response", was, is)
	if was == nil || again {
		return
	}
	if is == nil {
		c.note("%s is gone", at)
		return
	}
	c.types(at, was, is)
	for _, name := range was.Required {
		if is.Properties[name] != nil && !slices.Contains(is.Required, name) {
			c.note("%s.%s may be absent now", at, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was.Properties)) {
		c.response(at+"."+name, was.Properties[name], is.Properties[name])
	}
	if was.Items != nil {
		c.response(at+"[]", was.Items, is.Items)
	}
	c.enum(at, was, is)
}

func (c *comparing) types(at string, was, is *schema) {
	if a, b := fmt.Sprint(was.Type), fmt.Sprint(is.Type); a != b && is.Type != nil {
		c.note("%s was %s and is %s", at, a, b)
	} else if a != b {
		c.note("%s was %s and is anything", at, a)
	}
}

func (c *comparing) enum(at string, was, is *schema) {
	if is.Enum == nil {
		return
	}
	for _, v := range was.Enum {
		if !slices.Contains(is.Enum, v) {
			c.note("%s: the value %v is gone", at, v)
		}
	}
}

// pair follows references; a pair that was compared is not compared again.
func (c *comparing) pair(side string, was, is *schema) (*schema, *schema, bool) {
	if was == nil {
		return nil, is, false
	}
	key := ""
	if was.Ref != "" {
		key = side + was.Ref
		if is != nil {
			key += is.Ref
		}
		if c.seen[key] {
			return was, is, true
		}
		c.seen[key] = true
	}
	return follow(c.was, was), follow(c.is, is), false
}

func follow(d document, s *schema) *schema {
	for s != nil && s.Ref != "" {
		s = d.Components.Schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
	}
	return s
}
