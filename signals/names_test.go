package signals_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/signals"
)

// Names are persisted in histories and journals, and relied on by clients: none
// may be renamed or removed. The golden file lists them by the Go type, or by
// the first word of the constant's name where it has none. -update adds new
// names and never drops one.
func TestNamesStay(t *testing.T) {
	const path = "testdata/names.golden"
	now := names(t, "../agent", "../signals", "../store")
	golden, err := os.ReadFile(path)
	if *update && os.IsNotExist(err) {
		err = nil
	}
	require.NoError(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(golden)), "\n") {
		require.True(t, line == "" || slices.Contains(now, line),
			"%q is gone. It is persisted in histories; never rename. (If no history anywhere can hold it, take the line out of signals/%s.)", line, path)
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(now, "\n")+"\n"), 0o644))
		return
	}
	require.Equal(t, strings.Join(now, "\n")+"\n", string(golden), "a new name: go test ./signals -update adds it")

	require.Equal(t, "refund.find_order", signals.ToolActivity("refund", "find_order"))
	require.Equal(t, "refund.find_order.quick", signals.QuickActivity("refund", "find_order"))
	require.Equal(t, "acme/refund/k-1", signals.Address("acme", "refund", "k-1"))
}

var firstWord = regexp.MustCompile(`^[A-Z][a-z]+`)

// names lists the exported string constants of packages as "group value".
func names(t *testing.T, folders ...string) []string {
	found := map[string]bool{}
	for _, folder := range folders {
		files, err := filepath.Glob(folder + "/*.go")
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, d := range parsed.Decls {
				if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
					constants(filepath.Base(folder), g, found)
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func constants(pkg string, g *ast.GenDecl, found map[string]bool) {
	for _, spec := range g.Specs {
		v := spec.(*ast.ValueSpec)
		for i, name := range v.Names {
			if !name.IsExported() || i >= len(v.Values) {
				continue
			}
			literal, ok := v.Values[i].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				continue
			}
			group := firstWord.FindString(name.Name)
			if typ, ok := v.Type.(*ast.Ident); ok {
				group = typ.Name
			}
			value, _ := strconv.Unquote(literal.Value)
			found[pkg+"."+group+" "+value] = true
		}
	}
}
