package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"interlock/agent"
	"interlock/signals"
)

var reviewer = agent.Principal{Subject: "rita", Roles: []string{reviewers}}

// What a reviewer does at a gate.
const (
	approves     deed = "approve"
	rejects      deed = "reject"
	returns      deed = "return"
	edits        deed = "edit"
	takesBack    deed = "take back"
	decidesStale deed = "a stale verdict"
)

var decisive = []deed{approves, approves, rejects, returns, edits}

// review is what a reviewer will do at one gate.
type review struct {
	before  time.Duration // they look at it
	stale   bool          // first a verdict on the gate as it never was
	retract bool          // an approval that is taken back, where there is time
	decides deed
	again   bool
}

// reviewOf is what happens at a run's nth gate; the seed decides it.
func reviewOf(seed uint64, run string, n int) review {
	rng := rand.New(rand.NewPCG(seed, 2000+uint64(n)))
	for _, c := range run {
		rng = rand.New(rand.NewPCG(rng.Uint64(), uint64(c)))
	}
	v := review{before: time.Duration(rng.Int64N(int64(2 * time.Second))), stale: rng.IntN(4) == 0, retract: rng.IntN(3) == 0,
		decides: decisive[rng.IntN(len(decisive))], again: rng.IntN(3) == 0}
	if n > 3 { // enough of it: somebody says yes or no
		v.decides = decisive[rng.IntN(3)]
	}
	return v
}

// atGate plays the reviewer of a gate until it is closed.
func (w *world) atGate(ctx context.Context, r *run, g agent.Gate, v review) {
	w.rest(ctx, v.before)
	if v.stale {
		old := g
		old.Digest = "of another look"
		w.decideAs(ctx, r, old, decidesStale, approves, false)
	}
	if v.retract && g.TakeBack > 0 {
		w.decideAs(ctx, r, g, approves, approves, false)
		w.decideAs(ctx, r, g, takesBack, takesBack, v.again)
	}
	w.decideAs(ctx, r, g, v.decides, v.decides, v.again)
	// What could not be decided so, or was kept and is void: once more, in plain words.
	for ctx.Err() == nil && !r.over() {
		w.rest(ctx, 5*time.Second)
		if open, err := w.isOpen(ctx, r, g); err == nil && !open {
			return
		} else if err == nil {
			w.decideAs(ctx, r, g, approves, approves, false)
		}
	}
}

// isOpen reports whether a gate waits for a verdict.
func (w *world) isOpen(ctx context.Context, r *run, g agent.Gate) (bool, error) {
	got, err := w.openGates(ctx, r.address)
	for _, o := range got {
		if o.Gate.ID == g.ID {
			return true, err
		}
	}
	return false, err
}

// decideAs sends one verdict, in the words of what it is.
func (w *world) decideAs(ctx context.Context, r *run, g agent.Gate, as, what deed, again bool) {
	if ctx.Err() != nil || r.over() {
		return
	}
	words := map[deed]agent.VerdictValue{approves: agent.Approve, rejects: agent.Reject, returns: agent.Return, edits: agent.Edit, takesBack: agent.TakeBack}
	in := r.inputs.add(&input{deed: as})
	v := signals.Verdict{ID: in.id, Gate: g.ID, Digest: g.Digest, Principal: reviewer, Verdict: words[what]}
	switch what {
	case rejects, returns:
		v.Reason = "not so"
	case edits:
		v.Reason, v.Args = "one more", agent.JSON(fmt.Sprintf(`{"id":%q,"boxes":%d}`, r.id, 2+r.inputs.size()))
	}
	in.v = v
	w.send(ctx, r, in, again, func(ctx context.Context) (agent.Receipt, error) { return w.starter.Decide(ctx, r.address, v) })
}
