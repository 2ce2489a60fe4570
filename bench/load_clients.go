package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"interlock/agent"
	"interlock/api/sse/ssetest"
)

// load is everybody who asks.
type load struct {
	job    loadJob
	served loadServed
	http   *http.Client
	cost   loadCost

	mu     sync.Mutex
	reads  []float64
	acts   []float64
	events []float64
	why    string // the first failure
	gates  map[string]chan agent.Gate
	ids    atomic.Int64
}

func newLoad(job loadJob, served loadServed) *load {
	transport := &http.Transport{MaxIdleConnsPerHost: job.Readers + 100}
	return &load{job: job, served: served, http: &http.Client{Transport: transport}, gates: map[string]chan agent.Gate{},
		cost: loadCost{Readers: job.Readers, Runs: job.Runs, Active: job.Active}}
}

func (l *load) path(run int) string { return fmt.Sprintf("/v1/runs/load/k%d", run) }

// send is one request; it reports how long it took, and whether it was answered well.
func (l *load) send(ctx context.Context, method, path string, body any) ([]byte, time.Duration, bool) {
	var reader io.Reader
	if body != nil {
		data, _ := json.Marshal(body)
		reader = bytes.NewReader(data)
	}
	n := l.ids.Add(1)
	r, err := http.NewRequestWithContext(ctx, method, l.served.URL+path, reader)
	if err != nil {
		return nil, 0, false
	}
	r.Header.Set("Authorization", "Bearer "+l.served.Tokens[int(n)%len(l.served.Tokens)])
	r.Header.Set("Idempotency-Key", strconv.FormatInt(n, 10))
	began := time.Now()
	res, err := l.http.Do(r)
	if err != nil {
		l.failed(method, path, err.Error())
		return nil, 0, false
	}
	data, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if took := time.Since(began); err == nil && res.StatusCode < 300 {
		return data, took, true
	}
	l.failed(method, path, fmt.Sprint(res.StatusCode, " ", string(data)))
	return data, 0, false
}

func (l *load) failed(method, path, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cost.Failed++
	if l.why == "" {
		l.why = method + " " + path + ": " + why
	}
}

// run starts the runs, opens the streams, asks for a while, and then counts.
func (l *load) run(ctx context.Context) (loadCost, error) {
	for i := range l.job.Runs {
		if _, _, ok := l.send(ctx, http.MethodPost, "/v1/runs", map[string]any{"agent": "load", "key": fmt.Sprint("k", i), "body": map[string]any{}}); !ok {
			return l.cost, fmt.Errorf("a run cannot be started: %s", l.why)
		}
	}
	for i := range l.job.Runs { // which must be recorded: what is read is there then
		for n := int64(0); n < 3; time.Sleep(time.Millisecond) {
			var err error
			if n, _, err = l.journal(ctx, i); err != nil {
				return l.cost, err
			}
		}
	}
	for i := range l.job.Active {
		l.gates[fmt.Sprint("k", i)] = make(chan agent.Gate, 1000)
	}
	streaming, stop := context.WithCancel(ctx)
	defer stop()
	streams, err := l.open(streaming)
	if err != nil {
		return l.cost, err
	}
	began := time.Now()
	asking, enough := context.WithTimeout(ctx, l.job.For)
	defer enough()
	var all sync.WaitGroup
	all.Go(func() { l.ask(asking, &all) })
	pace := time.NewTicker(time.Duration(float64(time.Second) / l.job.Acts))
	defer pace.Stop()
	for i := range l.job.Active {
		all.Go(func() { l.live(ctx, asking, i, pace.C) })
	}
	all.Wait()
	l.cost.Seconds = round(time.Since(began).Seconds())
	if err := l.count(ctx, streams); err != nil {
		return l.cost, err
	}
	l.cost.Read, l.cost.Act, l.cost.Event = quantilesOf(l.reads), quantilesOf(l.acts), quantilesOf(l.events)
	l.cost.Reads, l.cost.Acts, l.cost.Why = len(l.reads), len(l.acts), l.why
	return l.cost, nil
}

// ask reads at its rate, whatever the answers take: what a late tick has left undone is
// asked at once.
func (l *load) ask(ctx context.Context, all *sync.WaitGroup) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / l.job.Reads))
	defer tick.Stop()
	began := time.Now()
	for asked := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for due := int(time.Since(began).Seconds() * l.job.Reads); asked < due; asked++ {
			path := l.question(asked)
			all.Go(func() { l.answer(context.WithoutCancel(ctx), path) })
		}
	}
}

// question is the path of the nth read: lists, events and states in turn.
func (l *load) question(n int) string {
	run := l.path(n % l.job.Runs)
	return []string{"/v1/runs?page_size=50", "/v1/gates?role=boss", run + "/events?page_size=100", run + "/state?seq=2"}[n%4]
}

func (l *load) answer(ctx context.Context, path string) {
	if _, took, ok := l.send(ctx, http.MethodGet, path, nil); ok {
		l.mu.Lock()
		l.reads = append(l.reads, ms(took))
		l.mu.Unlock()
	}
}

