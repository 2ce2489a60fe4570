package typescript_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/api"
	"interlock/api/access"
	"interlock/starter"
)

// The types of the HTTP example are those of the API's document.
func TestTypesAreThoseOfTheDocument(t *testing.T) {
	install(t)
	const path, document = "src/http/api.ts", "../../api/openapi.json"
	_, err := os.ReadFile(document) // so that the go command sees that a result depends on it
	require.NoError(t, err)
	fresh := filepath.Join(t.TempDir(), "api.ts")
	command(t, "npx", "--no-install", "openapi-typescript", document, "--output", fresh)
	want, err := os.ReadFile(fresh)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(path, want, 0o644))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	if string(want) != string(have) {
		t.Fatalf("%s is not what api/openapi.json says: go test ./examples/typescript -run Types -update writes it anew", path)
	}
}

// No digit is lost between the program and the API, and no text is taken for a number.
func testExact(t *testing.T, _ *world) {
	const script = `
import { parse, stringify } from './dist/http/exact.js';
const text = process.argv[1];
if (stringify(parse(text)) !== text) throw new Error(stringify(parse(text)));
const v = parse(text);
console.log(typeof v.big, typeof v.small, typeof v.text, v.big === 9007199254740993n, stringify({ n: 123456789012345678901234567890n, s: '9007199254740993' }));`
	out, err := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", script, "--",
		`{"big":9007199254740993,"least":-9007199254740993,"small":-42,"half":0.5,"text":"9007199254740993 \\\" 9007199254740993","list":[9007199254740993,"é"]}`).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, `bigint number string true {"n":123456789012345678901234567890,"s":"9007199254740993"}`+"\n", string(out))
}

// door is the HTTP API in a world. It loses the answer to the first request that acts,
// and cuts the first streams off.
type door struct {
	*world
	acts, streams, lost, cut atomic.Int32
}

