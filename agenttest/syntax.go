package agenttest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"interlock/agent"
)

// A script's line is a verb and words. A word is bare (letters, digits and
// ._:@/+- without a space), or any JSON value; an option is name=word.

var (
	bareForm   = regexp.MustCompile(`^[A-Za-z0-9_.:@/+-]+$`)
	optionForm = regexp.MustCompile(`^([a-z_]+)=`)
)

// words is a line taken apart. Texts are as they stand in the line.
type words struct {
	verb    string
	list    []string
	options map[string]string
	used    map[string]bool
}

func readLine(line string) (words, error) {
	w := words{options: map[string]string{}, used: map[string]bool{}}
	w.verb, line, _ = strings.Cut(strings.TrimSpace(line), " ")
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		option := ""
		if m := optionForm.FindStringSubmatch(line); m != nil {
			option, line = m[1], line[len(m[0]):]
		}
		word, rest, err := readWord(line)
		if err != nil {
			return w, err
		}
		line = rest
		if option == "" {
			w.list = append(w.list, word)
		} else {
			w.options[option] = word
		}
	}
	return w, nil
}

func readWord(line string) (word, rest string, err error) {
	if line == "" || !strings.ContainsRune(`"{[`, rune(line[0])) {
		word, rest, _ = strings.Cut(line, " ")
		return word, rest, nil
	}
	d := json.NewDecoder(strings.NewReader(line))
	var v json.RawMessage
	if err := d.Decode(&v); err != nil {
		return "", "", fmt.Errorf("%s is no JSON value: %w", cut(line), err)
	}
	return line[:d.InputOffset()], line[d.InputOffset():], nil
}

// plain is a word's text: a JSON string without its quotes.
func plain(word string) string {
	var s string
	if strings.HasPrefix(word, `"`) && json.Unmarshal([]byte(word), &s) == nil {
		return s
	}
	return word
}

// word writes a text as a word.
func word(s string) string {
	if bareForm.MatchString(s) {
		return s
	}
	return quoted(s)
}

func quoted(s string) string {
	j, err := agent.Encode(s)
	if err != nil {
		return `""`
	}
	return j.String()
}

// raw is the n-th word as it stands, "" where there is none.
func (w words) raw(n int) string {
	if n < len(w.list) {
		return w.list[n]
	}
	return ""
}

func (w words) text(n int) string { return plain(w.raw(n)) }

// option is an option's text; ok is false where it is not given.
func (w words) option(name string) (text string, ok bool) {
	w.used[name] = true
	v, ok := w.options[name]
	return plain(v), ok
}

func (w words) optionOr(name, otherwise string) string {
	if v, ok := w.option(name); ok {
		return v
	}
	return otherwise
}

// optionJSON decodes an option that is JSON; into stays as it is where the
// option is not given.
func (w words) optionJSON(name string, into any) error {
	w.used[name] = true
	v, ok := w.options[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal([]byte(v), into); err != nil {
		return fmt.Errorf("%s=%s: %w", name, cut(v), err)
	}
	return nil
}

// count is an option that is a whole number, 0 where it is not given.
func (w words) count(name string) int64 {
	n, _ := strconv.ParseInt(w.optionOr(name, ""), 10, 64)
	return n
}

// value decodes the n-th word, which is JSON; into stays as it is where there is
// none.
func (w words) value(n int, into *agent.JSON) error {
	if n >= len(w.list) {
		return nil
	}
	j, err := agent.Encode(agent.JSON(w.list[n]))
	*into = j
	return err
}

// unknown is an option that nobody asked for, "" where there is none.
func (w words) unknown() string {
	for _, name := range sorted(w.options) {
		if !w.used[name] {
			return name
		}
	}
	return ""
}

// lineOf builds a line.
type lineOf struct{ strings.Builder }

func newLine(verb string, words ...string) *lineOf {
	l := &lineOf{}
	l.WriteString(verb)
	for _, w := range words {
		l.WriteString(" " + w)
	}
	return l
}

// opt adds an option whose value is not empty.
func (l *lineOf) opt(name, value string) *lineOf {
	if value != "" {
		l.WriteString(" " + name + "=" + word(value))
	}
	return l
}

// optJSON adds an option that is JSON and neither null nor empty.
func (l *lineOf) optJSON(name string, v any) *lineOf {
	j, err := agent.Encode(v)
	if s := j.String(); err == nil && s != "null" && s != "{}" && s != "0" {
		l.WriteString(" " + name + "=" + s)
	}
	return l
}

func (l *lineOf) who(p agent.Principal) *lineOf {
	l.WriteString(" by=" + word(p.Subject))
	if len(p.Roles) > 0 {
		l.optJSON("roles", p.Roles)
	}
	return l.opt("of", p.Tenant).opt("auth", p.Auth)
}
