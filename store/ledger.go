package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"interlock/agent"
)

// Ledger is the durable record of effects. A key is claimed before its effect
// runs and settled after; a settled row changes only by being undone, once.
type Ledger interface {
	// Claim inserts the row, or returns the one that stands: then its attempt
	// count has risen by one, unless it is settled. Fresh reports an insert.
	// Attempts is the number of the attempt that was counted.
	// A row under the same key of another scope, tool or arguments is a
	// conflict: its result must not pass for this claim's.
	//
	// An Exclusive claim of an open row one of whose attempts may still run, by
	// the database's clock, counts nothing: it returns the row with Wait set. So
	// does one that a hold is on, with Held set, unless the row is settled. A claim
	// that began before the row's latest is refused, as unavailable: it was overtaken.
	// One of an effect that has not begun counts nothing after its NotAfter, by the
	// database's clock: the row has Late set.
	Claim(ctx context.Context, c Claim) (e Effect, fresh bool, err error)
	// Fence keeps an effect that has not begun from ever starting: where there is no
	// row, or a claimed one all of whose attempts were released, the row stands as
	// refused and Fenced from then on, with the reason, whatever is held. Any other row
	// stays. It returns the row as it stands then; a repeat changes nothing.
	// Wait is how long the attempts of an open one may still act, with the claim's
	// Grace; beside that it takes of the claim what names the effect.
	Fence(ctx context.Context, c Claim, reason string) (Effect, error)
	// Settle ends the claim of a key. Settling a settled row with an equal
	// outcome is no error; with another it is a conflict, and the row stays.
	Settle(ctx context.Context, tenant, key string, o Outcome) error
	// MarkUnknown records that an attempt, by its number, ended without anyone
	// knowing whether the effect happened. It returns the row as it stands then;
	// a settled one stays as it is.
	MarkUnknown(ctx context.Context, tenant, key string, attempt int, reason string) (Effect, error)
	// Release records that attempts, by their numbers from first to last, have ended
	// and certainly had no effect. It returns the row as it stands then; a settled
	// one stays as it is, and an attempt that was released before does not count.
	Release(ctx context.Context, tenant, key string, first, last int) (Effect, error)
	// MarkDoubt records that no attempt will ever say whether the effect happened,
	// so that a person must. Only the first mark counts; settled rows stay.
	MarkDoubt(ctx context.Context, tenant, key, reason string) error
	// MarkUndone records that the effect was taken back, by another effect whose
	// key is by. What did not happen, or was undone by another, is a conflict.
	MarkUndone(ctx context.Context, tenant, key, by string) error
	// Effect is the row of a key; CodeNotFound where there is none.
	Effect(ctx context.Context, tenant, key string) (Effect, error)
	// Attempts lists those of a row that may have had the effect, in order.
	Attempts(ctx context.Context, tenant, key string) ([]Attempt, error)
	// Effects lists rows in the order of their first claims.
	Effects(ctx context.Context, tenant string, f EffectFilter) ([]Effect, error)
	// OpenTenants lists the tenants that have open effects.
	OpenTenants(ctx context.Context) ([]string, error)
}

// Claim is what is known before an effect runs.
type Claim struct {
	Tenant  string
	Key     string
	Address string
	Scope   string
	Agent   string
	Version int
	Tool    string
	Kind    agent.Effect
	Step    string
	Ordinal int
	Args    agent.JSON
	// Attempt is how long the attempt may run; its deadline is reckoned by the
	// database's clock. In no row, as what follows: each is the attempt's.
	Attempt time.Duration
	Branch  string // Temporal run id
	// Store is the identity that acknowledged the run's latest events when the attempt
	// was scheduled. Where the store is another now, an Exclusive claim without a row
	// counts as a second attempt, after one that may have had the effect.
	Store string
	Began time.Time // of the attempt, by the clock that orders them, Temporal's; zero: not ordered
	// Exclusive: no attempt may overlap the one before. Grace is what is waited
	// beyond that one's deadline.
	Exclusive bool
	Grace     time.Duration
	// NotAfter is until when an effect that has not begun may: what it was decided on
	// is judged anew after that. Zero: no bound.
	NotAfter time.Time
}

// Outcome is how an effect ended.
type Outcome struct {
	Status EffectStatus // applied or refused
	Result agent.JSON   // applied: what Commit gets
	Whole  *agent.Blob  // applied: where Result is what Keep made of it
	Reason string       // refused: why; found out by a person: how; claimed and unknown: why nobody knows
	By     string       // who found it out, where no attempt did
}

// EffectStatus is where a row of the ledger stands. Persisted; never rename.
type EffectStatus string

const (
	EffectClaimed EffectStatus = "claimed" // running, or its attempt died
	EffectApplied EffectStatus = "applied" // it happened
	EffectRefused EffectStatus = "refused" // the other side refused it for good
)

