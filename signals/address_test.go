package signals_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"interlock/agent"
	"interlock/signals"
)

// never are parts of an address that no tenant, agent or key may have. What is
// accepted becomes a workflow id for ever, so nothing is normalised.
var never = []string{"", " ", "  k", "k ", "a/b", "/", "..", ".", "-k", "é", "ключ", "k\u200b", "k\n", "k\x00", "\xff", "k%2F", "k k", strings.Repeat("k", 10_000)}

func TestCheckAddress(t *testing.T) {
	require.NoError(t, signals.CheckAddress("acme", "refund", "order:1042@shop.example+2"))
	require.NoError(t, signals.CheckAddress("0-a_b", "a", "K"))
	require.NoError(t, signals.CheckAddress(strings.Repeat("t", 63), strings.Repeat("a", 64), strings.Repeat("k", 200)))

	refuse := func(part, tenant, name, key string) {
		t.Helper()
		err := signals.CheckAddress(tenant, name, key)
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err))
		require.ErrorContains(t, err, part+" \"")
		require.ErrorContains(t, err, "must be 1 to ")
		require.Less(t, len(err.Error()), 400, "the refused text is shortened")
		require.True(t, utf8.ValidString(err.Error()))
	}
	for _, s := range never {
		refuse("tenant", s, "refund", "k")
		refuse("agent", "acme", s, "k")
		refuse("key", "acme", "refund", s)
	}
	for _, s := range []string{"Acme", "acme.eu", "_acme", strings.Repeat("t", 64)} {
		refuse("tenant", s, "refund", "k")
	}
	for _, s := range []string{"Refund", "refund-v2", "1refund", "_refund", strings.Repeat("a", 65)} {
		refuse("agent", "acme", s, "k")
	}
	refuse("key", "acme", "refund", strings.Repeat("k", 201))
}

func TestCheckStart(t *testing.T) {
	good := signals.Start{Agent: "refund", Tenant: "acme", Key: "k", Principal: agent.Principal{Subject: "backend"}}
	require.NoError(t, signals.CheckStart(good))
	for _, c := range []struct {
		change func(*signals.Start)
		say    string
	}{
		{func(s *signals.Start) { s.Key = "" }, `key ""`},
		{func(s *signals.Start) { s.Key = " " }, `key " "`},
		{func(s *signals.Start) { s.Key = strings.Repeat("k", 10_000) }, "…"},
		{func(s *signals.Start) { s.Key = "a/b" }, `key "a/b"`},
		{func(s *signals.Start) { s.Key = "größe" }, `key "größe"`},
		{func(s *signals.Start) { s.Tenant = "" }, `tenant ""`},
		{func(s *signals.Start) { s.Agent = "Refund" }, `agent "Refund"`},
		{func(s *signals.Start) { s.Version = -1 }, "version -1 is none; leave it out for the newest"},
		{func(s *signals.Start) { s.Principal.Subject = "" }, "a start names its principal"},
		{func(s *signals.Start) { s.Body = agent.JSON(`"` + strings.Repeat("x", 64<<10) + `"`) }, "the body has 65538 bytes, the limit is 65536"},
	} {
		s := good
		c.change(&s)
		err := signals.CheckStart(s)
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), c.say)
		require.ErrorContains(t, err, c.say)
	}
}

// The key of a repair is a key, the same for the same steps, and another for others.
func TestRepairKey(t *testing.T) {
	for _, key := range []string{"k", strings.Repeat("k", 200)} {
		a := signals.RepairKey(key, "run", []string{"3.1", "4.1"})
		require.NoError(t, signals.CheckAddress("acme", "refund", a))
		require.Equal(t, a, signals.RepairKey(key, "run", []string{"4.1", "3.1"}))
		require.Contains(t, a, "+undo-")
		for _, other := range []string{signals.RepairKey(key, "run", []string{"3.1"}), signals.RepairKey(key, "run2", []string{"3.1", "4.1"}), signals.RepairKey(key+"x", "run", []string{"3.1", "4.1"})} {
			require.NotEqual(t, a, other)
		}
	}
}

func TestCheckStart_Repair(t *testing.T) {
	good := signals.Start{Agent: "refund", Version: 1, Tenant: "acme", Key: "k", Principal: agent.Principal{Subject: "ops"}, Repair: &agent.Repair{Address: "acme/refund/p"}}
	require.NoError(t, signals.CheckStart(good))
	for say, change := range map[string]func(*signals.Start){
		"of the same tenant and agent": func(s *signals.Start) { s.Repair = &agent.Repair{Address: "other/refund/p"} },
		"neither a body nor a message": func(s *signals.Start) { s.Body = agent.JSON(`{}`) },
		"names its version":            func(s *signals.Start) { s.Version = 0 },
		"the limit is 262144: undo few": func(s *signals.Start) {
			s.Repair = &agent.Repair{Address: "acme/refund/p", Reason: strings.Repeat("x", 256<<10)}
		},
	} {
		s := good
		change(&s)
		require.ErrorContains(t, signals.CheckStart(s), say)
	}
	other := good
	other.Repair = &agent.Repair{Address: "acme/refund/p", Steps: []agent.RepairStep{{ID: "3.1"}}}
	require.NotEqual(t, good.Digest(), other.Digest())
	again := other
	again.Repair = &agent.Repair{Address: "acme/refund/p", Steps: []agent.RepairStep{{ID: "3.1"}}, Reason: "another", ID: "u-2"}
	require.Equal(t, other.Digest(), again.Digest(), "the same steps are the same repair")
}

func TestSplitAddress(t *testing.T) {
	for _, s := range append([]string{"acme/refund", "acme/refund/k/x", "acme//k", "/refund/k", "acme/refund/", "Acme/refund/k"}, never...) {
		_, _, _, ok := signals.SplitAddress(s)
		require.False(t, ok, "%.40q", s)
	}
	rapid.Check(t, func(t *rapid.T) {
		tenant := rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,62}`).Draw(t, "tenant")
		name := rapid.StringMatching(`[a-z][a-z0-9_]{0,63}`).Draw(t, "agent")
		key := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._:@+-]{0,199}`).Draw(t, "key")
		require.NoError(t, signals.CheckAddress(tenant, name, key))
		gotTenant, gotName, gotKey, ok := signals.SplitAddress(signals.Address(tenant, name, key))
		require.True(t, ok)
		require.Equal(t, []string{tenant, name, key}, []string{gotTenant, gotName, gotKey})
	})
	// Whatever is accepted was an address: its parts make it again.
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.SampledFrom([]rune("ab1_-./ :é\x00"))).Draw(t, "s")
		if tenant, name, key, ok := signals.SplitAddress(s); ok {
			require.Equal(t, s, signals.Address(tenant, name, key))
		}
	})
}
