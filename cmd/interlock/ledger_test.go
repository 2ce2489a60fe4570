package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
	"interlock/tool"
)

func TestLedger_ListAndShow(t *testing.T) {
	w := newWorld(t)
	ctx, address, digest := context.Background(), "acme/refund/ledger-list", strings.Repeat("5d41402a", 4)
	_, _, err := w.store.Claim(ctx, store.Claim{Tenant: "acme", Key: "ledger-list", Address: address, Scope: address + "/r1", Agent: "refund", Version: 1,
		Tool: "send_receipt", Kind: agent.Keyed, Step: "3.2", Args: agent.JSON(`{"order_id":"1042"}`), Branch: "r2", Attempt: time.Minute})
	require.NoError(t, err)
	require.NoError(t, w.store.Settle(ctx, "acme", "ledger-list", store.Outcome{Status: store.EffectApplied, Result: agent.JSON(`{"id":"m-1"}`)}))
	_, err = w.store.RecordModelCall(ctx, store.ModelCall{Tenant: "acme", Key: "m", Address: address, Turn: 3, Instructions: digest, Answer: agent.JSON(`{}`), At: time.Now()})
	require.NoError(t, err)
	list := func(args ...string) []ledgerLine {
		return decoded[struct{ Effects []ledgerLine }](t, w, append([]string{"ledger", "list", "--address", address}, args...)...).Effects
	}
	all := list()
	require.Len(t, all, 1)
	e := all[0]
	require.Equal(t, []any{store.StateApplied, "send_receipt", agent.Keyed, 1, 1, "3.2"}, []any{e.State, e.Tool, e.Effect, e.Version, e.Attempts, e.Step})
	for _, args := range [][]string{{"--tool", "send_receipt"}, {"--agent", "refund", "--agent-version", "1"}, {"--state", "applied"}, {"--since", "1h"},
		{"--since", "2020-01-01", "--until", "2099-01-01T00:00:00Z"}, {"--instructions", digest[:8]}} {
		require.Equal(t, all, list(args...), args)
	}
	for _, args := range [][]string{{"--tool", "issue"}, {"--agent-version", "2"}, {"--state", "in_doubt"}, {"--until", "1h"}, {"--instructions", "ffffffff"}, {"--after", e.Cursor}} {
		require.Empty(t, list(args...), args)
	}
	require.Contains(t, w.do(t, "ledger", "list", "--address", address), e.Key+"  applied")
	require.Contains(t, w.do(t, "ledger", "list", "--tool", "none"), "There are no such effects.")

	// The run of this effect has no journal, so nothing says what of it is sensitive.
	require.NotContains(t, w.do(t, "ledger", "show", e.Key), "m-1")
	text := w.do(t, "ledger", "show", "--unmask", e.Key)
	for _, want := range []string{"Effect " + e.Key + ", applied", `send_receipt {"order_id":"1042"}`, `{"id":"m-1"}`, "keyed", "3.2 of " + address + " (refund/v1)", "1, of which 0 certainly did nothing", "attempt 1, of"} {
		require.Contains(t, text, want)
	}
	require.Len(t, decoded[shownEffect](t, w, "ledger", "show", e.Key).MayHaveRun, 1)
}

