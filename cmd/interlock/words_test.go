package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/config"
)

func TestExitCodes(t *testing.T) {
	for code, want := range map[agent.Code]int{agent.CodeInvalid: 2, agent.CodeNotFound: 3, agent.CodeConflict: 4, agent.CodeEnded: 5,
		agent.CodeUnavailable: 6, agent.CodeDenied: 7, agent.CodeInternal: 1} {
		require.Equal(t, want, exitCode(fmt.Errorf("while: %w", agent.Errorf(code, "x"))), code)
		require.Contains(t, exitCodes(), fmt.Sprintf("\n  %d    ", want))
	}
	require.Equal(t, exitFailure, exitCode(errors.New("x")))
	require.Equal(t, exitUsage, exitCode(fmt.Errorf("while: %w", usagef("x"))))
	require.Equal(t, exitUsage, exitCode(&config.Error{}))
	for _, line := range strings.Split(exitCodes(), "\n") {
		require.LessOrEqual(t, len(line), 80)
	}
}

func TestValuesOfAShell(t *testing.T) {
	for _, c := range []struct{ text, present, want string }{
		{"1043", `"1042"`, `"1043"`},
		{"1043", `""`, `"1043"`},
		{`"1043"`, `""`, `"1043"`},
		{"null", `"x"`, "null"},
		{"true", `""`, `"true"`},
		{"1043", "0", "1043"},
		{"1043", "", "1043"},
		{"broken lamp", "", `"broken lamp"`},
		{"", `"x"`, `""`},
		{`{"minor":1,"currency":"EUR"}`, `{"currency":"","minor":0}`, `{"currency":"EUR","minor":1}`},
		{`{"minor":1`, `{"currency":"","minor":0}`, `"{\"minor\":1"`},
	} {
		require.Equal(t, c.want, valueOf(c.text, agent.JSON(c.present)).String(), "%s for %s", c.text, c.present)
	}
}

func TestTheCustomerIsNotTalkedToForEver(t *testing.T) {
	waiting := &agent.Run{Status: agent.RunWaiting, Reason: "user"}
	asking := func(order string) *agent.Run {
		return &agent.Run{Status: agent.RunWaiting, Gates: []agent.Gate{{Kind: agent.KindAsk, Status: agent.GateOpen,
			Shown: map[string]agent.JSON{"order_id": agent.JSON(order)}}}}
	}
	c := conversation{order: "1042"}
	require.Equal(t, "yes, that one", c.next(asking(`"1042"`)))
	require.Equal(t, "No, I mean order 1042", c.next(asking(`"1043"`)))
	said := []string{}
	for text := c.next(waiting); text != ""; text = c.next(waiting) {
		said = append(said, text)
	}
	require.Len(t, said, mostNudges+mostGoodbyes)
	require.Equal(t, "Forget it, then", said[len(said)-1])
	for _, run := range []*agent.Run{{Status: agent.RunCompleted}, {Status: agent.RunPaused}} {
		require.Empty(t, (&conversation{order: "1042"}).next(run))
	}
}

func TestAges(t *testing.T) {
	for d, want := range map[time.Duration]string{5 * time.Second: "5s", 125 * time.Second: "2m5s", 3*time.Hour + 4*time.Minute: "3h4m", 50 * time.Hour: "2d2h", -time.Hour: "now"} {
		require.Equal(t, want, age(time.Now().Add(-d)))
	}
}

// What a model says in several lines cannot pass for lines of ours.
func TestForeignLinesAreIndented(t *testing.T) {
	require.Equal(t, "one\n    gate 3.1 approved\\u001b", indented("one\ngate 3.1 approved\x1b", 4))
}

func TestTable(t *testing.T) {
	var b strings.Builder
	p := &printer{w: &b}
	p.table([][]string{{"A", "B", "C"}, {"für", "x", "long text"}})
	require.Equal(t, "A    B  C\nfür  x  long text\n", b.String())
}
