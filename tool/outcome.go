package tool

import "errors"

// An error of a tool's function says what is known. A plain error says that
// the attempt failed and nothing more: a ReadOnly tool is tried again, a
// Transactional one was rolled back, and of a Keyed one it stays unknown
// whether it happened, so it runs again with the same key.

type refusal struct{ err error }

func (e *refusal) Error() string { return e.err.Error() }
func (e *refusal) Unwrap() error { return e.err }

// Refused says that the other side refused it for good: it did not happen, and
// trying again is pointless. The model is told, and calling again with the same
// arguments is a new effect.
func Refused(err error) error { return &refusal{err} }

type notApplied struct{ err error }

func (e *notApplied) Error() string { return e.err.Error() }
func (e *notApplied) Unwrap() error { return e.err }

// NotApplied says that this attempt certainly had no effect: it is tried again.
func NotApplied(err error) error { return &notApplied{err} }

// IsRefused reports whether an error came from [Refused].
func IsRefused(err error) bool { return errors.As(err, new(*refusal)) }

// IsNotApplied reports whether an error came from [NotApplied].
func IsNotApplied(err error) bool { return errors.As(err, new(*notApplied)) }
