//go:build !unix

package fsview

import "os"

// nonBlocking is nothing where opening a file never waits.
const nonBlocking = 0

// stdID says nothing: the standard library compares such files itself.
func stdID(os.FileInfo) FileID { return FileID{} }
