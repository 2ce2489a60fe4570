package worker_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/config"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/llm/openai/openaitest"
	"interlock/localtemporal"
	"interlock/signals"
	"interlock/starter"
	"interlock/worker"
)

// asMain makes the test binary be a user's worker.
const asMain = "WORKER_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		os.Exit(worker.Main(context.Background(), refund.Agent(&shop.Shop{}, mail.Client{})))
	}
	os.Exit(m.Run())
}

// safe is a buffer that may be read while it is written.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) { s.mu.Lock(); defer s.mu.Unlock(); return s.b.Write(p) }
func (s *safe) String() string              { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

// process is a worker in a process of its own.
type process struct {
	*exec.Cmd
	err safe
}

func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0], args...)}
	p.Dir, p.Stderr = t.TempDir(), &p.err
	p.Env = append(append(os.Environ(), asMain+"=1", "OPENAI_API_KEY=", "OPENAI_BASE_URL="), env...)
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// code waits for the end.
func (p *process) code(t *testing.T) int {
	t.Helper()
	late := time.AfterFunc(30*time.Second, func() { _ = p.Process.Kill() })
	defer late.Stop()
	_ = p.Wait()
	return p.ProcessState.ExitCode()
}

func (p *process) says(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(p.err.String(), text) }, 30*time.Second, 10*time.Millisecond, "no %q in:\n%s", text, &p.err)
}

func migrated(t *testing.T) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Store.Path = filepath.Join(t.TempDir(), "new", "interlock.db")
	before, after, err := worker.Migrate(t.Context(), cfg)
	require.NoError(t, err)
	require.Zero(t, before)
	require.Positive(t, after)
	again, same, err := worker.Migrate(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, []int64{after, after}, []int64{again, same})
	return cfg
}

func TestMain_SaysWhyItCannotStart(t *testing.T) {
	store := "INTERLOCK_STORE_PATH=" + migrated(t).Store.Path
	model := []string{"INTERLOCK_MODEL_NAME=m", "INTERLOCK_MODEL_API_KEY=S3CR3T"}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	down := "TEMPORAL_ADDRESS=" + l.Addr().String()
	require.NoError(t, l.Close())
	for name, c := range map[string]struct {
		env  []string
		args []string
		code int
		says string
	}{
		"help":             {nil, []string{"-h"}, worker.ExitStopped, "INTERLOCK_STORE_PATH"},
		"an unknown flag":  {nil, []string{"--nope"}, worker.ExitUsage, "-nope"},
		"a secret's flag":  {nil, []string{"--model-api-key", "x"}, worker.ExitUsage, "not defined: -model-api-key"},
		"an argument":      {nil, []string{"extra"}, worker.ExitUsage, "there are no arguments"},
		"a wrong value":    {[]string{"INTERLOCK_LOG_LEVEL=loud"}, nil, worker.ExitUsage, "want one of debug, info, warn, error"},
		"a mistyped key":   {[]string{"INTERLOCK_LOG_LEVLE=info"}, nil, worker.ExitUsage, "INTERLOCK_LOG_LEVEL"},
		"no file":          {nil, []string{"--config", "/nowhere/x.yaml"}, worker.ExitUsage, "/nowhere/x.yaml"},
		"no model":         {[]string{store}, nil, worker.ExitUsage, "INTERLOCK_MODEL_NAME"},
		"no key":           {[]string{store}, []string{"--model-name", "m"}, worker.ExitUsage, "OPENAI_API_KEY"},
		"no store":         {model, nil, worker.ExitFailed, "interlock migrate"},
		"Temporal is down": {append([]string{store, down}, model...), nil, worker.ExitFailed, "TEMPORAL_ADDRESS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, c.env, c.args...)
			require.Equal(t, c.code, p.code(t), &p.err)
			require.Contains(t, p.err.String(), c.says)
			require.NotContains(t, p.err.String(), "goroutine ")
			require.NotContains(t, p.err.String(), "S3CR3T")
		})
	}
}

// A signal stops it in order; a second one, while a model call still runs, at
// once.
func TestMain_Signals(t *testing.T) {
	server, err := localtemporal.Start(t.Context(), localtemporal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	provider := openaitest.Start(t, func(openaitest.ChatRequest) openaitest.ChatReply { return openaitest.ChatReply{Hang: true} })
	cfg := migrated(t)
	env := []string{"TEMPORAL_ADDRESS=" + server.Address(), "INTERLOCK_STORE_PATH=" + cfg.Store.Path, "INTERLOCK_MODEL_NAME=m",
		"INTERLOCK_MODEL_BASE_URL=" + provider.BaseURL(), "INTERLOCK_MODEL_API_KEY=" + provider.Key(), "INTERLOCK_SHUTDOWN_TIMEOUT=20s", "INTERLOCK_LOG_LEVEL=debug"}

	idle := start(t, env)
	idle.says(t, "worker polls")
	began := time.Now()
	require.NoError(t, idle.Process.Signal(syscall.SIGTERM))
	require.Equal(t, worker.ExitStopped, idle.code(t), &idle.err)
	require.Less(t, time.Since(began), 10*time.Second)
	require.Contains(t, idle.err.String(), "stopping; once more ends it at once")
	require.NotContains(t, idle.err.String(), provider.Key())

	busy := start(t, env)
	busy.says(t, "worker polls")
	runs := starter.New(server.Client())
	_, err = runs.Start(t.Context(), starter.Start{Agent: "refund", Tenant: "acme", Key: "k", Principal: agent.Principal{Subject: "ann"},
		Body: refund.Start{CustomerID: "c-017"}, Message: &signals.Message{ID: "1", Principal: agent.Principal{Subject: "ann"}, Text: "hi"}})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return provider.Count() > 0 }, 20*time.Second, 10*time.Millisecond)
	began = time.Now()
	require.NoError(t, busy.Process.Signal(syscall.SIGTERM))
	busy.says(t, "stopping")
	require.NoError(t, busy.Process.Signal(syscall.SIGINT))
	require.Equal(t, 130, busy.code(t), &busy.err)
	require.Less(t, time.Since(began), 10*time.Second, "it did not wait for the model")
}

// Serve closes what it has opened and leaves what it was given.
func TestServe_WithWhatItIsGiven(t *testing.T) {
	server, err := localtemporal.Start(t.Context(), localtemporal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	cfg := migrated(t)
	cfg.ShutdownTimeout = time.Second
	st, err := worker.OpenStore(t.Context(), cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- worker.Serve(ctx, worker.Config{Settings: cfg, Client: server.Client(), Store: st, Model: refund.Model(), Log: slog.New(slog.DiscardHandler)},
			refund.Agent(&shop.Shop{}, mail.Client{}))
	}()
	require.Eventually(t, func() bool {
		served, err := st.AllDeployed(t.Context())
		return err == nil && len(served) == 1
	}, 20*time.Second, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
	_, err = st.AllDeployed(t.Context())
	require.NoError(t, err, "the store is the caller's")
	_, err = server.Client().CheckHealth(t.Context(), nil)
	require.NoError(t, err, "the client is the caller's")
	require.NoError(t, st.Close())

	bad := cfg
	bad.TaskQueue = ""
	var e *config.Error
	require.ErrorAs(t, worker.Serve(t.Context(), worker.Config{Settings: bad}, refund.Agent(&shop.Shop{}, mail.Client{})), &e)
	require.Error(t, worker.Serve(t.Context(), worker.Config{Settings: cfg, Client: server.Client(), Store: st, Model: refund.Model()}), "no agents are given")
}
