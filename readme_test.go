package interlock_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/config"
	"interlock/examples/refund"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
)

// steer is the README's Go client, compiled.
func steer(ctx context.Context, client client.Client, store store.Reader, customer, reviewer agent.Principal) error {
	runs := starter.New(client, starter.WithReader(store))
	run, err := runs.Start(ctx, starter.Start{Agent: "refund", Tenant: "acme", Key: "ticket-311",
		Principal: agent.Principal{Subject: "backend"}, User: "c-017", Body: refund.Start{CustomerID: "c-017"}})
	if err != nil {
		return err
	}
	_, err = runs.Message(ctx, run.Address, signals.Message{ID: "m-1", Principal: customer, Text: "refund 1042, it broke"})
	if err != nil {
		return err
	}
	now, err := runs.Get(ctx, run.Address)
	if err != nil {
		return err
	}
	gate := now.Gates[0]
	receipt, err := runs.Decide(ctx, run.Address, signals.Verdict{ID: "v-1", Gate: gate.ID, Digest: gate.Digest, Verdict: agent.Approve, Principal: reviewer})
	if receipt.Status == agent.Voided {
		return agent.Errorf(agent.CodeConflict, "%s", receipt.Reason)
	}
	return err
}

var _ = steer

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}

// The README's code is code that compiles: each block stands in the file that
// it was taken from, but for indentation, and for what "// …" leaves out.
func TestReadmeCodeIsReal(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readme(t), -1)
	sources := []string{"examples/refund/agent.go", "tool/gate_example_test.go", "tool/undo_example_test.go", "readme_test.go", "api/client/example_test.go"}
	require.Len(t, blocks, len(sources))
	for i, source := range sources {
		requireFrom(t, source, blocks[i][1])
	}
}

// So is the guide's: a comment above each block names the file, which the module
// of the example compiles and tests.
func TestGuideCodeIsReal(t *testing.T) {
	text, err := os.ReadFile("docs/hour.md")
	require.NoError(t, err)
	named := regexp.MustCompile("(?s)<!-- (\\S+) -->\n```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Len(t, named, strings.Count(string(text), "```go\n"), "a block of code names no file")
	require.NotEmpty(t, named)
	for _, b := range named {
		require.True(t, strings.HasPrefix(b[1], "examples/orders/"), "%s is not of the example", b[1])
		requireFrom(t, b[1], b[2])
	}
}

// requireFrom checks that a block stands in a file, but for indentation and for
// what "// …" leaves out.
func requireFrom(t *testing.T, source, block string) {
	t.Helper()
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	rest := trimmed(string(text))
	for _, part := range strings.Split(strings.Join(trimmed(block), "\n"), "// …") {
		if strings.TrimSpace(part) == "" {
			continue // at the end: what follows is left out
		}
		lines := trimmed(part)
		at := find(rest, lines)
		require.GreaterOrEqual(t, at, 0, "not in %s:\n%s", source, strings.Join(lines, "\n"))
		rest = rest[at+len(lines):]
	}
}

func trimmed(text string) []string {
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		out = append(out, strings.TrimSpace(line))
	}
	return out
}

func find(text, lines []string) int {
	for i := 0; i+len(lines) <= len(text); i++ {
		if slices.Equal(text[i:i+len(lines)], lines) {
			return i
		}
	}
	return -1
}

func TestReadmeBeginsWithCode(t *testing.T) {
	before, _, found := strings.Cut(readme(t), "```go")
	require.True(t, found)
	require.Less(t, strings.Count(before, "\n"), 25, "the first screen shows code")
}

// The README's payloads are read by the decoders that a run reads them with.
func TestReadmePayloads(t *testing.T) {
	var inputs [][]string
	for _, command := range strings.Split(readme(t), "\ntemporal workflow ")[1:] {
		if in := regexp.MustCompile(`(?s)--(?:type|name) (\w+) .*?--input '([^']*)'`).FindStringSubmatch(command); in != nil {
			inputs = append(inputs, in)
		}
	}
	require.Len(t, inputs, 3)
	for _, in := range inputs {
		var err error
		switch in[1] {
		case "refund":
			var s signals.Start
			if s, err = signals.Starts.Decode([]byte(in[2])); err == nil {
				err = signals.CheckStart(s)
			}
			require.Contains(t, readme(t), "--workflow-id "+signals.Address(s.Tenant, s.Agent, s.Key)+" ")
		case signals.NameMessage:
			_, err = signals.Messages.Decode([]byte(in[2]))
		case signals.NameVerdict:
			_, err = signals.Verdicts.Decode([]byte(in[2]))
		default:
			t.Errorf("unknown name %s", in[1])
		}
		require.NoError(t, err, in[2])
	}
}

// Files that the documents point to exist, and every key of the configuration
// is in the README.
func TestDocumentsPointSomewhere(t *testing.T) {
	for _, doc := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/hour.md"} {
		text, err := os.ReadFile(doc)
		require.NoError(t, err)
		for _, link := range regexp.MustCompile(`\]\(([^):#]+)\)`).FindAllStringSubmatch(string(text), -1) {
			to := filepath.Join(filepath.Dir(doc), link[1])
			require.FileExists(t, to+folder(to), "in %s", doc)
		}
	}
	for _, k := range config.Keys() {
		require.True(t, strings.Contains(readme(t), "`"+k.Name+"`"), "the README does not mention %s", k.Name)
	}
}

// The tests that ARCHITECTURE.md names exist.
func TestNamedTestsExist(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	require.NoError(t, err)
	have := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.Name() == "node_modules" {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		code, err := os.ReadFile(name)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(string(code), -1) {
			have[m[1]] = true
		}
		return err
	}))
	for _, name := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(text), -1) {
		require.True(t, have[name[1]], name[1])
	}
}

// folder turns a link to a folder into one to a file in it.
func folder(link string) string {
	entries, err := os.ReadDir(link)
	if err != nil || len(entries) == 0 {
		return ""
	}
	return "/" + entries[0].Name()
}
