package api

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rates bound how often each subject may ask.
type rates struct {
	limit rate.Limit
	burst int

	mu    sync.Mutex
	of    map[string]*rate.Limiter
	swept time.Time
}

func newRates(limit rate.Limit, burst int) *rates {
	return &rates{limit: limit, burst: burst, of: map[string]*rate.Limiter{}}
}

// wait takes one request of a subject; where there is none left, it is how long
// until there is.
func (r *rates) wait(subject string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	l := r.of[subject]
	if l == nil {
		l = rate.NewLimiter(r.limit, r.burst)
		r.of[subject] = l
	}
	if l.AllowN(now, 1) {
		return 0
	}
	return max(time.Duration((1-l.TokensAt(now))/float64(r.limit)*float64(time.Second)), time.Millisecond)
}

// sweep forgets whoever has not asked for so long that nothing is to be
// remembered of them.
func (r *rates) sweep(now time.Time) {
	if now.Sub(r.swept) < time.Minute {
		return
	}
	r.swept = now
	for subject, l := range r.of {
		if l.TokensAt(now) >= float64(r.burst) {
			delete(r.of, subject)
		}
	}
}
