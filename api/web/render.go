package web

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"interlock/api/access"
	"interlock/api/visible"
)

// May reports an act that the caller may do at all, for the links to its page.
func (l layout) May(act access.Act) bool { return access.Check(l.Caller, act, access.On{}) == nil }

// layout is what every page's template is given.
type layout struct {
	Title  string
	Style  string
	Caller access.Caller
	Signed bool
	Nav    string // the page that the navigation marks
	Banner string
	Main   any
}

func parseTemplates(p *Pages) (map[string]*template.Template, error) {
	base, err := template.New("layout").Funcs(funcs).ParseFS(files, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return nil, err
	}
	out := map[string]*template.Template{}
	for _, file := range names {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		t, err := base.Clone()
		if err == nil {
			t, err = t.ParseFS(files, file)
		}
		if err != nil {
			return nil, err
		}
		out[name] = t
	}
	return out, nil
}

// funcs are what templates use. vis and lines are for whatever somebody else has
// written: they show what would mislead; escaping is the template's.
var funcs = template.FuncMap{
	"vis":    visible.Inline,
	"lines":  visibleLines,
	"join":   func(all []string) string { return strings.Join(all, ", ") },
	"static": staticPath,
	"rows":   rows,
	"add":    func(a, b int) int { return a + b },
}

// rows is how high an input of a text is.
func rows(text string) int { return min(max(strings.Count(text, "\n")+1+len(text)/60, 1), 14) }

// visibleLines is a text with what would mislead as \uXXXX; lines stay lines.
func visibleLines(s string) string {
	all := strings.Split(s, "\n")
	for i, line := range all {
		all[i] = visible.Inline(line)
	}
	return strings.Join(all, "\n")
}

// page writes a whole page, or an error before anything is written.
func (v *visit) page(status int, name, title string, main any) error {
	return v.write(status, name, "layout", layout{Title: title, Caller: v.caller, Signed: v.caller.Subject != "", Nav: navOf(v.r.URL.Path), Banner: v.banner, Main: main})
}

// part writes a part of a page.
func (v *visit) part(name, block string, data any) error {
	return v.write(http.StatusOK, name, block, data)
}

func (v *visit) write(status int, name, block string, data any) error {
	var b bytes.Buffer
	if err := v.templates[name].ExecuteTemplate(&b, block, data); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	if v.r.Method == http.MethodHead {
		return nil
	}
	_, _ = v.w.Write(b.Bytes()) // who has gone away is told nothing
	return nil
}

func navOf(path string) string {
	switch {
	case path == "/", path == "/decide", strings.Contains(path, "/gates/"):
		return "inbox"
	case strings.HasPrefix(path, "/ops"):
		return "ops"
	case strings.HasPrefix(path, "/absences"):
		return "absences"
	case strings.HasPrefix(path, "/runs"):
		return "runs"
	}
	return ""
}

// digests of the static files are in their addresses, so that a browser may keep
// them for ever.
var digests = func() map[string]string {
	out := map[string]string{}
	names, _ := fs.Glob(files, "static/*")
	for _, n := range names {
		data, _ := files.ReadFile(n)
		sum := sha256.Sum256(data)
		out[path.Base(n)] = hex.EncodeToString(sum[:6])
	}
	return out
}()

func staticPath(name string) string { return "/static/" + name + "?v=" + digests[name] }

// static serves the style sheet and the scripts, which anybody may see.
func static() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/static/")
		kind := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".txt": "text/plain; charset=utf-8", ".svg": "image/svg+xml"}[path.Ext(name)]
		data, err := files.ReadFile("static/" + name)
		if err != nil || kind == "" {
			http.NotFound(w, r)
			return
		}
		if r.URL.Query().Get("v") == digests[name] {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(data)
	})
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
