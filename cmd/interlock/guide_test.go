package main

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// documented are the documents whose command lines must be right.
var documented = []string{"../../docs/hour.md", "../../README.md", httpDoc}

// What a document says to type is a command line that is accepted: the command
// exists, and its flags and arguments are taken. A sentence may also just name a
// command.
func TestGuide_CommandsAreAccepted(t *testing.T) {
	for _, doc := range documented {
		for _, line := range commandsOf(t, doc) {
			require.Empty(t, refusal(words(t, line)), "%s: %s", doc, line)
		}
		for _, line := range mentionedIn(t, doc) {
			if args := words(t, line); !names(args) {
				require.Empty(t, refusal(args), "%s: %s", doc, line)
			}
		}
	}
	require.NotEmpty(t, commandsOf(t, documented[0]))
	require.NotEmpty(t, mentionedIn(t, documented[1]))
}

// The commands of the guide's blocks are run, without a Temporal: what fails then
// must not be the command line. Words that begin with $ stand for what the reader
// has seen.
func TestGuide_CommandsAreNoUsageErrors(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
	lines := commandsOf(t, documented[0])
	t.Chdir(t.TempDir())
	for _, line := range lines {
		r := play(t, context.Background(), nil, words(t, line)...)
		require.NotEqual(t, exitUsage, r.code, "%s: %s", line, r.err)
	}
}

// A check that accepts everything would prove nothing.
func TestGuide_MistakesAreFound(t *testing.T) {
	for line, want := range map[string]string{
		"interlock run hold acme/orders/t-1":                "no command",
		"interlock holds":                                   "unknown command",
		"interlock run why":                                 "accepts 1 arg(s), received 0",
		"interlock gate show acme/orders/t-1 3.1 --role r":  "unknown flag: --role",
		"interlock gate list --status opened":               "want one of open",
		`interlock run pause acme/orders/t-1 the van broke`: "accepts 1 arg(s), received 4",
	} {
		require.Contains(t, refusal(words(t, line)), want, line)
	}
}

// commandsOf are the lines of a document's blocks of shell that are ours.
func commandsOf(t *testing.T, doc string) (lines []string) {
	for _, block := range regexp.MustCompile("(?s)```(?:sh)?\n(.*?)```").FindAllStringSubmatch(withoutGo(t, doc), -1) {
		for line := range strings.Lines(block[1]) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "interlock ") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// mentionedIn are the command lines in a document's sentences.
func mentionedIn(t *testing.T, doc string) (lines []string) {
	for _, code := range regexp.MustCompile("`(?:bin/)?(interlock [^`\n]*)`").FindAllStringSubmatch(withoutGo(t, doc), -1) {
		lines = append(lines, code[1])
	}
	return lines
}

// withoutGo leaves out blocks of Go, so that no fence is taken for another.
func withoutGo(t *testing.T, doc string) string {
	t.Helper()
	text, err := os.ReadFile(doc)
	require.NoError(t, err)
	return regexp.MustCompile("(?s)```go\n.*?```").ReplaceAllString(string(text), "")
}

// words are a line's arguments, as a shell would make them, without interlock.
func words(t *testing.T, line string) []string {
	t.Helper()
	stands := func(name string) string {
		return map[string]string{"GATE": "3.1", "DIGEST": strings.Repeat("0", digestLength)}[name]
	}
	var quote rune
	fields := strings.FieldsFunc(line, func(c rune) bool {
		switch {
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
		}
		return quote == 0 && unicode.IsSpace(c)
	})
	require.Zero(t, quote, "a quote is open in %s", line)
	if at := slices.Index(fields, "#"); at >= 0 {
		fields = fields[:at]
	}
	for i, f := range fields {
		fields[i] = os.Expand(strings.Trim(f, `"'`), stands)
		require.NotEmpty(t, fields[i], "%s holds a word that stands for nothing", line)
	}
	return fields[1:]
}

// names reports that a command stands there alone.
func names(args []string) bool {
	cmd, rest, err := (&app{}).command().Find(args)
	return err == nil && len(rest) == 0 && cmd.HasParent()
}

// refusal says why a command line is not accepted, "" where it is. Nothing runs.
func refusal(args []string) string {
	cmd, rest, err := (&app{}).command().Find(args)
	switch {
	case err != nil:
		return err.Error()
	case slices.Contains(rest, "--help"):
		return ""
	}
	if err = cmd.ParseFlags(rest); err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	switch {
	case err != nil:
		return err.Error()
	case cmd.HasSubCommands() && cmd.Flags().NArg() > 0:
		return "no command of " + cmd.CommandPath() + ": " + cmd.Flags().Arg(0)
	}
	return ""
}
