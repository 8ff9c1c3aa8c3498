// Package soak has a test alone: it runs an engine for a long time with plugins of which a third misbehave at
// random. In the end the good plugins must have been served all the time, and memory, descriptors, goroutines and
// processes must be as at the start.
//
//	GRAPNEL_SOAK=30m go test ./internal/tests/soak -run TestSoak -v -count 1 -timeout 0
//
// In each stretch callers dispatch while configurations change; after it the bad plugins are replaced by good ones
// and what the host holds is counted, so that each count is of the same state. The same seed is the same mixture,
// not the same run: when processes die depends on the machine. Start at TestSoak.
//
// Stability: internal.
package soak
