// Package web serves the pages of reviewers, users and operators: the inbox of
// gates, a gate with its verdicts, runs with their journals.
//
// Every page is made on the server, works without JavaScript and shows nothing
// clipped that a decision rests on. What users, models and tools have written is
// shown as what it is: escaped, marked as theirs, with what would mislead as
// \uXXXX. What a caller may do is asked of package access, and judged by the run.
package web

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/sse"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
)

//go:embed templates static
var files embed.FS

// Starter is what the pages use of a [starter.Starter].
type Starter interface {
	Gate(ctx context.Context, address, gateID string) (store.GateRow, error)
	Get(ctx context.Context, address string) (*agent.Run, error)
	Why(ctx context.Context, address string) (starter.Why, error)
	Decide(ctx context.Context, address string, v signals.Verdict) (agent.Receipt, error)
	Message(ctx context.Context, address string, m signals.Message) (agent.Receipt, error)
	Cancel(ctx context.Context, address string, c signals.Cancel) (agent.Receipt, error)
	Pause(ctx context.Context, address string, p signals.Pause) (agent.Receipt, error)
	Resume(ctx context.Context, address string, r signals.Resume) (agent.Receipt, error)
	LiftRuling(ctx context.Context, address string, r signals.LiftRuling) (agent.Receipt, error)
	ConfirmRuling(ctx context.Context, address string, r signals.ConfirmRuling) (agent.Receipt, error)
	TellAgain(ctx context.Context, d store.DeadNotice, giveUp time.Duration, by string) error
}

var _ Starter = (*starter.Starter)(nil)

// Reader is what the pages read of a store.
type Reader interface {
	store.Reader
	store.Assignments
	store.Feed
	store.Overview
	AllDeployed(ctx context.Context) ([]store.Deployment, error)
	AllHolds(ctx context.Context, tenant string, ended bool) ([]store.Hold, error)
	DeadNotices(ctx context.Context, tenant string, f store.DeadFilter) ([]store.DeadNotice, error)
	SettleDead(ctx context.Context, tenant, id, target string, how store.DeadEnd, by string) (store.DeadNotice, error)
	// Hear is a channel of pieces of answers on their way.
	Hear(ctx context.Context, scope store.Scope) <-chan store.Delta
	// Deployment is one agent version; CodeNotFound where no worker has served it.
	Deployment(ctx context.Context, agent string, version int) (store.Deployment, error)
}

// Config is what the pages need.
type Config struct {
	Starter  Starter
	Reader   Reader
	Auth     access.Authenticator
	Sessions *access.Sessions
	Audit    *access.Audit
	Log      *slog.Logger     // nil: slog's default
	Now      func() time.Time // nil: the clock
	Rate     float64          // pages a second of a subject; 0: 20
	GiveUp   time.Duration    // for how long a dead notice is told again; 0: signals.GiveUp
}

// Pages are all pages.
type Pages struct {
	Config
	templates map[string]*template.Template
	rates     *access.Rates
	streams   *sse.Streams
}

