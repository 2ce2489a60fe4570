package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is a flag that takes one of a few words.
type choice struct {
	value   string
	allowed []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.allowed, "|") }
func (c *choice) Set(s string) error {
	if !slices.Contains(c.allowed, s) {
		return fmt.Errorf("want one of %s", strings.Join(c.allowed, ", "))
	}
	c.value = s
	return nil
}

// The forms of what is written to stdout. JSON is one value, indented; JSON
// lines are one value a line, where there are several.
const (
	asText  = "text"
	asJSON  = "json"
	asJSONL = "jsonl"
)

func outputFlag(cmd *cobra.Command) *choice {
	c := &choice{asText, []string{asText, asJSON, asJSONL}}
	cmd.Flags().VarP(c, "output", "o", "form of what is written to stdout")
	return c
}

// limitFlag is how much of a list is shown; checkLimit refuses what is no size of
// one.
func limitFlag(cmd *cobra.Command, limit *int, of string) {
	cmd.Flags().IntVar(limit, "limit", 50, of+", 500 at most")
}

func checkLimit(limit int, of string) error {
	if limit < 1 || limit > 500 {
		return usagef("--limit %d is no size of a %s: give 1 to 500", limit, of)
	}
	return nil
}

// show writes a value in the form that was asked for: as JSON, or by text.
func (a *app) show(form *choice, v any, text func(w io.Writer) error) error {
	switch form.value {
	case asJSON:
		return writeJSON(a.out, v)
	case asJSONL:
		return writeLine(a.out, v)
	}
	return text(screen{a.out})
}

// list writes the values of a list: as an object with them under name and
// whatever else it has, as a line each, or by text.
func list[T any](a *app, form *choice, whole any, rows []T, text func(w io.Writer) error) error {
	if form.value != asJSONL {
		return a.show(form, whole, text)
	}
	for _, r := range rows {
		if err := writeLine(a.out, r); err != nil {
			return err
		}
	}
	return nil
}

func writeJSON(to io.Writer, v any) error { return encode(to, v, "  ") }
func writeLine(to io.Writer, v any) error { return encode(to, v, "") }

// encode writes JSON in which nothing is hidden: what a terminal would obey or
// not show stands in it as an escape, which is the same JSON.
func encode(to io.Writer, v any, indent string) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(screen{to}, b.String())
	return err
}

// printer keeps the first error, so that a report reads as what it prints.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

func (p *printer) title(text string) { p.line("\n%s", text) }

// table writes rows in columns as wide as they need to be; the last is as long
// as it is.
func (p *printer) table(rows [][]string) {
	var widths []int
	for _, r := range rows {
		for i, cell := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for i, cell := range r {
			b.WriteString(cell)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-len([]rune(cell))+2))
			}
		}
		p.line("%s", b.String())
	}
}
