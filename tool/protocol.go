package tool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"interlock/agent"
)

// Runner runs one attempt of a tool under its effect's protocol. Every [Tool]
// is one; activities find it through [RunnerOf].
type Runner interface {
	// Attempt claims, runs and settles. Its error is a [*Failure], which says
	// what is known. ctx bounds the attempt; what is known after it has ended
	// is still recorded.
	Attempt(ctx context.Context, t agent.Task, p Ports) (Result, error)
	// Standing is the result of an effect that has happened; ok is false where
	// it has not, or nobody knows.
	Standing(ctx context.Context, t agent.Task, p Ports) (r Result, ok bool, err error)
	// Undone records that the effect, which has happened, was undone by the effect
	// whose key is by. From then on it stands no more, and an attempt of it is
	// refused, so that the next equal call is a new effect. Recording the same again
	// is no error. An effect that has not happened, or was undone by another key, is
	// a conflict, and nothing changes ([agent.CodeConflict]).
	Undone(ctx context.Context, t agent.Task, by string, p Ports) error
}

// RunnerOf finds a tool's runner in a definition.
func RunnerOf(def *agent.Definition, name string) (Runner, bool) {
	info, ok := def.Tool(name)
	if !ok {
		return nil, false
	}
	r, ok := info.Source.(Runner)
	return r, ok
}

// Ports are what the protocol needs of the outside. They are bound to one run.
type Ports struct {
	Ledger Ledger
	// Keep stores a whole result of which the run keeps a part.
	Keep func(ctx context.Context, whole []byte) (agent.Blob, error)
	// Began is when the attempt did, by the clock that orders a step's attempts: one
	// that was overtaken, though its worker lives, claims nothing. Zero: not ordered.
	Began time.Time
	// NotAfter is until when an effect that has not begun may, by the clock of the
	// database that its claim is in. Zero: no bound.
	NotAfter time.Time
	// Panicked is told of a panic whose error goes no further; nil: nobody is.
	Panicked func(*Panicked)
}

// Ledger is the durable record of one run's effects, by [agent.Task].Key.
type Ledger interface {
	// Claim inserts the key's row, or counts another attempt. Where an exclusive
	// one must wait for the attempt before, it counts nothing, and Row.Wait is set.
	Claim(ctx context.Context, t agent.Task, by Terms) (Row, error)
	// Fence keeps an effect that has not begun from ever starting: its row is settled
	// as Fenced. Any other row stays. The row is what stands then; Wait is how long the
	// attempts of an open one may still act.
	Fence(ctx context.Context, t agent.Task, reason string) (Row, error)
	// Settle ends the claim for good. What is settled otherwise stays, and is an
	// error of code conflict.
	Settle(ctx context.Context, t agent.Task, o Settlement) error
	// Unknown records that an attempt, by its number, ended without a known outcome.
	// Its deadline stays: the other side may act on it until then. The row is what
	// stands then: another attempt may have settled it.
	Unknown(ctx context.Context, t agent.Task, attempt int, reason string) (Row, error)
	// Release records that attempts, by their numbers from first to last, certainly
	// had no effect. The row is what stands then.
	Release(ctx context.Context, t agent.Task, first, last int) (Row, error)
	// Row is the key's row; nil where there is none.
	Row(ctx context.Context, t agent.Task) (*Row, error)
	// Undone marks the row of an effect that happened as undone by the effect whose
	// key is by; see [Runner].
	Undone(ctx context.Context, t agent.Task, by string) error
}

// Terms are those of a claim.
type Terms struct {
	// Attempt is how long the attempt that claims may act; the ledger's clock
	// makes its deadline of it.
	Attempt time.Duration
	// Exclusive: the claim is not granted while an attempt before may still act,
	// until Grace after its deadline.
	Exclusive bool
	Grace     time.Duration
	Began     time.Time // see [Ports]
	NotAfter  time.Time // the same
}

