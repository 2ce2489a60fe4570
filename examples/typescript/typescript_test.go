package typescript_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/config"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/localtemporal"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/store/sqlite"
	"interlock/worker"
)

// patience is for what must happen, on a machine that does much else.
const patience = 2 * time.Minute

var (
	customer = agent.Principal{Subject: "c-017"}
	ann      = agent.Principal{Subject: "ann", Roles: []string{"refunds"}}
)

// TestProgram runs the programs as their README says, against a worker.
func TestProgram(t *testing.T) {
	build(t)
	w := newWorld(t)
	for name, test := range map[string]func(*testing.T, *world){
		"approved":        testApproved,
		"rejected":        testRejected,
		"no gate":         testNoGate,
		"nothing to pay":  testNothingToPay,
		"bad tenant":      testBadTenant,
		"no server":       testNoServer,
		"wrong arguments": testWrongArguments,
		"exact numbers":   testExact,
		"by HTTP":         testByHTTP,
		"by HTTP, exact":  testByHTTPExact,
		"by HTTP, reject": testByHTTPRejected,
		"by HTTP, no":     testByHTTPRefused,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

func testApproved(t *testing.T, w *world) {
	args := []string{"--tenant", "acme", "--key", "order-1042", "--decide", "approve"}
	first := w.program(t, args...)
	require.Zero(t, first.code, first.errors)
	for _, line := range []string{
		"started acme/refund/order-1042",
		"customer: Please refund order 1042, it broke (accepted)",
		`agent: Shall I refund this order? {"amount":{"currency":"EUR","minor":8990},"order_id":"1042"}`,
		"customer: yes, that one (accepted)",
		`Refund 89.90 EUR for order 1042: issue_refund {"amount":{"currency":"EUR","minor":8990},"order_id":"1042"}`,
		"(accepted)\n{",
	} {
		require.Contains(t, first.output, line)
	}
	require.Equal(t, agent.RunCompleted, first.end(t).Status)
	require.Equal(t, "done", first.end(t).Phase)
	require.Equal(t, 1, w.refunds(t, "1042"))
	require.Equal(t, 1, w.receipts(t, "1042"))

	run := w.run(t, "acme/refund/order-1042", ended)
	require.JSONEq(t, string(run.State), string(first.end(t).State))
	require.Equal(t, agent.Principal{Subject: "backend"}, run.Principal)
	require.Equal(t, "c-017", run.User)
	for _, m := range recorded[agent.MessageData](t, w, run.Address(), agent.EventMessage) {
		require.Equal(t, customer, m.Principal)
	}
	verdicts := recorded[agent.VerdictData](t, w, run.Address(), agent.EventVerdict)
	require.Len(t, verdicts, 1)
	require.Equal(t, ann, verdicts[0].Verdict.Principal)
	require.Equal(t, agent.Approve, verdicts[0].Verdict.Verdict)
	require.Equal(t, "valid", verdicts[0].Judgement)

	// Another sender of the same start finds the same run: the program's memo is
	// the digest that the run and the Go client take of a start.
	again, err := starter.New(w.temporal.Client()).Start(t.Context(), starter.Start{Agent: "refund", Tenant: "acme", Key: "order-1042",
		Principal: agent.Principal{Subject: "backend"}, User: "c-017", Body: refund.Start{CustomerID: "c-017"}})
	require.NoError(t, err)
	require.False(t, again.New)

	second := w.program(t, args...)
	require.Zero(t, second.code, second.errors)
	require.Contains(t, second.output, "found acme/refund/order-1042\nthe run has ended")
	require.Equal(t, first.end(t), second.end(t))
	require.Equal(t, 1, w.refunds(t, "1042"))
	require.Equal(t, 1, w.receipts(t, "1042"))

	other := w.program(t, append(args, "--customer", "c-071")...)
	require.Equal(t, 1, other.code)
	require.Regexp(t, "^conflict: acme/refund/order-1042 was started with another body", other.errors)
}

// The run stands at its gate while bad verdicts come, each time from a program
// that says all the rest again.
func testRejected(t *testing.T, w *world) {
	args := []string{"--key", "order-1043", "--order", "1043"}
	const address = "acme/refund/order-1043"

	silent := w.program(t, append(args, "--decide", "reject")...)
	require.Equal(t, 1, silent.code, silent.errors)
	require.Regexp(t, "^invalid: .*reason", silent.errors)

	stale := w.program(t, append(args, "--decide", "approve", "--digest", "0000")...)
	require.Equal(t, 1, stale.code)
	require.Contains(t, stale.output, "found "+address)
	require.Contains(t, stale.output, "customer: yes, that one (repeated)")
	require.Regexp(t, "^void: the verdict decided nothing: ", stale.errors)
	w.run(t, address, func(r *agent.Run) bool { return r.Status == agent.RunWaiting && r.Reason == "gate" })

	other := w.program(t, "--key", "order-1043", "--order", "1017", "--decide", "approve")
	require.Equal(t, 1, other.code)
	require.Regexp(t, "^conflict: .*m-1", other.errors, "an id stands for one content")

	right := w.program(t, append(args, "--decide", "reject", "--reason", "no photo")...)
	require.Zero(t, right.code, right.errors)
	require.Equal(t, agent.RunCompleted, right.end(t).Status)
	require.Equal(t, "declined", right.end(t).Phase)

	run := w.run(t, address, ended)
	require.Len(t, run.Rulings, 1)
	require.Equal(t, "no photo", run.Rulings[0].Reason)
	require.Equal(t, "issue_refund", run.Rulings[0].Tool)
	require.Equal(t, ann, run.Rulings[0].By)
	require.Len(t, recorded[agent.MessageData](t, w, address, agent.EventMessage), 2, "repeats are none")
	require.Len(t, recorded[agent.VerdictData](t, w, address, agent.EventVerdict), 2, "the stale one and the one that decided")
	require.Zero(t, w.refunds(t, "1043"))
	require.Zero(t, w.receipts(t, "1043"))
}

func testNoGate(t *testing.T, w *world) {
	r := w.program(t, "--key", "order-1017", "--order", "1017", "--decide", "approve")
	require.Zero(t, r.code, r.errors)
	require.NotContains(t, r.output, "gate")
	require.Equal(t, "done", r.end(t).Phase)
	require.Equal(t, 1, w.refunds(t, "1017"))
}

func testNothingToPay(t *testing.T, w *world) {
	r := w.program(t, "--key", "not-theirs", "--order", "1024", "--decide", "approve")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.output, "this customer has no order 1024")
	require.Regexp(t, "^conflict: there is nothing to decide: the run is waiting", r.errors)
	require.Zero(t, w.refunds(t, "1024"))
}

// A tenant that no run can have is refused by the run, whoever its client is.
func testBadTenant(t *testing.T, w *world) {
	r := w.program(t, "--tenant", "ACME Ltd", "--key", "k", "--decide", "approve")
	require.Equal(t, 1, r.code)
	require.Regexp(t, `^invalid: tenant "ACME Ltd" must be`, r.errors)
}

func testNoServer(t *testing.T, w *world) {
	r := w.with("TEMPORAL_ADDRESS=127.0.0.1:1").program(t, "--key", "k", "--decide", "approve")
	require.Equal(t, 1, r.code)
	require.Regexp(t, "^unavailable: Temporal at 127.0.0.1:1: ", r.errors)
}

func testWrongArguments(t *testing.T, w *world) {
	for _, args := range [][]string{{}, {"--key", "k"}, {"--key", "k", "--decide", "perhaps"}, {"--key", "k", "--decide", "approve", "--nonsense"}} {
		r := w.program(t, args...)
		require.Equal(t, 2, r.code)
		require.Contains(t, r.errors, "usage: ")
	}
}

// build compiles the programs.
func build(t *testing.T) {
	t.Helper()
	install(t)
	// Read here, so that the go command sees that a result depends on them.
	for _, pattern := range []string{"package.json", "tsconfig.json", "src/*.ts", "src/http/*.ts"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			_, err := os.ReadFile(file)
			require.NoError(t, err)
		}
	}
	command(t, "npm", "run", "build")
}

