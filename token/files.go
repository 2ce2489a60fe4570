package token

import (
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"interlock/agent"
)

// keyIDs are names of files: nothing that could leave the folder.
var keyIDs = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

func checkID(id string) error {
	if !keyIDs.MatchString(id) {
		return agent.Errorf(agent.CodeInvalid, "%q is no name of a key: up to 64 letters, digits, - and _", id)
	}
	return nil
}

// rereads is how long a key that was read is used without another look.
const rereads = 5 * time.Second

// Files are public keys in a folder, each in a file <id>.pem (PKIX). To rotate,
// put the new key there first, then sign with it; take the old one away once the
// last token that it signed has expired. A key that is taken away is believed for
// 5 seconds more at most.
type Files struct {
	folder string
	now    func() time.Time

	mu   sync.Mutex
	read map[string]readKey
}

type readKey struct {
	key crypto.PublicKey
	at  time.Time
}

// OpenFiles opens the folder, which must be there, and hold a key that can be
// read.
func OpenFiles(folder string) (*Files, error) {
	f := &Files{folder: folder, now: time.Now, read: map[string]readKey{}}
	names, err := filepath.Glob(filepath.Join(folder, "*.pem"))
	if err == nil {
		_, err = os.Stat(folder)
	}
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalid, "the folder of keys: %w", err)
	}
	if len(names) == 0 {
		return nil, agent.Errorf(agent.CodeInvalid, "the folder of keys %s holds no <id>.pem: nothing could be believed", folder)
	}
	for _, name := range names {
		id := filepath.Base(name[:len(name)-len(".pem")])
		if strings.HasSuffix(id, ".key") {
			return nil, agent.Errorf(agent.CodeInvalid, "%s is a key to sign with: it belongs to who signs, and not among the keys that are believed", name)
		}
		if _, err := f.Key(id); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Key implements [Keys].
func (f *Files) Key(id string) (crypto.PublicKey, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if k, ok := f.read[id]; ok && f.now().Sub(k.at) < rereads {
		return k.key, nil
	}
	delete(f.read, id)
	key, err := readPublic(filepath.Join(f.folder, id+".pem"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, agent.Errorf(agent.CodeDenied, "there is no key %s among those that are believed", id)
	}
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalid, "key %s: %w", id, err)
	}
	f.read[id] = readKey{key, f.now()}
	return key, nil
}

func readPublic(path string) (crypto.PublicKey, error) {
	block, err := readPEM(path, "PUBLIC KEY")
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(block)
	if err != nil {
		return nil, err
	}
	if _, ok := key.(ed25519.PublicKey); !ok {
		return nil, fmt.Errorf("%s holds a key of %T: only Ed25519 is believed", path, key)
	}
	return key, nil
}

// OpenSigner reads a private key (PKCS 8) from a file <id>.key.pem or <id>.pem.
// Nobody else may be able to read it.
func OpenSigner(path string) (*Signer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalid, "the key to sign with: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, agent.Errorf(agent.CodeInvalid, "the key to sign with, %s, can be read by others (%s): chmod 600 it", path, info.Mode().Perm())
	}
	block, err := readPEM(path, "PRIVATE KEY")
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalid, "the key to sign with: %w", err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalid, "the key to sign with, %s: %w", path, err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, agent.Errorf(agent.CodeInvalid, "the key to sign with, %s, is a %T: only Ed25519 is used", path, parsed)
	}
	return NewSigner(idOf(path), key)
}

// idOf is the key's id in the name of its file.
func idOf(path string) string {
	name := filepath.Base(path)
	for _, end := range []string{".key.pem", ".pem"} {
		if len(name) > len(end) && name[len(name)-len(end):] == end {
			return name[:len(name)-len(end)]
		}
	}
	return name
}

func readPEM(path, kind string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != kind || len(rest) > 0 {
		return nil, fmt.Errorf("%s is not one PEM block of type %s", path, kind)
	}
	return block.Bytes, nil
}

// Generate makes a pair of keys: <id>.key.pem, for who signs, in one folder, and
// <id>.pem, for who checks, in another. It overwrites nothing.
func Generate(private, public, id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	open, secret, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		return err
	}
	pkix, err := x509.MarshalPKIXPublicKey(open)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		path, kind string
		data       []byte
		mode       fs.FileMode
	}{{filepath.Join(private, id+".key.pem"), "PRIVATE KEY", pkcs8, 0o600}, {filepath.Join(public, id+".pem"), "PUBLIC KEY", pkix, 0o644}} {
		file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
		if errors.Is(err, fs.ErrExist) {
			return agent.Errorf(agent.CodeConflict, "%s is there already: give the new key another id", f.path)
		}
		if err != nil {
			return agent.Errorf(agent.CodeInvalid, "key %s: %w", id, err)
		}
		err = pem.Encode(file, &pem.Block{Type: f.kind, Bytes: f.data})
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}
