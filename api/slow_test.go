package api_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/api"
)

// Who sends slowly, or much, is let go of, and holds up nobody else.
func TestServe_SlowAndLarge(t *testing.T) {
	lab := newLab(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveBriefly(ctx, listener, lab.server.Handler()) }()
	defer func() { stop(); require.NoError(t, <-ended) }()
	head := "POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + lab.tokens["backend"] + "\r\nIdempotency-Key: k\r\n"
	for name, c := range map[string]struct {
		first   string
		says    string // what the answer begins with, where there is one
		dribble bool
	}{
		"headers that do not end":   {head, "", true},
		"a body that does not come": {head + "Content-Length: 1000\r\n\r\n{", "HTTP/1.1 4", true},
		"nothing at all":            {"", "", false},
		"headers without a bound":   {head + "X: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", "HTTP/1.1 431", false},
		"a body without a bound":    {head + fmt.Sprintf("Content-Length: %d\r\n\r\n", 10<<30), "HTTP/1.1 4", true},
		"chunks without a bound":    {head + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1000\r\n"+strings.Repeat(" ", 0x1000)+"\r\n", 100), "HTTP/1.1 413", false},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", listener.Addr().String())
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
			_, _ = io.WriteString(conn, c.first)
			done := make(chan struct{})
			if c.dribble {
				go func() {
					tick := time.NewTicker(50 * time.Millisecond)
					defer tick.Stop()
					for {
						select {
						case <-done:
							return
						case <-tick.C:
							_, _ = io.WriteString(conn, "a")
						}
					}
				}()
			}
			answer, err := io.ReadAll(conn) // until it is closed, which the deadline is far behind
			close(done)
			if netErr, ok := err.(net.Error); ok {
				require.False(t, netErr.Timeout(), "it is not closed")
			}
			require.True(t, strings.HasPrefix(string(answer), c.says), "%s", answer)
		})
	}
	r, err := http.NewRequest(http.MethodGet, "http://"+listener.Addr().String()+"/v1/runs", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+lab.tokens["ann"])
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
}

func serveBriefly(ctx context.Context, l net.Listener, h http.Handler) error {
	return api.ServeBriefly(ctx, l, h, slog.New(slog.DiscardHandler))
}
