package main

import (
	"errors"
	"fmt"
	"strings"

	"interlock/agent"
	"interlock/config"
)

// Exit codes. An interrupt is 128 and the number of the signal, as in a shell.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitConflict    = 4
	exitEnded       = 5
	exitUnavailable = 6
	exitDenied      = 7
)

// meanings is the table of exit codes, as it is shown and as it is used.
var meanings = []struct {
	exit int
	code agent.Code // "" where no code has it
	says string
}{
	{exitOK, "", "it was done"},
	{exitFailure, agent.CodeInternal, "it failed"},
	{exitUsage, agent.CodeInvalid, "the command line, the configuration or what is in them is wrong: nothing was done"},
	{exitNotFound, agent.CodeNotFound, "there is no such run, gate, agent, target, notice or table"},
	{exitConflict, agent.CodeConflict, "something else stands in its place: another content under the id or key, a gate that was decided or has changed"},
	{exitEnded, agent.CodeEnded, "the run has ended"},
	{exitUnavailable, agent.CodeUnavailable, "Temporal, the store or the run does not answer: try again with the same --id"},
	{exitDenied, agent.CodeDenied, "this person may not do it"},
}

func exitCodes() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, m := range meanings {
		fmt.Fprintf(&b, "  %-4d %s\n", m.exit, wrapped(m.says, 70, 7))
	}
	b.WriteString("  130  interrupted by Ctrl-C (in general 128 and the number of the signal)")
	return b.String()
}

// wrapped breaks a text at spaces; lines after the first are indented.
func wrapped(text string, width, indent int) string {
	var lines []string
	for len(text) > width {
		at := strings.LastIndex(text[:width], " ")
		lines, text = append(lines, text[:at]), text[at+1:]
	}
	return strings.Join(append(lines, text), "\n"+strings.Repeat(" ", indent))
}

// usageError is a mistake in what the process was told: nothing was begun.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func exitCode(err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*config.Error](err); ok {
		return exitUsage
	}
	code := agent.ErrorCode(err)
	for _, m := range meanings {
		if m.code == code {
			return m.exit
		}
	}
	return exitFailure
}
