package interlock_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "interlock"

// contracts is the layer of the folders whose sub-folders (drivers, contract
// suites) are one layer higher than themselves.
const contracts, drivers = 1, 2

// layers places every top-level folder. A package imports lower layers only, so
// that what is below can be understood, tested and used without what is above.
var layers = map[string]int{
	"agent": 0,
	"llm":   contracts, "tool": contracts, "store": contracts, "signals": contracts,
	"prompt": drivers, "token": drivers, "notice": drivers,
	"workflows": 3, "activities": 3,
	"starter": 4, "api": 4,
	"worker": 5, "config": 5, "localtemporal": 5,
	"cmd": 6, "examples": 6, "bench": 6, "chaos": 6, "replaytests": 6, "agenttest": 6, "effecttest": 6,
}

// sideways are the imports within one layer that are allowed, with the reason.
var sideways = map[[2]string]string{
	{"api", "starter"}:           "the HTTP API is one more client of a product backend's kind",
	{"worker", "config"}:         "composition reads the configuration",
	{"cmd", "examples"}:          "the demo runs the sample agents",
	{"bench", "examples"}:        "the benchmark runs a sample agent",
	{"replaytests", "examples"}:  "the recorded runs are those of sample agents",
	{"replaytests", "agenttest"}: "histories are recorded with the kit that users have",
	{"bench", "agenttest"}:       "the benchmark uses the kit that users have",
	{"cmd", "agenttest"}:         "a run is exported as a script of the test kit",
	{"cmd", "replaytests"}:       "a run is exported as a recorded history",
}

// bans go beyond the layers: what a folder must not import though it is lower,
// with the reason. "drivers" stands for every sub-folder of a contract.
var bans = map[[2]string]string{
	{"prompt", "tool"}:        "rendering is pure: it needs what a run is and what a message is, and nothing that acts",
	{"prompt", "store"}:       "rendering is pure: what it shows is handed in, never looked up",
	{"prompt", "signals"}:     "what the model sees does not depend on how a run was reached",
	{"notice", "llm"}:         "what is told of a run is what its events say",
	{"notice", "tool"}:        "a notice acts on nothing",
	{"notice", "prompt"}:      "what is told of a run is what its events say",
	{"notice", "token"}:       "nothing is decided by a notice: it proves nobody",
	{"workflows", "notice"}:   "a workflow hands a notice on as it is: HTTP and mail are behind activities",
	{"workflows", "drivers"}:  "a workflow is replayed on any worker: vendors and databases are behind activities",
	{"activities", "drivers"}: "an activity knows contracts; which vendor stands behind them is decided by composition",
	{"starter", "workflows"}:  "a product backend knows names and payloads (signals), so that it need not be deployed with the workers",
	{"starter", "drivers"}:    "a product backend must not link databases and vendors to start a run",
	{"api", "workflows"}:      "the API is a client: it must go on working while workers of several versions run",
	{"api", "activities"}:     "the API and the pages act through a run, never beside it",
	{"api", "drivers"}:        "which store is read is decided by composition",
}

// withoutTemporal are the folders that know nothing of Temporal, sub-folders
// included, with the reason.
var withoutTemporal = map[string]string{
	"agent":   "the machine must run, and be tested, without a server",
	"llm":     "a provider is usable, and tested, without a workflow around it",
	"tool":    "what an effect promises must not depend on who retries it",
	"store":   "the ledger is what remains when Temporal's history is gone",
	"signals": "any Temporal SDK, in any language, sends these payloads: they are data",
	"prompt":  "rendering is a pure function",
	"notice":  "who is told what must not depend on who tries again",
}

// alone are the packages that need the standard library only, with the reason: what
// imports nothing else links nothing else.
var alone = map[string]string{
	"api/client": "a product backend links it without Temporal, without a store and without a version of anything that it may have itself",
}

// agentMayImport is all that the domain needs. What is not here cannot make a
// replay differ: no clock, no random, no disk, no network, no other goroutine.
var agentMayImport = []string{
	"bytes", "cmp", "crypto/hmac", "crypto/sha256", "encoding/binary", "encoding/hex", "encoding/json", "errors", "fmt", "maps", "math", "math/big",
	"reflect", "regexp", "slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf16", "unicode/utf8",
	"github.com/bojanz/currency", // tables of ISO 4217, compiled in
	"golang.org/x/text/secure/precis",
	"github.com/google/jsonschema-go/jsonschema",
	"golang.org/x/text/unicode/norm", // normal forms
}