func newDoor(t *testing.T, w *world) *door {
	t.Helper()
	file := filepath.Join(t.TempDir(), "access.yaml")
	tokens := map[string]string{}
	for _, e := range []access.Entry{
		{ID: "BACKEND", Subject: "shop", May: []access.Role{access.Starter}},
		{ID: "CUSTOMER", Subject: customer.Subject, May: []access.Role{access.User}},
		{ID: "REVIEWER", Subject: ann.Subject, May: []access.Role{access.Reviewer}, Roles: ann.Roles},
	} {
		e.Tenant = "acme"
		token, entry := access.New(e)
		require.NoError(t, access.Add(file, entry))
		tokens[e.ID] = token
	}
	auth, err := access.OpenTokens(file, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	runs := starter.New(w.temporal.Client(), starter.WithReader(w.store), starter.WithTaskQueue("typescript"))
	server, err := api.New(api.Config{Runs: runs, Reads: w.store, Auth: auth, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	d := &door{}
	listening := httptest.NewServer(d.unreliable(server.Handler()))
	t.Cleanup(func() { server.EndStreams(); listening.Close() })
	d.world = w.with("API="+listening.URL, "BACKEND="+tokens["BACKEND"], "CUSTOMER="+tokens["CUSTOMER"], "REVIEWER="+tokens["REVIEWER"])
	return d
}

func (d *door) unreliable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost && d.acts.Add(1) == 1:
			next.ServeHTTP(httptest.NewRecorder(), r) // it is done, and nobody learns of it
			d.lost.Add(1)
			panic(http.ErrAbortHandler)
		case strings.HasSuffix(r.URL.Path, "/stream") && d.streams.Add(1) <= 2:
			defer d.cut.Add(1)
			next.ServeHTTP(&short{ResponseWriter: w, left: 5}, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// short writes a few times, the last time half of it, and then breaks.
type short struct {
	http.ResponseWriter
	left int
}

func (s *short) Write(p []byte) (int, error) {
	if s.left--; s.left > 0 {
		return s.ResponseWriter.Write(p)
	}
	_, _ = s.ResponseWriter.Write(p[:len(p)/2])
	_ = http.NewResponseController(s.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

func (s *short) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (d *door) program(t *testing.T, args ...string) result {
	t.Helper()
	return d.world.node(t, "dist/http/main.js", args...)
}

func testByHTTP(t *testing.T, w *world) {
	d := newDoor(t, w)
	order(t, w, "5001", 8990)
	args := []string{"--key", "http-5001", "--order", "5001", "--decide", "approve"}
	first := d.program(t, args...)
	require.Zero(t, first.code, first.errors)
	require.Equal(t, []int32{1, 2}, []int32{d.lost.Load(), d.cut.Load()}, "the network was as bad as it was to be")
	for _, line := range []string{
		" acme/refund/http-5001\n",
		`agent: Shall I refund this order? {"amount":{"currency":"EUR","minor":8990},"order_id":"5001"}`,
		"customer: yes, that one (accepted)\n",
		`Refund 89.90 EUR for order 5001: issue_refund {"amount":{"currency":"EUR","minor":8990},"order_id":"5001"}`,
		"reviewer: approve gate ",
		"\nagent: Order 5001: 89.90 EUR is on its way back to you.\n",
	} {
		require.Equal(t, 1, strings.Count(first.output, line), "%q in:\n%s", line, first.output)
	}
	require.Equal(t, agent.RunCompleted, first.end(t).Status)
	require.Equal(t, 1, w.refunds(t, "5001"))
	require.Equal(t, 1, w.receipts(t, "5001"))
	run := w.run(t, "acme/refund/http-5001", ended)
	require.JSONEq(t, string(run.State), string(first.end(t).State))
	verdicts := recorded[agent.VerdictData](t, w, run.Address(), agent.EventVerdict)
	require.Len(t, verdicts, 1)
	require.Equal(t, ann.Subject, verdicts[0].Verdict.Principal.Subject)
	require.Len(t, recorded[agent.MessageData](t, w, run.Address(), agent.EventMessage), 2)

	second := d.program(t, args...)
	require.Zero(t, second.code, second.errors)
	require.Contains(t, second.output, "found acme/refund/http-5001")
	require.Equal(t, first.end(t), second.end(t))
	require.Equal(t, 1, w.refunds(t, "5001"))
}

// An amount that no JavaScript number holds is shown, approved and paid to the last
// cent.
func testByHTTPExact(t *testing.T, w *world) {
	order(t, w, "5002", 9007199254740993)
	r := newDoor(t, w).program(t, "--key", "http-5002", "--order", "5002", "--decide", "approve")
	require.Zero(t, r.code, r.errors)
	require.Contains(t, r.output, `issue_refund {"amount":{"currency":"EUR","minor":9007199254740993},"order_id":"5002"}`)
	require.Contains(t, string(r.end(t).State), `"minor":9007199254740993`)
	all, err := w.shop.Refunds(t.Context())
	require.NoError(t, err)
	for _, p := range all {
		if p.OrderID == "5002" {
			require.EqualValues(t, 9007199254740993, p.Amount.Minor)
			return
		}
	}
	t.Fatal("nothing was paid")
}

func testByHTTPRejected(t *testing.T, w *world) {
	d := newDoor(t, w)
	order(t, w, "5003", 8990)
	silent := d.program(t, "--key", "http-5003", "--order", "5003", "--decide", "reject")
	require.Equal(t, 1, silent.code)
	require.Regexp(t, "^invalid: .*reason", silent.errors)
	right := d.program(t, "--key", "http-5003", "--order", "5003", "--decide", "reject", "--reason", "no photo")
	require.Zero(t, right.code, right.errors)
	require.Equal(t, "declined", right.end(t).Phase)
	require.Zero(t, w.refunds(t, "5003"))
	require.Len(t, w.run(t, "acme/refund/http-5003", ended).Rulings, 1)
}

func testByHTTPRefused(t *testing.T, w *world) {
	d := newDoor(t, w)
	nobody := d.with("BACKEND=ilk_none").node(t, "dist/http/main.js", "--key", "k", "--decide", "approve")
	require.Equal(t, 1, nobody.code)
	require.Regexp(t, "^unauthenticated: ", nobody.errors)
	for _, args := range [][]string{{}, {"--key", "k", "--decide", "perhaps"}, {"--key", "k", "--decide", "approve", "--nonsense"}} {
		r := d.program(t, args...)
		require.Equal(t, 2, r.code)
		require.Contains(t, r.errors, "usage: ")
	}
}

// order puts an order like 1042 of another amount into the shop.
func order(t *testing.T, w *world, id string, minor int64) {
	t.Helper()
	_, err := w.shop.DB().ExecContext(t.Context(), `INSERT INTO orders SELECT ?, customer_id, item, ?, currency, ordered_on, 'delivered' FROM orders WHERE id = '1042'`, id, minor)
	require.NoError(t, err)
}
