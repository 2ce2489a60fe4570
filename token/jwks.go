package token

import (
	"context"
	"crypto"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"interlock/agent"
)

// JWKS are the public keys of a JSON Web Key Set (RFC 7517), in a file or at a URL,
// as an identity provider publishes them. Only its Ed25519 keys are believed; the
// others are left out.
//
// A set at a URL is fetched in the background, every 5 minutes or as the server's
// Cache-Control says, and never while a token is checked. A server that is down, or
// sends no set, is asked again, and the last good set counts meanwhile; a set
// without a usable key is its word that nothing is believed. A file is read anew
// when the last look is older than 5 seconds: replace it in one step (mv), for while
// it is not there or broken, nothing is believed.
type JWKS struct{ set source }

// source is where a set comes from.
type source interface {
	keys() (keySet, error)
	// unknown hears of an id that is not in the set, and says when it may be.
	unknown() string
	close()
}

// JWKSOptions may be nil.
type JWKSOptions struct {
	// Transport fetches. Defaults to that of net/http, with a connection for each
	// fetch.
	Transport http.RoundTripper
	Log       *slog.Logger // Defaults to slog.Default()
}

// OpenJWKS reads the set for the first time, within 5 seconds: nothing usable there
// is an error. The source is the path of a file, or a URL, of https or of this
// machine. ctx is that of the first reading. Close it in the end.
func OpenJWKS(ctx context.Context, from string, o *JWKSOptions) (*JWKS, error) {
	if err := CheckJWKS(from); err != nil {
		return nil, err
	}
	if o == nil {
		o = &JWKSOptions{}
	}
	var set source
	var err error
	if isURL(from) {
		set, err = openFetched(ctx, from, *o)
	} else {
		set, err = openSetFile(from)
	}
	if err != nil {
		return nil, err
	}
	return &JWKS{set}, nil
}

// CheckJWKS refuses a source that [OpenJWKS] would not look at.
func CheckJWKS(from string) error {
	if !isURL(from) {
		if from == "" || strings.ContainsRune(from, 0) {
			return agent.Errorf(agent.CodeInvalid, "the key set has no source: give the path of a file or a URL")
		}
		return nil
	}
	u, err := url.Parse(from)
	switch {
	case err != nil || u.Host == "":
		return agent.Errorf(agent.CodeInvalid, "the source of the key set is no URL: give one such as https://login.example/jwks.json")
	case u.User != nil || u.Fragment != "":
		return agent.Errorf(agent.CodeInvalid, "the URL of the key set has a user or a fragment: public keys need neither")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return agent.Errorf(agent.CodeInvalid, "the key set of %s could be changed on the way: give a URL of https; http is for this machine only", u.Host)
}

func isURL(from string) bool { return strings.Contains(from, "://") }

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Key implements [Keys]. It never waits for a network.
func (j *JWKS) Key(id string) (crypto.PublicKey, error) {
	if err := checkKid(id); err != nil {
		return nil, err
	}
	keys, err := j.set.keys()
	if err != nil {
		return nil, err
	}
	key := keys[id]
	if key == nil {
		return nil, agent.Errorf(agent.CodeDenied, "there is no key %q in the key set%s", id, j.set.unknown())
	}
	return key, nil
}

// Close ends the refresh, also one that is under way. The keys stay as they are.
func (j *JWKS) Close() error {
	j.set.close()
	return nil
}

// setFile is a key set in a file.
type setFile struct{ kept[keySet] }

func openSetFile(path string) (source, error) {
	f := &setFile{}
	f.read = func() (keySet, error) {
		keys, err := readSetFile(path)
		if err != nil {
			return nil, agent.Errorf(agent.CodeInvalid, "the key set %s: %w", path, err)
		}
		return keys, nil
	}
	_, err := f.get()
	return f, err
}

func readSetFile(path string) (keySet, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readSet(file)
}

func (f *setFile) keys() (keySet, error) { return f.get() }
func (f *setFile) unknown() string       { return ", which is read anew every " + rereads.String() }
func (f *setFile) close()                {}
