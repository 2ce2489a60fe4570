package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"interlock/agent"
)

// keyField is what stands for the effect's key in a template.
const keyField = "$key"

// maxURL bounds a URL, in bytes: beyond it servers differ.
const maxURL = 8 << 10

// template is a URL with places for values. They are in its path and its query
// only, so that arguments never choose the host.
type template struct {
	path  []part   // with scheme and host, which are fixed
	query [][]part // by parameter
}

// part is a fixed text or the name of a value.
type part struct{ text, field string }

func parseTemplate(s string) (template, error) {
	var t template
	whole, err := parts(s)
	if err != nil {
		return t, err
	}
	sample := ""
	for _, p := range whole {
		sample += p.text
		if p.field != "" {
			sample += "x"
		}
	}
	u, err := url.Parse(sample)
	switch {
	case err != nil:
		return t, errors.New("URL: it cannot be parsed") // the error would repeat it
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return t, errors.New("URL: it must begin with http:// or https:// and a host")
	case u.User != nil:
		return t, errors.New("URL: credentials belong into Header")
	case strings.Contains(s, "#"):
		return t, errors.New("URL: a fragment is never sent")
	}
	path, query, hasQuery := strings.Cut(s, "?")
	_, afterScheme, _ := strings.Cut(path, "://")
	if host, _, _ := strings.Cut(afterScheme, "/"); strings.ContainsAny(host, "{}") {
		return t, errors.New("URL: the host is fixed: no {field} may stand in it")
	}
	t.path, err = parts(path)
	if hasQuery {
		for parameter := range strings.SplitSeq(query, "&") {
			p, partErr := parts(parameter)
			t.query, err = append(t.query, p), errors.Join(err, partErr)
		}
	}
	return t, err
}

func parts(s string) (out []part, err error) {
	for s != "" {
		text, rest, found := strings.Cut(s, "{")
		if strings.Contains(text, "}") {
			return nil, errors.New("URL: a } without its {")
		}
		if text != "" {
			out = append(out, part{text: text})
		}
		if !found {
			return out, nil
		}
		field, after, closed := strings.Cut(rest, "}")
		if !closed || field == "" || strings.ContainsAny(field, "{?&/#") {
			return nil, errors.New("URL: { begins the name of a field, and } ends it")
		}
		out, s = append(out, part{field: field}), after
	}
	return out, nil
}

func (t template) fields() (out []string) {
	for _, p := range slices.Concat(append(t.query, t.path)...) {
		if p.field != "" {
			out = append(out, p.field)
		}
	}
	return out
}

func (t template) uses(field string) bool { return slices.Contains(t.fields(), field) }

// check finds fields that the arguments do not have.
func (t template) check(args *members) error {
	for _, field := range t.fields() {
		at := args
		for name := range strings.SplitSeq(field, ".") {
			if field == keyField || at.Properties == nil {
				break // not known here
			}
			next, ok := at.Properties[name]
			if !ok {
				return fmt.Errorf("URL: {%s} is no field of the arguments", field)
			}
			at = next
		}
	}
	return nil
}

// render puts the values in. Its error says which value cannot stand where.
func (t template) render(key Key, args agent.JSON) (*url.URL, error) {
	var out strings.Builder
	for _, p := range t.path {
		out.WriteString(p.text)
		if p.field == "" {
			continue
		}
		v, err := value(p.field, key, args)
		if err != nil {
			return nil, err
		}
		if v == "" || climbs(v) {
			return nil, fmt.Errorf("%s %q cannot be a part of a path", p.field, clipped(v, 100))
		}
		out.WriteString(url.PathEscape(v))
	}
	if climbs(strings.TrimPrefix(out.String(), t.path[0].text)) {
		return nil, errors.New("the values make a path that leads elsewhere")
	}
	if err := t.renderQuery(&out, key, args); err != nil {
		return nil, err
	}
	if out.Len() > maxURL {
		return nil, fmt.Errorf("the URL has %d bytes, the limit is %d", out.Len(), maxURL)
	}
	u, err := url.Parse(out.String())
	if err != nil {
		return nil, errors.New("the values make no URL")
	}
	return u, nil
}

// climbs reports whether some server could read a value as a way up the path,
// also one that decodes what was escaped, or cuts parameters off a segment.
func climbs(v string) bool {
	for segment := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == '/' || r == '\\' }) {
		if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
			return true
		}
	}
	return false
}

func (t template) renderQuery(out *strings.Builder, key Key, args agent.JSON) error {
	mark := "?"
	for _, parameter := range t.query {
		text, absent := "", false
		for _, p := range parameter {
			text += p.text
			if p.field == "" {
				continue
			}
			v, err := value(p.field, key, args)
			if errors.Is(err, errAbsent) {
				absent = true
				break
			}
			if err != nil {
				return err
			}
			text += url.QueryEscape(v)
		}
		if !absent {
			out.WriteString(mark + text)
			mark = "&"
		}
	}
	return nil
}

var errAbsent = errors.New("there is no value")

// value is a string, number or boolean of the arguments as text; numbers keep
// all their digits.
func value(field string, key Key, args agent.JSON) (string, error) {
	if field == keyField {
		return string(key), nil
	}
	at := json.RawMessage(args)
	for name := range strings.SplitSeq(field, ".") {
		var object map[string]json.RawMessage
		if json.Unmarshal(at, &object) != nil || len(object[name]) == 0 {
			return "", fmt.Errorf("%s: %w", field, errAbsent)
		}
		at = object[name]
	}
	switch at[0] {
	case '"':
		var s string
		err := json.Unmarshal(at, &s)
		return s, err
	case '{', '[':
		return "", fmt.Errorf("%s is no single value", field)
	case 'n':
		return "", fmt.Errorf("%s: %w", field, errAbsent)
	}
	return string(at), nil
}
