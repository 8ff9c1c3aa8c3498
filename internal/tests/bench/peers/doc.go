// Package peers measures Grapnel beside other ways to ask another process, in one run on one machine: a process for each
// hook (Go, Python, Node), HTTP on loopback, ttrpc, a bare go-plugin unary call, and a bare socket. Each of them echoes
// the same text. It holds one benchmark, which prints a table:
//
//	cd internal/tests/bench/peers && go test -run '^$' -bench Peers -benchtime 30x .
//
// It is a module of its own, so that nobody else gets its dependencies.
package peers
