// Package ignore tells which folders git ignores, for walks that go down from the
// top of a source tree one folder at a time and never into one that is ignored.
//
// It reads no file: the walk hands it the text of what it finds on its way, so
// that it decides what may be opened. Patterns are matched by go-git, which
// implements their syntax.
//
// It is not for files. Git ignores a file also by patterns that no folder
// matches, and what is ignored here is a folder that a person did not write.
//
// Where to start: [Way].
//
// Stability: experimental.
package ignore
