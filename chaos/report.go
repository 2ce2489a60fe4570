package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"interlock/agent"
)

// report is what came of all worlds.
type report struct {
	seed       uint64
	wanted     int
	least      int // hits of each cell
	first      bool
	took       time.Duration
	struck     int
	counts     map[string]map[kind]int // by world
	hits       map[cell]int
	runs       int
	ended      int
	once       int // Once steps that a fault has left in doubt
	doubts     int // steps of which an operator was asked
	decided    map[string]int
	deeds      map[deed]map[string]int // what users did, by what became of it
	users      int                     // runs that have some
	fates      map[agent.StepStatus]int
	violations []violation
	troubles   []error
}

// add adds a world that has come to rest.
func (r *report) add(w *world) {
	i := w.injector
	i.mu.Lock()
	defer i.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	r.struck += i.struck
	r.counts[w.kind] = i.counts
	for c, n := range i.hits {
		r.hits[c] += n
	}
	for p, marks := range i.marks {
		if p.effect == agent.Once && slices.ContainsFunc(marks, func(m mark) bool { return m.leavesDoubt(fire) }) {
			r.once++
		}
	}
	r.runs += len(w.runs)
	for _, one := range w.runs {
		if one.ended {
			r.ended++
		}
		if r.doubts += len(one.answers); hasUsers(one.id) {
			r.users++
		}
	}
	for d, became := range w.deeds {
		if r.deeds[d] == nil {
			r.deeds[d] = map[string]int{}
		}
		for what, n := range became {
			r.deeds[d][what] += n
		}
	}
	for s, n := range w.fates {
		r.fates[s] += n
	}
	for said, n := range w.decided {
		r.decided[said] += n
	}
	r.violations = append(r.violations, w.violations...)
	r.troubles = append(r.troubles, w.troubles...)
}

// shortfalls are what the harness has not shown, though nothing was violated.
func (r *report) shortfalls() (out []string) {
	if r.first {
		return nil
	}
	if r.struck < r.wanted {
		out = append(out, fmt.Sprintf("%d of %d faults", r.struck, r.wanted))
	}
	for _, c := range cells {
		if r.hits[c] < r.least {
			out = append(out, fmt.Sprintf("%s, %s: %d of %d hits", c.effect, c.window, r.hits[c], r.least))
		}
	}
	if r.least > 1 {
		for _, said := range []string{saidHappened, saidAgain, saidGivenUp} {
			if r.decided[said] == 0 {
				out = append(out, "no doubt was resolved as: "+said)
			}
		}
		out = append(out, r.unused()...)
	}
	return out
}

// leastDeeds is how often each thing that users do must have taken effect.
const leastDeeds = 3

// effective is how a deed takes effect; any answer but these does not count.
var effective = map[deed][]string{
	saysReject: {string(agent.Refused)}, saysQueue: {string(agent.TookQueued)},
	saysInterrupt: {string(agent.TookInterrupted), string(agent.TookMerged)}, saysRollback: {string(agent.TookRollingBack), string(agent.TookMerged)},
	amends: {string(agent.Accepted)}, pauses: {string(agent.Accepted)}, resumes: {string(agent.Accepted)},
	cancelsNone: takenAtOnce, cancelsTurn: takenAtOnce, cancelsRun: takenAtOnce,
	approves: {string(agent.Accepted)}, rejects: {string(agent.Accepted)}, returns: {string(agent.Accepted)}, edits: {string(agent.Accepted)},
	takesBack: {string(agent.Accepted)}, decidesStale: {string(agent.Voided)},
}

// takenAtOnce is how a cancel is answered, whether or not it stops steps.
var takenAtOnce = []string{string(agent.TookNow), string(agent.TookStopping)}

