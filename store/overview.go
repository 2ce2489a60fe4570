package store

import (
	"context"
	"time"

	"interlock/agent"
)

// Overview counts what a tenant's many runs are at, for whoever looks after them all.
// It is answered by indexes, and in a bounded number of rows.
type Overview interface {
	// CountRuns counts the runs that have not ended, and those that have ended since a
	// time, by agent, status and the kind of their reason, in this order.
	CountRuns(ctx context.Context, tenant string, since time.Time) ([]RunCount, error)
	// Spent sums the model calls within a time, those billed twice included, by when,
	// agent and model, in this order. What there was no call of has no row.
	Spent(ctx context.Context, tenant string, f SpentFilter) ([]Spent, error)
}

// RunCount is how many runs stand alike.
type RunCount struct {
	Agent  string
	Status agent.RunStatus
	// Kind is what the reason begins with, up to its first colon: gate, user, budget,
	// model; "" where there is none. A [RunFilter] finds such runs by it.
	Kind string
	Runs int
}

// SpentFilter says of which time, and in which steps of it. A step begins at a whole
// multiple of its length since 1970, in UTC.
type SpentFilter struct {
	From, To time.Time // To is not within
	Step     time.Duration
}

// Spent is what one agent's calls of one model took in one step of time.
type Spent struct {
	At    time.Time // when the step began
	Agent string
	Model string
	Calls int
	Usage agent.Usage
}

// Bounds of an overview.
const (
	MaxSteps       = 24 * 31 // of one question about what was spent
	MaxOverview    = 20_000  // rows of one answer
	shortestOfStep = time.Minute
)

// Check refuses a time that no store sums over.
func (f SpentFilter) Check() error {
	switch {
	case f.Step < shortestOfStep || f.Step%time.Second != 0:
		return agent.Errorf(agent.CodeInvalid, "what was spent is summed in steps of a minute or more, of whole seconds")
	case !f.To.After(f.From):
		return agent.Errorf(agent.CodeInvalid, "the time of what was spent ends after it begins")
	case f.To.Sub(f.From)/f.Step > MaxSteps:
		return agent.Errorf(agent.CodeInvalid, "what was spent is summed in %d steps at most: ask for longer steps, or for less time", MaxSteps)
	}
	return nil
}
