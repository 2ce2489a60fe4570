package token

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"

	"interlock/agent"
)

// maxSet bounds a key set, in bytes; maxKid the id of a key in it.
const (
	maxSet = 256 << 10
	maxKid = 200
)

// errNoneUsable: it is a key set, and nothing could be believed by it.
var errNoneUsable = errors.New("the set holds no key that is believed: none of type OKP on Ed25519, to sign with EdDSA, public and with an id of its own (kid)")

// keySet are the keys of a set that are believed, by their ids.
type keySet map[string]ed25519.PublicKey

func checkKid(id string) error {
	if id == "" || len(id) > maxKid || !utf8.ValidString(id) || hasControl(id) {
		return agent.Errorf(agent.CodeInvalid, "the id of the key is none: it is 1 to %d bytes without control characters", maxKid)
	}
	return nil
}

func hasControl(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) {
			return true
		}
	}
	return false
}

// readSet reads a key set that is no larger than it may be.
func readSet(from io.Reader) (keySet, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxSet+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSet {
		return nil, fmt.Errorf("it is larger than %d KiB, which no key set needs to be", maxSet>>10)
	}
	return parseSet(data)
}

// parseSet reads a JSON Web Key Set (RFC 7517). What is no key of ours is left out,
// whatever it holds: an issuer has keys for others too. What says that it is one,
// and is broken or stands there twice, spoils the set: which one was meant cannot
// be known.
func parseSet(data []byte) (keySet, error) {
	var set struct{ Keys []json.RawMessage }
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf("it is no JSON Web Key Set: %w", err)
	}
	if set.Keys == nil {
		return nil, errors.New(`it is no JSON Web Key Set: it has no member "keys"`)
	}
	keys := keySet{}
	for i, raw := range set.Keys {
		id, key, err := usable(raw)
		if err != nil {
			return nil, fmt.Errorf("key %d of the set: %w", i+1, err)
		}
		if key == nil {
			continue
		}
		if keys[id] != nil {
			return nil, fmt.Errorf("the set has two keys of the id %q: give each an id of its own", id)
		}
		keys[id] = key
	}
	if len(keys) == 0 {
		return nil, errNoneUsable
	}
	return keys, nil
}

// usable is the key, or nil where it is none that signs tokens. A private key is
// none: whoever reads the set could sign with it.
func usable(raw json.RawMessage) (string, ed25519.PublicKey, error) {
	var kind struct{ Kty, Crv string }
	if err := json.Unmarshal(raw, &kind); err != nil {
		return "", nil, err
	}
	if kind.Kty != "OKP" || kind.Crv != "Ed25519" {
		return "", nil, nil
	}
	var k jose.JSONWebKey
	if err := k.UnmarshalJSON(raw); err != nil {
		return "", nil, err
	}
	key, public := k.Key.(ed25519.PublicKey)
	signs := (k.Use == "" || k.Use == "sig") && (k.Algorithm == "" || k.Algorithm == string(jose.EdDSA))
	if !public || !signs || checkKid(k.KeyID) != nil {
		return "", nil, nil
	}
	return k.KeyID, key, nil
}