// unused are the deeds that took effect too seldom to have shown anything.
func (r *report) unused() (out []string) {
	for _, d := range slices.Sorted(maps.Keys(effective)) {
		n := 0
		for _, how := range effective[d] {
			n += r.deeds[d][how]
		}
		if n < leastDeeds {
			out = append(out, fmt.Sprintf("%s took effect %d of %d times", d, n, leastDeeds))
		}
	}
	for _, s := range []agent.StepStatus{agent.StepUndone, agent.StepAbandoned, agent.StepCancelled} {
		if r.fates[s] < leastDeeds {
			out = append(out, fmt.Sprintf("%d of %d steps ended %s", r.fates[s], leastDeeds, s))
		}
	}
	return out
}

// of counts the violations of a kind.
func (r *report) of(kind string) (n int) {
	for _, v := range r.violations {
		if v.Kind == kind {
			n++
		}
	}
	return n
}

func (r *report) failed() bool {
	return len(r.violations) > 0 || len(r.troubles) > 0 || len(r.shortfalls()) > 0
}

func (r *report) print(out io.Writer) {
	r.table(out)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "\nfaults")
	for _, k := range kinds {
		fmt.Fprintf(t, "\t%s", k)
	}
	fmt.Fprintln(t)
	for _, world := range slices.Sorted(maps.Keys(r.counts)) {
		fmt.Fprint(t, world)
		for _, k := range kinds {
			fmt.Fprintf(t, "\t%d", r.counts[world][k])
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
	fmt.Fprintf(out, "\n%d of %d runs ended. %d Once steps were killed between claim and settlement. In doubt and resolved: %d (", r.ended, r.runs, r.once, r.doubts)
	var said []string
	for _, what := range []string{saidHappened, saidAgain, saidGivenUp} {
		said = append(said, fmt.Sprintf("%d %s", r.decided[what], what))
	}
	fmt.Fprintf(out, "%s).\n", strings.Join(said, "; "))
	r.people(out)
	fmt.Fprintf(out, "seed %d: %d counted faults, %d repeated, %d lost, %d stuck, in %s\n", r.seed, r.struck, r.of(repeated), r.of(lost), r.of(stuck),
		r.took.Round(time.Second))
	for _, v := range r.violations {
		fmt.Fprintln(out, "  "+v.String())
	}
	for _, err := range r.troubles {
		fmt.Fprintln(out, "  the harness failed:", err)
	}
	for _, s := range r.shortfalls() {
		fmt.Fprintln(out, "  too few:", s)
	}
}

// table shows the hits by effect and window.
func (r *report) table(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "hits")
	for _, w := range windows {
		fmt.Fprintf(t, "\t%s", w)
	}
	fmt.Fprintln(t)
	for _, e := range []agent.Effect{agent.ReadOnly, agent.Keyed, agent.Transactional, agent.Reconcilable, agent.Once, model} {
		fmt.Fprint(t, e)
		for _, w := range windows {
			text := "-"
			if c := (cell{e, w}); slices.Contains(cells, c) {
				text = fmt.Sprint(r.hits[c])
			}
			fmt.Fprintf(t, "\t%s", text)
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
	fmt.Fprintln(out, "(a model call: until it is answered, until that is recorded, until Temporal has it)")
}

// people shows what users and reviewers did, and what became of it.
func (r *report) people(out io.Writer) {
	if r.users == 0 {
		return
	}
	fmt.Fprintf(out, "\n%d runs had users.\n", r.users)
	for _, d := range slices.Sorted(maps.Keys(r.deeds)) {
		total, words := 0, []string{}
		for _, what := range slices.Sorted(maps.Keys(r.deeds[d])) {
			n := r.deeds[d][what]
			total, words = total+n, append(words, fmt.Sprintf("%d %s", n, what))
		}
		fmt.Fprintf(out, "  %-20s %4d: %s\n", d, total, strings.Join(words, ", "))
	}
	var ends []string
	for _, s := range slices.Sorted(maps.Keys(r.fates)) {
		ends = append(ends, fmt.Sprintf("%d %s", r.fates[s], s))
	}
	fmt.Fprintf(out, "Their steps ended: %s.\n", strings.Join(ends, ", "))
}
