package token

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"interlock/agent"
)

// Revoke adds a line to the file of revocations, which it makes where there is none.
// It reports false where the same is revoked already. Whoever reads the file sees all
// of it, as it was or as it is; of several that change it at the same time, none is
// lost.
func Revoke(ctx context.Context, path string, r Revocation) (added bool, err error) {
	if err := r.check(); err != nil {
		return false, err
	}
	if !utf8.ValidString(r.Reason) || hasControl(r.Reason) {
		return false, agent.Errorf(agent.CodeInvalid, "the reason is to be one line, without control characters")
	}
	err = edit(ctx, path, true, func(text string) (string, error) {
		all, err := parseRevocations(path, text)
		if err != nil {
			return "", err
		}
		for _, one := range all {
			if one.of() == r.of() {
				return text, nil
			}
		}
		added = true
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return text + r.line(), nil
	})
	return added && err == nil, err
}

// Restore takes the line away, every one of them where it stands there several
// times. Other lines and comments stay as they are.
func Restore(ctx context.Context, path string, r Revocation) error {
	if err := r.check(); err != nil {
		return err
	}
	return edit(ctx, path, false, func(text string) (string, error) {
		if _, err := parseRevocations(path, text); err != nil {
			return "", err
		}
		var left strings.Builder
		for line := range strings.Lines(text) {
			if one, _ := parseRevocation(line); one.of() != r.of() {
				left.WriteString(line)
			}
		}
		if left.Len() == len(text) {
			return "", agent.Errorf(agent.CodeNotFound, "no such line is in %s: `interlock key revoked` lists what is", path)
		}
		return left.String(), nil
	})
}

// editWithin is how long another one that changes the file is waited for.
const editWithin = 5 * time.Second

// edit changes the file in one step. The new file is made beside it under a name
// that only one can have at a time, so that it is the lock, too.
func edit(ctx context.Context, path string, create bool, change func(text string) (string, error)) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link stays a link
	}
	next, err := claim(ctx, path+".lock")
	if err != nil {
		return err
	}
	done := false
	defer func() {
		_ = next.Close()
		if !done {
			_ = os.Remove(next.Name())
		}
	}()
	data, err := os.ReadFile(path)
	if missing := errors.Is(err, fs.ErrNotExist); missing && !create {
		return agent.Errorf(agent.CodeNotFound, "there is no file of revocations at %s, so nothing is revoked (%w)", path, err)
	} else if err != nil && !missing {
		return agent.Errorf(agent.CodeInvalid, "the file of revocations: %w", err)
	}
	text, err := change(string(data))
	if err != nil || text == string(data) {
		return err
	}
	if err := replace(path, next, text); err != nil {
		return agent.Errorf(agent.CodeInvalid, "the file of revocations is as it was: %w", err)
	}
	done = true
	return nil
}

// claim makes the file that nobody else has.
func claim(ctx context.Context, lock string) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, editWithin)
	defer cancel()
	for {
		f, err := os.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, agent.Errorf(agent.CodeInvalid, "the file of revocations cannot be changed: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, agent.Errorf(agent.CodeUnavailable, "another command changes the file of revocations: try again; if none does, one was killed: remove %s", lock)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// replace writes the text into next and puts it in the place of the file, whose
// owner and mode it gets: who could read it still can.
func replace(path string, next *os.File, text string) error {
	mode := fs.FileMode(0o644)
	info, err := os.Stat(path)
	if err == nil {
		mode = info.Mode().Perm()
		err = own(next, info)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	if _, err := next.WriteString(text); err != nil {
		return err
	}
	if err := errors.Join(next.Chmod(mode), next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}
