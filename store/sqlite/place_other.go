//go:build !unix

package sqlite

import "io/fs"

// placeOf names no file here: a copy is told only by what it lacks.
func placeOf(fs.FileInfo) string { return "" }
