package main

import (
	"math"
	"slices"
	"time"

	"interlock/signals"
)

// report is what the benchmark prints. Times are milliseconds, sizes bytes.
type report struct {
	Machine  machineInfo   `json:"machine"`
	Temporal temporalInfo  `json:"temporal"`
	Store    storeInfo     `json:"store"`
	Rounds   int           `json:"rounds"`
	Runs     []runReport   `json:"runs"` // by number of turns
	Limits   []limit       `json:"limits"`
	Effects  []effectCost  `json:"effects"` // by database
	Waiting  []waitingCost `json:"waiting"` // by size of the cache
	Load     []loadCost    `json:"load"`    // of the HTTP API; none where it was not measured
}

// effectCost is what an effect's protocol costs, in microseconds: a loop of one
// after the other, each of which waits for the disk.
type effectCost struct {
	Database      string  `json:"database"`
	Effects       int     `json:"effects"`
	Claim         *spread `json:"claim_us"`                 // in the store's ledger
	Settle        *spread `json:"settle_us"`                // there too
	Transactional *spread `json:"transactional_attempt_us"` // whole, in a product's own database
	Bare          *spread `json:"bare_transaction_us"`      // the same write, without Interlock
	Absent        string  `json:"absent,omitempty"`         // why nothing was measured
}

