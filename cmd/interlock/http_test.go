package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/api/access"
	"interlock/config"
	"interlock/examples/refund"
	"interlock/token"
)

const httpDoc = "../../docs/http.md"

// openDoor serves the API in the world, and says by which variables it is reached.
func (w *world) openDoor(t *testing.T) (url string, people []devPerson) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := *w.stage
	s.settings.API = config.Default().API
	s.settings.API.Listen = "127.0.0.1:0"
	d, people, err := s.openAPI(ctx)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- d.serve(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-served) })
	return "http://" + d.public.Addr().String(), people
}

// The walk through the API is pasted into a shell as it stands, and each block
// answers what stands below it.
func TestHTTP_TheWalkWorks(t *testing.T) {
	w := newWorld(t)
	url, people := w.openDoor(t)
	text, err := os.ReadFile(httpDoc)
	require.NoError(t, err)
	walk, _, found := strings.Cut(string(text), "## Who may do what")
	require.True(t, found)
	own := w.order(t, "3142")
	walk = strings.ReplaceAll(strings.ReplaceAll(walk, "order 1042", "order "+own), `"1042"`, `"`+own+`"`)
	walk = strings.ReplaceAll(walk, "r-1042", "r-"+own)
	blocks := regexp.MustCompile("(?s)```(sh)?\n(.*?)```").FindAllStringSubmatch(walk, -1)
	require.Greater(t, len(blocks), 10)

	var script strings.Builder
	var want []string // of the block of shell before
	for _, b := range blocks {
		if b[1] == "sh" {
			script.WriteString(b[2] + "\necho; echo '-- end of block --'\n")
			want = append(want, "")
			continue
		}
		want[len(want)-1] = b[2]
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-e", "-c", script.String())
	shell.Env = append(os.Environ(), "API="+url)
	for _, p := range people {
		shell.Env = append(shell.Env, p.variable+"="+p.token)
	}
	out, err := shell.CombinedOutput()
	require.NoError(t, err, "%s", out)
	answers := strings.Split(string(out), "-- end of block --")
	require.Len(t, answers, len(want)+1)
	for i, lines := range want {
		require.NotEmpty(t, lines, "block %d has no answer in the document", i)
		for line := range strings.Lines(lines) {
			require.Contains(t, answers[i], strings.TrimSpace(line), "block %d", i)
		}
	}
}

// askAs sends a request to a door.
func askAs(t *testing.T, token, method, url, body string, header ...string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	var out map[string]any
	require.NoError(t, json.NewDecoder(res.Body).Decode(&out))
	return res.StatusCode, out
}

// On a real server: a message that comes again is one message, whatever trace it
// has; the trace of the first is in the journal.
func TestHTTP_MessageOnce(t *testing.T) {
	w := newWorld(t)
	url, people := w.openDoor(t)
	backend, path := people[0].token, url+"/v1/runs/refund/http-once"
	status, _ := askAs(t, backend, http.MethodPost, url+"/v1/runs", `{"agent":"refund","key":"http-once","user":"c-017","body":{"customer_id":"c-017"}}`)
	require.Equal(t, http.StatusCreated, status)
	status, _ = askAs(t, backend, http.MethodPost, url+"/v1/runs", `{"agent":"refund","key":"http-once","user":"c-017","body":{"customer_id":"c-018"}}`)
	require.Equal(t, http.StatusConflict, status)
	var first any
	for i, trace := range []string{"0af7651916cd43dd8448eb211c80319c", "0af7651916cd43dd8448eb211c80319d"} {
		status, out := askAs(t, backend, http.MethodPost, path+"/messages", `{"text":"Please refund order 1017","as_user":"c-017"}`,
			"Idempotency-Key", "m-1", "traceparent", "00-"+trace+"-b7ad6b7169203331-01")
		require.Equal(t, http.StatusOK, status, out)
		receipt := out["receipt"].(map[string]any)
		if i == 0 {
			first = receipt["seq"]
		}
		require.Equal(t, first, receipt["seq"])
	}
	status, out := askAs(t, backend, http.MethodPost, path+"/messages", `{"text":"another","as_user":"c-017"}`, "Idempotency-Key", "m-1")
	require.Equal(t, http.StatusConflict, status)
	require.Equal(t, "conflict", out["code"])
	events := journalOf(t, backend, path, `"type":"proposal"`)
	require.Equal(t, 1, strings.Count(events, `"type":"message"`))
	require.Contains(t, events, `"trace_id":"0af7651916cd43dd8448eb211c80319c"`)
}

func TestAccess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "access.yaml")
	c := command{env: []string{"INTERLOCK_API_ACCESS=" + file}, temporal: "127.0.0.1:1"}
	made := c.run(t, "access", "new", "--id", "ann", "--tenant", "acme", "--subject", "ann", "--may", "reviewer", "--role", "refunds", "--expires", "720h")
	require.Equal(t, exitOK, made.code, made.err)
	require.Regexp(t, `^ilk_[A-Za-z0-9_-]{43}\n$`, made.out, "the token, and nothing else")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	tokens, err := access.OpenTokens(file, nil)
	require.NoError(t, err)
	who, err := tokens.Authenticate(context.Background(), strings.TrimSpace(made.out))
	require.NoError(t, err)
	require.Equal(t, agent.Principal{Subject: "ann", Roles: []string{"refunds"}, Tenant: "acme", Auth: "static:ann"}, who.Principal())

	shown := c.run(t, "access", "new", "--id", "shop", "--tenant", "acme", "--may", "starter,user", "-o", "json")
	var n newAccess
	require.NoError(t, json.Unmarshal([]byte(shown.out), &n))
	require.Equal(t, "shop", n.Subject)
	require.Equal(t, []access.Role{access.Starter, access.User}, n.May)
	listed := c.run(t, "access", "list")
	require.Contains(t, listed.out, "reviewer")
	require.NotContains(t, listed.out, "ilk_")
	require.Equal(t, exitConflict, c.run(t, "access", "new", "--id", "shop", "--tenant", "acme", "--may", "user").code)
	require.Equal(t, exitOK, c.run(t, "access", "revoke", "ann").code)
	require.Equal(t, exitNotFound, c.run(t, "access", "revoke", "ann").code)
	for _, wrong := range []string{"access new --id x --may user", "access new --id x --tenant acme", "access new --id x --tenant acme --may admin",
		"access new --id a/b --tenant acme --may user", "access new --id x --tenant acme --may user --expires -1h", "access new --tenant acme --may user"} {
		r := c.run(t, strings.Fields(wrong)...)
		require.Equal(t, exitUsage, r.code, "%s: %s", wrong, r.err)
		require.Empty(t, r.out)
	}
	require.Contains(t, command{temporal: "127.0.0.1:1"}.run(t, "access", "list").err, "--api-access")
}