// clocks are the functions of package time that look at a clock or wait.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTicker", "NewTimer"}

// place says in which top-level folder and layer a package lives, and whether it
// is the driver of a contract.
func place(pkg string) (top string, layer int, driver bool, err error) {
	top, rest, nested := strings.Cut(strings.TrimPrefix(pkg, module+"/"), "/")
	layer, known := layers[top]
	if !known {
		return top, 0, false, fmt.Errorf("%s: unknown top-level folder %q: say in which layer it lives", pkg, top)
	}
	if layer == contracts && nested {
		return top, drivers, !strings.HasPrefix(rest, "internal"), nil
	}
	return top, layer, false, nil
}

// judge says what is wrong with one import, or nothing.
func judge(from, to string) error {
	if from == module {
		return fmt.Errorf("%s imports %s: the root holds tests only", from, to)
	}
	top, layer, driver, err := place(from)
	if err != nil {
		return err
	}
	if why, alone := alone[strings.TrimPrefix(from, module+"/")]; alone {
		if first, _, _ := strings.Cut(to, "/"); first == module || strings.Contains(first, ".") {
			return fmt.Errorf("%s imports %s: %s", from, to, why)
		}
		return nil
	}
	if to == "go.temporal.io" || strings.HasPrefix(to, "go.temporal.io/") {
		if why, banned := withoutTemporal[top]; banned {
			return fmt.Errorf("%s imports %s: %s", from, to, why)
		}
		return nil
	}
	if top == "agent" && !strings.HasPrefix(to, module+"/") && !slices.Contains(agentMayImport, to) {
		return fmt.Errorf("%s imports %s: the domain is pure and deterministic; if this package is too, add it to the list", from, to)
	}
	if to == module {
		return fmt.Errorf("%s imports the module's root, which holds tests only", from)
	}
	if !strings.HasPrefix(to, module+"/") {
		return nil
	}
	toTop, toLayer, toDriver, err := place(to)
	if err != nil {
		return err
	}
	target := toTop
	if toDriver {
		target = "drivers"
	}
	if why, banned := bans[[2]string{top, target}]; banned {
		return fmt.Errorf("%s imports %s: %s", from, to, why)
	}
	switch {
	case toLayer < layer:
		return nil
	case driver && toDriver && toLayer == layer:
		return fmt.Errorf("%s imports %s: drivers know their contract and not each other, so that each can be left out", from, to)
	case toLayer == layer && (top == toTop || sideways[[2]string{top, toTop}] != ""):
		return nil
	}
	return fmt.Errorf("%s (layer %d) imports %s (layer %d): only lower layers may be imported", from, layer, to, toLayer)
}

// tree parses the non-test Go files of this module. It reads them in this
// process, rather than through the go command, so that `go test` sees which
// files a cached result depends on, and a package that does not compile is
// judged all the same.
func tree(t *testing.T, mode parser.Mode, below string) map[string][]*ast.File {
	t.Helper()
	out, fset := map[string][]*ast.File{}, token.NewFileSet()
	err := filepath.WalkDir(below, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." {
			base := d.Name()
			if base == "testdata" || base == "vendor" || base == "node_modules" || base[0] == '.' || base[0] == '_' {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
				return fs.SkipDir // another module
			}
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(fset, name, nil, mode)
		if err != nil {
			return err
		}
		pkg := path.Join(module, filepath.ToSlash(filepath.Dir(name)))
		out[pkg] = append(out[pkg], file)
		return nil
	})
	require.NoError(t, err)
	return out
}

func importPath(s *ast.ImportSpec) string {
	p, _ := strconv.Unquote(s.Path.Value) // the parser has checked it
	return p
}