// An effect that its run has left open is resolved by who has found out.
func TestLedger_SweepAndResolve(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	claim := func(key string, attempt time.Duration) {
		address := "acme/refund/" + key
		_, _, err := w.store.Claim(ctx, store.Claim{Tenant: "acme", Key: key, Address: address, Scope: address + "/r1", Agent: "refund", Version: 1,
			Tool: "send_receipt", Kind: agent.Keyed, Step: "3.2", Args: agent.JSON(`{}`), Attempt: attempt})
		require.NoError(t, err)
	}
	claim("left-running", time.Hour)
	claim("left-open", 0)
	claim("left-open-too", 0)
	require.Contains(t, w.do(t, "ledger", "sweep"), "Nothing is stranded.")
	resolve := func(key string, args ...string) result {
		return w.command().run(t, append([]string{"ledger", "resolve", key, "--reason", "seen in the list", "--as", "olga"}, args...)...)
	}
	require.Equal(t, exitConflict, resolve("left-open", "--did-not-happen").code, "its grace is not over")
	<-time.After(tool.Grace) // by the database's clock
	report := w.do(t, "ledger", "sweep")
	require.Contains(t, report, "2 effects were stranded:")
	require.Contains(t, report, "2    are in doubt: interlock ledger list --state in_doubt")
	require.Contains(t, w.do(t, "ledger", "list", "--state", "in_doubt"), "(masked)", "of a run without a journal nobody knows what is sensitive")
	require.Contains(t, w.do(t, "ledger", "show", "left-open", "--unmask"), "its run has ended")
	require.Contains(t, w.do(t, "ledger", "show", "left-open"), "interlock ledger resolve left-open")

	r := resolve("left-running", "--did-not-happen")
	require.Equal(t, exitConflict, r.code)
	require.Contains(t, r.err, "an attempt may still act on effect left-running")
	r = resolve("left-open", "--happened", `{"ids":1}`)
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "this is no result of send_receipt")
	require.Equal(t, exitNotFound, resolve("nothing", "--did-not-happen").code)

	r = resolve("left-open", "--happened", `{"id":"m-7"}`)
	require.Equal(t, exitOK, r.code, r.err)
	require.Contains(t, r.out, "found out by olga")
	r = resolve("left-open-too", "--did-not-happen")
	require.Equal(t, exitOK, r.code, r.err)
	require.Contains(t, r.out, "Effect left-open-too, refused")
	require.Equal(t, exitConflict, resolve("left-open-too", "--happened", `{"id":"m-7"}`).code)
	require.Contains(t, w.do(t, "ledger", "sweep"), "Nothing is stranded.")

	require.Contains(t, w.do(t, "ledger", "sweep", "--every", "10m"), "A sweep every 10m0s")
	require.Contains(t, w.do(t, "ledger", "sweep", "--every", "0s"), "No sweep is scheduled")
}

func TestHold_UntilItIsReleased(t *testing.T) {
	w := newWorld(t)
	address := w.atGateOf(t, "hold", w.order(t, "2043"))
	digest := decoded[shownGate](t, w, "gate", "show", address, "3.1").Gate.Digest
	held := w.do(t, "hold", "--tool", "issue_refund", "--reason", "sends twice", "--as", "olga")
	require.Contains(t, held, "Held: tool issue_refund, by olga since ")
	require.Contains(t, w.do(t, "hold", "list"), "tool issue_refund  olga")
	w.do(t, "gate", "approve", address, "3.1", "--digest", digest, "--as", "ann", "--role", "refunds")
	require.Eventually(t, func() bool {
		r := w.command().run(t, "run", "why", address)
		return strings.Contains(r.out, "waits: tool issue_refund is held by olga since ") && strings.Contains(r.out, ": sends twice")
	}, 30*time.Second, 100*time.Millisecond)
	require.Contains(t, w.do(t, "ledger", "list", "--address", address), "There are no such effects.", "it is not claimed")
	r := w.command().run(t, "hold", "release", "--tool", "send_receipt")
	require.Equal(t, exitNotFound, r.code)
	require.Contains(t, r.err, "nothing is held with tenant")
	require.Contains(t, w.do(t, "hold", "release", "--tool", "issue_refund", "--as", "pat"), "Released: tool issue_refund, held by olga")
	require.Contains(t, w.do(t, "hold", "list"), "Nothing is held.")
	require.Contains(t, w.do(t, "hold", "list", "--released"), "by pat")
	require.Eventually(t, func() bool {
		return decoded[agent.Run](t, w, "run", "get", address).Status == agent.RunCompleted
	}, 2*tool.HoldRetry, 200*time.Millisecond)
}
