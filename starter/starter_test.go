package starter_test

import (
	"context"
	"net"
	"strings"
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
	for name, call := range calls(ctx, s, address) {
		began := time.Now()
		err := call()
		require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%s: %v", name, err)
		require.Regexp(t, "try again with the same id|: try again$", err.Error(), name)
		require.Less(t, time.Since(began), 15*time.Second, name)
	}
}

// calls are those that ask Temporal about one run, each with an input that is
// right.
func calls(ctx context.Context, s *starter.Starter, address string) map[string]func() error {
	tenant, rest, _ := strings.Cut(address, "/")
	name, key, _ := strings.Cut(rest, "/")
	hi := signals.Message{ID: "1", Principal: ann, Text: "hi"}
	return map[string]func() error{
		"start": func() error {
			_, err := s.Start(ctx, starter.Start{Agent: name, Tenant: tenant, Key: key, Principal: ann})
			return err
		},
		"message": func() error { _, err := s.Message(ctx, address, hi); return err },
		"verdict": func() error {
			_, err := s.Decide(ctx, address, signals.Verdict{ID: "1", Principal: ann, Gate: "1.1", Digest: "d", Verdict: agent.Approve})
			return err
		},
		"cancel": func() error { _, err := s.Cancel(ctx, address, signals.Cancel{ID: "1", Principal: ann}); return err },
		"amend": func() error {
			_, err := s.Amend(ctx, address, signals.Amend{ID: "1", Principal: ann, Fields: agent.JSON(`{"a":1}`)})
			return err
		},
		"pause":  func() error { _, err := s.Pause(ctx, address, signals.Pause{ID: "1", Principal: ann}); return err },
		"resume": func() error { _, err := s.Resume(ctx, address, signals.Resume{ID: "1", Principal: ann}); return err },
		"converse": func() error {
			_, err := s.Converse(ctx, starter.Converse{Agent: name, Tenant: tenant, Key: key, Principal: ann, Message: hi})
			return err
		},
		"wait": func() error { _, err := s.Wait(ctx, address, 0); return err },
		"say":  func() error { _, err := s.Say(ctx, address, hi); return err },
		"get":  func() error { _, err := s.Get(ctx, address); return err },
		"why":  func() error { _, err := s.Why(ctx, address); return err },
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

func (r reader) Deployment(context.Context, string, int) (store.Deployment, error) {
	return store.Deployment{}, agent.Errorf(agent.CodeNotFound, "no worker has served it")
}

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
	ctx := t.Context()
	requireInvalid := func(what string, err error) {
		t.Helper()
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%s: %v", what, err)
	}
	for _, address := range []string{"", "k", "acme/lab", "acme/lab/k/l", "acme//k", "Acme/lab/k", "acme/lab/ k"} {
		for name, call := range calls(ctx, s, address) {
			requireInvalid(name+" "+address, call())
		}
		_, err := s.Gate(ctx, address, "1.1")
		requireInvalid("gate "+address, err)
		for _, err := range s.Watch(ctx, address, 0) {
			requireInvalid("watch "+address, err)
		}
	}
	for _, tenant := range []string{"", "Acme", "a/b", strings.Repeat("a", 64)} {
		_, err := s.List(ctx, tenant, store.RunFilter{})
		requireInvalid("list "+tenant, err)
		_, err = s.Gates(ctx, tenant, store.GateFilter{})
		requireInvalid("gates "+tenant, err)
		_, err = s.ResumeAll(ctx, tenant, starter.ResumeAll{ID: "1", Principal: ann})
		requireInvalid("resume all "+tenant, err)
	}
	for name, who := range map[string]agent.Principal{"": ann, " ": ann, "1": {}} { // by id
		_, err := s.Message(ctx, address, signals.Message{ID: name, Principal: who, Text: "hi"})
		requireInvalid("message", err)
		_, err = s.Cancel(ctx, address, signals.Cancel{ID: name, Principal: who})
		requireInvalid("cancel", err)
		_, err = s.Amend(ctx, address, signals.Amend{ID: name, Principal: who, Fields: agent.JSON(`{"a":1}`)})
		requireInvalid("amend", err)
		_, err = s.Pause(ctx, address, signals.Pause{ID: name, Principal: who})
		requireInvalid("pause", err)
		_, err = s.Resume(ctx, address, signals.Resume{ID: name, Principal: who})
		requireInvalid("resume", err)
		_, err = s.Decide(ctx, address, signals.Verdict{ID: name, Principal: who, Gate: "1.1", Digest: "d", Verdict: agent.Approve})
		requireInvalid("verdict", err)
		_, err = s.Say(ctx, address, signals.Message{ID: name, Principal: who, Text: "hi"})
		requireInvalid("say", err)
		_, err = s.Converse(ctx, starter.Converse{Agent: "lab", Tenant: "acme", Key: "k", Principal: ann, Message: signals.Message{ID: name, Principal: who, Text: "hi"}})
		requireInvalid("converse", err)
		_, err = starter.New(nowhere(t), starter.WithReader(stored())).ResumeAll(ctx, "acme", starter.ResumeAll{ID: name, Principal: who})
		requireInvalid("resume all", err)
	}
	for _, text := range []string{"", " ", "a\x00", "\xff", strings.Repeat("x", 100_000)} {
		_, err := s.Message(ctx, address, signals.Message{ID: "1", Principal: ann, Text: text})
		requireInvalid("text", err)
	}
	for _, fields := range []string{"", "{}", "[]", "1", `{"a":`, `{"a":1,"a":2}`} {
		_, err := s.Amend(ctx, address, signals.Amend{ID: "1", Principal: ann, Fields: agent.JSON(fields)})
		requireInvalid("amend "+fields, err)
	}
	for _, name := range []string{strings.Repeat("x", 201), strings.Repeat("ש", 150), "a\x00"} { // their messages would be refused
		_, err := s.Start(ctx, starter.Start{Agent: "lab", Tenant: "acme", Key: "k", Principal: ann, User: name})
		requireInvalid("user", err)
		_, err = s.Start(ctx, starter.Start{Agent: "lab", Tenant: "acme", Key: "k", Principal: agent.Principal{Subject: name}})
		requireInvalid("principal", err)
	}
	_, err := s.Wait(ctx, address, -1)
	requireInvalid("wait", err)
	for name, body := range map[string]any{"a channel": make(chan int), "NUL": "a\x00"} {
		_, err := s.Start(t.Context(), starter.Start{Agent: "lab", Tenant: "acme", Key: "k", Principal: ann, Body: body})
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%s: %v", name, err)
	}
}
