package web

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"interlock/agent"
)

// fill reads what a form sent into a control, and makes its value: canonical JSON,
// nil where it is left out. What is wrong stands at the control; ok is false then.
// A text that nobody has touched is the value that it was made of, byte for byte:
// browsers change the ends of lines.
func (c *control) fill(form url.Values) (value agent.JSON, ok bool) {
	c.Problem = ""
	sent := form.Get(c.Name)
	switch c.Kind {
	case kindObject:
		return c.fillObject(form)
	case kindChoice:
		return c.fillChoice(sent)
	}
	same := lineEnds(sent) == lineEnds(c.Text)
	c.Text = lineEnds(sent)
	switch {
	case c.Kind == kindText && c.Text == "":
		return c.fillEmpty(form)
	case strings.TrimSpace(sent) == "" && c.Kind != kindText:
		return c.absent()
	case same && c.was != nil:
		return c.was, true
	}
	switch c.Kind {
	case kindText:
		value, err := agent.Encode(c.Text)
		if err != nil {
			return c.wrong("This text cannot be taken: " + err.Error())
		}
		return value, true
	case kindInteger:
		return c.fillNumber(integerForm, "is no integer: write digits only, such as -12 or 9007199254740993")
	case kindNumber:
		return c.fillNumber(numberForm, "is no number: write one such as 12 or 0.5")
	}
	value, err := agent.Canonical([]byte(sent))
	if err != nil {
		return c.wrong("This is no JSON that is accepted: " + err.Error())
	}
	return value, true
}

var (
	integerForm = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	numberForm  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
)

func (c *control) fillNumber(form *regexp.Regexp, why string) (agent.JSON, bool) {
	text := strings.TrimSpace(c.Text)
	if !form.MatchString(text) {
		return c.wrong("This " + why + ".")
	}
	value, err := agent.Canonical([]byte(text))
	if err != nil {
		return c.wrong("This " + why + ": " + err.Error())
	}
	return value, true
}

// fillEmpty: an empty text is left out only where that may be, and is not said to
// be meant.
func (c *control) fillEmpty(form url.Values) (agent.JSON, bool) {
	if c.MayBeEmpty() {
		if c.Given = form.Has(c.EmptyName()); !c.Given {
			return c.absent()
		}
	}
	return agent.JSON(`""`), true
}

func (c *control) fillChoice(sent string) (agent.JSON, bool) {
	known := false
	for i, o := range c.Options {
		c.Options[i].Chosen = o.Value == sent
		known = known || o.Value == sent
	}
	switch {
	case !known:
		return c.wrong("Choose one of the values.")
	case sent == "":
		return c.absent()
	}
	c.Text = sent
	return agent.JSON(sent), true
}

func (c *control) fillObject(form url.Values) (agent.JSON, bool) {
	if c.Optional || c.Nullable {
		if c.Given = form.Has(c.GivenName()); !c.Given {
			if c.was == nil && c.typed(form) {
				return c.wrong("Its members have values: tick that it is given, or empty them.")
			}
			return c.absent()
		}
	}
	members, ok := map[string]json.RawMessage{}, true
	for i := range c.Members {
		m := &c.Members[i]
		value, fine := m.fill(form)
		ok = ok && fine
		if value != nil {
			members[m.Label] = json.RawMessage(value)
		}
	}
	if !ok {
		return nil, false
	}
	return c.encode(members)
}

// encode makes an object of values that are canonical each.
func (c *control) encode(members map[string]json.RawMessage) (agent.JSON, bool) {
	text, err := json.Marshal(members)
	if err != nil {
		return c.wrong(err.Error())
	}
	value, err := agent.Canonical(text)
	if err != nil {
		return c.wrong(err.Error())
	}
	return value, true
}

// typed reports whether anything was written into an object's members.
func (c *control) typed(form url.Values) bool {
	for _, m := range c.Members {
		if m.Kind == kindObject && m.typed(form) || m.Kind != kindObject && form.Get(m.Name) != "" {
			return true
		}
	}
	return false
}

// absent is a control without a value, where that may be.
func (c *control) absent() (agent.JSON, bool) {
	switch {
	case c.Optional:
		return nil, true
	case c.Nullable:
		return agent.JSON("null"), true
	}
	return c.wrong("A value is needed here.")
}

func (c *control) wrong(why string) (agent.JSON, bool) {
	c.Problem = why
	return nil, false
}

// at is the control that a JSON pointer names, or the nearest above it.
func (c *control) at(name string) *control {
	for i := range c.Members {
		m := &c.Members[i]
		if name == m.Name || strings.HasPrefix(name, m.Name+"/") {
			return m.at(name)
		}
	}
	return c
}

var pointerForm = regexp.MustCompile(`(?:^|[ (])(/[^\s:;,]+)`)

// blame puts an error of the run to the control that it names; where it names none,
// to the whole.
func (c *control) blame(text string) {
	if m := pointerForm.FindStringSubmatch(text); m != nil {
		c.at(c.Name + m[1]).Problem = text
		return
	}
	c.Problem = text
}

func lineEnds(s string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
}
