package typescript_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write src/payloads.ts anew")

// The program's types are made of the schemas, so that the compiler refuses a
// member that a run does not take, and one that it does not answer with.
func TestTypesAreThoseOfTheSchemas(t *testing.T) {
	const path = "src/payloads.ts"
	want := payloads(t)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(have), "%s is not what the schemas say; go test ./examples/typescript -run Types -update writes it anew", path)
}

// names are the interfaces for the objects that stand under these members;
// others are written where they stand.
var names = map[string]string{
	"by": "Principal", "gate": "GateOutcome", "gates": "Gate", "message": "Message", "principal": "Principal", "reply": "Reply",
}

func payloads(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../../signals/schemas/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	w := &typeWriter{t: t, interfaces: map[string]string{}, docs: map[string]string{}}
	for _, file := range files {
		if filepath.Base(file) == "run.json" {
			continue // the whole run: the program asks for its news only
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var s schema
		require.NoError(t, json.Unmarshal(text, &s), file)
		base := strings.TrimSuffix(filepath.Base(file), ".json")
		name := strings.ToUpper(base[:1]) + base[1:]
		w.docs[name] = s.Description
		w.add(name, w.object(s, "  "))
	}
	var b strings.Builder
	b.WriteString("// Written by `go test ./examples/typescript -update` from signals/schemas; do not edit.\n")
	for _, name := range slices.Sorted(maps.Keys(w.interfaces)) {
		b.WriteString("\n")
		if doc := w.docs[name]; doc != "" {
			fmt.Fprintf(&b, "/** %s */\n", doc)
		}
		fmt.Fprintf(&b, "export interface %s %s\n", name, w.interfaces[name])
	}
	return b.String()
}

// schema is as much of JSON Schema as the schemas use.
type schema struct {
	any         bool // the schema true
	Description string
	Type        stringOrList
	Properties  map[string]schema
	Required    []string
	Items       *schema
	// Others is the schema of members that are not named.
	Others *schema `json:"additionalProperties"`
}

func (s *schema) UnmarshalJSON(data []byte) error {
	type plain schema
	if string(data) == "true" || string(data) == "false" {
		s.any = string(data) == "true"
		return nil
	}
	return json.Unmarshal(data, (*plain)(s))
}

type stringOrList []string

func (l *stringOrList) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		*l = make(stringOrList, 1)
		return json.Unmarshal(data, &(*l)[0])
	}
	return json.Unmarshal(data, (*[]string)(l))
}

// typeWriter collects interfaces.
type typeWriter struct {
	t                *testing.T
	interfaces, docs map[string]string
}

func (w *typeWriter) add(name, body string) {
	if old, ok := w.interfaces[name]; ok {
		require.Equal(w.t, old, body, "two objects would be called %s", name)
	}
	w.interfaces[name] = body
}

func (w *typeWriter) object(s schema, indent string) string {
	var b strings.Builder
	b.WriteString("{\n")
	for _, member := range slices.Sorted(maps.Keys(s.Properties)) {
		optional := "?"
		if slices.Contains(s.Required, member) {
			optional = ""
		}
		fmt.Fprintf(&b, "%s%s%s: %s;\n", indent, member, optional, w.of(s.Properties[member], member, indent))
	}
	return b.String() + strings.TrimSuffix(indent, "  ") + "}"
}

// of is the type of the value under a member.
func (w *typeWriter) of(s schema, member, indent string) string {
	if s.any {
		return "unknown"
	}
	var kinds []string
	for _, kind := range s.Type {
		switch {
		case kind == "integer":
			kind = "number"
		case kind == "array":
			kind = w.of(*s.Items, member, indent) + "[]"
		case kind == "object" && s.Properties == nil:
			kind = "Record<string, " + w.of(*s.Others, "", indent) + ">"
		case kind == "object" && names[member] != "":
			w.add(names[member], w.object(s, "  "))
			kind = names[member]
		case kind == "object":
			kind = w.object(s, indent+"  ")
		default:
			require.Contains(w.t, []string{"string", "boolean", "null"}, kind, "member %s", member)
		}
		kinds = append(kinds, kind)
	}
	require.NotEmpty(w.t, kinds, "member %s has no type", member)
	slices.SortStableFunc(kinds, func(a, b string) int { return rank(a) - rank(b) })
	return strings.Join(kinds, " | ")
}

// rank puts null last, as TypeScript's own messages do.
func rank(kind string) int {
	if kind == "null" {
		return 1
	}
	return 0
}
