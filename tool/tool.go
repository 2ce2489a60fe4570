// Package tool makes the tools of an agent, and holds the effect protocol that
// an activity runs them by.
//
// The effect is the constructor: [ReadOnly], [Keyed], [Transactional],
// [Reconcilable] and [Once] each want the function shape that their promise
// needs, so the compiler holds that no tool has an effect by default.
//
// A service in any language is a tool too: [Fetch], [Send] and [LookUp] make the
// functions that these constructors want of an [HTTP] request.
package tool

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"interlock/agent"
)

// Key names one effect to the other side, which dedupes on it or can be asked
// for it. It is the same for every attempt of one effect, and for no other.
type Key string

// Defaults of a tool's times.
const (
	DefaultTimeout  = 30 * time.Second // of one attempt
	ReadAttempts    = 3                // of a ReadOnly tool
	DefaultDeadline = time.Hour        // of all attempts
	QuickTimeout    = 500 * time.Millisecond
	TxTimeout       = 2 * time.Second // of a Transactional tool's transaction
)

// An attempt has ended, and what it sent has been acted on or dropped, at the
// latest Overhead and Grace after its timeout: only then does the next attempt
// of a Reconcilable tool ask.
const (
	Overhead = 20 * time.Second // of an attempt, for the journal and the ledger
	Grace    = 10 * time.Second // for what is still on its way
)

// Times are how long an attempt of a tool's activity may take, and all of them.
func Times(info agent.ToolInfo) (attempt, all time.Duration) {
	attempt = info.Timeout + Overhead
	if info.Effect == agent.ReadOnly {
		attempt = ReadAttempts*(info.Timeout+3*time.Second) + Overhead
	}
	all = max(info.Deadline, attempt)
	if info.Effect == agent.Reconcilable || info.Effect == agent.Once { // there is always time to hear of an attempt that died
		all = max(all, 2*attempt+Grace)
	}
	return attempt, all
}

// Tool is a tool of an agent with state S, arguments A and result R. Its
// methods configure it and return it; call them before Define.
type Tool[S, A, R any] struct {
	spec agent.ToolSpec[S]
	db   *sql.DB
	run  func(ctx context.Context, key Key, tx *sql.Tx, args A) (R, error)
	look func(ctx context.Context, key Key, args A) (r R, happened bool, err error)
	keep func(R) any

	table atomic.Pointer[effectsTable] // once it is known to stand
}

// Gate is a tool's policy with its arguments decoded; see [agent.GateSpec].
type Gate[S, A any] struct {
	Policy   string
	Roles    []string
	Reads    []string
	Expires  time.Duration
	Quorum   int
	Distinct bool
	Edit     []string
	Escalate agent.Escalate
	TakeBack time.Duration
	When     func(agent.Situation[S], A) bool
	Title    func(agent.Situation[S], A) string
	Risk     func(agent.Situation[S], A) string
}

// ReadOnly makes a tool without a side effect: after a crash it runs again.
func ReadOnly[S, A, R any](name string, run func(context.Context, A) (R, error), commit func(*S, A, R) error) *Tool[S, A, R] {
	return build(name, agent.ReadOnly, nil, commit, func(ctx context.Context, _ Key, _ *sql.Tx, a A) (R, error) { return run(ctx, a) })
}

// Keyed makes a tool whose other side dedupes on the key: after a crash it runs
// again with the same key. run must send the key with every request.
func Keyed[S, A, R any](name string, run func(context.Context, Key, A) (R, error), commit func(*S, A, R) error) *Tool[S, A, R] {
	return build(name, agent.Keyed, nil, commit, func(ctx context.Context, k Key, _ *sql.Tx, a A) (R, error) { return run(ctx, k, a) })
}

// Transactional makes a tool whose effect is in db: claim, effect and result
// are one transaction there, in the table interlock_effects, which is installed
// at first use ([InstallEffects]). db is SQLite or PostgreSQL. run must do
// everything through tx, within 2 seconds, never use the network, and neither
// commit nor roll back: it returns an error, and nothing of it stands.
func Transactional[S, A, R any](name string, db *sql.DB, run func(context.Context, *sql.Tx, A) (R, error), commit func(*S, A, R) error) *Tool[S, A, R] {
	return build(name, agent.Transactional, db, commit, func(ctx context.Context, _ Key, tx *sql.Tx, a A) (R, error) { return run(ctx, tx, a) })
}

