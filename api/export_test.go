package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"
)

// RequireDecodes: whatever comes, it is refused as a problem of the client's, or
// has one form that decodes to itself.
func RequireDecodes(t *testing.T, data []byte) {
	out, err := decodeBody(data, "application/json", 1<<10)
	if err != nil {
		p, ok := err.(*Problem)
		require.True(t, ok)
		require.Less(t, p.Status, 500)
		require.True(t, json.Valid([]byte(mustJSON(t, p))))
		return
	}
	if out == nil {
		return
	}
	require.True(t, json.Valid(out))
	again, err := decodeBody(out, "", 1<<20)
	require.NoError(t, err)
	require.Equal(t, string(out), string(again))
	var v any
	_ = jsonFormat.Unmarshal(out, &v) // it must not panic
	var b VerdictBody
	_ = jsonFormat.Unmarshal(out, &b)
}

func mustJSON(t *testing.T, v any) string {
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

// Conforms says where an answer is not what the document promises; nil where it is,
// and where the document says nothing.
func (s *Server) Conforms(method, path string, status int, body []byte) []error {
	_, pattern := s.mux.Handler(httptest.NewRequest(method, path, nil))
	_, pattern, _ = strings.Cut(pattern, " ")
	item := s.api.OpenAPI().Paths[pattern]
	if item == nil {
		return nil
	}
	op := map[string]*huma.Operation{http.MethodGet: item.Get, http.MethodPost: item.Post}[method]
	if op == nil {
		return nil
	}
	response, media := op.Responses[strconv.Itoa(status)], "application/json"
	if response == nil {
		response, media = op.Responses["default"], "application/problem+json"
	}
	if response == nil || response.Content[media] == nil {
		return []error{fmt.Errorf("%s %s: the document knows no answer %d", method, pattern, status)}
	}
	var v any
	if err := jsonFormat.Unmarshal(body, &v); err != nil {
		return []error{err}
	}
	var res huma.ValidateResult
	huma.Validate(s.api.OpenAPI().Components.Schemas, response.Content[media].Schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, v, &res)
	return res.Errors
}

// StreamTimes shortens what a stream waits for.
func (s *Server) StreamTimes(ping, frame time.Duration) {
	s.streams.Ping, s.streams.Within = ping, frame
}

// OpenStreams is how many streams are open.
func (s *Server) OpenStreams() int { return s.streams.Open() }

// ServeBriefly serves with short bounds of what a connection may take.
func ServeBriefly(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	return bounds{header: 300 * time.Millisecond, read: 600 * time.Millisecond, idle: time.Second, headerBytes: 8 << 10}.serve(ctx, l, h, 5*time.Second, time.Second, log, nil)
}
