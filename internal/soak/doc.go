// Package soak runs an engine for a long time with plugins of which a third
// misbehave at random, and says what that left behind: memory, descriptors,
// goroutines, processes.
//
// It is for tests and for "make soak", and belongs to no product. Unlike the
// table of failure modes, where each case is one plugin, one fault and one answer
// to check, nothing here is known beforehand but what must hold in the end: the
// good plugins were served all the time, and everything is as it was at the
// start.
//
// Start reading at [Run]. A run goes in stretches. In each, callers dispatch while
// configurations are put in force over them; after it the bad plugins are replaced
// by good ones and what the host holds is counted, so that each count is of the
// same state. What the plugins do is in plugin.go, which of them there are in
// declare.go.
//
// The seed decides what is declared and called, and what each start of a plugin
// draws from together with its process id; when processes die in between is the
// machine's affair. The same seed is the same mixture, not the same run.
//
// Stability: internal.
package soak
