package agent

import (
	"errors"
	"fmt"
)

// Code says what kind of mistake an [Error] is, for the edges that translate
// it: HTTP statuses, exit codes, Temporal error types.
type Code string

const (
	CodeInvalid     Code = "invalid"     // the input can never work as it is
	CodeNotFound    Code = "not_found"   // the thing named does not exist
	CodeConflict    Code = "conflict"    // it exists already, or with another content
	CodeDenied      Code = "denied"      // this principal may not do it
	CodeEnded       Code = "ended"       // the run has ended
	CodeUnavailable Code = "unavailable" // try again later; nothing was done
	CodeInternal    Code = "internal"    // a mistake of ours

	// Of a verdict that decided nothing, in its receipt.
	CodeGateClosed Code = "gate_closed" // its gate was decided, or is open no more
	CodeStale      Code = "stale"       // the gate has changed since it was shown
)

// Error is an error with a code. Its message says what was wrong and what to do.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Err     error  `json:"-"`
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error with a code. %w keeps a cause, as in [fmt.Errorf].
func Errorf(code Code, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// ErrorCode is the code of an error, CodeInternal where it has none.
func ErrorCode(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
