package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"interlock/agent"
	"interlock/store"
)

// Why is what a run waits for. Sentence and Next are for people; the rest is
// what they were made from.
type Why struct {
	Address    string          `json:"address"`
	FirstRunID string          `json:"first_run_id,omitempty"`
	Status     agent.RunStatus `json:"status,omitempty"` // "" where nothing that knows it could be asked
	Reason     string          `json:"reason,omitempty"`
	Phase      string          `json:"phase,omitempty"`
	Turn       int             `json:"turn,omitempty"`
	Seq        int64           `json:"seq,omitempty"` // of the last event that the journal has
	UpdatedAt  time.Time       `json:"updated_at,omitzero"`
	Repairs    *agent.Repaired `json:"repairs,omitempty"`     // the run whose steps it undoes
	RepairedBy []Repair        `json:"repaired_by,omitempty"` // the runs that undo steps of it, since it has ended; newest first, at most 20
	Sentence   string          `json:"sentence"`
	Next       string          `json:"next"` // which command, or what to do

	// Waits is all that the run itself waits for: since when, until when, for whom.
	Waits        []agent.Waiting `json:"waits,omitempty"`
	Gates        []agent.Gate    `json:"gates,omitempty"`   // open ones
	Effects      []store.Effect  `json:"effects,omitempty"` // of which nobody knows yet whether they happened
	Activities   []Pending       `json:"activities,omitempty"`
	TaskFailures int             `json:"task_failures,omitempty"` // of the run's workflow task, in a row
	TaskFailure  string          `json:"task_failure,omitempty"`
	Unseen       []string        `json:"unseen,omitempty"` // what could not be looked at, and why

	plain string // Sentence without the texts of errors
}

// Plain is the answer for who does not run the system: without the texts of errors, which
// name hosts, files and statements. They are in the workers' logs.
func (w Why) Plain() Why {
	if w.plain != "" {
		w.Sentence = w.plain
	}
	w.Activities, w.Unseen = slices.Clone(w.Activities), slices.Clone(w.Unseen)
	for i, p := range w.Activities {
		if p.Failure != "" {
			w.Activities[i].Failure = p.inPlain()
		}
	}
	for i, u := range w.Unseen {
		w.Unseen[i], _, _ = strings.Cut(u, ":")
	}
	if w.TaskFailure != "" {
		w.TaskFailure = "an operator can see why"
	}
	return w
}

// Why says what a run waits for and which command comes next: from the store,
// the ledger (a reader that is a [store.Ledger] too) and Temporal, each bounded
// by itself; sensitive values are masked. One of them that cannot be reached is named in Unseen, and the
// answer made from the others; it is CodeUnavailable where none can, and
// CodeNotFound where nobody knows the run. No worker need be up.
func (s *Starter) Why(ctx context.Context, address string) (Why, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	tenant, err := tenantOf(address)
	if err != nil {
		return Why{}, err
	}
	l := s.look(ctx, tenant, address)
	if err := l.nothing(); err != nil {
		return Why{Address: address, Unseen: l.unseen}, err
	}
	w := l.why()
	w.Sentence, w.Next = l.says(w)
	l.plain = true
	w.plain, _ = l.says(w)
	if l.run == nil {
		return w, nil
	}
	plain := l.run.Redaction().Text(w.plain)
	w = agent.Redacted(l.run.Redaction(), w)
	w.plain = plain
	return w, nil
}

// says is why, in a sentence, and what comes next.
func (l *look) says(w Why) (sentence, next string) {
	for _, find := range l.causes() {
		if f, ok := find(); ok {
			sentence, next = f.sentence, f.next
			break
		}
	}
	if w.Repairs != nil {
		sentence = "undoes steps of " + w.Repairs.Address + ", and " + sentence
	}
	for _, r := range w.RepairedBy {
		sentence += "; repaired " + r.String()
	}
	return sentence, next
}

// look is all that could be seen of a run at one moment.
type look struct {
	described
	reads   bool  // there is a reader
	ahead   int64 // the run's latest event, where the journal ends before it though nothing is on its way there
	row     *store.RunRow
	run     *agent.Run // from the journal, else from the run itself; nil: neither
	gates   []agent.Gate
	effects []store.Effect
	repairs []Repair
	unseen  []string
}

// look asks Temporal and the store at the same time.
func (s *Starter) look(ctx context.Context, tenant, address string) *look {
	l := &look{reads: s.reader != nil}
	var wg sync.WaitGroup
	wg.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, lookFor)
		defer cancel()
		l.described = s.describe(ctx, address)
	})
	var failed error
	if l.reads {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, lookFor)
			defer cancel()
			failed = l.read(ctx, s.reader, store.Chain{Tenant: tenant, Address: address})
		})
	}
	wg.Wait()
	switch {
	case l.err != nil:
		l.unseen = append(l.unseen, fmt.Sprintf("Temporal: %v", l.err))
	case l.row != nil && l.known() && l.running() && l.firstRunID != l.row.FirstRunID:
		l.forgetRow() // the run that follows it has not recorded anything yet
	}
	if failed != nil {
		l.unseen = append(l.unseen, fmt.Sprintf("the store: %v", failed))
	}
	if l.run == nil && l.known() && l.running() && l.task.GetAttempt() <= 1 {
		ctx, cancel := context.WithTimeout(ctx, lookFor)
		defer cancel()
		if run, err := s.query(ctx, address, ""); err == nil {
			l.take(run)
		}
	}
	if l.idle() {
		s.lookAhead(ctx, l)
	}
	if l.reads && l.run != nil && !(l.known() && l.running()) { // what runs undoes its own steps
		ctx, cancel := context.WithTimeout(ctx, lookFor)
		defer cancel()
		if l.repairs, failed = s.repairsOf(ctx, l.run); failed != nil {
			l.unseen = append(l.unseen, fmt.Sprintf("its repairs, in the store: %v", failed))
		}
	}
	return l
}

