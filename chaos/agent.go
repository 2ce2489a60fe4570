package main

import (
	"context"
	"database/sql"
	"net/netip"
	"time"

	"interlock/agent"
	"interlock/tool"
)

const (
	agentName = "chaos"
	tenant    = "chaos"
)

// An attempt of a tool, and all attempts of it. Together with what the tool
// package adds to an attempt, the next one of a Reconcilable tool asks after 33 s.
const (
	attemptTime  = 3 * time.Second
	deadline     = time.Minute
	mayActWithin = attemptTime + tool.Overhead + tool.Grace
)

type begin struct {
	ID string `json:"id"`
}

type state struct {
	ID      string `json:"id" set:"start"`
	News    string `json:"news" set:"system"`
	Looked  string `json:"looked" set:"tool"`
	Sent    string `json:"sent" set:"tool"`
	Order   string `json:"order" set:"tool"`
	Paid    string `json:"paid" set:"tool"`
	Booked  string `json:"booked" set:"tool"`
	Fired   string `json:"fired" set:"tool"`
	Shipped string `json:"shipped" set:"tool"`
}

// thing is what each tool is called with: the run's id.
type thing struct {
	ID string `json:"id"`
}

// load is what ship is called with: a person may edit it.
type load struct {
	ID    string `json:"id"`
	Boxes int    `json:"boxes"`
}

// receipt names what happened: no two have the same.
type receipt struct {
	Ref string `json:"ref"`
}

// reviewers decide at the gates of ship and of its undo. Who approves may think
// better of it for a moment.
const (
	reviewers  = "reviewers"
	secondLook = 1500 * time.Millisecond
)

