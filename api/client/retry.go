package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

// pauses are those between attempts: the first is the least, each is twice the one
// before, up to the most, and of each a random half is left out, so that those who
// were cut off together do not come again together.
type pauses struct{ least, most time.Duration }

// after reports how long to wait after the error of an attempt, the first of which is
// number 0, and whether another can help.
func (p pauses) after(err error, tries int) (pause time.Duration, again bool) {
	d := min(p.most, p.least<<min(tries, 20))
	d = d/2 + rand.N(d/2+1)
	var said *Error
	var cut *brokenError
	switch {
	case errors.As(err, &said):
		// What the server asks for is the least; what is random comes on top.
		if said.RetryAfter > 0 {
			d = said.RetryAfter + rand.N(p.least+1)
		}
		return d, passes(said)
	case errors.As(err, &cut):
		return d, true
	}
	return 0, false
}

// passes are problems that go away by themselves.
func passes(e *Error) bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// sleep reports whether the time has passed before the context ended; where it
// cannot, it does not begin.
func sleep(ctx context.Context, d time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
