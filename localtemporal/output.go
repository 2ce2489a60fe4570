package localtemporal

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// keptOutput is how much of the server's last words an error shows.
const keptOutput = 2 << 10

// output passes the server's lines on and keeps the last of them.
type output struct {
	mu   sync.Mutex
	to   io.Writer
	tail []byte
}

// Write never fails: a full disk under a log must not end the server.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.to != nil {
		_, _ = o.to.Write(p)
	}
	o.tail = append(o.tail, p...)
	if over := len(o.tail) - keptOutput; over > 0 {
		o.tail = bytes.Clone(o.tail[over:])
	}
	return len(p), nil
}

// last is what the server said before it failed; nil when it said nothing.
func (o *output) last() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text := strings.TrimSpace(string(o.tail)); text != "" {
		return errors.New("its last words: " + text)
	}
	return nil
}

// executable resolves a path, so that a later change of directory or PATH does
// not change what is run.
func executable(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case info.IsDir() || info.Mode().Perm()&0o111 == 0:
		return "", &os.PathError{Op: "run", Path: path, Err: os.ErrPermission}
	}
	return path, nil
}

func onPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}
