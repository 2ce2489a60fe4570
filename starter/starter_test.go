package starter_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
)

var ann = agent.Principal{Subject: "ann"}

// nowhere is a client of a Temporal that is down.
func nowhere(t *testing.T) client.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	c, err := client.NewLazyClient(client.Options{HostPort: address})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// Temporal is down: the caller learns it within its deadline, and what to do.
func TestTemporalDown(t *testing.T) {
	t.Parallel()
	s := starter.New(nowhere(t), starter.WithDeadline(time.Second))
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"start": func() error {
			_, err := s.Start(ctx, starter.Start{Agent: "lab", Tenant: "acme", Key: "k", Principal: ann})
			return err
		},
		"message": func() error {
			_, err := s.Message(ctx, "acme/lab/k", signals.Message{ID: "1", Principal: ann, Text: "hi"})
			return err
		},
		"verdict": func() error {
			_, err := s.Decide(ctx, "acme/lab/k", signals.Verdict{ID: "1", Principal: ann, Gate: "1.1", Digest: "d", Verdict: agent.Approve})
			return err
		},
		"cancel": func() error {
			_, err := s.Cancel(ctx, "acme/lab/k", signals.Cancel{ID: "1", Principal: ann})
			return err
		},
		"get": func() error { _, err := s.Get(ctx, "acme/lab/k"); return err },
	} {
		began := time.Now()
		err := call()
		require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%s: %v", name, err)
		require.ErrorContains(t, err, "try again with the same id", name)
		require.Less(t, time.Since(began), 15*time.Second, name)
	}
}

// A caller's own deadline counts.
func TestDeadlineOfTheCaller(t *testing.T) {
	t.Parallel()
	s := starter.New(nowhere(t))
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := s.Message(ctx, "acme/lab/k", signals.Message{ID: "1", Principal: ann, Text: "hi"})
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
	require.Less(t, time.Since(began), 15*time.Second)
}

// reader is a store that knows one run and one deployment.
type reader struct {
	store.Reader
	row      store.RunRow
	err      error
	deployed []store.Deployment
}

func (r reader) RunRow(_ context.Context, run store.Chain) (store.RunRow, error) {
	if r.err == nil && run.Address != r.row.Address {
		return store.RunRow{}, agent.Errorf(agent.CodeNotFound, "there is no such run")
	}
	return r.row, r.err
}

func (r reader) Deployed(context.Context, store.Deployment) error { return nil }

func (r reader) AllDeployed(context.Context) ([]store.Deployment, error) { return r.deployed, r.err }

// What the store knows needs no Temporal.
func TestStart_RepeatedWhileTemporalIsDown(t *testing.T) {
	t.Parallel()
	body, err := agent.Encode(map[string]any{"n": 1})
	require.NoError(t, err)
	r := reader{row: store.RunRow{Address: "acme/lab/k", FirstRunID: "first", Body: signals.Start{Agent: "lab", Principal: ann, Body: body}.Digest()},
		deployed: []store.Deployment{{Agent: "lab", Version: 1}, {Agent: "lab", Version: 3}}}
	s := starter.New(nowhere(t), starter.WithReader(r), starter.WithDeadline(time.Second))
	in := starter.Start{Agent: "lab", Tenant: "acme", Key: "k", Principal: ann, Body: map[string]any{"n": 1}}
	got, err := s.Start(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, starter.Started{Address: "acme/lab/k", FirstRunID: "first"}, got)
	in.Body = map[string]any{"n": 2}
	_, err = s.Start(t.Context(), in)
	require.Equal(t, agent.CodeConflict, agent.ErrorCode(err), "%v", err)

	in.Key, in.Agent = "other", "lob"
	_, err = s.Start(t.Context(), in)
	require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err), "%v", err)
	require.ErrorContains(t, err, "deployed are [lab/v1 lab/v3]")
	in.Agent, in.Version = "lab", 2
	_, err = s.Start(t.Context(), in)
	require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err), "%v", err)

	r.err = agent.Errorf(agent.CodeUnavailable, "the store is locked")
	_, err = starter.New(nowhere(t), starter.WithReader(r)).Start(t.Context(), in)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "a start that may be a repeat waits for the store")
}

// What can never be right is refused before anything is sent.
func TestRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := starter.New(nowhere(t), starter.WithDeadline(time.Minute))
	for _, address := range []string{"", "k", "acme/lab", "acme/lab/k/l", "acme//k", "Acme/lab/k", "acme/lab/ k"} {
		_, err := s.Message(t.Context(), address, signals.Message{ID: "1", Principal: ann, Text: "hi"})
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%q: %v", address, err)
		_, err = s.Get(t.Context(), address)
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%q: %v", address, err)
	}
	for name, body := range map[string]any{"a channel": make(chan int), "NUL": "a\x00"} {
		_, err := s.Start(t.Context(), starter.Start{Agent: "lab", Tenant: "acme", Key: "k", Principal: ann, Body: body})
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%s: %v", name, err)
	}
}
