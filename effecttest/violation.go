package effecttest

import (
	"fmt"
	"strings"
)

// Kind is how a promise was broken.
type Kind string

const (
	// Repeated: the effect is in place more than once.
	Repeated Kind = "repeated"
	// Lost: the run was told that it happened and it did not, or the other way
	// round; or what the run was told does not stand.
	Lost Kind = "lost"
	// Stuck: after many attempts that nothing disturbed it is neither settled nor
	// refused nor in doubt.
	Stuck Kind = "stuck"
)

// Violation is a broken promise. It is an error.
type Violation struct {
	Kind   Kind
	Tool   string
	Seed   uint64 // of the round: Options{Seed: Seed, Rounds: 1} plays it again
	Reason string
	Faults int // that were needed
	// Trace is what happened in the round, in order, by the virtual clock; without
	// the faults that were not needed. Those of an attempt that runs during another
	// are indented.
	Trace []string

	chances int // faults that the round's seed made, those left out included
}

func (v *Violation) Error() string {
	return fmt.Sprintf("effecttest: %s: %s: %s\n  %s\nrepeat it with effecttest.Options{Seed: %d, Rounds: 1}",
		v.Tool, v.Kind, v.Reason, strings.Join(v.Trace, "\n  "), v.Seed)
}