type machineInfo struct {
	OS    string `json:"os"`
	Arch  string `json:"arch"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
}

type temporalInfo struct {
	CLI     string   `json:"cli"`
	Storage string   `json:"storage"`
	Flags   []string `json:"flags"`
}

type storeInfo struct {
	Driver      string `json:"driver"`
	Synchronous string `json:"synchronous"`
}

// runReport compares the three variants at one number of turns. Each round ran
// all three, one directly after the other, in an order that rotates: the
// machine's mood changes slower than that, so that ratios of a round are worth
// more than times.
type runReport struct {
	Turns     int     `json:"turns"`
	Ordinary  variant `json:"ordinary_tool"`
	Quick     variant `json:"quick_tool"`
	Bare      variant `json:"bare"`
	BareLike  sizesBy `json:"bare_payloads"`
	Machine   float64 `json:"machine_ms_a_turn"` // of the ordinary variant: deciding alone
	OverBare  ratios  `json:"ordinary_over_bare"`
	QuickBare ratios  `json:"quick_over_bare"`
}

type sizesBy struct {
	Model sizes `json:"model"`
	Tool  sizes `json:"tool"`
}

// variant is what one kind of run costs a turn.
type variant struct {
	Turn           spread             `json:"ms_a_turn"`       // within the turns
	Whole          spread             `json:"whole_ms_a_turn"` // start and end of the run included
	CPU            spread             `json:"process_cpu_ms_a_turn"`
	Store          spread             `json:"store_ms_a_turn"`
	Spent          map[string]float64 `json:"spent_ms_a_turn"` // by Temporal's clock, of the whole run; mean of the rounds
	Commits        float64            `json:"store_commits_a_turn"`
	RPCs           map[string]float64 `json:"rpcs_a_turn"`
	Events         int64              `json:"history_events"`
	EventsTurn     float64            `json:"history_events_a_turn"`
	Bytes          int64              `json:"history_bytes"`
	BytesTurn      float64            `json:"history_bytes_a_turn"`
	TemporalRuns   int                `json:"temporal_runs"` // of the chain
	Activities     map[string]int     `json:"activities"`
	TurnActivities float64            `json:"activities_a_turn"` // without what start and end of a run cost: Record, and the closing reply
	Local          int                `json:"local_activities"`
	Timers         int                `json:"timers"`
	Upserts        int                `json:"search_attribute_upserts"`
	Parts          map[string]float64 `json:"payload_bytes_a_turn"`
	Model          *modelBytes        `json:"model_bytes,omitempty"`
}

type modelBytes struct {
	Calls   int     `json:"calls"`
	Sum     int64   `json:"sum"`
	Last    int     `json:"last_request"`
	Mean    float64 `json:"mean_request"`
	LastTen float64 `json:"mean_of_last_10_requests"`
}

// spread is the median of the rounds with the extremes.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// ratios compare two variants in two ways; where they differ much, the machine
// was busy with something else.
type ratios struct {
	OfMedians float64 `json:"of_medians"`
	OfPairs   spread  `json:"of_pairs"`
}

// limit is one promise about costs and whether it holds; nil: this call of the
// benchmark did not measure it.
type limit struct {
	Limit string   `json:"limit"`
	Most  float64  `json:"most"`
	Got   *float64 `json:"got"`
	Holds *bool    `json:"holds"`
}

func ms(d time.Duration) float64 { return round(float64(d) / float64(time.Millisecond)) }

func round(f float64) float64 { return math.Round(f*1000) / 1000 }

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return round((s[n/2] + s[(n-1)/2]) / 2)
}

func spreadOf(values []float64) spread {
	return spread{Median: median(values), Min: slices.Min(values), Max: slices.Max(values)}
}

func times(samples []sample, of func(sample) time.Duration) spread {
	var values []float64
	for _, s := range samples {
		values = append(values, ms(of(s)))
	}
	return spreadOf(values)
}

func turnTime(s sample) time.Duration { return s.turn }

func ratiosOf(ours, other []sample) ratios {
	var pairs []float64
	for i := range ours {
		pairs = append(pairs, round(float64(ours[i].turn)/float64(other[i].turn)))
	}
	return ratios{OfMedians: round(times(ours, turnTime).Median / times(other, turnTime).Median), OfPairs: spreadOf(pairs)}
}

// variantOf summarises the rounds. What does not vary is taken from the last.
func variantOf(samples []sample) variant {
	last := samples[len(samples)-1]
	c, n := last.chain, float64(last.turns)
	v := variant{Turn: times(samples, turnTime), Whole: times(samples, func(s sample) time.Duration { return s.whole }),
		CPU:   times(samples, func(s sample) time.Duration { return s.cpu }),
		Store: times(samples, func(s sample) time.Duration { return s.stored }), Commits: round(float64(last.commits) / n),
		Events: c.Events, EventsTurn: round(float64(c.Events) / n), Bytes: c.Bytes, BytesTurn: round(float64(c.Bytes) / n),
		TemporalRuns: c.Runs, Activities: c.Activities, Local: c.Markers, Timers: c.Timers, Upserts: c.Upserts,
		RPCs: map[string]float64{}, Parts: map[string]float64{}, Spent: map[string]float64{}}
	for _, s := range samples {
		for what, d := range s.chain.Spent {
			v.Spent[what] += ms(d) / n / float64(len(samples))
		}
	}
	for what, d := range v.Spent {
		v.Spent[what] = round(d)
	}
	for kind, count := range c.Activities {
		if kind != signals.ActivityRecord {
			v.TurnActivities += float64(count)
		}
		v.Parts[kind+": argument"] = round(float64(c.Arguments[kind]) / n)
		v.Parts[kind+": result"] = round(float64(c.Results[kind]) / n)
	}
	v.TurnActivities = round((v.TurnActivities - float64(c.Replies)) / n)
	for part, bytes := range c.Parts {
		v.Parts[part] = round(float64(bytes) / n)
	}
	for operation, count := range last.rpcs {
		if count > 0 {
			v.RPCs[operation] = round(float64(count) / n)
		}
	}
	if r := c.Requests; len(r) > 0 {
		v.Model = &modelBytes{Calls: last.usage.Calls, Sum: last.usage.BytesTotal, Last: last.usage.BytesLast,
			Mean: round(mean(r)), LastTen: round(mean(r[max(len(r)-10, 0):]))}
	}
	return v
}

func mean(values []int) float64 {
	sum := 0
	for _, v := range values {
		sum += v
	}
	return float64(sum) / float64(len(values))
}