// Without a file of tokens nothing listens; with one it does, says that it is
// ready, and ends in order.
func TestServe(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ args, says string }{
		{"serve", "no file of access tokens is named"},
		{"serve --api-listen 0.0.0.0:0", "no file of access tokens is named"},
		{"serve --api-access /nowhere/at/all", "/nowhere/at/all"},
		{"serve --api-listen 8088", "api.listen"},
	} {
		r := w.command().run(t, strings.Fields(c.args)...)
		require.Equal(t, exitUsage, r.code, r.err)
		require.Contains(t, r.err, c.says)
	}
	file := filepath.Join(t.TempDir(), "access.yaml")
	tok, entry := access.New(access.Entry{ID: "op", Tenant: "acme", Subject: "op", May: []access.Role{access.Operator}})
	require.NoError(t, access.Add(file, entry))
	public, admin := "127.0.0.1:"+freePort(t), "127.0.0.1:"+freePort(t)
	t.Setenv("TEMPORAL_ADDRESS", w.temporal.Address())
	p := start(t, "serve", "--api-access", file, "--api-listen", public, "--api-admin-listen", admin, "--store-path", w.settings.Store.Path)
	require.Eventually(t, func() bool {
		res, err := http.Get("http://" + admin + "/readyz?verbose")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	}, wait, tick, &p.err)
	status, _ := askAs(t, tok, http.MethodGet, "http://"+public+"/v1/runs", "")
	require.Equal(t, http.StatusOK, status)
	status, _ = askAs(t, "ilk_no", http.MethodGet, "http://"+public+"/v1/runs", "")
	require.Equal(t, http.StatusUnauthorized, status)
	second := start(t, "serve", "--api-access", file, "--api-listen", public, "--api-admin-listen", "127.0.0.1:0", "--store-path", w.settings.Store.Path)
	require.Error(t, second.Wait())
	require.Contains(t, second.err.String(), "choose another by --api-listen")
	require.Equal(t, exitOK, p.end(t, syscall.SIGTERM), &p.err)
}

// What the API sends is signed where there is a key: a run then knows who it was.
func TestServe_Signs(t *testing.T) {
	t.Setenv("INTERLOCK_TEMPORAL_CLI", cli(t))
	keys, private := t.TempDir(), t.TempDir()
	require.NoError(t, token.Generate(private, keys, "k"))
	settings := config.Default()
	settings.Store.Path, settings.ShutdownTimeout = filepath.Join(t.TempDir(), "interlock.db"), time.Second
	settings.Tokens = config.Tokens{Issuer: "api", Audience: "interlock", Keys: keys, SignWith: filepath.Join(private, "k.key.pem")}
	w := &world{stage: &stage{settings: settings, log: slog.New(slog.DiscardHandler), model: refund.Model()}}
	require.NoError(t, w.Open(context.Background()))
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	url, people := w.openDoor(t)
	status, out := askAs(t, people[0].token, http.MethodPost, url+"/v1/runs", `{"agent":"refund","key":"k","as_user":"c-017","body":{"customer_id":"c-017"}}`)
	require.Equal(t, http.StatusCreated, status, out)
	status, out = askAs(t, people[1].token, http.MethodPost, url+"/v1/runs/refund/k/messages", `{"text":"hello"}`, "Idempotency-Key", "m-1")
	require.Equal(t, http.StatusOK, status, out)
	events := journalOf(t, people[3].token, url+"/v1/runs/refund/k", `"type":"message"`)
	require.Contains(t, events, `"principal":{"auth":"api","subject":"c-017","tenant":"acme"}`)

	settings.Tokens.SignWith = filepath.Join(private, "none.key.pem")
	_, err := signerOf(settings)
	require.Error(t, err)
}

// journalOf is a run's journal, once it has a text.
func journalOf(t *testing.T, token, run, text string) (events string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, out := askAs(t, token, http.MethodGet, run+"/events?page_size=200", "")
		data, err := json.Marshal(out["events"])
		events = string(data)
		return err == nil && strings.Contains(events, text)
	}, wait, 100*time.Millisecond, "the journal never has %s", text)
	return events
}

// A stage that answers nobody else: the tokens of the last start are believed no more.
func TestDevTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "access.yaml")
	first, err := devTokens(file)
	require.NoError(t, err)
	second, err := devTokens(file)
	require.NoError(t, err)
	tokens, err := access.OpenTokens(file, nil)
	require.NoError(t, err)
	for i := range first {
		_, err := tokens.Authenticate(context.Background(), first[i].token)
		require.ErrorIs(t, err, access.ErrUnauthenticated)
		_, err = tokens.Authenticate(context.Background(), second[i].token)
		require.NoError(t, err)
	}
}
