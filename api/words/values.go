package words

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"interlock/agent"
	"interlock/api/visible"
)

// Value is a JSON value as a person writes it: money as an amount, a text
// without quotes.
func Value(j agent.JSON) string {
	var text string
	if json.Unmarshal(j, &text) == nil && text != "" {
		return text
	}
	var m agent.Money
	if json.Unmarshal(j, &m) == nil && m.Currency != "" {
		return m.String()
	}
	return j.String()
}

// Assigned is an object as "a = 1, b = 2", without the members that hold
// nothing. What is no object is left as it is.
func Assigned(j agent.JSON) string {
	names, values := Members(j)
	var out []string
	for _, n := range names {
		switch v := values[n]; {
		case v.String() == "null":
			out = append(out, n+" cleared")
		case !Empty(v):
			out = append(out, n+" = "+visible.Inline(Value(v)))
		}
	}
	if values == nil {
		return j.String()
	}
	return strings.Join(out, ", ")
}

// Call is a call as a person reads it.
func Call(tool string, args agent.JSON) string { return tool + " (" + Assigned(args) + ")" }

// Empty reports a value that was never set.
func Empty(j agent.JSON) bool {
	switch j.String() {
	case "", "null", `""`, "0", "false", "{}", "[]", `{"currency":"","minor":0}`:
		return true
	}
	return false
}

// Members are an object's members, in order; none where it is no object.
func Members(j agent.JSON) (names []string, values map[string]agent.JSON) {
	_ = json.Unmarshal(j, &values)
	return slices.Sorted(maps.Keys(values)), values
}

// Stamp is a time as it stands in texts.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
