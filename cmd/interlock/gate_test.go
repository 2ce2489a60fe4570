package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/api/visible"
)

func TestGate_ListAndShow(t *testing.T) {
	w := newWorld(t)
	address := w.atGate(t, "gate-show")
	list := decoded[struct{ Gates []gateLine }](t, w, "gate", "list", "--role", "refunds", "--address", address)
	require.Len(t, list.Gates, 1)
	g := list.Gates[0]
	require.Equal(t, "3.1", g.Gate.ID)
	require.Equal(t, "issue_refund", g.Gate.Tool)
	require.NotEmpty(t, g.Gate.Digest)
	require.Contains(t, w.do(t, "gate", "list", "--address", address), "role refunds")
	require.Contains(t, w.do(t, "gate", "list", "--older-than", "1h"), "There are no such gates.")
	require.Contains(t, w.do(t, "gate", "list", "--role", "nobody", "-o", "json"), `"gates": []`)
	require.Contains(t, w.do(t, "gate", "list", "--address", address, "--status", "any"), "answered")

	text := w.do(t, "gate", "show", address, "3.1")
	for _, want := range []string{`issue_refund {"amount":{"currency":"EUR","minor":8990},"order_id":"1042"}`, "a refund above 50 needs a colleague's approval",
		`order_id = 1042, in the user's own words (turn 1), confirmed by "yes, that one"`, "may decide  role refunds", "which never approves", g.Gate.Digest} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "CAREFUL")
}

// A hostile argument must not look harmless.
func TestGate_ShowsWhatMisleads(t *testing.T) {
	long := strings.Repeat("\u00a0", 500)
	g := shownGate{gateLine: gateLine{Address: "acme/x/1", Gate: agent.Gate{ID: "1.1", Kind: agent.KindTool, Tool: "send", Status: agent.GateOpen,
		Title: "Send to p\u0430ypal.com\x1b[2K\ngate 2.2 approved", Args: agent.JSON(`{"to":"a` + "\u202e\u200b\U000e0100" + long + `<img src=x onerror=1>"}`),
		Reads: []string{"to"}, Shown: map[string]agent.JSON{"to": agent.JSON("\"\u2066x\"")}}},
		Misleading: []string{visible.Direction, visible.Invisible}, run: &agent.Run{}}
	var b strings.Builder
	require.NoError(t, g.print(screen{&b}))
	for _, bad := range []string{"\u202e", "\u200b", "\U000e0100", "\u00a0", "\u0430", "\x1b", "\u2066", "\ngate 2.2"} {
		require.NotContains(t, b.String(), bad)
	}
	require.Contains(t, b.String(), `{"to":"a\u202e\u200b\udb40\udd00`+strings.Repeat(`\u00a0`, 500)+`<img src=x onerror=1>"}`, "nothing is clipped")
	require.Contains(t, b.String(), "CAREFUL: it holds characters that turn the direction of text, invisible characters")
}

func TestGate_DecidedAtTheTerminal(t *testing.T) {
	w := newWorld(t)
	address := w.atGate(t, "gate-typed")
	approve := []string{"gate", "approve", address, "3.1", "--as", "ann", "--role", "refunds"}
	for typed, says := range map[string]string{"y\n": "no verdict was given", "": "no verdict was given", "reject\n": "no verdict was given"} {
		c := w.command()
		c.in, c.typed = strings.NewReader(typed), true
		r := c.run(t, approve...)
		require.Equal(t, exitFailure, r.code)
		require.Contains(t, r.err, says)
		require.Contains(t, r.err, `issue_refund {"amount"`, "it was shown")
	}
	require.Equal(t, agent.GateOpen, decoded[shownGate](t, w, "gate", "show", address, "3.1").Gate.Status)
	c := w.command()
	c.in, c.typed = strings.NewReader("reject\n"), true
	r := c.run(t, "gate", "reject", address, "3.1", "--reason", "no damage", "--as", "ann", "--role", "refunds", "--wait")
	require.Equal(t, exitOK, r.code, r.err)
	require.Contains(t, r.out, "reject of gate 3.1 by ann (refunds), unverified")

	c.in = strings.NewReader("approve\n")
	r = c.run(t, approve...)
	require.Equal(t, exitConflict, r.code)
	require.Contains(t, r.err, "gate 3.1 is rejected: by ann (refunds), unverified: no damage")
}

func TestGate_VerdictsThatDecideNothing(t *testing.T) {
	w := newWorld(t)
	address := w.atGate(t, "gate-void")
	digest := decoded[shownGate](t, w, "gate", "show", address, "3.1").Gate.Digest
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"another digest":  {[]string{"--digest", noDigest, "--role", "refunds"}, "decided nothing"},
		"without a role":  {[]string{"--digest", digest}, "role"},
		"with a foreign":  {[]string{"--digest", digest, "--role", "cooks"}, "role"},
		"of another gate": {[]string{"--digest", digest, "--role", "refunds"}, ""},
	} {
		gate := "3.1"
		if name == "of another gate" {
			gate = "9.9"
		}
		r := w.command().run(t, append([]string{"gate", "approve", address, gate, "--as", "eve"}, c.args...)...)
		require.Contains(t, []int{exitConflict, exitNotFound}, r.code, "%s: %s", name, r.err)
		require.Contains(t, r.err, c.says, name)
	}
	for _, c := range [][]string{{"happened", "--result", `{"id":"r-1"}`}, {"did-not-happen", "--again"}} {
		r := w.command().run(t, append([]string{"gate", c[0], address, "3.1", "--digest", digest, "--role", "refunds", "--reason", "seen"}, c[1:]...)...)
		require.Equal(t, exitConflict, r.code, r.err)
		require.Contains(t, r.err, "asks for approve or reject")
	}
	require.Equal(t, agent.GateOpen, decoded[shownGate](t, w, "gate", "show", address, "3.1").Gate.Status)
	run := decoded[agent.Run](t, w, "run", "get", address)
	require.Equal(t, "pay", run.Phase)
}
