package starter

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

const (
	// acceptWithin is how soon a live worker takes a wait in. Past it the store
	// is looked at.
	acceptWithin = 3 * time.Second
	// A store is looked at this often, the longer nothing comes.
	lookSoon, lookLate = 500 * time.Millisecond, 2 * time.Second
)

// Wait returns what is new after an event: a reply, a gate, a pause, an end. It
// goes on until there is some, the run has ended or the deadline has come; then
// the error is CodeUnavailable and says what the run is held up by, and the News
// has Again set: ask again with the same afterSeq.
//
// It asks the run itself. Where that cannot answer (no worker is up, too many
// wait already, Temporal is down) and there is a reader, it looks at the store.
// afterSeq counts in the run that stands at the address now.
func (s *Starter) Wait(ctx context.Context, address string, afterSeq int64) (signals.News, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	tenant, err := tenantOf(address)
	if err != nil {
		return signals.News{}, err
	}
	if afterSeq < 0 {
		return signals.News{}, agent.Errorf(agent.CodeInvalid, "after event %d: it is the number of an event, 0 before the first", afterSeq)
	}
	w := &waiter{s: s, chain: store.Chain{Tenant: tenant, Address: address}, after: afterSeq, last: signals.News{Again: true}}
	return w.wait(ctx)
}

// Said is what came of a message.
type Said struct {
	Receipt agent.Receipt `json:"receipt"`
	News    signals.News  `json:"news"` // the next reply, gate, pause or end
}

// Say is Message, then Wait for what comes of it. Where the message was taken in
// and nothing came of it in time, Receipt is set beside the error: go on with
// Wait after Receipt.Seq, or say the same again.
func (s *Starter) Say(ctx context.Context, address string, m signals.Message) (Said, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	r, err := s.Message(ctx, address, m)
	if err != nil {
		return Said{Receipt: r}, err
	}
	news, err := s.Wait(ctx, address, r.Seq)
	return Said{Receipt: r, News: news}, err
}

// waiter is one Wait.
type waiter struct {
	s     *Starter
	chain store.Chain
	after int64
	last  signals.News
	id    string // of the update that nobody has taken in yet
	seen  int64  // event up to which the store was looked at
}

func (w *waiter) wait(ctx context.Context) (signals.News, error) {
	for pause := lookSoon; ; {
		began := time.Now()
		news, err := w.ask(ctx)
		switch {
		case err == nil && !news.Again:
			return news, nil
		case err == nil && time.Since(began) >= time.Second:
			w.last, pause = news, lookSoon
			continue
		case err == nil: // it is about to be continued, and would say so again at once
			w.last = news
		case over(err):
			return w.ended(ctx, err)
		}
		if err := w.refusal(ctx, err); err != nil {
			return w.last, err
		}
		if w.look(ctx) && !w.last.Again {
			return w.last, nil
		}
		if !sleep(ctx, pause) {
			return w.last, w.late(ctx)
		}
		pause = min(pause*3/2, lookLate)
	}
}

// over reports that the run is closed, or that Temporal does not know it.
func over(err error) bool {
	code := agent.ErrorCode(err)
	return code == agent.CodeEnded || code == agent.CodeNotFound
}

// refusal is an error that waiting longer does not mend.
func (w *waiter) refusal(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() != nil || agent.ErrorCode(err) == agent.CodeUnavailable:
		return nil
	}
	return err
}

// ask asks the run. A wait that nobody took in is joined the next time, rather
// than leaving one more behind; any other has an id of its own, since Temporal
// would give an old answer to an old id.
func (w *waiter) ask(ctx context.Context) (news signals.News, err error) {
	if w.id == "" {
		w.id = signals.UpdateWait + ":" + rand.Text()
	}
	accepting, done := ctx, func() {}
	if w.s.reader != nil {
		accepting, done = context.WithTimeout(ctx, acceptWithin)
	}
	defer done()
	handle, err := w.s.temporal.UpdateWorkflow(accepting, client.UpdateWorkflowOptions{WorkflowID: w.chain.Address, UpdateName: signals.UpdateWait,
		UpdateID: w.id, WaitForStage: client.WorkflowUpdateStageAccepted, Args: []any{signals.Wait{AfterSeq: w.after}}})
	if err == nil || !late(err) {
		w.id = ""
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, signals.WaitFor+acceptWithin)
		defer cancel()
		err = handle.Get(ctx, &news)
	}
	switch {
	case err == nil:
		return news, nil
	case late(err) || notTaken(err) || ctx.Err() != nil: // why is looked for at the end
		return news, agent.Errorf(agent.CodeUnavailable, "no answer: %w", err)
	}
	return news, w.s.explain(ctx, "wait", w.chain.Address, err)
}

// look brings last to what the store shows, and reports whether it could. Events
// are read only where there are new ones.
func (w *waiter) look(ctx context.Context) bool {
	if w.s.reader == nil || ctx.Err() != nil {
		return false
	}
	row, err := w.s.reader.RunRow(ctx, w.chain)
	if err != nil {
		return false
	}
	w.chain.FirstRunID = row.FirstRunID // another that follows it counts from 1 again
	if row.Seq == w.seen {
		return true
	}
	run, err := w.s.fromJournal(ctx, w.chain)
	if err != nil {
		return false
	}
	w.last, w.seen = signals.NewsOf(run, w.after), row.Seq
	return true
}

// ended is the last news of a run that takes no update any more.
func (w *waiter) ended(ctx context.Context, err error) (signals.News, error) {
	if w.look(ctx) {
		if w.last.Again { // closed without having ended: there will be no more
			return w.last, agent.Errorf(agent.CodeEnded, "wait %s: Temporal has closed the run, and its journal ends at event %d (%s); interlock run why %s says more",
				w.chain.Address, w.last.Seq, w.last.Status, w.chain.Address)
		}
		return w.last, nil
	}
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return w.last, err
	}
	ctx, cancel := context.WithTimeout(ctx, queryFor)
	defer cancel()
	if run, err := w.s.query(ctx, w.chain.Address, ""); err == nil {
		return signals.NewsOf(run, w.after), nil
	}
	var end signals.End
	if err := w.s.temporal.GetWorkflow(ctx, w.chain.Address, "").Get(ctx, &end); err != nil {
		return w.last, agent.Errorf(agent.CodeEnded, "wait %s: the run has ended: %v", w.chain.Address, err)
	}
	return signals.News{Status: end.Status, Reason: end.Reason, Phase: end.Phase}, nil
}

// late says why nothing came.
func (w *waiter) late(ctx context.Context) error {
	w.last.Again = true
	why := "the caller gave up"
	if !errors.Is(ctx.Err(), context.Canceled) {
		why = w.s.whyBlocked(ctx, w.chain.Address)
	}
	if why == busy && w.last.Status != "" {
		why = "the run is " + state(w.last.Status, w.last.Reason)
	}
	return &agent.Error{Code: agent.CodeUnavailable, Err: ctx.Err(),
		Message: fmt.Sprintf("wait %s: nothing new after event %d in time: %s; ask again", w.chain.Address, w.after, why)}
}
