package llm

import (
	"errors"
	"time"
)

// Kind says what a failed call means for the caller.
type Kind string

const (
	KindUnavailable    Kind = "unavailable"      // the provider is down or did not answer: retry
	KindRateLimited    Kind = "rate_limited"     // retry after RetryAfter
	KindRefused        Kind = "refused"          // the same request is refused again
	KindContextTooLong Kind = "context_too_long" // a smaller context may do
	KindUnauthorized   Kind = "unauthorized"     // the key is missing, wrong or has no right; an operator must act
	KindInvalidAnswer  Kind = "invalid_answer"   // it answered, and the answer cannot be read; it may have been billed
)

// Temporary reports whether the same request can succeed later.
func (k Kind) Temporary() bool { return k == KindUnavailable || k == KindRateLimited }

// Error is a failed model call. Message is for people and holds no key and no
// content of the request.
type Error struct {
	Kind       Kind
	RetryAfter time.Duration // as the provider asked; 0: it did not say
	Message    string
	Err        error
}

func (e *Error) Error() string {
	text := "model " + string(e.Kind)
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf is the kind of an [*Error] in err's chain, or "".
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}
