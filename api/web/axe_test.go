package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// axe is the source of axe-core, which is fetched as its lock names it.
var axe = sync.OnceValues(func() (string, error) {
	file := filepath.Join("axe", "node_modules", "axe-core", "axe.min.js")
	if !axeInstalled() {
		ci := exec.Command("npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts")
		ci.Dir = "axe"
		if out, err := ci.CombinedOutput(); err != nil {
			return "", fmt.Errorf("npm ci: %w: %s", err, out)
		}
	}
	source, err := os.ReadFile(file)
	return string(source), err
})

// axeInstalled reports whether what is installed is what the lock names.
func axeInstalled() bool {
	version := func(file string) string {
		var lock struct {
			Packages map[string]struct{ Version string }
		}
		text, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(text, &lock) != nil {
			return ""
		}
		return lock.Packages["node_modules/axe-core"].Version
	}
	have := version(filepath.Join("axe", "node_modules", ".package-lock.json"))
	return have != "" && have == version(filepath.Join("axe", "package-lock.json"))
}

// axeSource is axe-core's source. Where there is no npm the test is skipped, and
// fails in CI.
func axeSource(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil && !axeInstalled() {
		if os.Getenv("CI") != "" {
			t.Fatalf("this test needs npm, and CI must not go without it: %v", err)
		}
		t.Skipf("this test needs npm, to fetch axe-core: %v", err)
	}
	source, err := axe()
	require.NoError(t, err)
	return source
}

// violation is a rule of accessibility that a page breaks.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// accessible checks that the page breaks no serious rule of accessibility.
func (b *tab) accessible(source string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[any](source+"\n;0"))
		return err
	}))
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations))`, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, b.name)
	var found []violation
	require.NoError(b.t, json.Unmarshal([]byte(text), &found))
	var bad []string
	for _, v := range found {
		if v.Impact != "serious" && v.Impact != "critical" {
			continue
		}
		for _, n := range v.Nodes {
			bad = append(bad, fmt.Sprintf("%s (%s) %s: %s\n%s", v.ID, v.Impact, v.Help, n.HTML, n.FailureSummary))
		}
	}
	require.True(b.t, len(bad) == 0, "%s\n%s", b.name, strings.Join(bad[:min(len(bad), 3)], "\n"))
}
