package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"time"

	"interlock/agent"
)

// SessionFor is how long a session lasts.
const SessionFor = 12 * time.Hour

// Names of the cookie. A browser takes one that begins with __Host- only over
// https, for exactly this host and all of its paths.
const (
	cookieName       = "interlock_session"
	secureCookieName = "__Host-" + cookieName
)

// sessionKeySize is that of the key in bytes.
const sessionKeySize = 32

// Credentials are looked up again whenever a session is used.
type Credentials interface {
	// Named is the caller of a credential, as it is now.
	Named(ctx context.Context, id string) (Caller, error)
}

// Sessions are cookies that stand for a credential, for browsers. A cookie holds
// no secret: it names the credential, and is signed. Whatever the credential has
// become counts, so that a session ends where it is revoked or expires, and has
// its present roles.
type Sessions struct {
	key []byte
	of  Credentials
	now func() time.Time
}

// NewSessions makes sessions that are signed with a key of 32 bytes; without one a
// key is made, and sessions end with the process.
func NewSessions(key []byte, of Credentials) (*Sessions, error) {
	if len(key) == 0 {
		key = make([]byte, sessionKeySize)
		_, _ = rand.Read(key) // it never fails
	}
	if len(key) != sessionKeySize {
		return nil, agent.Errorf(agent.CodeInvalid, "a key of sessions has %d bytes, and not %d", sessionKeySize, len(key))
	}
	return &Sessions{key: key, of: of, now: time.Now}, nil
}

// ReadSessionKey reads the key from a file: 32 bytes, or 64 hexadecimal digits.
// Nobody but its owner may be able to read it.
func ReadSessionKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalid, "the key of sessions: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, agent.Errorf(agent.CodeInvalid, "the key of sessions %s can be read by others: chmod 600 %s", path, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalid, "the key of sessions: %w", err)
	}
	if len(data) == sessionKeySize {
		return data, nil
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(data)))
	if err != nil || len(key) != sessionKeySize {
		return nil, agent.Errorf(agent.CodeInvalid, "%s is no key of sessions: 32 bytes, such as head -c 32 /dev/urandom makes, or 64 hexadecimal digits", path)
	}
	return key, nil
}

// session is what a cookie says.
type session struct {
	Credential string `json:"c"`
	Stamp      string `json:"k"`
	Subject    string `json:"s"`
	Tenant     string `json:"t"`
	Expires    int64  `json:"e"` // seconds of Unix time
}

// Begin sets the cookie of a caller who has just been authenticated.
func (s *Sessions) Begin(w http.ResponseWriter, r *http.Request, c Caller) error {
	if c.Credential == "" {
		return agent.Errorf(agent.CodeInvalid, "no session can be begun with this credential")
	}
	expires := s.now().Add(SessionFor)
	body, err := json.Marshal(session{c.Credential, c.Stamp, c.Subject, c.Tenant, expires.Unix()})
	if err != nil {
		return err
	}
	text := base64.RawURLEncoding.EncodeToString(body)
	http.SetCookie(w, cookie(r, text+"."+s.sign(text), expires, int(SessionFor/time.Second)))
	return nil
}

// End takes the cookie away.
func (s *Sessions) End(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, cookie(r, "", time.Unix(1, 0), -1))
}

// Caller is who a request's session is of. ErrUnauthenticated: there is none, or
// it has ended.
func (s *Sessions) Caller(ctx context.Context, r *http.Request) (Caller, error) {
	name, _ := nameOf(r)
	given, err := r.Cookie(name)
	if err != nil {
		return Caller{}, ErrUnauthenticated
	}
	text, mac, ok := strings.Cut(given.Value, ".")
	if !ok || !hmac.Equal([]byte(mac), []byte(s.sign(text))) {
		return Caller{}, ErrUnauthenticated
	}
	var said session
	body, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(body, &said) != nil || s.now().Unix() >= said.Expires {
		return Caller{}, ErrUnauthenticated
	}
	c, err := s.of.Named(ctx, said.Credential)
	if err != nil {
		return Caller{}, err
	}
	if c.Subject != said.Subject || c.Tenant != said.Tenant || c.Stamp != said.Stamp {
		return Caller{}, ErrUnauthenticated // another credential of that name
	}
	return c, nil
}

func (s *Sessions) sign(text string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte("interlock session v1\n" + text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func cookie(r *http.Request, value string, expires time.Time, maxAge int) *http.Cookie {
	name, secure := nameOf(r)
	return &http.Cookie{Name: name, Value: value, Path: "/", Expires: expires.UTC(), MaxAge: maxAge, HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode}
}

// nameOf is the name of the cookie for a request, and whether it came by https.
func nameOf(r *http.Request) (name string, secure bool) {
	if Secure(r) {
		return secureCookieName, true
	}
	return cookieName, false
}

// Secure reports whether a request came by https, to this process or to the proxy
// before it. Who claims so falsely only loses their own cookie.
func Secure(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}