// install installs what the lock names.
func install(t *testing.T) {
	t.Helper()
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("this test needs Node.js, and CI must not go without it: %v", err)
			}
			t.Skipf("this test needs Node.js: %v", err)
		}
	}
	if !installed(t) {
		command(t, "npm", "ci", "--prefer-offline")
		require.True(t, installed(t), "npm ci installed something else than package-lock.json names")
	}
}

// installed reports whether node_modules is what the lock names.
func installed(t *testing.T) bool {
	t.Helper()
	type lock struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	read := func(path string) (l lock, err error) {
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &l)
		}
		delete(l.Packages, "") // the program itself
		return l, err
	}
	want, err := read("package-lock.json")
	require.NoError(t, err)
	have, err := read("node_modules/.package-lock.json")
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	for name, p := range want.Packages {
		if have.Packages[name] != p {
			return false
		}
	}
	return len(have.Packages) == len(want.Packages)
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
}

// world is a Temporal, a shop, a mail service, a store and a worker.
type world struct {
	temporal    *localtemporal.Server
	shop        *shop.Shop
	mail        *mail.Server
	store       store.Store
	environment []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, dir := context.Background(), t.TempDir()
	w := &world{}
	var err error
	w.temporal, err = localtemporal.Start(ctx, localtemporal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.temporal.Stop() })
	w.store, err = sqlite.Open(ctx, filepath.Join(dir, "interlock.db"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.store.Close()) })
	w.shop, err = shop.Open(ctx, filepath.Join(dir, "shop.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.shop.Close() })
	w.mail, err = mail.Serve(ctx, "127.0.0.1:0", filepath.Join(dir, "mail.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.mail.Close() })

	settings := config.Default()
	settings.TaskQueue = "typescript"
	settings.ShutdownTimeout = 2 * time.Second
	serving, err := worker.New(worker.Config{Settings: settings, Client: w.temporal.Client(), Store: w.store, Model: refund.Model(),
		Log: slog.New(slog.DiscardHandler)}, refund.Agent(w.shop, mail.Client{BaseURL: w.mail.URL()}))
	require.NoError(t, err)
	require.NoError(t, serving.Start(ctx))
	t.Cleanup(serving.Stop)

	// Nothing of the caller's own Temporal may reach the program.
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "TEMPORAL_") && !strings.HasPrefix(e, "INTERLOCK_") {
			w.environment = append(w.environment, e)
		}
	}
	return w.with("TEMPORAL_ADDRESS="+w.temporal.Address(), "INTERLOCK_TASK_QUEUE="+settings.TaskQueue)
}

// with is the same world to a program with more variables.
func (w *world) with(variables ...string) *world {
	other := *w
	other.environment = append(append([]string(nil), w.environment...), variables...)
	return &other
}

// result is what a program left behind.
type result struct {
	code           int
	output, errors string
}

func (w *world) program(t *testing.T, args ...string) result {
	t.Helper()
	return w.node(t, "dist/main.js", args...)
}

func (w *world) node(t *testing.T, script string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{script}, args...)...)
	var output, errout bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = w.environment, &output, &errout
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	require.NoError(t, ctx.Err(), "%s\n%s", output.String(), errout.String())
	return result{cmd.ProcessState.ExitCode(), output.String(), errout.String()}
}

