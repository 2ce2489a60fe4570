package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// browser is somebody who looks at the pages.
type browser struct {
	w       *world
	t       *testing.T
	cookies []*http.Cookie
}

// answer is a page as it came.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
	at     string // where a redirect leads to
}

// as is a browser of somebody who has signed in.
func (w *world) as(subject string) *browser {
	w.t.Helper()
	b := &browser{w: w, t: w.t}
	a := b.post("/login", url.Values{"token": {w.tokens[subject]}})
	require.Equal(w.t, http.StatusSeeOther, a.status, a.body)
	return b
}

func (b *browser) do(r *http.Request) answer {
	b.t.Helper()
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	rec := httptest.NewRecorder()
	b.w.pages.ServeHTTP(rec, r)
	res := rec.Result()
	for _, c := range res.Cookies() {
		b.cookies = nil
		if c.MaxAge >= 0 {
			b.cookies = []*http.Cookie{c}
		}
	}
	body, err := io.ReadAll(res.Body)
	require.NoError(b.t, err)
	return answer{b.t, res.StatusCode, res.Header, string(body), res.Header.Get("Location")}
}

func (b *browser) get(path string) answer {
	b.t.Helper()
	return b.do(httptest.NewRequest(http.MethodGet, path, nil))
}

func (b *browser) post(path string, form url.Values) answer {
	b.t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.do(r)
}

// form is what the form with this action and marker would send, as the page made
// it: its hidden and its filled fields.
func (a answer) form(marker string) url.Values {
	a.t.Helper()
	out := url.Values{}
	found := false
	for _, f := range regexp.MustCompile(`(?s)<form[^>]*>.*?</form>`).FindAllString(a.body, -1) {
		if !strings.Contains(f, marker) {
			continue
		}
		found = true
		for _, in := range regexp.MustCompile(`<input[^>]*>`).FindAllString(f, -1) {
			name, kind := attribute(in, "name"), attribute(in, "type")
			if name == "" || (kind == "checkbox" || kind == "radio") && !strings.Contains(in, " checked") {
				continue
			}
			out.Add(name, attribute(in, "value"))
		}
		for _, m := range regexp.MustCompile(`(?s)<textarea[^>]*name="([^"]*)"[^>]*>\n?(.*?)</textarea>`).FindAllStringSubmatch(f, -1) {
			out.Add(m[1], strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n").Replace(unescape(m[2]))) // as browsers send it
		}
		for _, m := range regexp.MustCompile(`(?s)<select[^>]*name="([^"]*)"[^>]*>(.*?)</select>`).FindAllStringSubmatch(f, -1) {
			out.Add(unescape(m[1]), selected(m[2]))
		}
		break
	}
	require.True(a.t, found, "no form with %s in %s", marker, a.body)
	return out
}

func selected(options string) string {
	all := regexp.MustCompile(`(?s)<option([^>]*)>(.*?)</option>`).FindAllStringSubmatch(options, -1)
	pick := all[0]
	for _, o := range all {
		if strings.Contains(o[1], "selected") {
			pick = o
		}
	}
	if strings.Contains(pick[1], "value=") {
		return attribute("<option"+pick[1]+">", "value")
	}
	return unescape(pick[2])
}

func attribute(tag, name string) string {
	m := regexp.MustCompile(`\s` + name + `="([^"]*)"`).FindStringSubmatch(tag)
	if m == nil {
		return ""
	}
	return unescape(m[1])
}

func unescape(s string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&#43;", "+", "&#x3D;", "=", "&amp;", "&").Replace(s)
}

// with is a form with other values.
func with(form url.Values, pairs ...string) url.Values {
	out := url.Values{}
	for k, v := range form {
		out[k] = append([]string(nil), v...)
	}
	for i := 0; i < len(pairs); i += 2 {
		out.Set(pairs[i], pairs[i+1])
	}
	return out
}