func build[S, A, R any](name string, effect agent.Effect, db *sql.DB, commit func(*S, A, R) error,
	run func(context.Context, Key, *sql.Tx, A) (R, error)) *Tool[S, A, R] {
	t := &Tool[S, A, R]{db: db, run: run}
	t.spec = agent.ToolSpec[S]{Name: name, Effect: effect, Timeout: DefaultTimeout, Deadline: DefaultDeadline,
		Args: reflect.TypeFor[A](), Result: reflect.TypeFor[R](), Source: t}
	t.spec.Commit = func(s *S, args, result agent.JSON) error {
		a, err := decode[A](args)
		if err != nil {
			return err
		}
		r, err := decode[R](result)
		if err != nil {
			return err
		}
		if commit == nil {
			return nil
		}
		return commit(s, a, r)
	}
	return t
}

// Spec makes the tool an [agent.Tool].
func (t *Tool[S, A, R]) Spec() agent.ToolSpec[S] { return t.spec }

// Doc is what the model is told of the tool.
func (t *Tool[S, A, R]) Doc(text string) *Tool[S, A, R] {
	t.spec.Doc = text
	return t
}

// Gate lets a person decide before the tool runs.
func (t *Tool[S, A, R]) Gate(g Gate[S, A]) *Tool[S, A, R] {
	spec := &agent.GateSpec[S]{Policy: g.Policy, Roles: g.Roles, Reads: g.Reads, Expires: g.Expires,
		Quorum: g.Quorum, Distinct: g.Distinct, Edit: g.Edit, Escalate: g.Escalate, TakeBack: g.TakeBack, Title: texts(g.Title), Risk: texts(g.Risk)}
	if g.When != nil {
		spec.When = func(s agent.Situation[S], args agent.JSON) bool {
			a, err := decode[A](args)
			return err != nil || g.When(s, a)
		}
	}
	t.spec.Gate = spec
	return t
}

// Confirmed names fields of the state that the user must have said yes to, after code
// had shown them. A call takes that yes and uses it up: the next one needs another, also
// after an undo. An argument of the same name must have the field's value.
func (t *Tool[S, A, R]) Confirmed(fields ...string) *Tool[S, A, R] {
	t.spec.Confirmed = fields
	return t
}

// texts gives a text about a call its arguments decoded.
func texts[S, A any](f func(agent.Situation[S], A) string) func(agent.Situation[S], agent.JSON) string {
	if f == nil {
		return nil
	}
	return func(s agent.Situation[S], args agent.JSON) string {
		a, err := decode[A](args)
		if err != nil {
			return ""
		}
		return f(s, a)
	}
}

// Quick runs a ReadOnly tool inside the workflow's task: 500 ms at most, never
// the network. Past that it runs again as an ordinary activity.
func (t *Tool[S, A, R]) Quick() *Tool[S, A, R] {
	t.spec.Quick = true
	return t
}

// Repeatable makes each call an effect of its own, with equal arguments too.
func (t *Tool[S, A, R]) Repeatable() *Tool[S, A, R] {
	t.spec.Repeatable = true
	return t
}

// Within sets how long one attempt may take, and all of them together.
func (t *Tool[S, A, R]) Within(attempt, all time.Duration) *Tool[S, A, R] {
	t.spec.Timeout, t.spec.Deadline = attempt, all
	return t
}

// Verifies names fields that a result of this tool vouches for, whether it
// changes them or not. Fields that Commit changes are vouched for anyway.
func (t *Tool[S, A, R]) Verifies(fields ...string) *Tool[S, A, R] {
	t.spec.Verifies = fields
	return t
}

// Keep names what a run keeps of a result beyond 16 KiB: a value of type R that
// is small enough. The whole goes to the blob store. keep runs in the activity.
func (t *Tool[S, A, R]) Keep(keep func(R) R) *Tool[S, A, R] {
	t.keep = func(r R) any { return keep(r) }
	return t
}

// With is a call of this tool by code.
func (t *Tool[S, A, R]) With(args A) agent.Call {
	return agent.Call{Tool: t.spec.Name, Args: args, Source: t}
}

func decode[T any](j agent.JSON) (T, error) {
	var v T
	if err := json.Unmarshal(j, &v); err != nil {
		return v, fmt.Errorf("does not decode: %w", err)
	}
	return v, nil
}