// end is the last line.
func (r result) end(t *testing.T) (e signals.End) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(r.output), "\n")
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &e), r.output)
	return e
}

func (w *world) refunds(t *testing.T, order string) (n int) {
	t.Helper()
	all, err := w.shop.Refunds(t.Context())
	require.NoError(t, err)
	for _, r := range all {
		if r.OrderID == order {
			n++
		}
	}
	return n
}

func (w *world) receipts(t *testing.T, order string) (n int) {
	t.Helper()
	all, err := w.mail.Messages(t.Context())
	require.NoError(t, err)
	for _, m := range all {
		if m.Subject == "Your refund for order "+order {
			n++
		}
	}
	return n
}

func (w *world) events(t *testing.T, address string) []agent.Event {
	t.Helper()
	events, err := w.store.Events(t.Context(), store.Chain{Tenant: "acme", Address: address}, 1, 0)
	require.NoError(t, err)
	return events
}

// run is what the journal reduces to, once it is as pred has it: a run answers
// before its journal is written.
func (w *world) run(t *testing.T, address string, pred func(*agent.Run) bool) (run *agent.Run) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		run, err = agent.Reduce(w.events(t, address))
		return err == nil && pred(run)
	}, patience, 25*time.Millisecond)
	return run
}

func ended(r *agent.Run) bool { return r.Status.Ended() }

// recorded are the data of the journal's events of one type.
func recorded[T any](t *testing.T, w *world, address string, kind agent.EventType) (out []T) {
	t.Helper()
	for _, e := range w.events(t, address) {
		if e.Type == kind {
			var d T
			require.NoError(t, json.Unmarshal(e.Data, &d))
			out = append(out, d)
		}
	}
	return out
}
