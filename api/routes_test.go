package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/api"
	"interlock/api/access"
)

// row says who may use a route, and with which body it is reached.
type row struct {
	body string
	may  []string // of the people below; all others are refused
	// ofRun: it is about one run, so whoever may not know of that gets the answer of
	// one that does not exist.
	ofRun bool
}

// rows has every route. One that is added without a row fails, so that who may use
// it is decided and not forgotten.
var rows = map[string]row{
	"list-runs":      {"", []string{"backend", "cust", "other-cust", "ann", "nurse", "op", "evil"}, false},
	"get-run":        {"", []string{"backend", "cust", "ann", "nurse", "op"}, true},
	"why-run":        {"", []string{"backend", "ann", "nurse", "op"}, true},
	"wait-run":       {"", []string{"backend", "cust", "ann", "nurse", "op"}, true},
	"list-events":    {"", []string{"backend", "cust", "ann", "nurse", "op"}, true},
	"get-state":      {"", []string{"backend", "cust", "ann", "nurse", "op"}, true},
	"get-context":    {"", []string{"backend", "ann", "nurse", "op"}, true},
	"export-run":     {"", []string{"backend", "ann", "nurse", "op"}, true},
	"start-run":      {`{"agent":"desk"}`, []string{"backend", "op", "evil"}, false},
	"converse":       {`{"text":"hi"}`, []string{"backend", "op", "evil"}, false},
	"message-run":    {`{"text":"hi"}`, []string{"backend", "cust", "op"}, true},
	"cancel-run":     {`{"reason":"x"}`, []string{"backend", "cust", "op"}, true},
	"amend-run":      {`{"fields":{"port":1}}`, []string{"backend", "op"}, true},
	"pause-run":      {"", []string{"op"}, true},
	"resume-run":     {"", []string{"op"}, true},
	"undo-run":       {`{"steps":["1.1"],"reason":"x"}`, []string{"op"}, true},
	"list-gates":     {"", []string{"backend", "ann", "nurse", "op", "evil"}, false},
	"get-gate":       {"", []string{"backend", "ann", "nurse", "op"}, true},
	"decide-gate":    {`{"digest":"x","verdict":"approve"}`, []string{"ann", "op"}, true},
	"list-rulings":   {"", []string{"backend", "ann", "nurse", "op"}, true},
	"lift-ruling":    {`{"reason":"x"}`, []string{"ann", "nurse", "op"}, true},
	"confirm-ruling": {"", []string{"ann", "nurse", "op"}, true},
	"list-effects":   {"", []string{"op", "evil"}, false},
	"count-runs":     {"", []string{"op", "evil"}, false},
	"sum-spent":      {"", []string{"op", "evil"}, false},
	"assign-gate":    {"", []string{"ann", "op"}, true},
	"unassign-gate":  {"", []string{"ann", "op"}, true},
	"list-absences":  {"", []string{"ann", "nurse", "op", "evil"}, false},
	"set-absence":    {`{"subject":"ann","cover":"bob","until":"2099-01-01T00:00:00Z"}`, []string{"ann", "op", "evil"}, false},
	"end-absence":    {"", []string{"ann", "op", "evil"}, false},
	"stream-events":  {"", []string{"backend", "cust", "ann", "nurse", "op"}, true},
	"stream-gates":   {"", []string{"backend", "ann", "nurse", "op", "evil"}, false},
	"resolve-effect": {`{"happened":false,"reason":"x"}`, []string{"op", "evil"}, false},
}

// refused are the answers of the door; any other is the run's.
var refused = []int{http.StatusUnauthorized, http.StatusForbidden}

