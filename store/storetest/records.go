package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

func modelCall(tenant, key string) store.ModelCall {
	return store.ModelCall{Tenant: tenant, Key: key, Address: "acme/refund/1", Turn: 2, Model: "m-1", Instructions: "i-1", RequestBytes: 100,
		Usage: agent.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4, Reasoning: 5}, Answer: agent.JSON(awkward), At: Epoch}
}

var modelCallTests = []contract{
	{"an answer is read back byte for byte", func(t *testing.T, s store.Store) {
		ctx, m := context.Background(), modelCall("acme", "k")
		first, err := s.RecordModelCall(ctx, m)
		require.NoError(t, err)
		require.Equal(t, m, first)
		got, err := s.ModelCall(ctx, "acme", "k")
		require.NoError(t, err)
		require.Equal(t, m, got)
		_, err = s.ModelCall(ctx, "acme", "none")
		requireCode(t, agent.CodeNotFound, err)
	}},
	{"the first answer stays, and the second is on the bill", func(t *testing.T, s store.Store) {
		ctx, m := context.Background(), modelCall("acme", "k")
		_, err := s.RecordModelCall(ctx, m)
		require.NoError(t, err)
		second := m
		second.Answer, second.Usage, second.RequestBytes, second.At = agent.JSON(`"other"`), agent.Usage{Output: 1 << 60}, 300, Epoch.Add(time.Second)
		first, err := s.RecordModelCall(ctx, second)
		require.NoError(t, err)
		require.Equal(t, m, first)
		stands, err := s.ModelCall(ctx, "acme", "k")
		require.NoError(t, err)
		require.Equal(t, m, stands)

		next := modelCall("acme", "k2")
		next.At, next.RequestBytes = Epoch.Add(time.Minute), 1000
		_, err = s.RecordModelCall(ctx, next)
		require.NoError(t, err)
		u, err := s.ModelUsage(ctx, "acme", m.Address)
		require.NoError(t, err)
		require.Equal(t, store.ModelUsage{Calls: 3, Twice: 1, BytesTotal: 1400, BytesLast: 1000,
			Usage: agent.Usage{Input: 2, CacheRead: 4, CacheWrite: 6, Output: 1<<60 + 8, Reasoning: 10}}, u)
	}},
	{"of answers at once the same one stands for all", func(t *testing.T, s store.Store) {
		var wg sync.WaitGroup
		firsts, errs := make([]store.ModelCall, 6), make([]error, 6)
		for i := range firsts {
			m := modelCall("acme", "k")
			m.RequestBytes = i
			wg.Go(func() { firsts[i], errs[i] = s.RecordModelCall(context.Background(), m) })
		}
		wg.Wait()
		for i := range firsts {
			require.NoError(t, errs[i])
			require.Equal(t, firsts[0], firsts[i])
		}
	}},
	{"a run without calls costs nothing", func(t *testing.T, s store.Store) {
		u, err := s.ModelUsage(context.Background(), "acme", "none")
		require.NoError(t, err)
		require.Zero(t, u)
	}},
}

var blobTests = []contract{
	{"a blob is named by its content and read in parts", func(t *testing.T, s store.Store) {
		ctx, data := context.Background(), append([]byte("\x00\xff<é🦊>"), bytes.Repeat([]byte("0123456789"), 10_000)...)
		b, err := s.PutBlob(ctx, "acme", data)
		require.NoError(t, err)
		sum := sha256.Sum256(data)
		require.Equal(t, agent.Blob{Ref: hex.EncodeToString(sum[:]), Bytes: len(data)}, b)
		again, err := s.PutBlob(ctx, "acme", data)
		require.NoError(t, err)
		require.Equal(t, b, again)
		for _, c := range []struct{ offset, n int }{{0, -1}, {0, 0}, {0, 3}, {3, 4}, {1, -1}, {50_000, 7}, {len(data) - 2, 9}, {len(data), -1}, {len(data) + 9, 5}} {
			got, err := s.GetBlob(ctx, "acme", b.Ref, c.offset, c.n)
			require.NoError(t, err)
			from := min(c.offset, len(data))
			to := len(data)
			if c.n >= 0 {
				to = min(from+c.n, to)
			}
			require.True(t, bytes.Equal(data[from:to], got), "%+v", c)
		}
		_, err = s.GetBlob(ctx, "acme", b.Ref, -1, 1)
		requireCode(t, agent.CodeInvalid, err)
	}},
	{"an empty blob is a blob, and an unknown one is not found", func(t *testing.T, s store.Store) {
		b, err := s.PutBlob(context.Background(), "acme", nil)
		require.NoError(t, err)
		got, err := s.GetBlob(context.Background(), "acme", b.Ref, 0, -1)
		require.NoError(t, err)
		require.Empty(t, got)
		_, err = s.GetBlob(context.Background(), "acme", "none", 0, -1)
		requireCode(t, agent.CodeNotFound, err)
	}},
}

var deploymentTests = []contract{
	{"each version is listed once, as it was last deployed", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		all, err := s.AllDeployed(ctx)
		require.NoError(t, err)
		require.Empty(t, all)
		for _, d := range []store.Deployment{
			{Agent: "triage", Version: 1, Fingerprint: "f", At: Epoch}, {Agent: "refund", Version: 10, Fingerprint: "f", At: Epoch},
			{Agent: "refund", Version: 2, Fingerprint: "old", At: Epoch}, {Agent: "refund", Version: 2, Fingerprint: "new", At: Epoch.Add(time.Hour)}} {
			require.NoError(t, s.Deployed(ctx, d))
		}
		all, err = s.AllDeployed(ctx)
		require.NoError(t, err)
		require.Equal(t, []store.Deployment{{Agent: "refund", Version: 2, Fingerprint: "new", At: Epoch.Add(time.Hour)},
			{Agent: "refund", Version: 10, Fingerprint: "f", At: Epoch}, {Agent: "triage", Version: 1, Fingerprint: "f", At: Epoch}}, all)
		requireCode(t, agent.CodeInvalid, s.Deployed(ctx, store.Deployment{Version: 1}))
	}},
	{"a version is described as it was last deployed, and a list describes none", func(t *testing.T, s store.Store) {
		ctx, d := context.Background(), store.Deployment{Agent: "refund", Version: 2, Fingerprint: "f", Description: agent.JSON(awkward), At: Epoch}
		_, err := s.Deployment(ctx, "refund", 2)
		requireCode(t, agent.CodeNotFound, err)
		require.NoError(t, s.Deployed(ctx, store.Deployment{Agent: "refund", Version: 2, Fingerprint: "old", Description: agent.JSON(`{}`), At: Epoch}))
		require.NoError(t, s.Deployed(ctx, d))
		got, err := s.Deployment(ctx, "refund", 2)
		require.NoError(t, err)
		require.Equal(t, d, got)
		_, err = s.Deployment(ctx, "refund", 3)
		requireCode(t, agent.CodeNotFound, err)
		all, err := s.AllDeployed(ctx)
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Nil(t, all[0].Description)
		d.Description = nil // of an older worker
		require.NoError(t, s.Deployed(ctx, d))
		got, err = s.Deployment(ctx, "refund", 2)
		require.NoError(t, err)
		require.Equal(t, d, got)
	}},
}
