package agent

import (
	"slices"
	"strings"

	"golang.org/x/text/secure/precis"
)

// maxRoles bounds the roles of a principal.
const maxRoles = 50

// CheckPrincipal refuses a principal that two people could read in two ways: see
// [CheckName]. No run takes an input of anybody else.
func CheckPrincipal(p Principal) error {
	if p.Subject != "" {
		if err := CheckName("subject", p.Subject); err != nil {
			return err
		}
	}
	for _, r := range p.Roles {
		if err := CheckName("role", r); err != nil {
			return err
		}
	}
	for _, s := range []string{p.Tenant, p.Auth} {
		if len(s) > idLimit || clean(s) != s {
			return Errorf(CodeInvalid, "the principal's tenant or authentication is longer than %d bytes or not plain text", idLimit)
		}
	}
	if len(p.Roles) > maxRoles {
		return Errorf(CodeInvalid, "the principal has more than %d roles", maxRoles)
	}
	return nil
}

// CheckName says whether a person or a role can be called so: 1 to 200 bytes in the
// one form of RFC 8266, so without invisible or control characters, without spaces
// around it, composed, and of one width.
func CheckName(what, s string) error {
	if s == "" || len(s) > idLimit {
		return Errorf(CodeInvalid, "a %s has 1 to %d bytes, not %d", what, idLimit, len(s))
	}
	form, err := precis.Nickname.String(s)
	switch {
	case err != nil:
		return Errorf(CodeInvalid, "the %s %+q has a character that nobody can see, or that no name may have (%v): give it without", what, s, err)
	case form != s:
		return Errorf(CodeInvalid, "the %s %+q is not in the one form that names have here: give it as %+q", what, s, form)
	}
	return nil
}

// SamePerson reports whether two subjects are one person where several are needed,
// or another one: however their letters are cased. Who somebody is, and whose a run
// is, goes by the exact subject.
func SamePerson(a, b string) bool { return a == b || personKey(a) == personKey(b) }

func personKey(s string) string {
	if key, err := precis.Nickname.CompareKey(s); err == nil {
		return key
	}
	return strings.ToLower(s)
}

// amongPersons reports whether a person is one of several.
func amongPersons(subjects []string, who string) bool {
	return slices.ContainsFunc(subjects, func(s string) bool { return SamePerson(s, who) })
}
