package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"

	"interlock/agent"
	"interlock/api/access"
)

// call is what is known of one request.
type call struct {
	server     *Server
	connection context.Context // ends with the client's connection, and not with the request's deadline
	id         string          // X-Request-Id
	trace      string          // of the traceparent
	caller     access.Caller
	act        access.Act
	asUser     string
	key        string // Idempotency-Key
	target     string // for the audit
	outcome    string // for the audit: ok, or a code
	route      string // for the metrics
	run        string // address of the run that the request is about, once it is allowed
	redacted   bool   // its answer is of several runs, or for who decides: it is redacted already
}

// principal is who acts: the caller, or the user on whose behalf they do.
func (c *call) principal() agent.Principal { return c.caller.For(c.asUser) }

type callKey struct{}

// callOf is the call of a context; an empty one outside of a request.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

var (
	requestID   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
	traceParent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$`)
)

// newCall gives a request its ids: those that it came with, where they are some.
func (s *Server) newCall(r *http.Request) *call {
	c := &call{server: s, id: r.Header.Get("X-Request-Id")}
	if !requestID.MatchString(c.id) {
		c.id = strings.ToLower(rand.Text())
	}
	if m := traceParent.FindStringSubmatch(r.Header.Get("traceparent")); m != nil && strings.Trim(m[1], "0") != "" && strings.Trim(m[2], "0") != "" && !strings.HasPrefix(m[0], "ff") {
		c.trace = m[1]
	} else {
		r.Header.Set("traceparent", "00-"+random(16)+"-"+random(8)+"-00")
		c.trace = r.Header.Get("traceparent")[3:35]
	}
	return c
}

// random are so many random bytes in hex.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// keyOf reads an Idempotency-Key: a structured field's string, "8e03", or the same
// without quotes. It becomes an id of the run.
func keyOf(r *http.Request) (string, *Problem) {
	all := r.Header.Values("Idempotency-Key")
	if len(all) == 0 || len(all) == 1 && strings.TrimSpace(all[0]) == "" {
		return "", problem(codeNoKey, "Give an Idempotency-Key of your own: a repeat under it takes effect once, and is answered as the first.")
	}
	key := strings.TrimSpace(all[0])
	if strings.HasPrefix(key, `"`) {
		if len(key) < 2 || !strings.HasSuffix(key, `"`) {
			return "", badKey()
		}
		key = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(key[1 : len(key)-1])
	}
	printable := !strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' })
	if len(all) > 1 || !printable || len(key) > 200 || strings.TrimSpace(key) != key || key == "" {
		return "", badKey()
	}
	return key, nil
}

func badKey() *Problem {
	p := problem(codeMalformed, "The Idempotency-Key is none: one, of 1 to 200 printable ASCII characters, with or without quotes around it.")
	p.Errors = []Place{{Location: "header.Idempotency-Key", Message: p.Detail}}
	return p
}