func TestRoutes_WhoMay(t *testing.T) {
	l := newLab(t)
	everybody := []string{"backend", "cust", "other-cust", "ann", "nurse", "op", "evil"}
	for n, r := range l.server.Routes() {
		row, ok := rows[r.ID]
		require.True(t, ok, "route %s has no row: say who may use it", r.ID)
		t.Run(r.ID, func(t *testing.T) {
			l.t = t
			key := fmt.Sprint("k", n)
			l.atGate(key)
			path := strings.NewReplacer("{agent}", "desk", "{key}", key, "{gate}", "1.1", "{ruling}", "1.1", "{subject}", "ann").Replace(r.Path)
			switch r.ID {
			case "get-state":
				path += "?seq=3"
			case "get-context":
				path += "?turn=1"
			}
			ask := func(as string, i int) answer {
				var b any
				if row.body != "" {
					b = row.body
				}
				if r.Stream && slices.Contains(row.may, as) { // it does not end by itself
					s := l.follow(as, path)
					defer s.cancel()
					return answer{l.t, s.res.StatusCode, s.res.Header, ""}
				}
				return l.ask(as, r.Method, path, b, "Idempotency-Key", fmt.Sprint(as, n, i))
			}
			for i, as := range []string{"", "Bearer ilk_wrong", "expired", "Basic YTpi", "Bearer", "bearer  "} {
				a := ask(as, i)
				a.problem(http.StatusUnauthorized, access.CodeUnauthenticated)
				require.Equal(t, `Bearer realm="interlock"`, a.header.Get("WWW-Authenticate"))
			}
			nowhere := strings.NewReplacer("{agent}", "desk", "{key}", "nowhere", "{gate}", "1.1", "{ruling}", "1.1").Replace(r.Path)
			nowhere += strings.TrimPrefix(path, strings.SplitN(path, "?", 2)[0])
			for i, as := range everybody {
				a := ask(as, 10+i)
				if slices.Contains(row.may, as) {
					require.NotContains(t, refused, a.status, "%s: %s", as, a.body)
					if !slices.Contains([]string{"resolve-effect", "lift-ruling", "confirm-ruling"}, r.ID) { // there is none here
						require.NotEqual(t, http.StatusNotFound, a.status, "%s: %s", as, a.body)
					}
					continue
				}
				require.Contains(t, []int{http.StatusForbidden, http.StatusNotFound}, a.status, "%s: %s", as, a.body)
				if row.ofRun && (as == "evil" || as == "other-cust") {
					var b any
					if row.body != "" {
						b = row.body
					}
					requireAlike(t, a, l.ask(as, r.Method, nowhere, b, "Idempotency-Key", fmt.Sprint(as, n, i)))
				}
			}
		})
	}
	for id := range rows {
		require.True(t, slices.ContainsFunc(l.server.Routes(), func(r api.Route) bool { return r.ID == id }), "there is no route %s any more", id)
	}
}

// requireAlike: two answers tell the same, but for their ids and the time.
func requireAlike(t *testing.T, a, b answer) {
	t.Helper()
	require.Equal(t, a.status, b.status)
	ids := regexp.MustCompile(`"instance":"[a-z0-9]+"`)
	require.Equal(t, ids.ReplaceAllString(a.body, ""), ids.ReplaceAllString(b.body, ""))
	for _, h := range []http.Header{a.header, b.header} {
		for _, k := range []string{"X-Request-Id", "Traceparent", "Date"} {
			h.Del(k)
		}
	}
	require.Equal(t, a.header, b.header)
}

// Every request is in the audit with who, what and how it ended, and with nothing
// that anybody said.
func TestAudit(t *testing.T) {
	l := newLab(t)
	path := l.run("k")
	l.post("cust", path+"/messages", "m-1", map[string]string{"text": "the word is xyzzy"}).ok(http.StatusOK)
	l.post("other-cust", path+"/messages", "m-2", map[string]string{"text": "xyzzy"}).problem(http.StatusNotFound, agent.CodeNotFound)
	l.post("cust", path+"/messages", "m-3", `{"text":7}`).problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
	l.post("Bearer ilk_wrong", path+"/messages", "m-4", nil).problem(http.StatusUnauthorized, access.CodeUnauthenticated)
	l.post("backend", path+"/messages", "m-5", map[string]string{"text": "hi", "as_user": "cust"}).ok(http.StatusOK)
	var got [][]string
	for line := range strings.Lines(l.log.String()) {
		var e map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if e["msg"] == "audit" && e["act"] == "message" {
			require.NotEmpty(t, e["request_id"])
			got = append(got, []string{fmt.Sprint(e["subject"]), fmt.Sprint(e["tenant"]), fmt.Sprint(e["target"]), fmt.Sprint(e["outcome"]), fmt.Sprint(e["as_user"])})
		}
	}
	require.Equal(t, [][]string{
		{"cust", "acme", "acme/desk/k", "ok", "<nil>"},
		{"other-cust", "acme", "acme/desk/k", "not_found", "<nil>"},
		{"cust", "acme", "acme/desk/k", "invalid", "<nil>"},
		{"", "", "", "unauthenticated", "<nil>"},
		{"backend", "acme", "acme/desk/k", "ok", "cust"},
	}, got)
	require.NotContains(t, l.log.String(), "xyzzy")
	for _, token := range l.tokens {
		require.NotContains(t, l.log.String(), token)
	}
}
