package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"interlock/agent"
)

// answer is what came back of a request.
type answer struct {
	status         int
	kind, encoding string // of the content
	body           []byte
	cut            error         // why the body is not whole
	wait           time.Duration // that the service asks for
	secrets        []string      // that no error may show
}

// What a status means; see [HTTP].
var (
	refusedStatus = []int{400, 402, 404, 405, 406, 410, 411, 412, 413, 414, 415, 416, 417, 422, 428, 431, 451, 501, 505}
	againStatus   = []int{307, 308, 401, 403, 407, 421, 423, 425, 429}
)

// known says what an answer means: nil where it happened, if it decodes.
// earlier: an attempt before this one may have had the effect.
func (a answer) known(earlier bool) error {
	switch {
	case a.status/100 == 2:
		return nil
	case slices.Contains(refusedStatus, a.status) && (!earlier || a.isJSON()):
		return Refused(a.fault())
	case slices.Contains(againStatus, a.status):
		return NotApplied(RetryAfter(a.fault(), a.wait))
	}
	return RetryAfter(a.fault(), a.wait)
}

// fault is an answer in a line, with the service's own words.
func (a answer) fault() error {
	text := fmt.Sprintf("the service answered %d %s", a.status, http.StatusText(a.status))
	if a.status/100 == 3 {
		text += ", and redirects are not followed: mend the URL"
	}
	if a.cut != nil {
		return fmt.Errorf("%s, but the answer is not whole: %w", text, a.cut)
	}
	if said := a.words(); said != "" {
		text += ": " + said
	}
	return errors.New(text)
}

// words are what the service says went wrong, by the usual members or as it is.
func (a answer) words() string {
	said := string(a.body)
	var object map[string]json.RawMessage
	if a.isJSON() && json.Unmarshal(a.body, &object) == nil {
		for _, name := range []string{"detail", "message", "error_description", "error", "title"} {
			if s := sentence(object[name]); s != "" {
				said = s
				break
			}
		}
	}
	for _, s := range a.secrets {
		said = masked(said, s)
	}
	return clipped(said, 300)
}

// sentence is a text, or the message of an object.
func sentence(j json.RawMessage) (s string) {
	var object struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(j, &s) != nil && json.Unmarshal(j, &object) == nil {
		return object.Message
	}
	return s
}

// masked hides a header's value that a service repeats, and the credentials
// after its scheme.
func masked(text, secret string) string {
	_, credentials, _ := strings.Cut(secret, " ")
	for _, s := range []string{secret, strings.TrimSpace(credentials)} {
		if len(s) >= 4 {
			text = strings.ReplaceAll(text, s, "…")
		}
	}
	return text
}

// clipped is a text in one line of at most n characters, without any that
// control how it is shown.
func clipped(s string, n int) string {
	if len(s) > 8*n {
		s = s[:8*n]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case r == unicode.ReplacementChar, !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > n {
		return string(runes[:n]) + " …"
	}
	return string(runes)
}

func (a answer) isJSON() bool {
	kind, _, err := mime.ParseMediaType(a.kind)
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// waitOf is the wait that an answer asks for, as seconds or as a date by the
// service's own clock where it tells it. What cannot be read is none.
func waitOf(h http.Header, now time.Time) time.Duration {
	const most = 24 * time.Hour
	text := h.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(n, 0), int(most/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), most)
}

// decode reads a result. Its error never says that nothing happened.
func (c *call[A, R]) decode(a answer) (R, error) {
	var r R
	if err := a.decode(c.needs, &r); err != nil {
		var none R
		return none, fmt.Errorf("the service answered %d, but not with a result: %w", a.status, err)
	}
	return r, nil
}

func (a answer) decode(needs *members, into any) error {
	switch {
	case a.cut != nil:
		return a.cut
	case len(bytes.TrimSpace(a.body)) == 0:
		if needs.Type != nil && needs.Type != "object" {
			return errors.New("it has no body")
		}
		return needs.check(map[string]any{}, "")
	case a.kind != "" && !a.isJSON():
		return fmt.Errorf("its content is %s, not JSON", clipped(a.kind, 100))
	case a.encoding != "" && a.encoding != "identity":
		return errors.New("its content is encoded")
	}
	canonical, err := agent.Canonical(a.body)
	if err != nil {
		return err
	}
	var whole any
	if err := exact(canonical, &whole); err != nil {
		return err
	}
	if err := needs.check(whole, ""); err != nil {
		return err
	}
	return exact(canonical, into)
}

// exact decodes without making floats of numbers.
func exact(j agent.JSON, into any) error {
	d := json.NewDecoder(bytes.NewReader(j))
	d.UseNumber()
	return d.Decode(into)
}

// members is what a type's schema says of its JSON.
type members struct {
	Type       any                 `json:"type"`
	Properties map[string]*members `json:"properties"`
	Required   []string            `json:"required"`
	Items      *members            `json:"items"`
}

// UnmarshalJSON also reads a schema that is true: any value.
func (m *members) UnmarshalJSON(j []byte) error {
	if string(j) == "true" {
		return nil
	}
	type plain members
	return json.Unmarshal(j, (*plain)(m))
}

// membersOf reads a type's schema; of a type that has none, such as one that
// contains itself, nothing is known.
func membersOf[T any]() *members {
	m := new(members)
	if schema, ok := schemaOf[T](); ok {
		if err := json.Unmarshal(schema, m); err != nil {
			panic(fmt.Sprintf("tool: schema of %T: %v", *new(T), err))
		}
	}
	return m
}

func schemaOf[T any]() (schema agent.JSON, ok bool) {
	defer func() { ok = recover() == nil }()
	return agent.NewDecoder[T]().Schema(), true
}

// check finds what a value lacks. Without it, an answer that says something
// else in JSON would be a result whose fields are all zero.
func (m *members) check(v any, at string) error {
	switch v := v.(type) {
	case nil:
		if types, ok := m.Type.([]any); m.Type != nil && (!ok || !slices.Contains(types, any("null"))) {
			return fmt.Errorf("%s is null", place(at))
		}
	case map[string]any:
		for _, name := range m.Required {
			if _, ok := v[name]; !ok {
				return fmt.Errorf("%s is missing", place(at+"/"+name))
			}
		}
		for name, p := range m.Properties {
			if value, ok := v[name]; ok {
				if err := p.check(value, at+"/"+name); err != nil {
					return err
				}
			}
		}
	case []any:
		if m.Items == nil {
			return nil
		}
		for i, value := range v {
			if err := m.Items.check(value, at+"/"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func place(at string) string {
	if at == "" {
		return "the answer"
	}
	return at
}
