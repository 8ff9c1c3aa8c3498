//go:build !unix

package guard

import "io/fs"

// shared reports whether a file may have more names than one.
func shared(fs.FileInfo) bool { return true }
