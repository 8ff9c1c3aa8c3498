// Package treetest is for tests of and with what keeps trees ([tree.Store]).
//
//   - [Model] is a store in memory, for tests that need one and no database. It is
//     written to be obviously right, not fast: it is also what others are compared
//     with.
//   - [Suite] is the conformance suite that every store must pass, [SuiteClock] the
//     part of it that needs a store whose clock can be moved.
//   - [Run] plays random sequences of calls by several clients on a store, possibly
//     a remote one that is killed in between, and compares every answer with the
//     model's. [RunConcurrent] plays them at once, and looks for what must hold
//     whatever the order was.
//
// Stability: experimental until 1.0.
package treetest
