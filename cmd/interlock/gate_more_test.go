package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

const aRefund = `{"amount":{"currency":"EUR","minor":8990},"order_id":"1042"}`

// Returned with a note, and proposed again by the model's next move.
func TestGate_Return(t *testing.T) {
	w := newWorld(t)
	address := w.atGate(t, "gate-return")
	digest := decoded[shownGate](t, w, "gate", "show", address, "3.1").Gate.Digest
	out := w.do(t, "gate", "return", address, "3.1", "--digest", digest, "--reason", "ask for a photo", "--as", "ann", "--role", "refunds", "--wait")
	require.Contains(t, out, "return of gate 3.1 by ann (refunds), unverified")
	g := decoded[shownGate](t, w, "gate", "show", address, "3.1").Gate
	require.Equal(t, agent.GateReturned, g.Status)
	require.Contains(t, w.do(t, "ruling", "list", address), "There are no rulings.")
	require.Contains(t, w.do(t, "ruling", "list", address, "-o", "json"), `"rulings": []`)
}

func TestGate_Edit(t *testing.T) {
	w := newWorld(t)
	address := w.atGate(t, "gate-edit")
	as := []string{"--as", "ann", "--role", "refunds"}
	g := decoded[shownGate](t, w, "gate", "show", address, "3.1").Gate
	text := w.do(t, "gate", "show", address, "3.1")
	require.Contains(t, text, "asked by    c-017")
	require.Contains(t, w.do(t, "gate", "list", "--address", address), "ASKED BY")
	for args, says := range map[string]string{
		`{"order_id":"1042"}`: "/amount is missing",
		aRefund:               "approve it instead",
		`{"amount":{"currency":"EUR","minor":1},"order_id":"1042","x":1}`: "/x does not exist",
	} {
		r := w.command().run(t, append([]string{"gate", "edit", address, "3.1", "--args", args, "--digest", g.Digest, "--reason", "fee"}, as...)...)
		require.Equal(t, exitUsage, r.code, r.err)
		require.Contains(t, r.err, says)
	}
	// At the terminal, with what was edited shown.
	c := w.command()
	c.in, c.typed = strings.NewReader("edit\n"), true
	r := c.run(t, append([]string{"gate", "edit", address, "3.1", "--args", `{"amount":{"currency":"EUR","minor":7000},"order_id":"9999"}`, "--reason", "a fee", "--wait"}, as...)...)
	require.Equal(t, exitOK, r.code, r.err)
	require.Contains(t, r.err, `with these arguments instead: {"amount":{"currency":"EUR","minor":7000},"order_id":"9999"}`)
	require.Contains(t, r.out, "step 3.2 takes its place")
	// There is no such order: the shop, which other tests share, refuses it.
	run := decoded[agent.Run](t, w, "run", "get", address)
	require.Equal(t, agent.StepRefused, run.Steps[len(run.Steps)-1].Status)
	require.Contains(t, w.do(t, "run", "watch", address), "in the place of step 3.1")
}

// The user answers a question with a yes to what it shows; nobody else does.
func TestGate_Answer(t *testing.T) {
	w := newWorld(t)
	address := "acme/refund/gate-answer"
	w.do(t, "run", "start", address, "--body", `{"customer_id":"c-017"}`, "--as", "c-017", "--message", "Please refund order 1042, it broke", "--wait")
	g := decoded[shownGate](t, w, "gate", "show", address, "2.1").Gate
	require.Contains(t, w.do(t, "gate", "show", address, "2.1"), "gate answer, which may set order_id")
	r := w.command().run(t, "gate", "answer", address, "2.1", "--yes", "--digest", g.Digest, "--as", "ann")
	require.Equal(t, exitConflict, r.code)
	require.Contains(t, r.err, "only c-017, whom the run serves")
	r = w.command().run(t, "gate", "answer", address, "2.1", "amount=1", "--digest", g.Digest, "--as", "c-017")
	require.Equal(t, exitUsage, r.code, r.err)
	require.Contains(t, r.err, "does not ask for amount")
	c := w.command()
	c.in, c.typed = strings.NewReader("answer\n"), true
	r = c.run(t, "gate", "answer", address, "2.1", "order_id=1042", "--as", "c-017", "--no")
	require.Equal(t, exitOK, r.code, r.err)
	require.Contains(t, r.err, `your answer: no to the values shown, {"order_id":"1042"}`)
	require.Equal(t, agent.GateAnswered, decoded[shownGate](t, w, "gate", "show", address, "2.1").Gate.Status)
}

func TestRuling_ListAndLift(t *testing.T) {
	w := newWorld(t)
	address := w.atGate(t, "ruling")
	digest := decoded[shownGate](t, w, "gate", "show", address, "3.1").Gate.Digest
	w.do(t, "gate", "reject", address, "3.1", "--digest", digest, "--reason", "no damage", "--as", "ann", "--role", "refunds", "--wait")
	list := decoded[struct{ Rulings []rulingLine }](t, w, "ruling", "list", address)
	require.Len(t, list.Rulings, 1)
	require.Equal(t, agent.RulingBinds, list.Rulings[0].Status)
	text := w.do(t, "ruling", "list", address)
	require.Contains(t, text, "no damage; while order_id and amount stay")
	r := w.command().run(t, "ruling", "lift", address, "3.1", "--reason", "a photo came", "--as", "ann", "--role", "refunds")
	require.Equal(t, exitEnded, r.code, r.err)
}
