package token

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"interlock/agent"
)

const (
	fetchWithin = 5 * time.Second
	// fetchEvery is how long a set is used whose server does not say so itself; what
	// it says counts from fetchLeast to fetchMost.
	fetchEvery = 5 * time.Minute
	fetchLeast = time.Minute
	fetchMost  = time.Hour
	// retryFirst is the wait after a first failure. It doubles, up to fetchEvery.
	retryFirst = 15 * time.Second
)

// fetched is a key set at a URL, which one goroutine fetches anew.
type fetched struct {
	url    string
	client *http.Client
	log    *slog.Logger
	early  chan struct{} // a refresh is asked for
	stop   context.CancelFunc
	ended  chan struct{}

	mu    sync.Mutex
	set   keySet    // empty where the server has taken all keys away
	asked time.Time // when an unknown key last asked for a refresh
}

func openFetched(ctx context.Context, url string, o JWKSOptions) (source, error) {
	if o.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableKeepAlives = true // minutes lie between two fetches
		o.Transport = t
	}
	f := &fetched{url: url, log: cmp.Or(o.Log, slog.Default()), early: make(chan struct{}, 1), ended: make(chan struct{}),
		client: &http.Client{Transport: o.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	set, age, err := f.fetch(ctx)
	if errors.Is(err, errNoneUsable) {
		return nil, agent.Errorf(agent.CodeInvalid, "the key set at %s: %w", url, err)
	}
	if err != nil {
		return nil, agent.Errorf(agent.CodeUnavailable, "the key set at %s: %w", url, err)
	}
	f.set = set
	ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	go f.run(ctx, period(age))
	return f, nil
}

func (f *fetched) keys() (keySet, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.set, nil
}

// unknown asks for a refresh, once a minute at most: whoever makes up ids cannot
// have the server asked more often.
func (f *fetched) unknown() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.asked.IsZero() && time.Since(f.asked) < fetchLeast {
		return "; it was asked for anew less than a minute ago"
	}
	f.asked = time.Now()
	select {
	case f.early <- struct{}{}:
	default: // one is asked for already
	}
	return "; it is fetched anew now: if the key is a new one, send this again in a moment"
}

func (f *fetched) close() {
	f.stop()
	<-f.ended
}

// run fetches the set until ctx ends.
func (f *fetched) run(ctx context.Context, wait time.Duration) {
	defer close(f.ended)
	for failures := 0; ; {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-f.early:
			timer.Stop()
		case <-timer.C:
		}
		age, err := f.refresh(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failures++
			wait = backoff(failures)
			f.log.Warn("the key set could not be fetched: the last good one counts", "url", f.url, "error", err, "failures", failures, "next_in", wait.Round(time.Second))
		default:
			failures, wait = 0, period(age)
		}
	}
}

// refresh replaces the set by what is served now. A set without a key that is
// believed replaces it too: its keys were taken away.
func (f *fetched) refresh(ctx context.Context) (age time.Duration, err error) {
	set, age, err := f.fetch(ctx)
	if errors.Is(err, errNoneUsable) {
		f.log.Error("no token is believed any more", "url", f.url, "error", err)
		set, err = keySet{}, nil
	}
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.set = set
	return age, nil
}

// fetch gets the set, and how long it is good for where the server says so.
func (f *fetched) fetch(ctx context.Context) (keySet, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url, nil)
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := f.client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	age := maxAge(response.Header)
	switch {
	case response.StatusCode >= 300 && response.StatusCode < 400:
		return nil, 0, fmt.Errorf("the server answers %s, and redirects are not followed: give the URL of the set itself", response.Status)
	case response.StatusCode != http.StatusOK:
		return nil, 0, fmt.Errorf("the server answers %s", response.Status)
	}
	set, err := readSet(response.Body)
	return set, age, err
}

// maxAge is what Cache-Control says, 0 where that is nothing.
func maxAge(h http.Header) time.Duration {
	for _, d := range strings.Split(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(d), "=")
		if !strings.EqualFold(name, "max-age") {
			continue
		}
		if seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 32); err == nil {
			return max(time.Duration(seconds)*time.Second, fetchLeast)
		}
	}
	return 0
}

// period is when a set that was fetched is fetched again: up to a tenth earlier
// than it says, so that many workers do not ask at once.
func period(age time.Duration) time.Duration {
	age = min(max(cmp.Or(age, fetchEvery), fetchLeast), fetchMost)
	return max(age-rand.N(age/10), fetchLeast)
}

func backoff(failures int) time.Duration {
	wait := min(retryFirst<<min(failures-1, 10), fetchEvery)
	return wait - rand.N(wait/10)
}
