//go:build unix

package sqlite

import (
	"fmt"
	"io/fs"
	"syscall"
)

// placeOf names a file by its inode. Its device is not in the name: many systems give
// it another number each time they start.
func placeOf(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("inode %d", s.Ino)
	}
	return ""
}
