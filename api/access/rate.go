package access

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rates bound how often each subject may ask.
type Rates struct {
	limit rate.Limit
	burst int

	mu    sync.Mutex
	of    map[string]*rate.Limiter
	swept time.Time
}

// NewRates allows so many requests a second of a subject, and so many at once.
func NewRates(perSecond float64, burst int) *Rates {
	return &Rates{limit: rate.Limit(perSecond), burst: burst, of: map[string]*rate.Limiter{}}
}

// Wait takes one request of a subject; where there is none left, it is how long
// until there is.
func (r *Rates) Wait(subject string, now time.Time) time.Duration {
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
func (r *Rates) sweep(now time.Time) {
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
