package main

import (
	"fmt"
	"math"
)

// limitsOf holds what was measured against what a turn must cost. Times are
// judged at the most turns, where a run's start and end weigh least.
func limitsOf(runs []runReport, withQuick bool) []limit {
	few, most := ends(runs)
	var out []limit
	add := func(text string, bound, got float64, measured bool) {
		l := limit{Limit: text, Most: bound}
		if measured {
			got = round(got)
			holds := got <= bound
			l.Got, l.Holds = &got, &holds
		}
		out = append(out, l)
	}
	flat := few.Turns < most.Turns
	for _, v := range []struct {
		name       string
		few, most  variant
		activities float64
		ratio      float64
		got        ratios
		measured   bool
	}{
		{"ordinary tool", few.Ordinary, most.Ordinary, 2, 1.25, most.OverBare, true},
		{"quick tool", few.Quick, most.Quick, 1, 0.7, most.QuickBare, withQuick},
	} {
		add(v.name+": activities a turn", v.activities, v.most.TurnActivities, v.measured)
		add(v.name+": timers, search attributes", 0, float64(v.most.Timers+v.most.Upserts), v.measured)
		add(fmt.Sprintf("%s: history bytes a turn at %d turns", v.name, most.Turns), 16<<10, v.most.BytesTurn, v.measured)
		add(fmt.Sprintf("%s: history bytes a turn, change from %d to %d turns", v.name, few.Turns, most.Turns), 0.1,
			change(v.few.BytesTurn, v.most.BytesTurn), v.measured && flat)
		add(fmt.Sprintf("%s: model bytes of the last 10 requests, change from %d to %d turns", v.name, few.Turns, most.Turns), 0.1,
			change(lastTen(v.few), lastTen(v.most)), v.measured && flat)
		add(fmt.Sprintf("%s: time a turn over the bare workflow's at %d turns, median of pairs", v.name, most.Turns), v.ratio,
			v.got.OfPairs.Median, v.measured)
	}
	return out
}

// ends are the runs that flatness is judged by: 50 turns, where the window of
// recent turns has filled up, or else the fewest, and the most.
func ends(runs []runReport) (few, most runReport) {
	few, most = runs[0], runs[0]
	for _, r := range runs {
		if r.Turns > most.Turns {
			most = r
		}
		if few.Turns != 50 && (r.Turns == 50 || r.Turns < few.Turns) {
			few = r
		}
	}
	return few, most
}

func change(from, to float64) float64 { return math.Abs(to/from - 1) }

func lastTen(v variant) float64 {
	if v.Model == nil {
		return 0
	}
	return v.Model.LastTen
}
