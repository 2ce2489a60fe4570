package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
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

// breaking are the faults by which each breakage is found, with what users do
// meanwhile.
var breaking = map[breakage]struct {
	faults []*fault
	acts   []act
	kind   string
	says   string
}{
	noClaim:   {[]*fault{kill(agent.Once, toSettle, false)}, nil, repeated, "happened 2 times"},
	noSettle:  {[]*fault{kill(agent.Keyed, toAnswer, false)}, nil, lost, "the ledger does not know how"},
	noOrdinal: {[]*fault{kill(agent.Keyed, toSettle, false)}, nil, lost, "order never happened"},
	noWait:    {[]*fault{kill(agent.Reconcilable, toEffect, true)}, nil, repeated, "book happened 2 times"},
	noUndo: {[]*fault{{kind: deployed, at: cell{agent.ReadOnly, toAnswer}}}, []act{{deed: cancelsRun, at: onceFired}}, lost,
		"was not undone on the other side"},
	noLook: {[]*fault{kill(agent.Once, toSettle, false)}, []act{{deed: saysInterrupt, at: onceMet}}, lost, "happened all the same"},
}

func played(t *testing.T, how breakage, acts []act, faults ...*fault) *report {
	t.Helper()
	o := options{seed: 1, stores: []string{sqliteKind}, how: how, size: size{workers: 2, runs: 2, first: how != whole}, acts: acts, dir: t.TempDir()}
	if len(acts) > 0 {
		o.size.users = 10
	}
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
			r := played(t, how, c.acts, c.faults...)
			require.True(t, r.failed())
			require.NotEmpty(t, r.violations)
			v := r.violations[0]
			require.Equal(t, c.kind, v.Kind, "%v", v)
			require.Contains(t, v.Text, c.says)
			t.Log(v)
		})
	}
}

// With the whole protocol the same faults break nothing, whether or not users
// interrupt.
func TestWhole(t *testing.T) {
	t.Parallel()
	for name, users := range map[string]bool{"left alone": false, "interrupted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var faults []*fault
			var acts []act
			for _, how := range breakages {
				if c := breaking[how]; (len(c.acts) > 0) == users {
					faults, acts = append(faults, c.faults...), append(acts, c.acts...)
				}
			}
			if users { // the cancel comes last
				slices.Reverse(acts)
				acts = append([]act{{deed: saysRollback, at: whileBusy, again: true}}, acts...)
				acts[1].at = whileBusy // the fault meets one of the runs
			}
			r := played(t, whole, acts, faults...)
			require.Empty(t, r.violations)
			require.Empty(t, r.shortfalls())
			require.False(t, r.failed())
			require.Equal(t, len(faults), r.struck)
			require.Equal(t, r.runs, r.ended)
			r.print(io.Discard)
			if !users {
				require.NotZero(t, r.doubts)
				return
			}
			require.Equal(t, r.runs, r.users)
			cancelled := r.deeds[cancelsRun]
			require.Equal(t, r.runs, cancelled[string(agent.TookNow)]+cancelled[string(agent.TookStopping)], "each is taken at once: %v", cancelled)
			require.NotZero(t, r.fates[agent.StepUndone])
		})
	}
}

// The seed decides what users do, and what reviewers do at each gate; in some dozen
// runs there is all of it.
func TestActs(t *testing.T) {
	t.Parallel()
	seen, decided := map[deed]int{}, map[deed]int{}
	for n := range 100 {
		acts := actsOf(7, n)
		require.Equal(t, acts, actsOf(7, n))
		require.NotEqual(t, acts, actsOf(8, n))
		for i, a := range acts {
			seen[a.deed]++
			require.False(t, slices.Contains(cancels, a.deed) && i < len(acts)-1, "nothing comes after a cancel")
			require.Equal(t, a.deed == pauses, i+1 < len(acts) && acts[i+1].deed == resumes)
		}
		v := reviewOf(7, fmt.Sprint("run ", n), 1)
		require.Equal(t, v, reviewOf(7, fmt.Sprint("run ", n), 1))
		decided[v.decides]++
		require.Contains(t, []deed{approves, rejects}, reviewOf(7, fmt.Sprint("run ", n), 4).decides)
	}
	for _, d := range slices.Concat(deeds, cancels, []deed{resumes}) {
		require.GreaterOrEqual(t, seen[d], 5, d)
	}
	for _, d := range decisive {
		require.GreaterOrEqual(t, decided[d], 10, d)
	}
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
	for _, args := range [][]string{{"-faults", "0"}, {"-store", "mysql"}, {"-break", "nothing"}, {"-break", "cl"}, {"more"}, {"-workers", "0"}, {"-users", "11"}} {
		_, err := parse(args, io.Discard)
		require.Error(t, err, args)
	}
	o, err := parse([]string{"-faults", "20", "-break", "wait"}, io.Discard)
	require.NoError(t, err)
	require.NotZero(t, o.seed)
	require.Equal(t, noWait, o.how)
}
