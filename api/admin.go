package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are about requests. Nothing in them names a tenant, a subject or a run.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "interlock_http_requests_total", Help: "Requests that were answered."}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "interlock_http_request_duration_seconds", Help: "How long requests took.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 25}}, []string{"method", "route"})}
	m.registry.MustRegister(m.requests, m.seconds, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) saw(route, method string, status int, took time.Duration) {
	if route == "" {
		route = "none"
	}
	if _, path, ok := strings.Cut(route, " "); ok {
		route = path
	}
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "other" // whatever a client writes there
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(method, route).Observe(took.Seconds())
}

// checkFor is how long one check of readiness may take.
const checkFor = time.Second

// Admin is what the port of operators serves: /livez says that the process is
// there, /readyz that what it stands on is, /metrics counts requests. It asks for
// no token: that port is not for the public.
func (s *Server) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	return mux
}

// Checked is one check of readiness.
type checked struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	results, ok := s.check(r.Context())
	status := http.StatusOK
	if !ok {
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Cache-Control", "no-store")
	if !r.URL.Query().Has("verbose") {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(map[bool]string{true: "ok\n", false: "not ready: /readyz?verbose says why\n"}[ok]))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"ready": ok, "checks": results})
}

// check asks everything at the same time.
func (s *Server) check(ctx context.Context) (map[string]checked, bool) {
	ctx, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	results, ok := map[string]checked{}, true
	for name := range s.checks {
		results[name] = checked{Error: "no answer within " + checkFor.String()}
	}
	for name, ask := range s.checks {
		wg.Go(func() {
			err := ask(ctx)
			mu.Lock()
			defer mu.Unlock()
			results[name] = checked{OK: err == nil}
			if err != nil {
				results[name] = checked{Error: err.Error()}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done(): // a check that does not listen is not waited for
	}
	mu.Lock()
	defer mu.Unlock()
	out := map[string]checked{}
	for name, c := range results {
		out[name], ok = c, ok && c.OK
	}
	return out, ok
}
