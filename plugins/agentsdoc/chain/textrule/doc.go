// Package textrule holds the rules for text that comes from files and goes into
// a prompt: how bytes become text, what does not show, how a body is escaped so
// that it cannot forge the lines around it, where a text may be cut, and how a
// path is printed.
//
// All are pure functions of strings. It knows nothing of files, chains or
// budgets; those are package chain's, whose documentation has the rules of
// escaping as a reader of the text needs them.
//
// Where to start: [Form] for bytes, [Escape] and [Cut] for bodies, [PrintPath]
// for names.
//
// Stability: experimental.
package textrule