// Row is the ledger's knowledge of one effect.
type Row struct {
	Settled *Settlement // nil: claimed
	// Attempt is the number of the attempt that a claim has counted.
	Attempt int
	// Open reports whether an attempt may have had the effect; of a claim, whether
	// one before it may.
	Open bool
	// Wait is how long an exclusive claim has to wait for the attempts before; 0
	// where it was granted.
	Wait time.Duration
	// Held says who keeps the effect from starting, and why; "" where nobody does.
	Held string
	// Late: the claim of an effect that has not begun came after its NotAfter.
	Late bool
	// Tried is the time from the first attempt that was counted to the latest.
	Tried time.Duration
}

// Settlement is how an effect ended.
type Settlement struct {
	Refused string // why the other side refused it for good, or why it was fenced; "" when it happened
	Fenced  bool   // it was stopped before it began
	Result  Result
	By, How string // who found it out and how, where no attempt did
	// Undone is the key of the effect that undid this one; "" where it stands.
	Undone string
}

// Ended is why an attempt of a settled effect gets no result: it was refused for
// good, or undone. nil where the effect stands.
func (s *Settlement) Ended() error {
	switch {
	case s.Refused != "":
		return errors.New(s.Refused)
	case s.Undone != "":
		return fmt.Errorf("it happened and was undone (by effect %s); call it again to do it anew", s.Undone)
	}
	return nil
}

// ended is the failure of an attempt of an effect that was refused, fenced or undone.
func ended(s *Settlement) *Failure {
	if s.Fenced {
		return &Failure{Kind: FailedFenced, Err: errors.New(s.Refused)}
	}
	return &Failure{Kind: FailedRefused, Err: s.Ended()}
}

// Result is what a run gets of a tool.
type Result struct {
	JSON  agent.JSON
	Whole *agent.Blob // where JSON is what Keep made of it
	// Unkept says why there is no JSON although the effect has happened: it is too
	// large and the tool names no Keep, or it has no JSON that is accepted.
	Unkept string
}

// unkept stands in a ledger for a result that was not kept.
type unkept struct {
	Why string `json:"interlock_unkept"`
}

var unkeptDecoder = agent.NewDecoder[unkept]()

// Stored is what a ledger keeps of the result's JSON.
func (r Result) Stored() agent.JSON {
	if r.Unkept == "" {
		return r.JSON
	}
	j, _ := agent.Encode(unkept{r.Unkept}) // a text always encodes
	return j
}

// FromStored is the result that Stored came of.
func FromStored(j agent.JSON, whole *agent.Blob) Result {
	if u, err := unkeptDecoder.Decode(j); err == nil && u.Why != "" {
		return Result{Unkept: u.Why}
	}
	return Result{JSON: j, Whole: whole}
}

// Failure is why an attempt gave no result.
type Failure struct {
	Kind FailureKind
	Err  error
	// Open: an earlier attempt may have had the effect, whatever this one did.
	Open bool
	// Wait is how long to wait before the next attempt; 0: as usual.
	Wait time.Duration
	// Tried is how long the effect is tried already, where it was claimed before.
	Tried time.Duration
}

// FailureKind says what is known after a failed attempt.
type FailureKind string

const (
	FailedNotApplied FailureKind = "not_applied" // nothing happened; try again
	FailedRefused    FailureKind = "refused"     // nothing happened, and never will
	FailedUnknown    FailureKind = "unknown"     // nobody knows; the effect says what may be done
	FailedInDoubt    FailureKind = "in_doubt"    // nobody knows, and it may not be run again
	FailedStore      FailureKind = "store"       // the ledger could not be reached; nothing was run
	// FailedHeld: an operator keeps the effect from starting. Nothing was run or
	// counted; try again after Wait.
	FailedHeld FailureKind = "held"
	// FailedEarlier: an earlier attempt may still act. Nothing was run or counted;
	// try again after Wait.
	FailedEarlier FailureKind = "earlier_attempt"
	// FailedFenced: it was stopped before it began, and never happens under this key.
	FailedFenced FailureKind = "fenced"
	// FailedLate: the claim came after NotAfter. Nothing was run or counted: what it
	// was decided on must be judged anew.
	FailedLate FailureKind = "late"
)

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// settleTimeout bounds the record of what is known after an attempt, which
// goes on although the attempt's own time is up.
const settleTimeout = 10 * time.Second

