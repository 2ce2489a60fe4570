package llm

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"interlock/agent"
)

// name is what every provider accepts as a tool's name and as a call's id.
var name = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// ValidName reports whether every provider accepts s as a tool's name.
func ValidName(s string) bool { return name.MatchString(s) }

// Validate checks the rules that every provider has, and says which message
// breaks which. The list begins with at most one system message, then a user
// message, and ends with a user or a tool message. The answers to an assistant
// message's calls follow it directly, one for each call and nothing between.
// Call ids are unique in the list. No text is blank except a tool's and that of
// an assistant message with calls. All text is valid UTF-8, arguments are JSON
// objects.
func Validate(messages []Message) error {
	v := validator{seen: map[string]bool{}}
	for i, m := range messages {
		if err := v.message(i, m); err != nil {
			return fmt.Errorf("message %d (%s): %w", i, m.Role, err)
		}
	}
	if err := v.allAnswered(); err != nil {
		return fmt.Errorf("after the last message: %w", err)
	}
	if !v.begun {
		return errors.New("there is no user message")
	}
	if messages[len(messages)-1].Role == RoleAssistant {
		return errors.New("the last message is the assistant's: there is nothing to answer")
	}
	return nil
}

type validator struct {
	begun   bool            // a message that is not the system's was seen
	seen    map[string]bool // call ids
	waiting []Call          // calls of the last assistant message without an answer
}

func (v *validator) message(i int, m Message) error {
	if err := plain(m); err != nil {
		return err
	}
	if m.Role != RoleTool {
		if err := v.allAnswered(); err != nil {
			return err
		}
	}
	blank := strings.TrimSpace(m.Text) == ""
	switch m.Role {
	case RoleSystem:
		if i != 0 {
			return errors.New("only the first message can be the system's")
		}
	case RoleUser:
		v.begun = true
	case RoleAssistant:
		if !v.begun {
			return errors.New("the first message after the system's must be the user's")
		}
		return v.assistant(m, blank)
	case RoleTool:
		return v.answer(m)
	default:
		return fmt.Errorf("unknown role %q", m.Role)
	}
	if blank {
		return errors.New("blank text")
	}
	return nil
}

func (v *validator) assistant(m Message, blank bool) error {
	if blank && len(m.Calls) == 0 {
		return errors.New("neither text nor calls")
	}
	for _, c := range m.Calls {
		switch {
		case !name.MatchString(c.ID):
			return fmt.Errorf("call id %q is not 1 to 64 letters, digits, _ or -", c.ID)
		case v.seen[c.ID]:
			return fmt.Errorf("call id %s is used twice", c.ID)
		case !name.MatchString(c.Tool):
			return fmt.Errorf("call %s: tool name %q is not 1 to 64 letters, digits, _ or -", c.ID, c.Tool)
		case !utf8.ValidString(c.ProviderID):
			return fmt.Errorf("call %s: the provider's id is not valid UTF-8", c.ID)
		}
		if err := object(c.Args); err != nil {
			return fmt.Errorf("call %s: arguments: %w", c.ID, err)
		}
		v.seen[c.ID] = true
	}
	v.waiting = append(v.waiting, m.Calls...)
	return nil
}

func (v *validator) answer(m Message) error {
	for i, c := range v.waiting {
		if c.ID != m.Call {
			continue
		}
		if m.Tool != c.Tool {
			return fmt.Errorf("it answers call %s as tool %q, which called %q", c.ID, m.Tool, c.Tool)
		}
		v.waiting = append(v.waiting[:i:i], v.waiting[i+1:]...)
		return nil
	}
	if v.seen[m.Call] {
		return fmt.Errorf("call %s is answered twice, or not directly after its message", m.Call)
	}
	return fmt.Errorf("it answers call %q, which nobody made", m.Call)
}

func (v *validator) allAnswered() error {
	if len(v.waiting) == 0 {
		return nil
	}
	c := v.waiting[0]
	return fmt.Errorf("call %s (%s) before it has no answer", c.ID, c.Tool)
}

// plain checks what holds for a message of any role.
func plain(m Message) error {
	switch {
	case !utf8.ValidString(m.Text):
		return errors.New("the text is not valid UTF-8")
	case len(m.Calls) > 0 && m.Role != RoleAssistant:
		return errors.New("only an assistant message has calls")
	case len(m.Opaque) > 0 && m.Role != RoleAssistant:
		return errors.New("only an assistant message has opaque items")
	case m.Call != "" && m.Role != RoleTool:
		return errors.New("only a tool message answers a call")
	}
	if len(m.Opaque) > 0 {
		if _, err := agent.Canonical(m.Opaque); err != nil {
			return fmt.Errorf("opaque items: %w", err)
		}
	}
	return nil
}

func object(args agent.JSON) error {
	c, err := agent.Canonical(args)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(c, []byte("{")) {
		return fmt.Errorf("%.40s is not a JSON object", c)
	}
	return nil
}
