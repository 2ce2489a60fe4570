package tool

import (
	"errors"
	"time"
)

// An error of a tool's function says what is known. A plain error says that
// the attempt failed and nothing more: a ReadOnly tool is tried again, a
// Transactional one was rolled back, and of the others it stays unknown whether
// it happened: a Keyed one runs again with the same key, a Reconcilable one
// asks first, a Once one is in doubt.

type refusal struct{ err error }

func (e *refusal) Error() string { return e.err.Error() }
func (e *refusal) Unwrap() error { return e.err }

// Refused says that the other side refused the effect for good: it did not
// happen, by this attempt or an earlier one, and trying again is pointless. The
// model is told, and calling again with the same arguments is a new effect.
func Refused(err error) error { return &refusal{err} }

type notApplied struct{ err error }

func (e *notApplied) Error() string { return e.err.Error() }
func (e *notApplied) Unwrap() error { return e.err }

// NotApplied says that this attempt certainly had no effect: it is tried again.
func NotApplied(err error) error { return &notApplied{err} }

type retryAfter struct {
	err  error
	wait time.Duration
}

func (e *retryAfter) Error() string { return e.err.Error() }
func (e *retryAfter) Unwrap() error { return e.err }

// RetryAfter says how long the other side asks to wait before the next attempt,
// and changes nothing else that err says. No worker waits meanwhile.
func RetryAfter(err error, wait time.Duration) error { return &retryAfter{err, wait} }

// retryWait is the wait that an error asks for; 0: none.
func retryWait(err error) time.Duration {
	var e *retryAfter
	if !errors.As(err, &e) {
		return 0
	}
	return max(e.wait, 0)
}

// IsRefused reports whether an error came from [Refused].
func IsRefused(err error) bool { return errors.As(err, new(*refusal)) }

// IsNotApplied reports whether an error came from [NotApplied].
func IsNotApplied(err error) bool { return errors.As(err, new(*notApplied)) }
