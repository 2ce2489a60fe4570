package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"interlock/agent"
	"interlock/tool"
)

// kind is what a fault does.
type kind string

const (
	killed   kind = "kill -9"         // of the worker
	stopped  kind = "stop, go on"     // of the worker, for longer than its attempt may act
	dbKilled kind = "database killed" // and started again
	tpKilled kind = "Temporal killed" // and started again
	deployed kind = "SIGTERM"         // of the worker, as a deploy does
)

var kinds = []kind{killed, stopped, dbKilled, tpKilled, deployed}

// deck is the share that each kind has of twenty faults.
var deck = slices.Concat(slices.Repeat([]kind{killed}, 7), slices.Repeat([]kind{stopped}, 4), slices.Repeat([]kind{dbKilled}, 4),
	slices.Repeat([]kind{tpKilled}, 4), []kind{deployed})

// fault is one fault that is to be.
type fault struct {
	kind kind
	at   cell // zero: at a moment that has nothing to do with where attempts are
	// late: the attempt's request is on its way when the fault strikes, and the other
	// side acts on it only then: as late as the tool package allows for.
	late   bool
	sure   bool          // it leaves a Once effect in doubt, whatever else happens
	outage time.Duration // of the database or Temporal
}

func (f fault) random() bool { return f.at == cell{} }

// The times of a fault that stops a worker: past the deadline of an attempt, and
// past the time that the next one waits for it.
const (
	pastDeadline = attemptTime + tool.Overhead + 3*time.Second
	pastGrace    = mayActWithin + 4*time.Second
)

// A late request arrives when Temporal has long given its attempt up, but not
// later than the next one waits for.
const lateFrom, lateTo = 20 * time.Second, mayActWithin - 4*time.Second

// shareRandom of the faults strike at moments that are chosen by the clock.
const shareRandom = 5 // one in so many

// plan is a list of faults that the seed decides. Cells take turns, so that each
// is hit about as often.
func plan(seed uint64, n int) (out []*fault) {
	rng := rand.New(rand.NewPCG(seed, 1))
	random := 0
	if n >= 2*len(cells) {
		random = n / shareRandom
	}
	var drawn []kind
	for len(drawn) < n {
		cards := slices.Clone(deck)
		rng.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
		drawn = append(drawn, cards...)
	}
	for i := range n {
		f := &fault{kind: drawn[i], outage: outages[rng.IntN(len(outages))]}
		if i < n-random {
			f.at = cells[i%len(cells)]
		}
		out = append(out, f)
	}
	certain(out)
	for _, f := range out {
		f.late = !f.sure && f.at.window == toEffect && slices.Contains([]agent.Effect{agent.Keyed, agent.Reconcilable, agent.Once}, f.at.effect) &&
			(f.kind == killed || f.kind == stopped) && rng.IntN(2) == 0
	}
	return out
}

// sureDoubts is how many faults in each of two windows are sure to leave a Once
// effect in doubt: not yet begun, and done.
const sureDoubts = 6

// certain gives those faults the kind that does so.
func certain(faults []*fault) {
	sure := map[cell]int{{agent.Once, toEffect}: sureDoubts, {agent.Once, toSettle}: sureDoubts}
	for i, f := range faults {
		if sure[f.at] == 0 {
			continue
		}
		sure[f.at]--
		f.sure = true
		if f.kind == killed {
			continue
		}
		if j := slices.IndexFunc(faults[i:], func(o *fault) bool { return o.kind == killed && o.at.effect != agent.Once }); j > 0 {
			f.kind, faults[i+j].kind = faults[i+j].kind, f.kind
		}
	}
}
