package main

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The verdict of the demo can be given on its page.
func TestDemo_Page(t *testing.T) {
	t.Parallel()
	cli(t)
	var out, err safe
	a := &app{in: strings.NewReader(""), out: &out, err: &err}
	ended := make(chan int, 1)
	go func() { ended <- a.run(context.Background(), []string{"demo", "--page"}) }()
	says := regexp.MustCompile(`page   (\S+)\n  token  (\S+)\n`)
	require.Eventually(t, func() bool { return says.MatchString(out.String()) }, 90*time.Second, 50*time.Millisecond, "%s", err.String())
	at := says.FindStringSubmatch(out.String())
	page, e := url.Parse(at[1])
	require.NoError(t, e)

	jar, e := cookiejar.New(nil)
	require.NoError(t, e)
	browser := &http.Client{Jar: jar}
	post := func(path string, form url.Values) string {
		res, e := browser.PostForm(page.Scheme+"://"+page.Host+path, form)
		require.NoError(t, e)
		defer res.Body.Close()
		body, e := io.ReadAll(res.Body)
		require.NoError(t, e)
		require.Equal(t, http.StatusOK, res.StatusCode, "%s", body)
		return string(body)
	}
	shown := post("/login", url.Values{"token": {at[2]}, "next": {page.Path}})
	require.Contains(t, shown, "Refund 89.90 EUR for order 1042")
	digest := regexp.MustCompile(`name="digest" value="([^"]*)"`).FindStringSubmatch(shown)
	require.NotEmpty(t, digest)
	require.Contains(t, post(page.Path+"/verdict", url.Values{"verdict": {"approve"}, "id": {"page-1"}, "digest": {digest[1]}}), "decided by ann")
	select {
	case code := <-ended:
		require.Equal(t, exitOK, code, "%s\n%s", out.String(), err.String())
	case <-time.After(90 * time.Second):
		require.FailNow(t, "the demo does not end", "%s", out.String())
	}
	require.Contains(t, out.String(), "Checked: the shop's database and the outbox hold what the verdict allows")

	require.Equal(t, exitUsage, play(t, context.Background(), nil, "demo", "--page", "--decide", "approve").code)
}