// lookAhead finds a run that is elsewhere than its journal says. It asks the run first:
// what that had on its way to the journal then must be there when nothing is any more.
func (s *Starter) lookAhead(ctx context.Context, l *look) {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	run, err := s.query(ctx, l.address, "")
	if err != nil || run.FirstRunID != l.row.FirstRunID || run.Seq <= l.row.Seq {
		return
	}
	d := s.describe(ctx, l.address)
	row, err := s.reader.RunRow(ctx, store.Chain{Tenant: l.row.Tenant, Address: l.address, FirstRunID: l.row.FirstRunID})
	if err != nil || !d.known() || !d.running() || len(d.activities) > 0 || d.task != nil || run.Seq <= row.Seq {
		return
	}
	// An event that nobody waits to see may stay with the run.
	if row.Head.Status != run.Status || row.Head.Reason != run.Reason || row.Head.Phase != run.Phase || row.Head.Turn != run.Turn {
		l.ahead, l.gates, l.row = run.Seq, nil, &row
		l.take(run)
	}
}

// idle reports a run that waits with nothing on its way to the journal: what it holds
// and what the journal has are the same, unless the store has lost events.
func (l *look) idle() bool {
	return l.row != nil && l.run != nil && l.known() && l.running() && len(l.activities) == 0 && l.task == nil
}

// known reports that Temporal knows the run.
func (d described) known() bool { return d.err == nil && !d.missing }

func (l *look) forgetRow() { l.row, l.run, l.gates, l.effects = nil, nil, nil, nil }

// read reads the store. A run that it does not know is no error.
func (l *look) read(ctx context.Context, r store.Reader, chain store.Chain) error {
	row, err := r.RunRow(ctx, chain)
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	l.row, chain.FirstRunID = &row, row.FirstRunID
	events, err := r.Events(ctx, chain, 1, 0)
	if err != nil {
		return err
	}
	run, err := agent.Reduce(events)
	if err != nil {
		return err
	}
	l.take(run)
	ledger, ok := r.(store.Ledger)
	if !ok {
		return nil
	}
	all, err := ledger.Effects(ctx, chain.Tenant, store.EffectFilter{Address: chain.Address})
	for _, e := range all {
		if e.Open() && e.Scope == run.Scope() {
			l.effects = append(l.effects, e)
		}
	}
	return err
}

func (l *look) take(run *agent.Run) {
	l.run = run
	for _, g := range run.Gates {
		if g.Status == agent.GateOpen {
			l.gates = append(l.gates, g)
		}
	}
}

// nothing says why there is no answer, where there is none.
func (l *look) nothing() error {
	switch {
	case l.row != nil || l.run != nil || l.known():
		return nil
	case len(l.unseen) > 0:
		return &agent.Error{Code: agent.CodeUnavailable, Message: fmt.Sprintf("why %s: nothing that knows it could be looked at (%s): try again", l.address, strings.Join(l.unseen, "; ")), Err: errors.Join(l.err)}
	}
	return agent.Errorf(agent.CodeNotFound, "why: there is no run %s", l.address)
}

// why are the facts.
func (l *look) why() Why {
	w := Why{Address: l.address, FirstRunID: l.firstRunID, Gates: l.gates, Effects: l.effects, RepairedBy: l.repairs, Activities: l.activities,
		TaskFailures: max(int(l.task.GetAttempt())-1, 0), TaskFailure: l.taskFailure, Unseen: l.unseen}
	if run := l.run; run != nil {
		w.FirstRunID, w.Status, w.Reason, w.Phase, w.Turn = run.FirstRunID, run.Status, run.Reason, run.Phase, run.Turn
		w.Seq, w.UpdatedAt, w.Repairs, w.Waits = run.Seq, run.At, run.Repairs, run.Waits()
	}
	if row := l.row; row != nil {
		w.FirstRunID, w.Status, w.Reason, w.Phase, w.Turn = row.FirstRunID, row.Head.Status, row.Head.Reason, row.Head.Phase, row.Head.Turn
		w.Seq, w.UpdatedAt = row.Seq, row.UpdatedAt
	}
	return w
}

// runStatus is "" where only Temporal knows the run.
func (l *look) runStatus() (agent.RunStatus, string) {
	switch {
	case l.row != nil:
		return l.row.Head.Status, l.row.Head.Reason
	case l.run != nil:
		return l.run.Status, l.run.Reason
	}
	return "", ""
}
