package prompt

import (
	"fmt"
	"slices"
	"strconv"

	"interlock/agent"
)

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// minPart is the least of a read that is worth being shown.
const minPart = 256

// content is what of the view is shown.
type content struct {
	facts   []agent.Fact // oldest first
	turns   []turn       // oldest first
	dropped int
	report  Report
}

// turn is a turn with the bodies of its answers.
type turn struct {
	agent.ViewTurn
	answers []body // of Calls
	results []body // of Results
	open    bool   // it is to be answered
}

// fit decides what is shown. The newest comes first: what the open turn began
// with, then facts, then turns, then results. A turn that does not fit goes with
// all before it, so that the conversation has no holes.
func fit(in Input) (content, error) {
	v := in.View
	budget := in.Limits.View
	if budget <= 0 {
		budget = agent.DefaultLimits().View
	}
	turns := makeTurns(in)
	left := budget - fixed(v)
	if left < 0 {
		return content{}, fmt.Errorf("prompt: state, rulings and gates of turn %d have %d bytes, the limit of a view is %d", v.Turn, budget-left, budget)
	}
	if n := len(turns); n > 0 && turns[n-1].open {
		left -= turns[n-1].size() // below 0: nothing else is shown
	}
	var c content
	c.facts, left = fitFacts(v.Facts, left)
	c.turns, left = fitTurns(turns, left)
	for i := len(c.turns) - 1; i >= 0; i-- {
		left = c.turns[i].fitBodies(left)
	}
	c.dropped = len(turns) - len(c.turns)
	c.report = Report{Turns: len(c.turns), Dropped: c.dropped, Budget: budget, Used: budget - left}
	c.count(v, turns)
	return c, nil
}

// fixed is the size of what must be shown.
func fixed(v agent.View) int {
	n := len(v.State)
	for name, p := range v.Provenance {
		n += len(name) + len(p.Source) + len(p.Confirmed)
	}
	for _, r := range v.Rulings {
		n += len(r.Tool) + len(r.Title) + len(r.Reason)
	}
	for _, g := range v.Waiting {
		n += len(g.ID) + len(g.Tool) + len(g.Title)
	}
	for _, step := range slices.Concat(v.Running, v.InDoubt) {
		n += len(step)
	}
	return n
}

func fitFacts(facts []agent.Fact, left int) ([]agent.Fact, int) {
	for i := len(facts) - 1; i >= 0; i-- {
		size := len(facts[i].Quote)
		if size > left {
			return facts[i+1:], left
		}
		left -= size
	}
	return facts, left
}

func fitTurns(turns []turn, left int) ([]turn, int) {
	for i := len(turns) - 1; i >= 0; i-- {
		if turns[i].open {
			continue // counted already
		}
		size := turns[i].size()
		if size > left {
			return turns[i+1:], left
		}
		left -= size
	}
	return turns, left
}

// size is the turn without its results.
func (t turn) size() int {
	n := len(t.Text) + len(t.Cut) + len(t.Opaque)
	for _, it := range t.Opening {
		n += len(it.Text) + len(it.By) + len(it.Step)
	}
	for _, c := range t.Calls {
		n += len(c.ID) + len(c.ProviderID) + len(c.Tool) + len(c.Args) + len(c.Answer.Text)
	}
	for _, r := range t.Results {
		n += len(r.Tool) + len(r.Text)
	}
	return n
}

// fitBodies keeps what fits of a turn's results. Reads share what the others
// leave and are cut to their share.
func (t *turn) fitBodies(left int) int {
	var reads []*body
	for _, list := range [][]body{t.answers, t.results} {
		for i := range list {
			b := &list[i]
			if b.read {
				reads = append(reads, b)
				continue
			}
			if b.kind != bodyNone && len(b.text) > left {
				b.omit()
			}
			left -= len(b.text)
		}
	}
	for i, b := range reads {
		share := left / (len(reads) - i)
		if len(b.text) > share {
			b.shorten(share)
		}
		left -= len(b.text)
	}
	return left
}

// count fills in the report's items. Whatever the view has and is not shown is
// starved, a turn that was dropped with all its items.
func (c *content) count(v agent.View, all []turn) {
	r := &c.report
	r.Delivered += len(v.Rulings) + len(c.facts)
	r.Starved += len(v.Facts) - len(c.facts)
	for i, t := range all {
		bodies := append(append([]body{}, t.answers...), t.results...)
		if i < c.dropped {
			r.Starved += len(t.Opening)
			for _, b := range bodies {
				if b.kind != bodyNone {
					r.Starved++
				}
			}
			continue
		}
		r.Delivered += len(t.Opening)
		for _, b := range bodies {
			switch b.kind {
			case bodyWhole:
				r.Delivered++
			case bodyPart:
				r.Partial++
			case bodyOmitted:
				r.Starved++
			}
		}
	}
}