// New makes the pages.
func New(c Config) (*Pages, error) {
	if c.Starter == nil || c.Reader == nil || c.Auth == nil || c.Sessions == nil {
		return nil, errors.New("web: Starter, Reader, Auth and Sessions are needed")
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Audit == nil {
		c.Audit = access.NewAudit(c.Log)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rate <= 0 {
		c.Rate = usualRate
	}
	p := &Pages{Config: c, rates: access.NewRates(c.Rate, max(usualBurst, int(2*c.Rate))), streams: sse.New(liveMost, liveEach)}
	var err error
	if p.templates, err = parseTemplates(p); err != nil {
		return nil, err
	}
	return p, nil
}

// Handler serves the pages for all paths below /.
func (p *Pages) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /static/", static())
	mux.HandleFunc("GET /login", p.open(showLogin))
	mux.HandleFunc("POST /login", p.open(signIn))
	mux.HandleFunc("POST /logout", p.open(signOut))
	mux.HandleFunc("GET /logout", p.open(func(v *visit) error { v.to("/"); return nil }))
	for pattern, page := range routes {
		mux.HandleFunc(pattern, p.signedIn(page))
		if path, acts := strings.CutPrefix(pattern, "POST "); acts && routes["GET "+path] == nil {
			// Whoever asks for the address of an answer to a form is shown its page.
			mux.HandleFunc("GET "+path, p.signedIn(func(v *visit) error { v.to(v.pageOf()); return nil }))
		}
	}
	mux.HandleFunc("/", p.signedIn(func(*visit) error { return access.NotFound() }))
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(p.open(func(v *visit) error {
		return agent.Errorf(agent.CodeDenied, "this form was sent from another site, and nothing was done: open the page itself and send it from there")
	}))
	return p.outer(cross.Handler(mux))
}

// routes are the pages behind the sign-in. What begins with POST acts, and
// nothing else does.
var routes = map[string]func(*visit) error{
	"GET /{$}":                             showInbox,
	"POST /decide":                         decideSeveral,
	"GET /decided":                         showDecided,
	"GET /runs":                            showRuns,
	"GET /runs/{agent}/{key}":              showRun,
	"GET /runs/{agent}/{key}/gates/{gate}": showGate,
	"POST /runs/{agent}/{key}/gates/{gate}/verdict": decideOne,
	"GET /runs/{agent}/{key}/gates/{gate}/edit":     showEdit,
	"POST /runs/{agent}/{key}/gates/{gate}/edit":    previewEdit,
	"POST /runs/{agent}/{key}/gates/{gate}/take":    takeGate,
	"POST /runs/{agent}/{key}/gates/{gate}/hand":    handGate,
	"POST /runs/{agent}/{key}/gates/{gate}/let-go":  letGateGo,
	"GET /ops":                                          showOps,
	"POST /ops/notices/retry":                           retryDead,
	"POST /ops/notices/drop":                            dropDead,
	"GET /live/inbox":                                   followInbox,
	"GET /live/runs/{agent}/{key}":                      followRun,
	"GET /absences":                                     showAbsences,
	"POST /absences":                                    setAbsence,
	"POST /absences/end":                                endAbsence,
	"POST /runs/{agent}/{key}/message":                  act(access.Message, sendMessage),
	"POST /runs/{agent}/{key}/pause":                    act(access.Pause, sendPause),
	"POST /runs/{agent}/{key}/resume":                   act(access.Resume, sendResume),
	"GET /runs/{agent}/{key}/export":                    export,
	"GET /runs/{agent}/{key}/cancel":                    showCancel,
	"POST /runs/{agent}/{key}/cancel":                   sendCancel,
	"POST /runs/{agent}/{key}/rulings/{ruling}/lift":    act(access.RulingLift, sendLift),
	"POST /runs/{agent}/{key}/rulings/{ruling}/confirm": act(access.RulingConfirm, sendConfirm),
}

// maxForm bounds what a form may send, in bytes: an edit and a result of the
// largest size, written as a form.
const maxForm = 1 << 20

// outer sets what every answer has: the policy of contents is that a page runs no
// script and loads no style but ours, and is shown in no frame.
func (p *Pages) outer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "+
			"form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		id := newID("")
		h.Set("X-Request-Id", id)
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), requestKey{}, request{id, r.Context()}), requestFor)
		defer cancel()
		defer func() {
			if what := recover(); what != nil && what != http.ErrAbortHandler {
				p.Log.ErrorContext(ctx, "page panicked", "path", r.URL.Path, "request_id", id, "panic", what, "stack", string(debug.Stack()))
				http.Error(w, "A mistake of ours. The log says more under the request id "+id+".", http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// requestFor is how long a page may take.
const requestFor = 25 * time.Second

type requestKey struct{}

// request is what is known of one before its page is.
type request struct {
	id         string
	connection context.Context // without the time that a page may take
}
