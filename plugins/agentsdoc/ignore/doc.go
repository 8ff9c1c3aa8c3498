// Package ignore tells which folders git ignores, for walks that go down from the
// top of a source tree one folder at a time and never into one that is ignored.
//
// It reads no file: the walk hands it the text of what it finds on its way, so
// that it decides what may be opened. Patterns mean what they mean to git, to the
// byte: names and paths, anchors, negation, "**", sets and classes of characters,
// escapes and spaces at the end. Tests compare it with git itself.
//
// It differs from git in what a walk has no use for:
//
//   - It is not for files. Git ignores a file also by patterns that no folder
//     matches, and what is ignored here is a folder that a person did not write.
//   - A pattern is read as on systems where names differ by case
//     (core.ignoreCase is not looked at).
//   - There are bounds, see [MaxBytes].
//
// Where to start: [Way]; then parse.go, and wildmatch.go for the patterns
// themselves.
//
// Stability: experimental.
package ignore
