package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Problem is one mistake in a configuration.
type Problem struct {
	Key    string // the key, or the variable, as it was written
	Value  string // as given, masked where it is secret; empty for an unknown key
	Want   string // what is allowed instead
	Origin string // where it was written; empty when only a Config was checked
}

func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.Key)
	if p.Value != "" {
		b.WriteString(" = " + p.Value)
	}
	if p.Origin != "" {
		b.WriteString(" (" + p.Origin + ")")
	}
	return b.String() + ": want " + p.Want
}

// Error carries every mistake that was found, never only the first.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	lines = append(lines, fmt.Sprintf("configuration: %d to mend", len(e.Problems)))
	for _, p := range e.Problems {
		lines = append(lines, "  "+p.String())
	}
	return strings.Join(lines, "\n")
}

func errorOf(found []Problem) error {
	if len(found) == 0 {
		return nil
	}
	return &Error{Problems: found}
}

// problemWith says that c's value of a key is not allowed. The key is written
// in code, so an unknown one is a programming error.
func problemWith(name string, c Config) Problem {
	k, ok := keyNamed(name)
	if !ok {
		panic("config: no key " + name)
	}
	return Problem{Key: name, Value: k.show(reflect.ValueOf(c).FieldByIndex(k.index).Interface()), Want: k.Want}
}
