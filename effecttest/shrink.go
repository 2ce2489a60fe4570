package effecttest

import (
	"errors"
	"maps"
)

// Bounds of how long a simpler round is looked for.
const (
	shrinkFaults = 48  // that are left out in turn
	shrinkRounds = 100 // that are played after one that failed
)

// shrink leaves out the faults that a violation does not need: first all from some
// fault on, then single ones. The round is played as it then is, so that what is
// found did happen.
func (h *harness) shrink(v *Violation) *Violation {
	left := map[int]bool{}
	without := func(more map[int]bool) bool {
		var smaller *Violation
		if err := h.play(v.Seed, more); !errors.As(err, &smaller) || smaller.Kind != v.Kind || smaller.Faults >= v.Faults {
			return false
		}
		v, left = smaller, more
		return true
	}
	for n := range min(v.chances, shrinkFaults) {
		tail := map[int]bool{}
		for i := n; i < v.chances; i++ {
			tail[i] = true
		}
		if without(tail) {
			break
		}
	}
	for i := 0; i < min(v.chances, shrinkFaults); i++ {
		if !left[i] {
			more := maps.Clone(left)
			more[i] = true
			without(more)
		}
	}
	return v
}

// simplest looks among the next rounds for one that fails in the same way, by fewer
// faults.
func (h *harness) simplest(v *Violation, rounds int) *Violation {
	seed := v.Seed
	for i := range min(rounds, shrinkRounds) {
		if v.Faults <= 1 {
			break
		}
		var other *Violation
		if err := h.play(seed+uint64(i)+1, nil); !errors.As(err, &other) || other.Kind != v.Kind {
			continue
		}
		if other = h.shrink(other); other.Faults < v.Faults {
			v = other
		}
	}
	return v
}
