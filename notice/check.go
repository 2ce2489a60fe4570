package notice

import (
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"interlock/signals"
)

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// check says all that is wrong with a target, and looks up what is secret of it.
func (t *Target) check(env func(string) (string, bool)) (mistakes []string) {
	wrong := func(format string, args ...any) { mistakes = append(mistakes, fmt.Sprintf(format, args...)) }
	if !nameForm.MatchString(t.Name) {
		wrong("name: %q must be 1 to 63 of a-z, 0-9, _ and -, starting with a letter", plain(t.Name, 60))
	}
	for _, k := range t.Kinds {
		if !slices.Contains(Kinds, k) {
			wrong("kinds: there is no kind %q of notice, but %v", plain(string(k), 60), Kinds)
		}
	}
	for _, tenant := range t.Tenants {
		if err := signals.CheckAddress(tenant, "a", "k"); err != nil {
			wrong("tenants: %v", err)
		}
	}
	for _, name := range t.Agents {
		if err := signals.CheckAddress("t", name, "k"); err != nil {
			wrong("agents: %v", err)
		}
	}
	if slices.Contains(t.Roles, "") {
		wrong("roles: one is empty")
	}
	switch t.Kind {
	case Webhook:
		t.checkWebhook(env, wrong)
	case Slack:
		t.checkSlack(env, wrong)
	case Mail:
		t.checkMail(wrong)
	default:
		wrong("kind: %q must be one of %s, %s, %s", plain(string(t.Kind), 60), Webhook, Slack, Mail)
		return mistakes
	}
	return append(mistakes, t.foreign()...)
}

func (t *Target) checkWebhook(env func(string) (string, bool), wrong func(string, ...any)) {
	t.url = secret(t.URL)
	t.checkURL(wrong)
	if len(t.Secrets) == 0 {
		wrong("secrets: want one or more, file:PATH or env:NAME, so that the receiver can tell a notice from a forged one")
	}
	for i, reference := range t.Secrets {
		s, err := resolve(reference, env)
		if err == nil {
			err = checkWebhookSecret(s)
		}
		if err != nil {
			wrong("secrets[%d]: %v", i, err)
		}
		t.secrets = append(t.secrets, s)
	}
}

func (t *Target) checkSlack(env func(string) (string, bool), wrong func(string, ...any)) {
	s, err := resolve(t.URL, env)
	if err != nil {
		wrong("url: whoever has it can write to the channel: %v", err)
		return
	}
	t.url = s
	t.checkURL(wrong)
}

// checkURL never tells the URL: any part of it may be a secret.
func (t *Target) checkURL(wrong func(string, ...any)) {
	u, err := url.Parse(string(t.url))
	switch {
	case t.url == "" || err != nil || u.Host == "" || u.Hostname() == "":
		wrong("url: want one such as https://hooks.example.com/interlock")
	case u.User != nil || u.Fragment != "" || strings.ContainsFunc(string(t.url), unseen):
		wrong("url: want one without user, fragment, spaces and invisible characters")
	case u.Scheme == "http" && !t.AllowPrivate:
		wrong("url: want https; http only with allow_private: true")
	case u.Scheme != "https" && u.Scheme != "http":
		wrong("url: want https")
	default:
		t.checkHost(u.Hostname(), "url", wrong)
	}
}

// checkHost refuses at once what would be refused at each attempt.
func (t *Target) checkHost(host, key string, wrong func(string, ...any)) {
	if ip, err := netip.ParseAddr(host); err == nil && !t.AllowPrivate && !public(ip) {
		wrong("%s: address %s is not public: where that is meant, say allow_private: true", key, ip)
	}
}

func (t *Target) checkMail(wrong func(string, ...any)) {
	host, port, err := net.SplitHostPort(t.SMTP)
	if n, e := strconv.Atoi(port); err != nil || e != nil || host == "" || n < 1 || n > 65535 || strings.ContainsFunc(host, unseen) {
		wrong("smtp: want host:port of a mail server, such as smtp.example.com:587")
	} else {
		t.checkHost(host, "smtp", wrong)
	}
	if _, err := mail.ParseAddress(t.From); err != nil {
		wrong("from: want a mail address")
	}
	if len(t.To) == 0 {
		wrong("to: want one or more mail addresses")
	}
	for i, to := range t.To {
		if _, err := mail.ParseAddress(to); err != nil {
			wrong("to[%d]: want a mail address", i)
		}
	}
	if (t.User == "") != (t.PasswordFile == "") {
		wrong("user, password_file: want both, or neither")
	}
	if t.PasswordFile != "" {
		if t.password, err = readLine(t.PasswordFile); err != nil {
			wrong("password_file: %v", err)
		}
	}
}

// foreign are keys of another kind of target: they would do nothing.
func (t *Target) foreign() (mistakes []string) {
	given := []struct {
		key  string
		set  bool
		kind []Protocol
	}{
		{"url", t.URL != "", []Protocol{Webhook, Slack}}, {"secrets", len(t.Secrets) > 0, []Protocol{Webhook}},
		{"smtp", t.SMTP != "", []Protocol{Mail}}, {"from", t.From != "", []Protocol{Mail}}, {"to", len(t.To) > 0, []Protocol{Mail}},
		{"user", t.User != "", []Protocol{Mail}}, {"password_file", t.PasswordFile != "", []Protocol{Mail}},
	}
	for _, g := range given {
		if g.set && !slices.Contains(g.kind, t.Kind) {
			mistakes = append(mistakes, fmt.Sprintf("%s: a target of kind %s has none", g.key, t.Kind))
		}
	}
	return mistakes
}

// unseen are characters that are not seen as they are.
func unseen(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
