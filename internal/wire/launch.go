package wire

import "os"

// Launch says how to start a built-in plugin's process.
type Launch struct {
	// Path is the program. File, if set, is executed in its place: a host that starts itself opens itself once, so
	// that a replaced file does not mix versions.
	Path string
	File *os.File
	Args []string
	// Env is added to the environment that the operator's file sets up.
	Env map[string]string
}
