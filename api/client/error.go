package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Error is what the server says where it does not do what was asked: decide on its
// Code; Detail is for people, and says what to do. Find it by errors.AsType.
type Error struct {
	Problem
	RequestID  string        // under which the server's log has what it does not tell
	RetryAfter time.Duration // how long it asks to wait; 0: it does not say
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s (%d): %s", e.Code, e.Status, e.Detail)
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// CodeOf is the code of an error of the server's; "" of any other.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// byStatus is what a status means that comes without a problem: not from the API, but
// from what stands before it.
var byStatus = map[int]Code{
	http.StatusUnauthorized: CodeUnauthenticated, http.StatusForbidden: CodeDenied, http.StatusNotFound: CodeNotFound,
	http.StatusRequestEntityTooLarge: CodeTooLarge, http.StatusTooManyRequests: CodeRateLimited,
	http.StatusBadGateway: CodeUnavailable, http.StatusServiceUnavailable: CodeUnavailable, http.StatusGatewayTimeout: CodeUnavailable,
}

const mostOfAProblem = 1 << 20

func errorOf(res *http.Response) *Error {
	e := &Error{RequestID: res.Header.Get("X-Request-Id"), RetryAfter: retryAfter(res.Header.Get("Retry-After"), time.Now())}
	data, _ := io.ReadAll(io.LimitReader(res.Body, mostOfAProblem)) // what is missing is no problem then
	if err := json.Unmarshal(data, &e.Problem); err != nil || e.Code == "" {
		e.Problem = Problem{Code: byStatus[res.StatusCode], Detail: fmt.Sprintf("the answer is not one of Interlock's API, but %q: look at what stands before it, and at the URL", res.Status)}
		if e.Code == "" {
			e.Code = CodeInternal
		}
	}
	e.Status = int64(res.StatusCode)
	if e.RequestID == "" {
		e.RequestID = e.Instance
	}
	return e
}

// retryAfter reads the header: seconds, or a time.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// brokenError is a request that was not answered: nobody knows whether it arrived.
type brokenError struct {
	method, path, key string
	cause             error
}

func broken(r request, err error) error { return &brokenError{r.method, r.path, r.key, err} }

func (e *brokenError) Error() string {
	text := fmt.Sprintf("client: %s %s was not answered: %v", e.method, e.path, e.cause)
	if e.key != "" {
		text += fmt.Sprintf("; sent again with Key(%q) it takes effect once", e.key)
	}
	return text
}

func (e *brokenError) Unwrap() error { return e.cause }
