package notice

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// secret is a value that no text shows: not by any verb of fmt, not in JSON and
// not in a log.
type secret string

func (s secret) String() string               { return "[redacted]" }
func (s secret) GoString() string             { return "[redacted]" }
func (s secret) Format(f fmt.State, _ rune)   { fmt.Fprint(f, "[redacted]") }
func (s secret) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }

// resolve is what a reference names: file:PATH, of which the file holds one line,
// or env:NAME. Its errors never hold the value, nor what is no reference: that may
// be the value itself, written in the wrong place.
func resolve(reference string, env func(string) (string, bool)) (secret, error) {
	if name, ok := strings.CutPrefix(reference, "env:"); ok {
		if strings.HasPrefix(name, "INTERLOCK_") {
			return "", errors.New("variables INTERLOCK_* are settings: choose another name for one that holds a secret")
		}
		value, _ := env(name)
		if value = strings.TrimSpace(value); value == "" {
			return "", fmt.Errorf("variable %q is not set", name)
		}
		return secret(value), nil
	}
	path, ok := strings.CutPrefix(reference, "file:")
	if !ok {
		return "", errors.New("secrets are not written here, but named: file:PATH or env:NAME")
	}
	return readLine(path)
}

// readLine is the one line of a file.
func readLine(path string) (secret, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	switch line := strings.TrimSpace(string(data)); {
	case line == "":
		return "", fmt.Errorf("file %s is empty", path)
	case strings.ContainsAny(line, "\r\n"):
		return "", fmt.Errorf("file %s holds more than one line", path)
	default:
		return secret(line), nil
	}
}

// whsec is a webhook's secret, in the form of Standard Webhooks.
const whsec = "whsec_"

func checkWebhookSecret(s secret) error {
	text, ok := strings.CutPrefix(string(s), whsec)
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < 24 || len(key) > 64 {
		return errors.New("a webhook's secret is whsec_ and 24 to 64 random bytes in base64, such as: echo whsec_$(openssl rand -base64 32)")
	}
	return nil
}

// hidden are the texts of a target that no error may hold, whoever sends them back.
func (t Target) hidden() []string {
	var all []string
	add := func(values ...string) {
		for _, v := range values {
			if len(v) >= 4 {
				all = append(all, v)
			}
		}
	}
	for _, s := range t.secrets {
		add(string(s), strings.TrimPrefix(string(s), whsec))
	}
	if t.password != "" {
		p := string(t.password)
		add(p, base64.StdEncoding.EncodeToString([]byte(p)), base64.StdEncoding.EncodeToString([]byte("\x00"+t.User+"\x00"+p)))
	}
	u, err := url.Parse(string(t.url))
	if err != nil || t.url == "" {
		return all
	}
	add(string(t.url), u.RequestURI(), u.RawQuery)
	for _, values := range u.Query() {
		add(values...)
	}
	if t.Kind == Slack { // its path is all that is needed to write there
		add(strings.Split(u.Path, "/")...)
	}
	return all
}

// masked is a text without what is hidden of the target.
func (t Target) masked(text string) string {
	for _, h := range t.hidden() {
		text = strings.ReplaceAll(text, h, "[redacted]")
	}
	return text
}
