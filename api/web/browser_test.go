package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// patience is for what a browser does on a machine that does much else.
const patience = 30 * time.Second

// The screens that the pages are looked at on.
var (
	phone  = screen{"phone", 360, 800}
	desk   = screen{"desk", 1280, 900}
	zoomed = screen{"zoomed", 640, 450} // a desk at 200 %
)

type screen struct {
	name          string
	width, height int64
}

// chromium is the browser's program. Where there is none the test is skipped, and
// fails in CI.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("INTERLOCK_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("no chromium is installed")
	}
	t.Skip("no chromium is installed (Debian: chromium, fonts-dejavu-core); INTERLOCK_CHROMIUM may name one")
	return ""
}

// tab is a tab of a real browser.
type tab struct {
	t     *testing.T
	ctx   context.Context
	base  string
	shots string
	name  string // what it shows
}

// openTab opens a tab. What its console complains about fails the test.
func openTab(t *testing.T, base string) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.WindowSize(1280, 900))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	alloc, stopBrowser := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeTab := chromedp.NewContext(alloc)
	t.Cleanup(func() { closeTab(); stopBrowser() })
	b := &tab{t: t, ctx: ctx, base: base, shots: t.ArtifactDir()}
	listening, stop := context.WithCancel(ctx)
	messages := chromedp.Console(listening)
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate("about:blank")))
	t.Cleanup(func() {
		stop()
		for m, err := range messages {
			if err != nil {
				break
			}
			require.False(t, complaint(m), "the browser complained: %s", m)
		}
	})
	return b
}

// complaint is an error of a script, or a breach of the policy of contents. A
// status of 4xx and 5xx is the page's answer and none.
func complaint(m chromedp.ConsoleMessage) bool {
	return m.IsException() || (m.Type == "error" || m.Type == "warning") && !strings.Contains(m.Text, "the server responded with a status of")
}

// do runs steps in the tab, which must succeed.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...), "at %s", b.name)
}

func call[P, R any](b *tab, cmd cdp.Command[P, R], params P) R {
	b.t.Helper()
	r, err := chromedp.Call(b.ctx, cmd, params)
	require.NoError(b.t, err)
	return r
}

// on sets the screen and the colours.
func (b *tab) on(s screen, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: s.width, Height: s.height, DeviceScaleFactor: 1, Mobile: s.width < 600})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// scripts switches JavaScript on or off.
func (b *tab) scripts(on bool) {
	b.t.Helper()
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
}

// as signs somebody in, by the form.
func (b *tab) as(token string) {
	b.t.Helper()
	call(b, network.ClearBrowserCookies, cdp.Empty{})
	b.open("/login")
	b.fill("#token", token)
	b.click("main button")
}

func (b *tab) open(path string) {
	b.t.Helper()
	b.name = path
	b.do(chromedp.Navigate(b.base + path))
}

// click presses something and waits for the page that it leads to.
func (b *tab) click(selector string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	_, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector)))
	require.NoError(b.t, err, "a click on %s at %s", selector, b.name)
	b.name, err = chromedp.Run(ctx, chromedp.Location())
	require.NoError(b.t, err)
}

// press presses something that leads nowhere.
func (b *tab) press(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.do(chromedp.SetValue(chromedp.CSS(selector), text))
}

// text is what the page says.
func (b *tab) text() string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Text(chromedp.CSS("main")))
	require.NoError(b.t, err)
	return text
}

// shoot keeps a picture of the whole page, and checks that nothing is cut off at
// the side.
func (b *tab) shoot(name string) {
	b.t.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(b.shots, name+".png"), picture, 0o600))
	m := call(b, page.GetLayoutMetrics, cdp.Empty{})
	require.LessOrEqual(b.t, int64(m.CSSContentSize.Width), m.CSSLayoutViewport.ClientWidth, "%s scrolls sideways", name)
}

// everywhere shows a page on all screens, light and dark.
func (b *tab) everywhere(name string) {
	b.t.Helper()
	axe := axeSource(b.t)
	for _, s := range []screen{phone, desk} {
		for _, dark := range []bool{false, true} {
			b.on(s, dark)
			colours := "light"
			if dark {
				colours = "dark"
			}
			b.shoot(fmt.Sprintf("%s-%s-%s", name, s.name, colours))
			b.accessible(axe)
		}
	}
	b.on(zoomed, false)
	b.shoot(name + "-" + zoomed.name)
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections() // a page that follows what happens does not end by itself
		server.Close()
	})
	return server.URL
}
