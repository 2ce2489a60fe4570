package token

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"interlock/agent"
	"interlock/signals"
)

// Revocation takes a role, or all access, from a person of a tenant.
type Revocation struct {
	Tenant  string
	Subject string
	Role    string // "" is all access, with whatever role or none
	Reason  string // in one line, for people
}

// of is what the revocation is about, whatever its reason.
func (r Revocation) of() Revocation { r.Reason = ""; return r }

// Revocations is a [Directory] of one file. A line of it is
//
//	<tenant> <subject> [role]   # reason
//
// Without a role, all access is revoked. What holds spaces, quotes or a # is quoted
// as in Go. Empty lines and lines of a comment are allowed, and nothing else is: a
// line that is misread would revoke nothing.
//
// The file is read anew when the last look is older than 5 seconds. While it is not
// there, or holds a line that is none, nobody's roles are known.
type Revocations struct{ file kept[taken] }

// taken are the roles that are revoked, by person (a Revocation without role).
type taken map[Revocation]map[string]bool

// OpenRevocations reads the file, which must be there; it may be empty.
func OpenRevocations(path string) (*Revocations, error) {
	r := &Revocations{}
	r.file.read = func() (taken, error) {
		all, err := ReadRevocations(path)
		if err != nil {
			return nil, err
		}
		revoked := taken{}
		for _, one := range all {
			who := Revocation{Tenant: one.Tenant, Subject: one.Subject}
			if revoked[who] == nil {
				revoked[who] = map[string]bool{}
			}
			revoked[who][one.Role] = true
		}
		return revoked, nil
	}
	if _, err := r.file.get(); err != nil {
		return nil, err
	}
	return r, nil
}

// Roles implements [Directory].
func (r *Revocations) Roles(_ context.Context, p agent.Principal) ([]string, error) {
	all, err := r.file.get()
	if err != nil {
		return nil, err
	}
	revoked := all[Revocation{Tenant: p.Tenant, Subject: p.Subject}]
	if revoked[""] {
		return nil, ErrRevoked
	}
	return slices.DeleteFunc(slices.Clone(p.Roles), func(role string) bool { return revoked[role] }), nil
}

// ReadRevocations are those of the file, in its order.
func ReadRevocations(path string) ([]Revocation, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, agent.Errorf(agent.CodeNotFound, "there is no file of revocations at %s: make an empty one where nothing is revoked (%w)", path, err)
	}
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalid, "the file of revocations: %w", err)
	}
	return parseRevocations(path, string(data))
}

func parseRevocations(path, text string) ([]Revocation, error) {
	var all []Revocation
	n := 0
	for line := range strings.Lines(text) {
		n++
		r, err := parseRevocation(line)
		if err != nil {
			return nil, agent.Errorf(agent.CodeInvalid, "line %d of the file of revocations %s: %w; a line is <tenant> <subject> [role], with quotes around what has spaces", n, path, err)
		}
		if r != (Revocation{}) {
			all = append(all, r)
		}
	}
	return all, nil
}

// parseRevocation reads a line; one that revokes nothing is a zero Revocation.
func parseRevocation(line string) (Revocation, error) {
	if !utf8.ValidString(line) {
		return Revocation{}, errors.New("it is no UTF-8")
	}
	var r Revocation
	var words []string
	for rest := strings.TrimSpace(line); rest != ""; {
		if comment, ok := strings.CutPrefix(rest, "#"); ok {
			r.Reason = strings.TrimSpace(comment)
			break
		}
		word, after, err := firstWord(rest)
		if err != nil {
			return Revocation{}, err
		}
		words, rest = append(words, word), strings.TrimSpace(after)
	}
	switch len(words) {
	case 0:
		return Revocation{}, nil
	case 3:
		r.Role = words[2]
		fallthrough
	case 2:
		r.Tenant, r.Subject = words[0], words[1]
		return r, r.check()
	}
	return Revocation{}, fmt.Errorf("it has %d words", len(words))
}

// firstWord is the first word of a text, and what comes after it.
func firstWord(text string) (word, rest string, err error) {
	if text[0] != '"' {
		end := strings.IndexFunc(text, unicode.IsSpace)
		if end < 0 {
			end = len(text)
		}
		if word := text[:end]; !isPlain(word) {
			return "", "", fmt.Errorf("%q is to be quoted", word)
		}
		return text[:end], text[end:], nil
	}
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return "", "", errors.New("a quote does not end")
	}
	if word, err = strconv.Unquote(quoted); err != nil || word == "" {
		return "", "", fmt.Errorf("%s is nothing", quoted)
	}
	if rest = text[len(quoted):]; rest != "" && !unicode.IsSpace([]rune(rest)[0]) {
		return "", "", fmt.Errorf("something stands right after %s", quoted)
	}
	return word, rest, nil
}

// isPlain reports a word that means the same without quotes, and is seen as it is.
func isPlain(word string) bool {
	return word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == utf8.RuneError || strings.ContainsRune("\"#`\\", r)
	})
}

// check refuses what would revoke nothing.
func (r Revocation) check() error {
	switch {
	case signals.CheckAddress(r.Tenant, "a", "k") != nil:
		return agent.Errorf(agent.CodeInvalid, "%q is no tenant", r.Tenant)
	case r.Subject == "":
		return agent.Errorf(agent.CodeInvalid, "a revocation names whose it is: the subject is missing")
	case !utf8.ValidString(r.Subject + r.Role):
		return agent.Errorf(agent.CodeInvalid, "subject and role are to be UTF-8")
	}
	return nil
}

// line is the revocation as it stands in the file.
func (r Revocation) line() string {
	words := []string{r.Tenant, r.Subject}
	if r.Role != "" {
		words = append(words, r.Role)
	}
	for i, w := range words {
		if !isPlain(w) {
			words[i] = strconv.Quote(w)
		}
	}
	if reason := strings.TrimSpace(r.Reason); reason != "" {
		words = append(words, "#", reason)
	}
	return strings.Join(words, " ") + "\n"
}