// after is a context for recording what an ended attempt found out.
func after(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
}

// Attempt makes the tool a [Runner].
func (t *Tool[S, A, R]) Attempt(ctx context.Context, task agent.Task, p Ports) (Result, error) {
	args, err := decode[A](task.Args)
	if err != nil {
		return Result{}, &Failure{Kind: FailedRefused, Err: fmt.Errorf("arguments: %w", err)}
	}
	ctx = withTask(ctx, task)
	switch t.spec.Effect {
	case agent.ReadOnly:
		return t.read(ctx, task, args, p)
	case agent.Keyed:
		return t.keyed(ctx, task, args, p)
	case agent.Reconcilable:
		return t.reconcilable(ctx, task, args, p)
	case agent.Once:
		return t.once(ctx, task, args, p)
	case agent.Transactional:
		return t.transactional(ctx, task, args, p)
	}
	return Result{}, &Failure{Kind: FailedRefused, Err: fmt.Errorf("there is no effect %q", t.spec.Effect)}
}

// Standing makes the tool a [Runner].
func (t *Tool[S, A, R]) Standing(ctx context.Context, task agent.Task, p Ports) (Result, bool, error) {
	switch t.spec.Effect {
	case agent.ReadOnly:
		return Result{}, false, nil
	case agent.Transactional:
		return t.standingInTx(ctx, task)
	}
	row, err := p.Ledger.Row(ctx, task)
	if err != nil || row == nil || row.Settled == nil || row.Settled.Ended() != nil {
		return Result{}, false, err
	}
	return row.Settled.Result, true, nil
}

func (t *Tool[S, A, R]) read(ctx context.Context, task agent.Task, args A, p Ports) (Result, error) {
	r, err := t.call(ctx, "", nil, args)
	if err == nil {
		var out Result
		if out, err = t.result(ctx, r, task.Limit, p); err == nil {
			return out, nil
		}
	}
	return Result{}, failure(err, FailedNotApplied)
}

// keyed runs under a claim. A crash after the effect leaves the claim open: the
// next attempt runs again with the same key, and the other side dedupes.
func (t *Tool[S, A, R]) keyed(ctx context.Context, task agent.Task, args A, p Ports) (Result, error) {
	row, err := claim(ctx, task, p, Terms{Attempt: t.spec.Timeout + Overhead})
	if err != nil {
		return Result{}, err
	}
	if row.Settled != nil {
		return row.Settled.Result, nil
	}
	return t.claimed(ctx, task, args, p, row)
}

// claim counts an attempt, or says why there is none: the effect was refused,
// fenced or undone, it is held, it comes too late, an earlier attempt may still act,
// or the ledger cannot be reached.
func claim(ctx context.Context, task agent.Task, p Ports, by Terms) (Row, error) {
	by.Began, by.NotAfter = p.Began, p.NotAfter
	row, err := p.Ledger.Claim(ctx, task, by)
	switch {
	case err != nil:
		return row, &Failure{Kind: FailedStore, Err: fmt.Errorf("claim: %w", err)}
	case row.Settled != nil && row.Settled.Ended() != nil:
		return row, ended(row.Settled)
	case row.Settled == nil && row.Held != "":
		return row, &Failure{Kind: FailedHeld, Open: row.Open, Err: errors.New(row.Held)}
	case row.Late:
		return row, late()
	case row.Settled == nil && row.Wait > 0:
		return row, &Failure{Kind: FailedEarlier, Open: true, Wait: row.Wait,
			Err: fmt.Errorf("an earlier attempt may still act, for %s", row.Wait.Round(time.Millisecond))}
	}
	return row, nil
}

