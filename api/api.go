// Package api is Interlock's HTTP API: JSON in and out, for product backends, users,
// reviewers and operators in any language. It starts and steers runs by package
// starter, reads the store, and decides nothing by itself: who may do what is
// package access's table, and what a verdict is worth the run's own judgement.
//
// The contract is openapi.json, which is made from the Go types here; the names in
// it are stable. Every POST that acts carries an Idempotency-Key, under which a
// repeat takes effect once and is answered as the first.
package api

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/sse"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
)

// Runs starts and steers runs: what is used of a [starter.Starter].
type Runs interface {
	Start(ctx context.Context, in starter.Start) (starter.Started, error)
	Converse(ctx context.Context, in starter.Converse) (starter.Conversed, error)
	Get(ctx context.Context, address string) (*agent.Run, error)
	Gate(ctx context.Context, address, gate string) (store.GateRow, error)
	Why(ctx context.Context, address string) (starter.Why, error)
	Wait(ctx context.Context, address string, afterSeq int64) (signals.News, error)
	Message(ctx context.Context, address string, m signals.Message) (agent.Receipt, error)
	Cancel(ctx context.Context, address string, c signals.Cancel) (agent.Receipt, error)
	Amend(ctx context.Context, address string, a signals.Amend) (agent.Receipt, error)
	Pause(ctx context.Context, address string, p signals.Pause) (agent.Receipt, error)
	Resume(ctx context.Context, address string, r signals.Resume) (agent.Receipt, error)
	Undo(ctx context.Context, address string, in signals.Undo) (starter.Undone, error)
	Decide(ctx context.Context, address string, v signals.Verdict) (agent.Receipt, error)
	WatchRun(ctx context.Context, run *store.Chain, afterSeq int64) iter.Seq2[agent.Event, error]
	LiftRuling(ctx context.Context, address string, r signals.LiftRuling) (agent.Receipt, error)
	ConfirmRuling(ctx context.Context, address string, r signals.ConfirmRuling) (agent.Receipt, error)
	ResolveEffect(ctx context.Context, in signals.Resolution) error
}

// Reads is what is read of a store, all of it committed data; what is written there
// decides nothing.
type Reads interface {
	store.Reader
	store.Feed
	store.Assignments
	store.Overview
	Hear(ctx context.Context, scope store.Scope) <-chan store.Delta
	Effect(ctx context.Context, tenant, key string) (store.Effect, error)
	Effects(ctx context.Context, tenant string, f store.EffectFilter) ([]store.Effect, error)
	ModelUsage(ctx context.Context, tenant, address string) (store.ModelUsage, error)
}

// Config is what a server is made of.
type Config struct {
	Runs  Runs
	Reads Reads
	Auth  access.Authenticator
	Log   *slog.Logger // nil: slog's default
	// Checks are asked by /readyz, each within a second.
	Checks map[string]func(context.Context) error
	Limits Limits
}

// Limits bound what one request, and one subject, may take. Zero fields have the
// value of [DefaultLimits].
type Limits struct {
	Rate     float64       // requests a second of a subject
	Burst    int           // of them at once
	Deadline time.Duration // of a request
	Body     int64         // bytes of a request's body
	// Streams may be open at a time, and StreamsEach of them by one subject.
	Streams, StreamsEach int
}

// DefaultLimits are those of a server that is told nothing.
func DefaultLimits() Limits {
	return Limits{Rate: 20, Burst: 40, Deadline: 25 * time.Second, Body: 256 << 10, Streams: 2000, StreamsEach: 50}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	if l.Rate <= 0 {
		l.Rate = d.Rate
	}
	if l.Burst <= 0 {
		l.Burst = max(d.Burst, int(2*l.Rate))
	}
	if l.Deadline <= 0 {
		l.Deadline = d.Deadline
	}
	if l.Body <= 0 {
		l.Body = d.Body
	}
	if l.Streams <= 0 {
		l.Streams = d.Streams
	}
	if l.StreamsEach <= 0 {
		l.StreamsEach = d.StreamsEach
	}
	return l
}

// Server answers requests. It keeps nothing that another one would need: any
// number of them serve the same runs.
type Server struct {
	runs    Runs
	reads   Reads
	auth    access.Authenticator
	log     *slog.Logger
	audit   *access.Audit
	limits  Limits
	checks  map[string]func(context.Context) error
	rates   *access.Rates
	streams *sse.Streams
	metrics *metrics
	api     huma.API
	mux     *http.ServeMux
	routes  []Route
	spec    []byte
	now     func() time.Time
}

// New makes a server. It begins to listen with [Serve], or wherever its handlers
// are put.
func New(c Config) (*Server, error) {
	if c.Runs == nil || c.Reads == nil || c.Auth == nil {
		return nil, agent.Errorf(agent.CodeInvalid, "the API needs Runs, Reads and Auth: without one of them it could answer nothing, or anybody")
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	limits := c.Limits.withDefaults()
	s := &Server{runs: c.Runs, reads: c.Reads, auth: c.Auth, log: c.Log, audit: access.NewAudit(c.Log), limits: limits, checks: c.Checks,
		rates: access.NewRates(limits.Rate, limits.Burst), streams: sse.New(limits.Streams, limits.StreamsEach), metrics: newMetrics(), mux: http.NewServeMux(), now: time.Now}
	if err := s.register(); err != nil {
		return nil, err
	}
	s.mux.HandleFunc("GET /openapi.json", s.document)
	return s, nil
}

// register adds all routes, and describes them.
func (s *Server) register() (err error) {
	s.api = newDocument(s.mux)
	s.runRoutes()
	s.journalRoutes()
	s.startRoutes()
	s.steerRoutes()
	s.gateRoutes()
	s.assignRoutes()
	s.rulingRoutes()
	s.effectRoutes()
	s.opsRoutes()
	s.streamRoutes()
	s.spec, err = finish(s.api.OpenAPI(), s.routes)
	return err
}

// Document is the API's description, as /openapi.json has it.
func Document() ([]byte, error) {
	s := &Server{limits: DefaultLimits(), mux: http.NewServeMux()}
	err := s.register()
	return s.spec, err
}

// Handler is what the public port serves: /v1 and /openapi.json.
func (s *Server) Handler() http.Handler { return s.outer(http.HandlerFunc(s.dispatch)) }

// Routes are all routes below /v1.
func (s *Server) Routes() []Route { return append([]Route(nil), s.routes...) }

func (s *Server) document(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/openapi+json")
	_, _ = w.Write(s.spec)
}
