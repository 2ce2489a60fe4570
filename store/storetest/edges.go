package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

// writes is one of each write that takes text or JSON from outside.
func writes(s store.Store, t testing.TB) map[string]func(ctx context.Context, text string, json agent.JSON) error {
	return map[string]func(context.Context, string, agent.JSON) error{
		"append": func(ctx context.Context, text string, json agent.JSON) error {
			h := NewHistory(t, "acme", "1", "r1").Say(1, "hi")
			h.Events[1].Data, h.Events[1].TraceID = json, text
			return s.Append(ctx, h.Ref, h.Batch(1, 2))
		},
		"head": func(ctx context.Context, text string, json agent.JSON) error {
			h := NewHistory(t, "acme", "2", "r1").Say(1, "hi")
			h.Events[1].Data, h.Head.Reason = json, text
			return s.Append(ctx, h.Ref, h.Batch(1, 2))
		},
		"claim": func(ctx context.Context, text string, json agent.JSON) error {
			c := claim("acme", "k1")
			c.Step, c.Args = text, json
			_, _, err := s.Claim(ctx, c)
			return err
		},
		"settle": func(ctx context.Context, text string, json agent.JSON) error {
			return s.Settle(ctx, "acme", "k2", store.Outcome{Status: store.EffectApplied, Result: json, Reason: text})
		},
		"mark": func(ctx context.Context, text string, json agent.JSON) error {
			_, err := s.MarkUnknown(ctx, "acme", "k3", 1, text+json.String()) // the reason is text: JSON that holds no bad byte is fine
			return err
		},
		"model call": func(ctx context.Context, text string, json agent.JSON) error {
			m := modelCall("acme", "m")
			m.Model, m.Answer = text, json
			_, err := s.RecordModelCall(ctx, m)
			return err
		},
		"deployment": func(ctx context.Context, text string, json agent.JSON) error {
			return s.Deployed(ctx, store.Deployment{Agent: "refund", Fingerprint: text + json.String()})
		},
	}
}

// ready makes the claims that the writes settle and mark.
func ready(t testing.TB, s store.Store) {
	for _, key := range []string{"k2", "k3"} {
		_, _, err := s.Claim(context.Background(), claim("acme", key))
		require.NoError(t, err)
	}
}

func requireUntouched(t testing.TB, s store.Store) {
	t.Helper()
	ctx := context.Background()
	runs, err := s.RunRows(ctx, "acme", store.RunFilter{})
	require.NoError(t, err)
	require.Empty(t, runs)
	for _, key := range []string{"1", "2"} {
		requireEvents(t, s, &History{Ref: store.RunRef{Tenant: "acme", Address: "acme/refund/" + key}})
	}
	effects, err := s.Effects(ctx, "acme", store.EffectFilter{Address: "acme/refund/1"})
	require.NoError(t, err)
	require.Len(t, effects, 2)
	for _, e := range effects {
		require.Equal(t, []any{store.EffectClaimed, 1, false}, []any{e.Status, e.Attempts, e.Unknown})
	}
	_, err = s.ModelCall(ctx, "acme", "m")
	requireCode(t, agent.CodeNotFound, err)
	all, err := s.AllDeployed(ctx)
	require.NoError(t, err)
	require.Empty(t, all)
}

var edgeTests = []contract{
	{"U+0000 and invalid UTF-8 are invalid everywhere", func(t *testing.T, s store.Store) {
		ready(t, s)
		for name, write := range writes(s, t) {
			for what, bad := range map[string]string{"NUL": "a\x00b", "UTF-8": "a\xffb"} {
				require.Equal(t, agent.CodeInvalid, agent.ErrorCode(write(context.Background(), bad, agent.JSON(`{}`))), "%s: %s in text", name, what)
				require.Equal(t, agent.CodeInvalid, agent.ErrorCode(write(context.Background(), "x", agent.JSON(`{"a":"`+bad+`"}`))), "%s: %s in JSON", name, what)
			}
			if name != "mark" && name != "deployment" {
				require.Equal(t, agent.CodeInvalid, agent.ErrorCode(write(context.Background(), "x", agent.JSON(`{"a":"\u0000"}`))), "%s: escaped NUL", name)
			}
		}
		requireUntouched(t, s)
	}},
	{"what looks like U+0000 and is not is taken", func(t *testing.T, s store.Store) {
		ready(t, s)
		for name, write := range writes(s, t) {
			require.NoError(t, write(context.Background(), `\u0000 \x00`, agent.JSON(`{"a":"\\u0000"}`)), name)
		}
	}},
	{"a cancelled context is an error, and leaves nothing", func(t *testing.T, s store.Store) {
		ready(t, s)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for name, write := range writes(s, t) {
			err := write(ctx, "x", agent.JSON(`{}`))
			require.ErrorIs(t, err, context.Canceled, name)
			require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), name)
		}
		_, err := s.PutBlob(ctx, "acme", []byte("x"))
		require.ErrorIs(t, err, context.Canceled)
		_, err = s.Events(ctx, store.Chain{Tenant: "acme", Address: "acme/refund/1"}, 1, 0)
		require.ErrorIs(t, err, context.Canceled)
		_, err = s.RunRow(ctx, store.Chain{Tenant: "acme", Address: "acme/refund/1"})
		require.ErrorIs(t, err, context.Canceled)
		_, err = s.Effect(ctx, "acme", "k2")
		require.ErrorIs(t, err, context.Canceled)
		requireUntouched(t, s)
		for name, write := range writes(s, t) {
			require.NoError(t, write(context.Background(), "x", agent.JSON(`{}`)), "afterwards: %s", name)
		}
	}},
	{"a closed store says so", func(t *testing.T, s store.Store) {
		require.NoError(t, s.Close())
		require.NoError(t, s.Close(), "twice")
		h := NewHistory(t, "acme", "1", "r1")
		requireCode(t, agent.CodeUnavailable, s.Append(context.Background(), h.Ref, h.Batch(1, 1)))
		_, err := s.Effect(context.Background(), "acme", "k")
		requireCode(t, agent.CodeUnavailable, err)
	}},
}
