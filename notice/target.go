package notice

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Protocol is how a target is reached.
type Protocol string

const (
	Webhook Protocol = "webhook"
	Slack   Protocol = "slack"
	Mail    Protocol = "mail"
)

// Target is who is told, as the file of targets says. What is secret of it is in no
// text that is made from it.
type Target struct {
	Name string   `yaml:"name" json:"name"`
	Kind Protocol `yaml:"kind" json:"kind"`
	// URL is where a webhook is sent: https, unless AllowPrivate. That of Slack is a
	// secret, and so is named: file:PATH or env:NAME.
	URL string `yaml:"url" json:"-"`
	// Secrets name those that a webhook is signed with: file:PATH or env:NAME. All of
	// them sign, so that a receiver can change to a new one at any time.
	Secrets []string `yaml:"secrets" json:"-"`

	// What is told; an empty list is all. Roles are those of gates: whatever is of no
	// gate is told whatever they say.
	Kinds   []Kind   `yaml:"kinds" json:"kinds"`
	Tenants []string `yaml:"tenants" json:"tenants"`
	Agents  []string `yaml:"agents" json:"agents"`
	Roles   []string `yaml:"roles" json:"roles"`
	// Titles tells the titles of gates, too. They can hold personal data.
	Titles bool `yaml:"titles" json:"titles"`
	// AllowPrivate lets it be at an address that is not public, and without TLS.
	AllowPrivate bool `yaml:"allow_private" json:"allow_private"`

	// Of a mail: host and port, from whom, to whom, and as whom it is handed over.
	SMTP         string   `yaml:"smtp" json:"smtp,omitempty"`
	From         string   `yaml:"from" json:"from,omitempty"`
	To           []string `yaml:"to" json:"to,omitempty"`
	User         string   `yaml:"user" json:"user,omitempty"`
	PasswordFile string   `yaml:"password_file" json:"-"`

	url      secret
	secrets  []secret
	password secret
}

// String is the target's name.
func (t Target) String() string { return t.Name }

// GoString is the target's name, too.
func (t Target) GoString() string { return fmt.Sprintf("notice.Target(%q)", t.Name) }

// Where is where it is, as it may be seen.
func (t Target) Where() string {
	if t.Kind == Mail {
		return t.SMTP
	}
	u, err := url.Parse(string(t.url))
	if err != nil || u.Host == "" {
		return ""
	}
	if t.Kind == Slack {
		return u.Scheme + "://" + u.Host + "/…"
	}
	where := u.Scheme + "://" + u.Host + u.EscapedPath()
	if u.RawQuery != "" {
		where += "?…"
	}
	return where
}

// Wants reports whether the target is told of it.
func (t Target) Wants(n Notice) bool {
	asked := len(t.Kinds) == 0 || slices.Contains(t.Kinds, n.Kind)
	return asked && among(t.Tenants, n.Tenant) && among(t.Agents, n.Agent) && (!n.OfGate() || t.wantsRoles(n.Roles))
}

func (t Target) wantsRoles(roles []string) bool {
	return len(t.Roles) == 0 || slices.ContainsFunc(roles, func(r string) bool { return slices.Contains(t.Roles, r) })
}

func among(list []string, one string) bool { return len(list) == 0 || slices.Contains(list, one) }

// Cut is the notice as this target gets it.
func (t Target) Cut(n Notice) Notice {
	if !t.Titles {
		n.Title = ""
	}
	return n
}

// Find is the target of a name.
func Find(targets []Target, name string) (Target, bool) {
	i := slices.IndexFunc(targets, func(t Target) bool { return t.Name == name })
	if i < 0 {
		return Target{}, false
	}
	return targets[i], true
}

// plain is a text of others in one line, short, and without what a reader or a
// terminal would obey.
func plain(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Join(strings.FieldsFunc(text, unseen), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return text
}
