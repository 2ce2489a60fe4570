package workflows_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/tool"
)

// lab is an agent with a tool of each effect, whose functions a test chooses.
type lab struct {
	db        *sql.DB // of pay
	version   int
	signed    bool                                                // verdicts
	look      func(context.Context, text) (text, error)           // ReadOnly
	glance    func(context.Context, text) (text, error)           // ReadOnly, quick
	send      func(context.Context, tool.Key, text) (text, error) // Keyed
	fire      func(context.Context, text) (text, error)           // Once
	pay       func(context.Context, *sql.Tx, text) (text, error)  // Transactional
	taken     func(*labState, text, text) error                   // Commit of look
	gate      *tool.Gate[labState, text]                          // of pay
	sendGate  *tool.Gate[labState, text]
	guard     func(agent.Situation[labState]) error // of the move to end
	keep      func(text) text                       // of look and send
	within    time.Duration                         // an attempt of look and send
	opening   []string                              // texts that code pays on entering
	limits    agent.Limits
	budget    agent.Budget
	undo      *labUndo    // of send, fire and pay; nil: nothing undoes them
	cut       agent.OnCut // of send
	onMessage agent.MessagePolicy
	idle      agent.Idle
}

type labStart struct {
	Name string `json:"name"`
}

type labState struct {
	Name string `json:"name" set:"start"`
	Note string `json:"note" set:"model"`
	News string `json:"news,omitempty" set:"system"`
	Port int64  `json:"port,omitempty" set:"user"`
	Seen string `json:"seen" set:"tool"`
	Sent string `json:"sent" set:"tool"`
	Paid string `json:"paid" set:"tool"`
}

type text struct {
	Text string `json:"text"`
}

func echo(_ context.Context, a text) (text, error)                  { return a, nil }
func echoKeyed(_ context.Context, _ tool.Key, a text) (text, error) { return a, nil }

// payment writes a row, in the tool's transaction.
func payment(ctx context.Context, tx *sql.Tx, a text) (text, error) {
	_, err := tx.ExecContext(ctx, `INSERT INTO payments (text) VALUES ($1)`, a.Text)
	return a, err
}

func (l lab) agent() *agent.Definition {
	fill(&l.look, echo)
	fill(&l.glance, echo)
	fill(&l.send, echoKeyed)
	fill(&l.pay, payment)
	fill(&l.fire, echo)
	fill(&l.taken, func(s *labState, _, r text) error { s.Seen = r.Text; return nil })
	fill(&l.guard, func(agent.Situation[labState]) error { return nil })
	look := tool.ReadOnly("look", l.look, l.taken)
	glance := tool.ReadOnly("glance", l.glance, func(s *labState, _, r text) error { s.Seen = r.Text; return nil }).Quick()
	send := tool.Keyed("send", l.send, func(s *labState, _, r text) error { s.Sent = r.Text; return nil })
	fire := tool.Once("fire", l.fire, func(s *labState, _, r text) error { s.Sent = r.Text; return nil }).Within(time.Second, time.Hour)
	pay := tool.Transactional("pay", l.db, l.pay, func(s *labState, _, r text) error { s.Paid = r.Text; return nil })
	if l.undo != nil {
		send.Undo(l.undo.send())
		fire.Undo(l.undo.fire())
		pay.Undo(l.undo.pay(l.db))
	}
	send.OnCut(l.cut)
	if l.keep != nil {
		look.Keep(l.keep)
		send.Keep(l.keep)
	}
	if l.within > 0 {
		look.Within(l.within, time.Hour)
		send.Within(l.within, time.Hour)
	}
	if l.gate != nil {
		pay.Gate(*l.gate)
	}
	if l.sendGate != nil {
		send.Gate(*l.sendGate)
	}
	return agent.Define(agent.Spec[labStart, labState]{
		Name: "lab", Version: max(l.version, 1), Signed: l.signed, Instructions: "Do as you are told.",
		Init:  func(in labStart) (labState, error) { return labState{Name: in.Name}, nil },
		Tools: []agent.Tool[labState]{pay},
		Phases: []agent.Phase[labState]{
			{Name: "work", Tools: []agent.Tool[labState]{look, glance, send, fire, pay}, Moves: []agent.Move[labState]{{To: "end", When: l.guard}},
				Enter: func(agent.Situation[labState]) (calls []agent.Call) {
					for _, t := range l.opening {
						calls = append(calls, pay.With(text{t}))
					}
					return calls
				}},
			{Name: "end", Final: true, Say: func(agent.Situation[labState]) string { return "That was all." }},
		},
		Limits: l.limits, Budget: l.budget, OnMessage: l.onMessage, Idle: l.idle,
	})
}

func fill[F any](f *F, value F) {
	if isNil(*f) {
		*f = value
	}
}

// labDB is a product's database with a table of payments.
func labDB(t *testing.T) *sql.DB {
	t.Helper()
	db := openLabDB(t, filepath.Join(t.TempDir(), "product.db"))
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func payments(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM payments`).Scan(&n))
	return n
}

func call(tool, s string) llm.Response { return scripted.Call(tool, text{s}) }

var toEnd = scripted.Call(agent.CallMove, scripted.Args{"to": "end"})

// turns answers turn n with the n-th response.
func turns(answers ...llm.Response) llm.Model { return scripted.New("scripted", answers...) }

// blocking is a tool's function that says when it has begun, and goes on when
// it is let.
type blocking struct {
	begun chan struct{}
	free  chan struct{}
	ended chan error // why its context ended, where it did
}

func newBlocking() *blocking {
	return &blocking{begun: make(chan struct{}, 100), free: make(chan struct{}), ended: make(chan error, 100)}
}

func (b *blocking) wait(ctx context.Context) error {
	b.begun <- struct{}{}
	select {
	case <-b.free:
		return nil
	case <-ctx.Done():
		b.ended <- ctx.Err()
		return ctx.Err()
	}
}

func (b *blocking) awaitBegun(t *testing.T) { await(t, b.begun, "the tool begins") }

func await[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		require.FailNow(t, "waited in vain: "+what)
	}
	return v
}

// asked is a model that another one chooses for each request.
func asked(choose func(llm.Request) llm.Model) llm.Model { return chooser(choose) }

type chooser func(llm.Request) llm.Model

func (chooser) Name() string { return "scripted" }

func (c chooser) Generate(ctx context.Context, req llm.Request) (llm.Response, error) {
	return c(req).Generate(ctx, req)
}

func isNil(v any) bool { return reflect.ValueOf(v).IsNil() }

const labPragmas = "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(3000)&_txlock=immediate"

// counter counts the calls of a tool, by text.
type counter struct {
	mu    sync.Mutex
	calls map[string]int
	keys  map[tool.Key]bool
}

func newCounter() *counter { return &counter{calls: map[string]int{}, keys: map[tool.Key]bool{}} }

func (c *counter) tool(_ context.Context, key tool.Key, a text) (text, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[a.Text]++
	c.keys[key] = true
	return a, nil
}

func (c *counter) look(ctx context.Context, a text) (text, error) { return c.tool(ctx, "", a) }

func (c *counter) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.calls {
		n += k
	}
	return n
}

func openLabDB(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+labPragmas)
	require.NoError(t, err)
	_, err = db.Exec(`CREATE TABLE IF NOT EXISTS payments (text TEXT)`)
	require.NoError(t, err)
	return db
}

func says(r llm.Response) llm.Model {
	return scripted.Func("scripted", func(llm.Request) llm.Response { return r })
}
