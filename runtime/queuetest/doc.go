// Package queuetest has the tests that every [runtime.Queue] has to pass: the
// queue in memory, and those that keep jobs in a database.
//
// [Suite] runs them. It is for tests of queues; an engine's tests need none of it.
//
// Stability: experimental until 1.0.
package queuetest
