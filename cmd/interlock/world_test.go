package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/config"
	"interlock/examples/refund"
)

// world is a Temporal, a store and a worker with the refund agent, which the
// tests of commands share.
type world struct {
	*stage
	folder string
}

var (
	theWorld   *world
	worldOnce  sync.Once
	worldError error
)

// newWorld starts the world with the first test that needs it; TestMain ends it.
func newWorld(t *testing.T) *world {
	t.Helper()
	path := cli(t)
	worldOnce.Do(func() {
		w := &world{}
		if w.folder, worldError = os.MkdirTemp("", "interlock-cmd-test-"); worldError != nil {
			return
		}
		settings := config.Default()
		settings.Store.Path, settings.ShutdownTimeout = filepath.Join(w.folder, "interlock.db"), time.Second
		w.stage = &stage{settings: settings, log: slog.New(slog.DiscardHandler), model: refund.Model()}
		_ = os.Setenv("INTERLOCK_TEMPORAL_CLI", path)
		worldError = w.Open(context.Background())
		theWorld = w
	})
	require.NoError(t, worldError)
	return theWorld
}

func endWorld() {
	if theWorld != nil {
		_ = theWorld.Close()
		_ = os.RemoveAll(theWorld.folder)
	}
}

// command is a command line in the world, with what it is told by variables.
type command struct {
	env      []string
	in       io.Reader // a terminal where typed
	typed    bool
	temporal string // its address; "" is the world's
}

func (c command) run(t *testing.T, args ...string) result {
	t.Helper()
	if c.temporal == "" {
		c.temporal = theWorld.temporal.Address()
	}
	t.Setenv("TEMPORAL_ADDRESS", c.temporal)
	var out, err safe
	a := &app{in: c.in, terminal: c.typed, out: &out, err: &err, env: c.env}
	if a.in == nil {
		a.in = strings.NewReader("")
	}
	code := a.run(context.Background(), args)
	require.NotContains(t, err.String()+out.String(), "goroutine ", "a stack trace")
	return result{code, out.String(), err.String()}
}

// do runs a command of the world's tenant that must succeed.
func (w *world) do(t *testing.T, args ...string) string {
	t.Helper()
	r := w.command().run(t, args...)
	require.Equal(t, exitOK, r.code, "%v\n%s\n%s", args, r.out, r.err)
	return r.out
}

func (w *world) command() command {
	return command{env: []string{"INTERLOCK_STORE_PATH=" + w.settings.Store.Path, "INTERLOCK_TENANT=acme"}}
}

// decoded runs a command that must succeed and decodes the one value that it
// writes.
func decoded[T any](t *testing.T, w *world, args ...string) T {
	t.Helper()
	var v T
	d := json.NewDecoder(strings.NewReader(w.do(t, append(args, "-o", "json")...)))
	require.NoError(t, d.Decode(&v))
	require.ErrorIs(t, d.Decode(new(any)), io.EOF)
	return v
}

// atGate starts a run and brings it to its gate, 3.1.
func (w *world) atGate(t *testing.T, key string) (address string) {
	t.Helper()
	return w.atGateOf(t, key, "1042")
}

// atGateOf is atGate for an order. An order can be refunded once: who goes on to
// the refund takes one of their own.
func (w *world) atGateOf(t *testing.T, key, order string) (address string) {
	t.Helper()
	address = "acme/refund/" + key
	w.do(t, "run", "start", address, "--body", `{"customer_id":"c-017"}`, "--as", "c-017", "--message", "Please refund order "+order+", it broke", "--wait")
	w.do(t, "run", "message", address, "yes, that one", "--as", "c-017", "--wait=30s")
	return address
}

// order puts an order like 1042 into the shop.
func (w *world) order(t *testing.T, id string) string {
	t.Helper()
	_, err := w.shop.DB().Exec(`INSERT INTO orders SELECT ?, customer_id, item, total_minor, currency, ordered_on, 'delivered' FROM orders WHERE id = '1042'`, id)
	require.NoError(t, err)
	return id
}

func lines(t *testing.T, text string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for _, l := range bytes.Split([]byte(strings.TrimSpace(text)), []byte("\n")) {
		var v map[string]any
		require.NoError(t, json.Unmarshal(l, &v), string(l))
		out = append(out, v)
	}
	return out
}
