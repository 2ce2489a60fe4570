package openai_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/llm"
	"interlock/llm/openai"
)

// Pieces are handed out while the answer is on its way, not when it has come.
func TestDelta_WhileItComes(t *testing.T) {
	rest := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i, piece := range []string{"Good ", "day", "."} {
			fmt.Fprintf(w, "data: {\"id\":\"a\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", piece)
			_ = http.NewResponseController(w).Flush()
			if i == 0 {
				select {
				case <-rest:
				case <-r.Context().Done():
				}
			}
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	m, err := openai.New(openai.Options{Model: "m", BaseURL: server.URL, APIKey: "k", Stream: true, Timeout: time.Minute})
	require.NoError(t, err)
	var pieces []string
	got, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("hi")}, Delta: func(text string) {
		if pieces = append(pieces, text); len(pieces) == 1 {
			close(rest) // the rest is not sent before
		}
	}})
	require.NoError(t, err)
	require.Equal(t, []string{"Good ", "day", "."}, pieces)
	require.Equal(t, "Good day.", got.Text)
}
