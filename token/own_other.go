//go:build !unix

package token

import (
	"io/fs"
	"os"
)

// own does nothing here: a new file gets the owner of who makes it.
func own(*os.File, fs.FileInfo) error { return nil }
