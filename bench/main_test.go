package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/store/pgtest"
)

// TestMain is the process of a measurement, too: the benchmark starts itself.
func TestMain(m *testing.M) {
	if job := os.Getenv(waitingVariable); job != "" {
		if err := waits(context.Background(), job, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if database := os.Getenv(loadVariable); database != "" {
		if err := serveLoad(context.Background(), database, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Nothing here looks at times: a busy machine must not fail a build.
func TestRun_Shape(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-turns", "2,4", "-rounds", "1", "-effects", "5", "-waiting", "6", "-streams", "30", "-load", "3s"}, &out, io.Discard))
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	var r report
	require.NoError(t, d.Decode(&r))
	_, err := d.Token()
	require.ErrorIs(t, err, io.EOF, "one JSON object and nothing else")

	require.Equal(t, "FULL", r.Store.Synchronous)
	require.Equal(t, "memory", r.Temporal.Storage)
	require.NotEmpty(t, r.Temporal.Flags)
	require.Contains(t, r.Temporal.CLI, "temporal version")
	require.Len(t, r.Runs, 2)
	for i, turns := range []int{2, 4} {
		one := r.Runs[i]
		require.Equal(t, turns, one.Turns)
		requireVariant(t, one.Ordinary, 2)
		requireVariant(t, one.Quick, 1)
		require.Equal(t, turns, one.Quick.Local)
		require.Equal(t, map[string]int{bareModel: turns, bareTool: turns}, one.Bare.Activities)
		require.InDelta(t, one.BareLike.Model.Argument, one.Bare.Parts[bareModel+": argument"], 1)
		require.InDelta(t, one.BareLike.Tool.Result, one.Bare.Parts[bareTool+": result"], 1)
		require.InDelta(t, 1000, one.BareLike.Tool.Result, 300, "the tool's result is about 1 KB")
		require.Positive(t, one.OverBare.OfPairs.Median)
		require.Positive(t, one.QuickBare.OfMedians)
	}
	require.Len(t, r.Effects, 2)
	for i, database := range []string{"sqlite", "postgres"} {
		e := r.Effects[i]
		require.Equal(t, database, e.Database)
		if e.Absent != "" {
			require.Equal(t, "postgres", database)
			require.False(t, pgtest.Available(), e.Absent)
			continue
		}
		require.Equal(t, 5, e.Effects)
		for _, s := range []*spread{e.Claim, e.Settle, e.Transactional, e.Bare} {
			require.Positive(t, s.Min)
			require.LessOrEqual(t, s.Min, s.Median)
		}
	}
	require.Len(t, r.Waiting, len(caches))
	for i, w := range r.Waiting {
		require.Equal(t, []int{6, caches[i], 6}, []int{w.Runs, w.Cache, w.Decided})
		require.Positive(t, w.Median)
		require.LessOrEqual(t, w.Median, w.P99)
	}
	require.Len(t, r.Load, 1)
	load := r.Load[0]
	require.Equal(t, []int{30, 0, 0, 0}, []int{load.Readers, load.Failed, load.Lost, load.Repeated}, load.Why)
	require.Positive(t, load.Reads)
	require.Positive(t, load.Acts)
	require.Positive(t, load.Events)
	require.Positive(t, load.Idle)
	require.NotEmpty(t, r.Limits)
	for _, l := range r.Limits {
		require.NotNil(t, l.Holds, l.Limit)
		require.NotNil(t, l.Got, l.Limit)
	}
}

func requireVariant(t *testing.T, v variant, activities float64) {
	t.Helper()
	require.InDelta(t, activities, v.TurnActivities, 0)
	require.Zero(t, v.Timers)
	require.Zero(t, v.Upserts)
	require.Positive(t, v.Turn.Median)
	require.Positive(t, v.Commits)
	require.Positive(t, v.Bytes)
	require.NotNil(t, v.Model)
	require.Equal(t, v.Activities["CallModel"], v.Model.Calls, "no call was billed twice")
	require.Positive(t, v.Model.Last)
	require.NotEmpty(t, v.RPCs)
}

// A database that is not there has a row that says so.
func TestEffects_WithoutPostgreSQL(t *testing.T) {
	t.Setenv("INTERLOCK_TEST_POSTGRES", "postgres://postgres@127.0.0.1:1/x?connect_timeout=1")
	rows, err := measureEffects(t.Context(), t.TempDir(), 2, io.Discard)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.NotNil(t, rows[0].Claim)
	require.Equal(t, "postgres", rows[1].Database)
	require.Nil(t, rows[1].Claim)
	require.Contains(t, rows[1].Absent, "127.0.0.1:1")
	none, err := measureEffects(t.Context(), t.TempDir(), 0, io.Discard)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestLimits_NotMeasured(t *testing.T) {
	for _, l := range limitsOf([]runReport{{Turns: 5}}, false) {
		if l.Holds == nil {
			require.Nil(t, l.Got, "what was not measured is not zero")
		}
	}
	few, most := ends([]runReport{{Turns: 200}, {Turns: 10}, {Turns: 50}})
	require.Equal(t, []int{50, 200}, []int{few.Turns, most.Turns})
}

func TestSized(t *testing.T) {
	for _, n := range []int{40, 1024} {
		for _, answer := range []int{0, 7, 1024} {
			j, err := json.Marshal(sized("some text, ", 5, answer, n))
			require.NoError(t, err)
			require.Len(t, j, n)
		}
	}
}

func TestParse_Refusals(t *testing.T) {
	for _, args := range [][]string{{"-turns", "0"}, {"-turns", "5,x"}, {"-rounds", "0"}, {"-effects", "-1"}, {"-waiting", "-1"}, {"more"}} {
		_, err := parse(args, io.Discard)
		require.Error(t, err, args)
	}
}

// BenchmarkMachine is what 200 turns cost in decisions alone.
func BenchmarkMachine(b *testing.B) {
	for b.Loop() {
		if _, err := machineTime(200); err != nil {
			b.Fatal(err)
		}
	}
}