// HoldRetry is the longest that a held effect waits before it asks again whether it
// may start.
const HoldRetry = time.Minute

func late() *Failure {
	return &Failure{Kind: FailedLate, Err: errors.New("what it was decided on is judged anew before it begins")}
}

// claimed runs the function under a claim and records what came of it.
func (t *Tool[S, A, R]) claimed(ctx context.Context, task agent.Task, args A, p Ports, claim Row) (Result, error) {
	r, err := t.call(withEarlier(ctx, claim.Open), Key(task.Key), nil, args)
	done, cancel := after(ctx)
	defer cancel()
	if err != nil {
		f := failure(err, FailedUnknown)
		f.Tried = claim.Tried
		return record(done, task, p, claim.Attempt, f)
	}
	return t.happened(done, task, r, p, claim.Attempt)
}

// happened settles a claim with the result. Where an attempt that overlapped has
// settled it, its result stands: there is one effect, and one answer.
func (t *Tool[S, A, R]) happened(ctx context.Context, task agent.Task, r R, p Ports, attempt int) (Result, error) {
	out, err := t.result(ctx, r, task.Limit, p)
	if err != nil {
		err = fmt.Errorf("it happened, but its result cannot be kept: %w", err)
		return record(ctx, task, p, attempt, &Failure{Kind: FailedUnknown, Err: err})
	}
	err = p.Ledger.Settle(ctx, task, Settlement{Result: out})
	switch {
	case err == nil:
		return out, nil
	case agent.ErrorCode(err) == agent.CodeConflict:
		return record(ctx, task, p, attempt, &Failure{Kind: FailedUnknown, Err: fmt.Errorf("it happened, after it was settled otherwise: %w", err)})
	}
	return Result{}, &Failure{Kind: FailedUnknown, Err: fmt.Errorf("it happened, but could not be recorded: %w", err), Open: true}
}

// record writes down what is known after a failure. What the ledger has learnt of
// another attempt meanwhile is better knowledge, and is the answer. Where the
// record fails the claim stays open, which is the cautious reading.
func record(ctx context.Context, task agent.Task, p Ports, attempt int, f *Failure) (Result, error) {
	var row Row
	var err error
	switch f.Kind {
	case FailedRefused:
		err = p.Ledger.Settle(ctx, task, Settlement{Refused: f.Error()})
		if agent.ErrorCode(err) == agent.CodeConflict {
			row, err = p.Ledger.Release(ctx, task, attempt, attempt) // a settled row stays
		}
	case FailedUnknown:
		row, err = p.Ledger.Unknown(ctx, task, attempt, f.Error())
		f.Open = true
	default: // it ran nothing, or nothing of what it ran stands
		row, err = p.Ledger.Release(ctx, task, attempt, attempt)
		f.Open = f.Open || row.Open
	}
	switch {
	case err != nil:
		return Result{}, &Failure{Kind: FailedUnknown, Err: errors.Join(f, fmt.Errorf("and it could not be recorded: %w", err)), Open: true, Wait: f.Wait}
	case row.Settled == nil:
		return Result{}, f
	case row.Settled.Ended() != nil:
		return Result{}, ended(row.Settled)
	}
	return row.Settled.Result, nil
}

// failure reads an error of a tool's function; plain is what a plain one means.
func failure(err error, plain FailureKind) *Failure {
	var f *Failure
	switch {
	case errors.As(err, &f):
		return f
	case IsRefused(err):
		return &Failure{Kind: FailedRefused, Err: err}
	case IsNotApplied(err):
		return &Failure{Kind: FailedNotApplied, Err: err, Wait: retryWait(err)}
	}
	return &Failure{Kind: plain, Err: err, Wait: retryWait(err)}
}
