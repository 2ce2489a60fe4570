// Package storetest is the contract of package store as tests. Every driver
// runs through it; what only one driver can do is tested beside that driver.
package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

// Run holds a driver to the contract. open gives an empty store of its own to
// each test, and closes it at the test's end.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, group := range []struct {
		name  string
		tests []contract
	}{
		{"journal", journalTests},
		{"branches", branchTests},
		{"revivals", revivalTests},
		{"revivals refused", revivalRefusals},
		{"identity", identityTests},
		{"chains", chainTests},
		{"projections", projectionTests},
		{"soon journal", soon(journalTests)},
		{"soon branches", soon(branchTests)},
		{"soon revivals", soon(revivalTests)},
		{"soon revivals refused", soon(revivalRefusals)},
		{"soon identity", soon(identityTests)},
		{"soon chains", soon(chainTests)},
		{"soon projections", soon(projectionTests)},
		{"lists", listTests},
		{"feed", feedTests},
		{"deltas", deltaTests},
		{"assignments", assignmentTests},
		{"ledger", ledgerTests},
		{"exclusive claims", exclusiveTests},
		{"effects", effectTests},
		{"holds", holdTests},
		{"fences", fenceTests},
		{"model calls", modelCallTests},
		{"blobs", blobTests},
		{"deployments", deploymentTests},
		{"notices", noticeTests},
		{"overview", overviewTests},
		{"edges", edgeTests},
		{"loss", lossTests},
		{"tenants", tenantTests},
	} {
		for _, c := range group.tests {
			t.Run(group.name+"/"+c.name, func(t *testing.T) { c.test(t, open(t)) })
		}
	}
}

// soon runs tests of Append on AppendSoon: what they leave is the same.
func soon(tests []contract) (out []contract) {
	for _, c := range tests {
		out = append(out, contract{c.name, func(t *testing.T, s store.Store) { c.test(t, soonStore{s}) }})
	}
	return out
}

type soonStore struct{ store.Store }

func (s soonStore) Append(ctx context.Context, ref store.RunRef, batch agent.Batch) error {
	return s.AppendSoon(ctx, ref, batch)
}

// contract is one promise of the store.
type contract struct {
	name string
	test func(t *testing.T, s store.Store)
}

// awkward is JSON that careless storage changes: integers beyond 2^53, what
// encoding/json escapes, characters beyond the BMP, an escaped backslash
// before u0000, numbers beyond int64 and with an exponent.
const awkward = `{"big":9007199254740993,"emoji":"👩‍🚀🦊","huge":123456789012345678901234567890,"markup":"<a href=\"x\">&amp;</a>",` +
	`"min":-9223372036854775808,"small":1e-9,"text":"\\u0000 \u0001\t\n"}`

// canonical is canonical JSON of a text.
func canonical(t testing.TB, text string) agent.JSON {
	t.Helper()
	j, err := agent.Canonical([]byte(text))
	require.NoError(t, err)
	return j
}

func requireCode(t testing.TB, want agent.Code, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, want, agent.ErrorCode(err), "%v", err)
}

func requireRefusal(t testing.TB, want store.RefusalKind, err error) *store.Refusal {
	t.Helper()
	var r *store.Refusal
	require.ErrorAs(t, err, &r)
	require.Equal(t, want, r.Kind, "%v", err)
	require.NotEmpty(t, r.Message)
	return r
}

// requireEvents holds the journal to exactly these events, byte for byte.
func requireEvents(t testing.TB, s store.Store, r *History) {
	t.Helper()
	got, err := s.Events(context.Background(), r.Chain(), 1, 0)
	require.NoError(t, err)
	require.Equal(t, r.Events, got)
}

func appendAll(t testing.TB, s store.Store, r *History) {
	t.Helper()
	require.NoError(t, s.Append(context.Background(), r.Ref, r.Batch(1, r.Last())))
}
