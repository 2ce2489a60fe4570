// Package openaitest is a server that speaks the Chat Completions wire format,
// for tests: it judges every request by the provider's rules, refuses what the
// provider would refuse, and answers the rest by a script.
//
//	server := openaitest.Start(t, func(req openaitest.ChatRequest) openaitest.ChatReply {
//		return openaitest.Say("hello")
//	})
//	model, err := openai.New(openai.Options{Model: "m", BaseURL: server.BaseURL(), APIKey: server.Key()})
package openaitest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Key is the key that servers accept.
const Key = "sk-test-3f9c1e7a5b2d4860"

// Handler answers a request that keeps the rules. It is called by several
// goroutines at once. A handler that depends on the request alone gives a retry
// the same answer.
type Handler func(ChatRequest) ChatReply

// Server is a provider. It is safe for concurrent use.
type Server struct {
	http    *httptest.Server
	closing chan struct{}

	mu       sync.Mutex
	handler  Handler
	down     bool
	requests []ChatRequest
}

// Start starts a server that is closed with the test.
func Start(t testing.TB, h Handler) *Server {
	t.Helper()
	s := New(h)
	t.Cleanup(s.Close)
	return s
}

// New starts a server. The caller closes it.
func New(h Handler) *Server {
	s := &Server{handler: h, closing: make(chan struct{})}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Close ends hanging answers and stops the server.
func (s *Server) Close() {
	close(s.closing)
	s.http.Close()
}

// BaseURL is the address that a driver is given.
func (s *Server) BaseURL() string { return s.http.URL + "/v1" }

// Key is the key that the server accepts.
func (s *Server) Key() string { return Key }

// Handle changes how requests are answered from now on.
func (s *Server) Handle(h Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = h
}

// SetDown begins or ends an outage, in which every request is counted and
// answered 503.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// Requests are all that came, in the order of their arrival, those of an outage
// and those that were refused too.
func (s *Server) Requests() []ChatRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Count is the number of requests that came.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// Broken are the rules that requests broke, one text a request.
func (s *Server) Broken() []string {
	var out []string
	for _, r := range s.Requests() {
		if r.Broken != "" {
			out = append(out, r.Broken)
		}
	}
	return out
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	req := read(body)
	req.Header = r.Header.Clone()
	refusal := ChatReply{}
	switch given := r.Header.Get("Authorization"); {
	case r.URL.Path != "/v1/chat/completions":
		refusal = Fail(http.StatusNotFound, "", "Invalid URL ("+r.Method+" "+r.URL.Path+")")
	case r.Method != http.MethodPost:
		refusal = Fail(http.StatusMethodNotAllowed, "method_not_supported", "Only POST requests are accepted.")
	case given == "":
		refusal = Fail(http.StatusUnauthorized, "invalid_api_key", "You didn't provide an API key.")
	case given != "Bearer "+Key: // servers repeat the key: a driver must not
		refusal = Fail(http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided: "+strings.TrimPrefix(given, "Bearer ")+".")
	case req.Broken != "":
		refusal = Fail(http.StatusBadRequest, "invalid_value", req.Broken)
	}
	handler, down := s.take(req)
	switch {
	case down:
		Fail(http.StatusServiceUnavailable, "", "The server is down.").write(w, r, req, s.closing)
	case refusal.Status != 0:
		refusal.write(w, r, req, s.closing)
	default:
		handler(req).write(w, r, req, s.closing)
	}
}

func (s *Server) take(req ChatRequest) (h Handler, down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	return s.handler, s.down
}

// Sequence answers the n-th request with the n-th reply, and those beyond the
// last one with 400. It is for one conversation without retries.
func Sequence(replies ...ChatReply) Handler {
	var mu sync.Mutex
	n := 0
	return func(ChatRequest) ChatReply {
		mu.Lock()
		defer mu.Unlock()
		if n >= len(replies) {
			return Fail(http.StatusBadRequest, "script_ended", "The script has no further reply.")
		}
		n++
		return replies[n-1]
	}
}

// Always answers every request alike.
func Always(reply ChatReply) Handler { return func(ChatRequest) ChatReply { return reply } }
