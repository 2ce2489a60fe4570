package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/api"
)

func TestBodies(t *testing.T) {
	l := newLab(t)
	path := l.run("k")
	for _, c := range []struct {
		name, body string
		status     int
		says       string
	}{
		{"cut", `{"text":"a"`, 400, ""},
		{"no JSON", `text=a`, 400, ""},
		{"trailing", `{"text":"a"} x`, 400, ""},
		{"two values", `{"text":"a"}{"text":"b"}`, 400, ""},
		{"key twice", `{"text":"a","text":"b"}`, 400, "text"},
		{"key twice but for case", `{"text":"a","Text":"b"}`, 400, "Text"},
		{"NUL", `{"text":"a\u0000b"}`, 400, "0000"},
		{"lone surrogate", `{"text":"\ud800"}`, 400, ""},
		{"invalid UTF-8", "{\"text\":\"\xff\"}", 400, ""},
		{"too deep", `{"text":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, 400, "64"},
		{"unknown key", `{"text":"a","txet":"b"}`, 422, "body.txet"},
		{"other case", `{"Text":"a"}`, 422, "text"},
		{"missing", `{}`, 422, "text"},
		{"null", `{"text":null}`, 422, "body.text"},
		{"other type", `{"text":1}`, 422, "body.text"},
		{"empty", `{"text":""}`, 422, "body.text"},
		{"unknown word", `{"text":"a","policy":"now"}`, 422, "body.policy"},
		{"array", `[{"text":"a"}]`, 422, ""},
		{"nothing", ``, 400, ""},
		{"too large", `{"text":"` + strings.Repeat("a", 257<<10) + `"}`, 413, "256 KiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := l.post("cust", path+"/messages", "b", c.body)
			code := map[int]agent.Code{400: "malformed", 422: agent.CodeInvalid, 413: "too_large"}[c.status]
			p := a.problem(c.status, code)
			require.Contains(t, a.body, c.says)
			if c.status == 422 {
				require.NotEmpty(t, p.Errors)
			}
		})
	}
	l.ask("cust", http.MethodPost, path+"/messages", `<text>a</text>`, "Idempotency-Key", "b", "Content-Type", "text/xml").problem(http.StatusUnsupportedMediaType, "unsupported_media_type")
	l.ask("cust", http.MethodPost, path+"/messages", `{"text":"a"}`, "Idempotency-Key", "fine", "Content-Type", "application/json; charset=utf-8").ok(http.StatusOK)
	run := into[api.ShownRun](l.get("cust", path).ok(200))
	require.Equal(t, 1, run.Turn, "of all that only the last was said")
}

func TestIdempotencyKey(t *testing.T) {
	l := newLab(t)
	path := l.run("k")
	say := func(text string, header ...string) answer {
		return l.ask("cust", http.MethodPost, path+"/messages", map[string]string{"text": text}, header...)
	}
	say("a").problem(http.StatusBadRequest, "idempotency_key_missing")
	say("a", "Idempotency-Key", " ").problem(http.StatusBadRequest, "idempotency_key_missing")
	for _, wrong := range []string{`"a`, `""`, strings.Repeat("a", 201), "ä", `" a"`} {
		say("a", "Idempotency-Key", wrong).problem(http.StatusBadRequest, "malformed")
	}
	say("a", "Idempotency-Key", "a", "Idempotency-Key", "b").problem(http.StatusBadRequest, "malformed")

	first := into[api.SentInput](say("hello", "Idempotency-Key", `"8e\"03"`).ok(http.StatusOK))
	require.Equal(t, `8e"03`, first.ID)
	again := into[api.SentInput](say("hello", "Idempotency-Key", `8e"03`, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").ok(http.StatusOK))
	require.Equal(t, agent.Accepted, first.Receipt.Status)
	require.Equal(t, agent.Repeated, again.Receipt.Status)
	require.Equal(t, first.Receipt.Seq, again.Receipt.Seq)
	say("other", "Idempotency-Key", `8e"03`).problem(http.StatusConflict, agent.CodeConflict)
	require.Equal(t, 1, into[api.ShownRun](l.get("cust", path).ok(200)).Turn)
}

func TestStart(t *testing.T) {
	l := newLab(t)
	start := func(as, id string, b map[string]any) answer {
		header := []string{}
		if id != "" {
			header = []string{"Idempotency-Key", id}
		}
		b["agent"] = or(b["agent"], "desk")
		return l.ask(as, http.MethodPost, "/v1/runs", b, header...)
	}
	start("backend", "", map[string]any{}).problem(http.StatusBadRequest, "idempotency_key_missing")
	a := start("backend", "i-1", map[string]any{"as_user": "cust"}).ok(http.StatusCreated)
	where := a.header.Get("Location")
	require.Regexp(t, `^/v1/runs/desk/k-[0-9a-f]{32}$`, where)
	require.Equal(t, where, start("backend", `"i-1"`, map[string]any{"as_user": "cust"}).ok(http.StatusOK).header.Get("Location"))
	start("backend", "i-1", map[string]any{"as_user": "other-cust"}).problem(http.StatusConflict, agent.CodeConflict)
	require.NotEqual(t, where, start("op", "i-1", map[string]any{}).ok(http.StatusCreated).header.Get("Location"), "another caller's key is another's")
	l.get("cust", where).ok(http.StatusOK)
	l.get("other-cust", where).problem(http.StatusNotFound, agent.CodeNotFound)
	for _, key := range []any{" ", "a/b", strings.Repeat("k", 10_000), "-k", "ä", 7, "a b"} {
		start("backend", "i-2", map[string]any{"key": key}).problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
	}
	start("backend", "", map[string]any{"key": "t-1"}).ok(http.StatusCreated)
	start("backend", "any", map[string]any{"key": "t-1"}).ok(http.StatusOK)
	start("backend", "", map[string]any{"key": "t-2", "agent": "dask"}).problem(http.StatusUnprocessableEntity, "unknown_agent")
	start("backend", "", map[string]any{"key": "t-3", "user": "a", "as_user": "b"}).problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
	start("op", "", map[string]any{"key": "t-3", "as_user": "cust"}).problem(http.StatusForbidden, agent.CodeDenied)
	start("backend", "", map[string]any{"key": "t-4", "version": 1e30}).problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
}

func or(v any, otherwise any) any {
	if v == nil {
		return otherwise
	}
	return v
}

// A list shows a user their own runs only, and a page at a time.
func TestList(t *testing.T) {
	l := newLab(t)
	for i := range 5 {
		l.run(fmt.Sprint("k", i))
	}
	l.post("backend", "/v1/runs", "x", map[string]any{"agent": "desk", "key": "x", "user": "other-cust"}).ok(http.StatusCreated)
	list := func(as, query string) (keys []string) {
		for token := ""; ; {
			page := into[api.RunPage](l.get(as, "/v1/runs?page_size=2"+query+"&page_token="+token).ok(200))
			require.LessOrEqual(t, len(page.Runs), 2)
			for _, r := range page.Runs {
				keys = append(keys, r.Key)
			}
			if token = page.Next; token == "" {
				return keys
			}
		}
	}
	require.Len(t, list("backend", ""), 6)
	require.ElementsMatch(t, []string{"k0", "k1", "k2", "k3", "k4"}, list("cust", ""))
	require.Equal(t, []string{"x"}, list("other-cust", ""))
	require.Empty(t, list("other-cust", "&user=cust"))
	require.Empty(t, list("evil", ""))
	require.Equal(t, []string{"k3"}, list("ann", "&agent=desk&key=k3"))
	require.Empty(t, list("ann", "&status=paused"))
	for _, wrong := range []string{"page_size=0", "page_size=201", "page_size=x", "status=done", "sort=asc", "page_token=zzz", "key=k1"} {
		l.get("ann", "/v1/runs?"+wrong).problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
	}
}

func FuzzBody(f *testing.F) {
	for _, seed := range []string{`{}`, `{"digest":"x","verdict":"approve"}`, `{"a":1,"A":2}`, `[1e400]`, `{"args":{"n":9007199254740993}}`, "\x00", `{"a":"\u0000"}`,
		strings.Repeat("[", 65), `{"k":-0}`, `{"é":"\ud83d\ude00"}`, ` {"a" : [ ] } `, `null`, `"` + strings.Repeat("a", 300) + `"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		api.RequireDecodes(t, data)
	})
}