func TestImportsGoDown(t *testing.T) {
	packages := tree(t, parser.ImportsOnly, ".")
	require.NotEmpty(t, packages)
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		if pkg != module {
			if _, _, _, err := place(pkg); err != nil {
				t.Error(err)
				continue
			}
		}
		for _, file := range packages[pkg] {
			for _, spec := range file.Imports {
				if err := judge(pkg, importPath(spec)); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestAgentIsDeterministic(t *testing.T) {
	require.DirExists(t, "agent")
	for pkg, files := range tree(t, parser.SkipObjectResolution, "agent") {
		for _, file := range files {
			for _, what := range impurities(file) {
				t.Errorf("%s: %s: the machine gets time and order with its inputs", pkg, what)
			}
		}
	}
}

// impurities finds what an import list cannot tell. Ranging over maps is found
// by workflowcheck.
func impurities(file *ast.File) []string {
	var found []string
	clock := map[string]bool{}
	for _, spec := range file.Imports {
		name := path.Base(importPath(spec))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." || name == "_" {
			found = append(found, "import of "+importPath(spec)+" as "+name)
		}
		clock[name] = clock[name] || importPath(spec) == "time"
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, "a go statement")
		case *ast.SelectStmt:
			found = append(found, "a select statement")
		case *ast.ChanType:
			found = append(found, "a channel")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && clock[x.Name] && slices.Contains(clocks, n.Sel.Name) {
				found = append(found, "time."+n.Sel.Name)
			}
		}
		return true
	})
	return found
}

// The rule itself is tested, since a rule that never fires looks like one that
// is kept.
func TestRuleAllowsAndForbids(t *testing.T) {
	for _, c := range []struct{ from, to, reason string }{
		{"agent", "time", ""},
		{"agent", "math/rand", "pure and deterministic"},
		{"agent", "os", "pure and deterministic"},
		{"agent", "net/http", "pure and deterministic"},
		{"agent", "interlock/llm", "only lower layers"},
		{"agent", "go.temporal.io/sdk/temporal", "without a server"},
		{"llm", "interlock/agent", ""},
		{"llm", "interlock/llm/scripted", "only lower layers"},
		{"tool", "interlock/store", "only lower layers"},
		{"llm/scripted", "interlock/llm", ""},
		{"llm/openai", "interlock/llm/internal/wire", ""},
		{"llm/openai", "interlock/llm/scripted", "not each other"},
		{"llm/openai", "interlock/store/sqlite", "not each other"},
		{"llm/openai", "interlock/prompt", "only lower layers"},
		{"store/sqlite", "go.temporal.io/sdk/client", "Temporal's history is gone"},
		{"store/sqlite", "interlock/config", "only lower layers"},
		{"prompt", "interlock/llm", ""},
		{"prompt", "interlock/llm/openai", "only lower layers"},
		{"prompt", "interlock/store", "never looked up"},
		{"workflows", "interlock/signals", ""},
		{"workflows", "go.temporal.io/sdk/workflow", ""},
		{"workflows", "interlock/activities", "only lower layers"},
		{"workflows", "interlock/store/sqlite", "behind activities"},
		{"activities", "interlock/workflows", "only lower layers"},
		{"activities", "interlock/config", "only lower layers"},
		{"activities", "interlock/prompt", ""},
		{"starter", "interlock/workflows", "names and payloads"},
		{"starter", "interlock/store/postgres", "databases and vendors"},
		{"starter", "interlock/store", ""},
		{"api", "interlock/api/web", ""},
		{"api", "interlock/starter", ""},
		{"api/web", "interlock/api/access", ""},
		{"api/web", "interlock/activities", "never beside it"},
		{"api/web", "interlock/store/sqlite", "decided by composition"},
		{"api/web", "interlock/config", "only lower layers"},
		{"api/client", "net/http", ""},
		{"api/client", "interlock/agent", "without Temporal, without a store"},
		{"api/client", "interlock/store/sqlite", "without Temporal, without a store"},
		{"api/client", "go.temporal.io/sdk/client", "without Temporal, without a store"},
		{"api/client", "github.com/google/uuid", "without Temporal, without a store"},
		{"starter", "interlock/api", "only lower layers"},
		{"worker", "interlock/config", ""},
		{"worker", "interlock/store/sqlite", ""},
		{"config", "interlock/worker", "only lower layers"},
		{"cmd/interlock", "interlock/examples/refund", ""},
		{"examples/refund", "interlock/cmd/interlock", "only lower layers"},
		{"util", "fmt", "say in which layer it lives"},
		{"worker", "interlock/internal/x", "say in which layer it lives"},
		{"worker", "interlock", "tests only"},
	} {
		err := judge(module+"/"+c.from, c.to)
		if c.reason == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.reason, "%s -> %s", c.from, c.to)
		}
	}
}

func TestImpuritiesAreFound(t *testing.T) {
	source := `package p
import (
	clock "time"
	. "fmt"
)
func f(c chan int) { go f(c); select {}; _ = clock.Now(); _ = clock.Second }`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"import of fmt as .", "a channel", "a go statement", "a select statement", "time.Now"}, impurities(file))
}
