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
	KindUnauthorized   Kind = "unauthorized"     // the key is missing, wrong or has no right: an operator must act
	KindQuota          Kind = "quota"            // the account's money or quota is used up: an operator must act
	KindInvalidAnswer  Kind = "invalid_answer"   // it answered, and the answer cannot be read; it may have been billed
)

// Temporary reports whether the same request can succeed later by itself.
func (k Kind) Temporary() bool { return k == KindUnavailable || k == KindRateLimited }

// Operator reports whether the same request succeeds once an operator has acted
// on the account. To a run that is an outage like any other.
func (k Kind) Operator() bool { return k == KindUnauthorized || k == KindQuota }

// Error is a failed model call. Message is for people. It holds no key; it can
// quote, in a line, what the provider said of the request.
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
