package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) != "" || os.Getenv(holderVariable) != "" {
		if err := role(nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("5") // they wait, mostly
	}
	os.Exit(m.Run())
}

func kill(e agent.Effect, w window, late bool) *fault {
	return &fault{kind: killed, at: cell{e, w}, late: late}
}

// breaking are the faults by which each breakage is found.
var breaking = map[breakage]struct {
	faults []*fault
	kind   string
	says   string
}{
	noClaim:   {[]*fault{kill(agent.Once, toSettle, false)}, repeated, "happened 2 times"},
	noSettle:  {[]*fault{kill(agent.Keyed, toAnswer, false)}, lost, "the ledger does not know how"},
	noOrdinal: {[]*fault{kill(agent.Keyed, toSettle, false)}, lost, "order never happened"},
	noWait:    {[]*fault{kill(agent.Reconcilable, toEffect, true)}, repeated, "book happened 2 times"},
}

func played(t *testing.T, how breakage, faults ...*fault) *report {
	t.Helper()
	o := options{seed: 1, stores: []string{sqliteKind}, how: how, size: size{workers: 2, runs: 2, first: how != whole}, dir: t.TempDir()}
	for _, f := range faults {
		same := *f
		o.planned = append(o.planned, &same)
	}
	r, err := o.run(t.Context())
	require.NoError(t, err)
	require.Empty(t, r.troubles)
	return r
}

// A harness that cannot fail proves nothing: with a part of the protocol switched
// off it reports what that part is for.
func TestBroken(t *testing.T) {
	t.Parallel()
	for _, how := range breakages {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			c := breaking[how]
			r := played(t, how, c.faults...)
			require.True(t, r.failed())
			require.NotEmpty(t, r.violations)
			v := r.violations[0]
			require.Equal(t, c.kind, v.Kind, "%v", v)
			require.Contains(t, v.Text, c.says)
			t.Log(v)
		})
	}
}

// With the whole protocol the same faults break nothing.
func TestWhole(t *testing.T) {
	t.Parallel()
	var faults []*fault
	for _, how := range breakages {
		faults = append(faults, breaking[how].faults...)
	}
	r := played(t, whole, faults...)
	require.Empty(t, r.violations)
	require.Empty(t, r.shortfalls())
	require.False(t, r.failed())
	require.Equal(t, len(faults), r.struck)
	require.Equal(t, r.runs, r.ended)
	require.NotZero(t, r.doubts)
	r.print(io.Discard)
}

// Every cell has its share, every kind is there, and the seed decides all of it.
func TestPlan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		faults := plan(seed, 200)
		hits, by, late, sure := map[cell]int{}, map[kind]int{}, 0, map[cell]int{}
		for i, f := range faults {
			require.Equal(t, *f, *plan(seed, 200)[i])
			hits[f.at]++
			by[f.kind]++
			if f.late {
				late++
			}
			if f.sure {
				sure[f.at]++
				require.Equal(t, killed, f.kind)
				require.False(t, f.late)
			}
		}
		for _, c := range cells {
			require.GreaterOrEqual(t, hits[c], least(200)+2, c)
		}
		require.Equal(t, 200/shareRandom, hits[cell{}])
		for _, k := range kinds {
			require.GreaterOrEqual(t, by[k], 10, k)
		}
		require.NotZero(t, late)
		require.Len(t, sure, 2)
		require.NotEqual(t, fmt.Sprint(values(faults)), fmt.Sprint(values(plan(seed+1, 200))))
	}
}

func values(faults []*fault) (out []fault) {
	for _, f := range faults {
		out = append(out, *f)
	}
	return out
}

func TestParse_Refusals(t *testing.T) {
	for _, args := range [][]string{{"-faults", "0"}, {"-store", "mysql"}, {"-break", "nothing"}, {"-break", "cl"}, {"more"}, {"-workers", "0"}} {
		_, err := parse(args, io.Discard)
		require.Error(t, err, args)
	}
	o, err := parse([]string{"-faults", "20", "-break", "wait"}, io.Discard)
	require.NoError(t, err)
	require.NotZero(t, o.seed)
	require.Equal(t, noWait, o.how)
}
