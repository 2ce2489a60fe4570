package client_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/api/client"
)

// streams answers with frames, and then breaks the connection.
func streams(frames ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("retry: 1\n\n" + strings.Join(frames, "")))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

func event(seq int) string {
	return fmt.Sprintf("id: %d\ndata: {\"seq\":%d,\"at\":\"2026-11-30T10:00:00Z\",\"type\":\"message\",\"v\":1,\"tenant\":\"acme\",\"data\":{\"n\":9007199254740993}}\n\n", seq, seq)
}

const end = "event: end\ndata: {}\n\n"

// follow ranges to the end.
func follow(t *testing.T, c *client.Client, after int64, options ...client.FollowOption) (seqs []int64, err error) {
	t.Helper()
	for e, err := range c.Follow(t.Context(), "refund", "k", after, options...) {
		if err != nil {
			return seqs, err
		}
		require.Equal(t, `{"n":9007199254740993}`, string(e.Data))
		seqs = append(seqs, e.Seq)
	}
	return seqs, nil
}

// Whatever becomes of connections and servers: each event once, in order, to the end.
func TestFollow(t *testing.T) {
	s := serve(t,
		says(503, `{"code":"unavailable"}`),
		streams(":\n\n", event(3), event(4), event(5)[:20]),
		says(429, `{"code":"rate_limited"}`),
		streams(event(4), event(5), "event: delta\ndata: {\"turn\":2,\"attempt\":1,\"n\":1,\"text\":\"Good\"}\n\n", "event: of_tomorrow\ndata: 1\n\n"),
		streams("event: problem\ndata: {\"code\":\"unavailable\",\"status\":503}\n\n"),
		streams(),
		streams(strings.ReplaceAll(event(6), "\n", "\r\n"), end))
	var deltas []client.Delta
	seqs, err := follow(t, s.client(t), 2, client.OnDelta(func(d client.Delta) { deltas = append(deltas, d) }))
	require.NoError(t, err)
	require.Equal(t, []int64{3, 4, 5, 6}, seqs)
	require.Equal(t, []client.Delta{{Turn: 2, Attempt: 1, N: 1, Text: "Good"}}, deltas)
	var last []string
	for _, h := range s.heard {
		require.Equal(t, "/v1/runs/refund/k/stream", h.path)
		last = append(last, h.last)
	}
	require.Equal(t, []string{"2", "2", "4", "4", "5", "5", "5"}, last)
}

// What coming again does not change is the end, with the reason.
func TestFollow_Ends(t *testing.T) {
	for name, c := range map[string]struct {
		then http.HandlerFunc
		code client.Code
		says string
	}{
		"revoked": {says(401, `{"code":"unauthenticated"}`), client.CodeUnauthenticated, "behind event 1"},
		"reset":   {streams("event: problem\ndata: {\"code\":\"conflict\",\"status\":409,\"detail\":\"go on after event 0\"}\n\n"), client.CodeConflict, "go on after event 0"},
		"gap":     {streams(event(3)), "", "event 3 comes after event 1"},
		"no JSON": {streams("id: 2\ndata: {\n\n"), "", "behind event 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, streams(event(1)), c.then)
			seqs, err := follow(t, s.client(t), 0)
			require.Equal(t, []int64{1}, seqs)
			require.Equal(t, c.code, client.CodeOf(err))
			require.ErrorContains(t, err, c.says)
			require.Len(t, s.heard, 2)
		})
	}
}

// A connection that says nothing any more is dead; one whose frame is being worked on
// is not.
func TestFollow_Silence(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(event(1)))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, streams(event(1), event(2), end))
	seqs, err := follow(t, s.client(t, client.Hurry(50*time.Millisecond)), 0)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2}, seqs)
}

// Who stops listening, or whose context ends, is let go at once.
func TestFollow_Stops(t *testing.T) {
	open := func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(event(1) + event(2)))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	c := serve(t, open).client(t)
	for e, err := range c.Follow(t.Context(), "refund", "k", 0) {
		require.NoError(t, err)
		require.EqualValues(t, 1, e.Seq)
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for e, err := range c.Follow(ctx, "refund", "k", 0) {
		if last = err; e.Seq == 2 {
			cancel()
		}
	}
	require.ErrorIs(t, last, context.Canceled)
}

func TestFollowGates(t *testing.T) {
	change := func(place, kind string) string {
		return "id: " + place + "\ndata: {\"type\":\"" + kind + "\",\"address\":\"acme/refund/k\",\"agent\":\"refund\",\"key\":\"k\",\"gate\":\"3.1\",\"status\":\"open\",\"roles\":[\"refunds\"],\"seq\":7}\n\n"
	}
	ready := func(place string) string { return "id: " + place + "\nevent: ready\ndata: {}\n\n" }
	s := serve(t, streams(), streams(ready("p0"), change("p1", "gate_opened")), streams(ready("p1"), change("p2", "gate_closed")), says(403, `{"code":"denied"}`))
	var got []client.GateChange
	var last error
	for c, err := range s.client(t).FollowGates(t.Context(), "", client.OfRole("refunds"), client.OfAgent("refund")) {
		if last = err; err == nil {
			got = append(got, c)
		}
	}
	require.Equal(t, client.CodeDenied, client.CodeOf(last))
	one := client.GateChange{Place: "p1", Type: "gate_opened", Address: "acme/refund/k", Agent: "refund", Key: "k", Gate: "3.1", Status: "open", Roles: []string{"refunds"}, Seq: 7}
	two := one
	two.Place, two.Type = "p2", "gate_closed"
	require.Equal(t, []client.GateChange{{Place: "p0", Type: client.GatesReady}, one, two}, got)
	var asked []string
	for _, h := range s.heard {
		require.Equal(t, "agent=refund&role=refunds", h.query)
		asked = append(asked, h.last)
	}
	require.Equal(t, []string{"", "", "p1", "p2"}, asked)
}
