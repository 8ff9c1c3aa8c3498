// Package archtest holds the rules of this repository that a compiler cannot check, as tests: which package may
// import which, what may end up linked into a package, and where goroutines may start.
//
// It is not a library: everything but this comment is in _test.go files, and no other package imports it. Linters
// that know one file at a time are configured in .golangci.yaml; what needs the whole tree is here.
//
// Where to start:
//
//   - layers_test.go is the import graph as text. A new package, or a new edge
//     between two packages, is one line there and a reason in the commit.
//   - graph_test.go reads the real graph, for each supported system, and
//     compares.
//   - closure_test.go looks at everything that a package links, third parties
//     of third parties included.
//   - source_test.go checks syntax: goroutines, sleeping tests, clocks in
//     packages that promise to be pure.
//   - text_test.go checks all tracked files for paths and hosts that belong to
//     one machine.
//
// Each check is a function from values to a list of problems. It says nothing about packages that do not exist.
//
// Stability: internal.
package archtest
