package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"interlock/agent"
)

// Prefix begins every access token, so that one that has leaked is found by
// scanners of secrets.
const Prefix = "ilk_"

// rereads is how old what is known of the file may be.
const rereads = 5 * time.Second

// Entry is one access token of the file. The token itself is in no file.
type Entry struct {
	ID      string     `json:"id"`
	SHA256  string     `json:"sha256"` // of the token, in hex
	Tenant  string     `json:"tenant"`
	Subject string     `json:"subject"`
	May     []Role     `json:"may"`
	Roles   []string   `json:"roles,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
}

// New makes a token of 256 random bits, and the entry with its hash. It is the
// only time that the token is known.
func New(e Entry) (token string, entry Entry) {
	bits := make([]byte, 32)
	_, _ = rand.Read(bits) // it never fails
	token = Prefix + base64.RawURLEncoding.EncodeToString(bits)
	sum := sha256.Sum256([]byte(token))
	e.SHA256 = hex.EncodeToString(sum[:])
	return token, e
}

// Caller is whom the entry speaks of.
func (e Entry) Caller() Caller {
	return Caller{Subject: e.Subject, Tenant: e.Tenant, Roles: slices.Clone(e.Roles), May: slices.Clone(e.May), Auth: "static:" + e.ID,
		Credential: e.ID, Stamp: e.SHA256[:min(len(e.SHA256), 16)]}
}

func (e Entry) expired(now time.Time) bool { return e.Expires != nil && !now.Before(*e.Expires) }

// Tokens are the access tokens of a file. A change of the file is seen within 5
// seconds. A file that cannot be read any more, or that has a mistake, lets nobody
// in: an entry that somebody has just taken out must not live on because of a slip
// in the next line. The mistake is logged.
type Tokens struct {
	path string
	log  *slog.Logger
	now  func() time.Time

	mu      sync.Mutex
	entries []Entry
	err     error
	readAt  time.Time
}

// OpenTokens reads the file; a mistake in it is an error that names the line.
func OpenTokens(path string, log *slog.Logger) (*Tokens, error) {
	if log == nil {
		log = slog.Default()
	}
	t := &Tokens{path: path, log: log, now: time.Now}
	_, err := t.current()
	if err != nil {
		return nil, t.err
	}
	return t, nil
}

// Authenticate implements [Authenticator]. Every entry is compared, in constant
// time, whichever matches.
func (t *Tokens) Authenticate(_ context.Context, bearer string) (Caller, error) {
	entries, err := t.current()
	if err != nil {
		return Caller{}, err
	}
	sum := sha256.Sum256([]byte(bearer))
	want := []byte(hex.EncodeToString(sum[:]))
	found := -1
	for i, e := range entries {
		if subtle.ConstantTimeCompare([]byte(e.SHA256), want) == 1 {
			found = i
		}
	}
	if bearer == "" || found < 0 || entries[found].expired(t.now()) {
		return Caller{}, ErrUnauthenticated
	}
	return entries[found].Caller(), nil
}

// Named is the caller of a token by its id, as the file has it now.
func (t *Tokens) Named(_ context.Context, id string) (Caller, error) {
	entries, err := t.current()
	if err != nil {
		return Caller{}, err
	}
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == id })
	if i < 0 || entries[i].expired(t.now()) {
		return Caller{}, ErrUnauthenticated
	}
	return entries[i].Caller(), nil
}

// Check says whether the file can be used, for a readiness check.
func (t *Tokens) Check(context.Context) error {
	_, err := t.current()
	return err
}

// current is what the file holds, at most 5 seconds ago.
func (t *Tokens) current() ([]Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); t.readAt.IsZero() || now.Sub(t.readAt) >= rereads || now.Before(t.readAt) {
		before := t.err
		t.entries, t.err = Read(t.path)
		t.readAt = now
		switch {
		case t.err != nil && (before == nil || before.Error() != t.err.Error()):
			t.log.Error("the file of access tokens cannot be used: nobody is let in", "error", t.err)
		case t.err == nil && before != nil:
			t.log.Info("the file of access tokens can be used again", "file", t.path)
		}
	}
	if t.err != nil {
		return nil, agent.Errorf(agent.CodeUnavailable, "nobody can be recognised just now: the operator's log says why")
	}
	return t.entries, nil
}

// Read reads a file of access tokens.
func Read(path string) ([]Entry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalid, "the file of access tokens: %w", err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return nil, agent.Errorf(agent.CodeInvalid, "%s can be written by others than its owner, who could let anybody in: chmod 600 %s", path, path)
	}
	if info.Size() > maxFile {
		return nil, agent.Errorf(agent.CodeInvalid, "%s has %d bytes, the limit is %d", path, info.Size(), maxFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalid, "the file of access tokens: %w", err)
	}
	return parse(path, data)
}

const maxFile = 4 << 20
