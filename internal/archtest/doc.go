// Package archtest holds the rules of this repository that a compiler cannot check, as tests: which package may
// import which, what may end up linked into a package, where goroutines may start, and how sources must look.
//
// It is not a library: everything but this comment is in _test.go files, and no other package imports it. Linters
// that know one file at a time are configured in .golangci.yaml; what needs the whole tree, and what must hold even
// for somebody who never runs the linter, is here.
//
// Where to start:
//
//   - layers_test.go is the import graph as text. A new package, or a new edge
//     between two packages, is one line there and a reason in the commit.
//   - graph_test.go reads the real graph, for each supported system, and
//     compares.
//   - closure_test.go looks at everything that a package links, third parties
//     of third parties included.
//   - source_test.go checks syntax: documentation, init functions, goroutines,
//     sleeping tests, clocks in packages that promise to be pure.
//   - text_test.go checks all tracked files for paths and hosts that belong to
//     one machine.
//
// Each check is a function from values to a list of problems, and each has a unit test on made-up input that shows it
// failing. A check says nothing about packages that do not exist.
//
// Stability: internal.
package archtest