// definition is an agent with a tool of each effect, and one for each that undoes it.
// All but pay act on the harness, by requests as the tool package makes them.
func definition(url string, db *sql.DB, how breakage) *agent.Definition {
	at := func(path string) tool.HTTP {
		return tool.HTTP{URL: url + path, Header: carried, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	}
	fetch := tool.Fetch[thing, receipt](at("/look/{id}"))
	looks := tool.ReadOnly(look, func(ctx context.Context, a thing) (receipt, error) { return fetch(ctx, a) },
		func(s *state, _ thing, r receipt) error { s.Looked = r.Ref; return nil })
	sends := tool.Keyed(send, effect(tool.Send[thing, receipt](at("/send/{id}"))), sets[thing](func(s *state) *string { return &s.Sent }))
	orders := tool.Keyed(order, effect(tool.Send[thing, receipt](at("/order/{id}"))), sets[thing](func(s *state) *string { return &s.Order }))
	pays := tool.Transactional(pay, db, payment, sets[thing](func(s *state) *string { return &s.Paid }))
	books := tool.Reconcilable(book, effect(tool.Send[thing, receipt](at("/book/{id}"))), tool.LookUp[thing, receipt](at("/booked/{$key}")),
		sets[thing](func(s *state) *string { return &s.Booked }))
	fires := tool.Once(fire, keyless(effect(tool.Send[thing, receipt](at("/fire/{id}")))), sets[thing](func(s *state) *string { return &s.Fired }))
	ships := tool.Keyed(ship, effect(tool.Send[load, receipt](at("/ship/{id}"))), sets[load](func(s *state) *string { return &s.Shipped })).
		Gate(tool.Gate[state, load]{Roles: []string{reviewers}, Edit: []string{agent.EveryArgument}, Reads: []string{"news"}, TakeBack: secondLook})

	unsends := tool.Keyed(unsend, effect(undoing[thing](at("/"+unsend+"/{id}"))), clears[thing](func(s *state) *string { return &s.Sent }))
	unpays := tool.Transactional(unpay, db, repayment, clears[thing](func(s *state) *string { return &s.Paid }))
	unbooks := tool.Reconcilable(unbook, effect(undoing[thing](at("/"+unbook+"/{id}"))), tool.LookUp[tool.Done[thing, receipt], receipt](at("/booked/{$key}")),
		clears[thing](func(s *state) *string { return &s.Booked }))
	unfires := tool.Once(unfire, keyless(effect(undoing[thing](at("/"+unfire+"/{id}")))), clears[thing](func(s *state) *string { return &s.Fired }))
	unships := tool.Keyed(unship, effect(undoing[load](at("/"+unship+"/{id}"))), clears[load](func(s *state) *string { return &s.Shipped })).
		Gate(tool.Gate[state, tool.Done[load, receipt]]{Roles: []string{reviewers}})

	tools := []agent.Tool[state]{looks, observe(how, orders),
		observe(how, sends.Undo(observe(how, unsends)).OnCut(agent.CutUndo)), observe(how, pays.Undo(observe(how, unpays))),
		observe(how, books.Undo(observe(how, unbooks)).OnCut(agent.CutUndo)), observe(how, fires.Undo(observe(how, unfires)).OnCut(agent.CutUndo)),
		observe(how, ships.Undo(observe(how, unships)))}
	return agent.Define(agent.Spec[begin, state]{
		Name: agentName, Version: 1, Instructions: "Do everything once.",
		Init: func(in begin) (state, error) { return state{ID: in.ID}, nil },
		Phases: []agent.Phase[state]{
			{Name: "work", Tools: tools, Moves: []agent.Move[state]{{To: "end"}}},
			{Name: "end", Final: true, Say: func(agent.Situation[state]) string { return "That was all." }},
		},
		Budget: agent.Budget{Turns: -1, ModelCalls: -1, Tokens: -1, Active: 24 * time.Hour, Refusals: -1, ToolErrors: -1, SameCall: -1},
	})
}

// observe has the harness see a tool's attempts, which have so long.
func observe[A, R any](how breakage, t *tool.Tool[state, A, R]) agent.Tool[state] {
	return observedTool{t.Within(attemptTime, deadline), how}
}

// sets is the Commit of a tool, and clears that of the one that undoes it.
func sets[A any](field func(*state) *string) func(*state, A, receipt) error {
	return func(s *state, _ A, r receipt) error { *field(s) = r.Ref; return nil }
}

func clears[A any](field func(*state) *string) func(*state, tool.Done[A, receipt], receipt) error {
	return func(s *state, _ tool.Done[A, receipt], _ receipt) error { *field(s) = ""; return nil }
}

// undoing undoes on the other side what a receipt names.
func undoing[A any](h tool.HTTP) func(context.Context, tool.Key, tool.Done[A, receipt]) (receipt, error) {
	undo := tool.Send[thing, receipt](h)
	return func(ctx context.Context, k tool.Key, d tool.Done[A, receipt]) (receipt, error) {
		return undo(ctx, k, thing{d.Result.Ref})
	}
}

// keyless is a tool whose other side heeds no key; a Send must have one.
func keyless[A any](run func(context.Context, tool.Key, A) (receipt, error)) func(context.Context, A) (receipt, error) {
	return func(ctx context.Context, a A) (receipt, error) { return run(ctx, "none", a) }
}

// effect reaches the windows around a tool's request.
func effect[A any](run func(context.Context, tool.Key, A) (receipt, error)) func(context.Context, tool.Key, A) (receipt, error) {
	return func(ctx context.Context, k tool.Key, a A) (receipt, error) {
		at := attemptOf(ctx)
		at.reach(toEffect)
		r, err := run(ctx, k, a)
		if err == nil || tool.IsRefused(err) {
			at.reach(toSettle)
		}
		return r, err
	}
}

// payment is the effect in the product's database, and repayment what undoes it.
func payment(ctx context.Context, tx *sql.Tx, a thing) (receipt, error) {
	ref := pay + "-" + a.ID + "-" + attemptOf(ctx).at.Step
	return inDatabase(ctx, tx, receipt{ref}, `INSERT INTO payments (id, ref, step, undoes) VALUES ($1, $2, $3, '')`, a.ID, ref)
}

func repayment(ctx context.Context, tx *sql.Tx, d tool.Done[thing, receipt]) (receipt, error) {
	return inDatabase(ctx, tx, receipt{"un" + d.Result.Ref}, `INSERT INTO payments (id, undoes, step, ref) VALUES ($1, $2, $3, '')`, d.Args.ID, d.Result.Ref)
}

func inDatabase(ctx context.Context, tx *sql.Tx, r receipt, text string, id, ref string) (receipt, error) {
	at := attemptOf(ctx)
	at.reach(toEffect)
	if _, err := tx.ExecContext(ctx, text, id, ref, at.at.Step); err != nil {
		return receipt{}, err
	}
	at.reach(toSettle)
	return r, nil
}
