package config

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"
)

// Secret is a value that no text shows: not by any verb of fmt, not in JSON and
// not in a log. [Secret.Reveal] is the only way to it.
type Secret string

const masked = "[redacted]"

// Reveal is the value itself, for the one place that uses it.
func (s Secret) Reveal() string { return string(s) }

// String is empty for an empty secret: that one is missing may be seen.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// Format masks the value under every verb, %d and %x included.
func (s Secret) Format(f fmt.State, verb rune) {
	format := "%s"
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		format = "%q"
	}
	fmt.Fprintf(f, format, s.String())
}

// MarshalText masks the value in JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue masks the value in logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// credentials are all that stands before the host of a URL. Greedy, because a
// password that was not escaped may hold an @ or a /.
var credentials = regexp.MustCompile(`(?s)://.*@`)

// withoutCredentials masks user and password of a URL, wherever one was written:
// also where no URL belongs.
func withoutCredentials(text string) string {
	return credentials.ReplaceAllString(text, "://"+masked+"@")
}

// maskedURL shows where a secret URL leads: scheme, host and path. Its query can
// hold passwords and is left out. What is no URL is masked whole.
func maskedURL(text string) string {
	scheme, rest, ok := strings.Cut(withoutCredentials(text), "://")
	if !ok || !oneOf(scheme, "postgres", "postgresql") {
		return masked
	}
	rest, _, query := strings.Cut(rest, "?")
	if query {
		rest += "?…"
	}
	return scheme + "://" + rest
}