// Effect is a row of the ledger.
type Effect struct {
	Claim
	Outcome
	Fenced    bool // it was stopped before it began: no attempt is granted a claim any more
	Attempts  int
	Released  int       // attempts that certainly had no effect
	Unknown   bool      // an attempt ended without a known outcome; stays when settled
	ClaimedAt time.Time // by the first attempt
	AttemptAt time.Time // of the latest attempt that was counted
	BeganAt   time.Time // that attempt's Began, to the microsecond
	// Deadline is the latest of the attempts that may have had the effect, by the
	// database's clock; zero where there is none. It stays where one ended unknown:
	// what that sent may still be acted on until then.
	Deadline  time.Time
	SettledAt *time.Time
	DoubtAt   *time.Time // since when a person must say whether it happened
	UndoneAt  *time.Time
	UndoneBy  string // key of the effect that took it back
	Cursor    string // its place in a list
	// Wait is how long an Exclusive claim must wait for the attempts before; 0
	// where it was granted. In no row.
	Wait time.Duration
	Held *Hold // that a claim must wait for. In no row.
	Late bool  // a claim came after its NotAfter, and was not granted. In no row.
}

// Begun reports whether the effect can be fenced no more: it is settled, or an
// attempt may have had it.
func (e Effect) Begun() bool { return e.Status != EffectClaimed || e.Attempts > e.Released }

// Open reports whether an attempt may have had the effect without anyone
// knowing: one that ended unknown, one that died, or one that runs now.
func (e Effect) Open() bool { return e.Status == EffectClaimed && e.Attempts > e.Released }

// EffectState is how a row stands, in a word.
type EffectState string

const (
	StateApplied    EffectState = "applied"
	StateRefused    EffectState = "refused"     // for good, by the other side or since it was stopped before it began
	StateUndone     EffectState = "undone"      // it happened, and was taken back
	StateNotApplied EffectState = "not_applied" // claimed, and no attempt had it
	StateOpen       EffectState = "open"        // an attempt runs, or it is not known what it did
	StateInDoubt    EffectState = "in_doubt"    // open, and a person must say
)

// EffectStates are all of them.
var EffectStates = []EffectState{StateApplied, StateRefused, StateUndone, StateNotApplied, StateOpen, StateInDoubt}

// State is how the row stands.
func (e Effect) State() EffectState {
	switch {
	case e.UndoneAt != nil:
		return StateUndone
	case e.Status == EffectApplied:
		return StateApplied
	case e.Status == EffectRefused:
		return StateRefused
	case !e.Open():
		return StateNotApplied
	case e.DoubtAt != nil:
		return StateInDoubt
	}
	return StateOpen
}

// Attempt is one that may have had its effect.
type Attempt struct {
	N        int
	At       time.Time
	Deadline time.Time // by the database's clock
	Branch   string    // Temporal run id
	Reason   string    // why nobody knows what it did; "" where it did not say
}

// EffectFilter narrows a list of effects. Zero fields do not filter.
type EffectFilter struct {
	Address      string // all chains of one address
	Agent        string
	Version      int
	Tool         string
	State        EffectState
	Since, Until time.Time // of the first claim: from, and before
	Instructions string    // what the digest begins with, of those that the model call of the step's turn was made with
	// Stranded lists rows, open or in doubt, that no attempt can be at any more: the
	// deadline passed Grace ago, by the database's clock.
	Stranded bool
	Grace    time.Duration
	After    string // the Cursor of the last row of the page before
	Limit    int    // 0: all
}

// Holds keep effects from starting, until they are released.
type Holds interface {
	// Hold makes a hold. When it returns, no claim that it is on will be granted;
	// those granted before stand in the list of effects. One that stands under the
	// same tenant, agent and tool stays, and is returned.
	Hold(ctx context.Context, h Hold) (Hold, error)
	// ReleaseHold ends the hold of a tenant, agent and tool, and returns it;
	// CodeNotFound where none stands. Who released it stays recorded.
	ReleaseHold(ctx context.Context, h Hold, by string) (Hold, error)
	// AllHolds lists the holds that stand, or with ended those that have been, too,
	// oldest first. tenant "" lists those of all; else those that are on it.
	AllHolds(ctx context.Context, tenant string, ended bool) ([]Hold, error)
	// Held is the hold that is on a tool's effects, nil where none is.
	Held(ctx context.Context, tenant, agent, tool string) (*Hold, error)
}

// Hold is on all effects that match its tenant, agent and tool; "" matches all.
type Hold struct {
	Tenant, Agent, Tool string
	By, Reason          string
	At                  time.Time
	ReleasedBy          string
	ReleasedAt          *time.Time
}

// String says who holds what, since when and why.
func (h Hold) String() string {
	what := []string{}
	for _, p := range [][2]string{{"tenant", h.Tenant}, {"agent", h.Agent}, {"tool", h.Tool}} {
		if p[1] != "" {
			what = append(what, p[0]+" "+p[1])
		}
	}
	of := "everything"
	if len(what) > 0 {
		of = strings.Join(what, ", ")
	}
	return fmt.Sprintf("%s is held by %s since %s: %s", of, h.By, h.At.UTC().Format("2006-01-02 15:04:05 MST"), h.Reason)
}