// live speaks in a run and approves what comes of it, again and again.
func (l *load) live(ctx, asking context.Context, run int, pace <-chan time.Time) {
	act := func(path string, body any) bool {
		select {
		case <-asking.Done():
			return false
		case <-pace:
		}
		_, took, ok := l.send(ctx, http.MethodPost, path, body)
		if ok {
			l.mu.Lock()
			l.acts = append(l.acts, ms(took))
			l.mu.Unlock()
		}
		return ok
	}
	gates := l.gates[fmt.Sprint("k", run)]
	for act(l.path(run)+"/messages", map[string]string{"text": "pay"}) {
		select {
		case <-asking.Done():
			return
		case g := <-gates:
			act(l.path(run)+"/gates/"+g.ID+"/verdict", map[string]string{"digest": g.Digest, "verdict": "approve"})
		}
	}
}

// stream is one that follows a run, or the inbox.
type stream struct {
	run      int // -1: the inbox
	opened   time.Time
	last     atomic.Int64
	received atomic.Int64
	repeated atomic.Int64
	lost     atomic.Int64
}

// open opens the streams: one in ten follows the inbox, the others the runs in turn.
func (l *load) open(ctx context.Context) (all []*stream, err error) {
	for i := range l.job.Readers {
		s, path := &stream{run: i % l.job.Runs, opened: time.Now()}, l.path(i%l.job.Runs)+"/stream"
		if i%10 == 9 {
			s.run, path = -1, "/v1/gates/stream"
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.served.URL+path, nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+l.served.Tokens[i%len(l.served.Tokens)])
		res, err := l.http.Do(r)
		if err != nil {
			return nil, err
		}
		if res.StatusCode != http.StatusOK {
			data, _ := io.ReadAll(res.Body)
			return nil, fmt.Errorf("a stream is not opened: %d %s", res.StatusCode, data)
		}
		first := i < l.job.Runs && s.run >= 0
		go l.read(res.Body, s, first)
		all = append(all, s)
	}
	return all, nil
}

// read takes what comes. The first stream of a run tells whoever speaks in it of
// its gates.
func (l *load) read(body io.ReadCloser, s *stream, first bool) {
	defer func() { _ = body.Close() }()
	for e := range ssetest.Read(body) {
		if e.ID != "" && e.Event == "" {
			l.take(s, e.ID, e.Data, first)
		}
	}
}

func (l *load) take(s *stream, id, data string, first bool) {
	var e agent.Event
	if s.run < 0 || json.Unmarshal([]byte(data), &e) != nil {
		s.received.Add(1) // places of the feed have gaps: these are counted against each other
		return
	}
	number, _, _ := strings.Cut(id, ".")
	seq, _ := strconv.ParseInt(number, 10, 64)
	switch last := s.last.Load(); {
	case seq <= last:
		s.repeated.Add(1)
		return
	case seq > last+1:
		s.lost.Add(seq - last - 1)
	}
	s.last.Store(seq)
	s.received.Add(1)
	l.mu.Lock()
	if e.At.After(s.opened) { // else it was there already
		l.events = append(l.events, ms(time.Since(e.At)))
	}
	gates := l.gates[fmt.Sprint("k", s.run)]
	l.mu.Unlock()
	if first && gates != nil && e.Type == agent.EventGateOpened {
		var d agent.GateOpenedData
		if json.Unmarshal(e.Data, &d) == nil {
			gates <- d.Gate
		}
	}
}

// count waits until the runs are at rest and the streams have what there is, and
// compares.
func (l *load) count(ctx context.Context, streams []*stream) error {
	want, gates := map[int]int64{}, int64(0)
	for run := range l.job.Runs {
		n, changes, err := l.journal(ctx, run)
		if err != nil {
			return err
		}
		want[run], gates = n, gates+changes
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if !slices.ContainsFunc(streams, func(s *stream) bool {
			return s.run >= 0 && s.last.Load() < want[s.run] || s.run < 0 && s.received.Load() < gates
		}) {
			break
		}
	}
	for _, s := range streams {
		all := want[s.run]
		if s.run < 0 {
			all = gates
		}
		l.cost.Events += int(s.received.Load())
		l.cost.Repeated += int(s.repeated.Load() + max(s.received.Load()-all, 0))
		l.cost.Lost += int(s.lost.Load() + max(all-s.received.Load()-s.lost.Load(), 0))
	}
	return nil
}

// journal is how many events a run has, once it rests, and how many of them tell of
// gates.
func (l *load) journal(ctx context.Context, run int) (n, changes int64, err error) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		data, _, ok := l.send(ctx, http.MethodGet, l.path(run), nil)
		var shown struct{ Status agent.RunStatus }
		if !ok || json.Unmarshal(data, &shown) != nil {
			return 0, 0, fmt.Errorf("run %d cannot be read: %s", run, data)
		}
		if shown.Status != agent.RunRunning {
			break
		}
	}
	for n, changes = 0, 0; ; {
		data, _, ok := l.send(ctx, http.MethodGet, fmt.Sprintf("%s/events?page_size=200&after=%d", l.path(run), n), nil)
		var page struct {
			Events []agent.Event
			More   bool
		}
		if !ok || json.Unmarshal(data, &page) != nil {
			return 0, 0, fmt.Errorf("the journal of run %d cannot be read: %s", run, data)
		}
		for _, e := range page.Events {
			if n = e.Seq; e.Type == agent.EventGateOpened || e.Type == agent.EventGateClosed {
				changes++
			}
		}
		if !page.More {
			return n, changes, nil
		}
	}
}

func quantilesOf(values []float64) quantiles {
	if len(values) == 0 {
		return quantiles{}
	}
	slices.Sort(values)
	return quantiles{Median: values[len(values)/2], P99: values[len(values)*99/100]}
}
