//go:build unix

package token

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// own gives a file the owner and group of another one.
func own(f *os.File, as fs.FileInfo) error {
	theirs, ok := as.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if err := f.Chown(int(theirs.Uid), int(theirs.Gid)); err != nil {
		return fmt.Errorf("its owner could not be kept, so do this as that user: %w", err)
	}
	return nil
}
