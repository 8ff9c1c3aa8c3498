package agent

import (
	"iter"
	"time"
)

// Transcripts says where an agent keeps its conversations, and reads them.
type Transcripts struct {
	// Dirs returns the directories that may have some, by the user's home directory and the environment.
	Dirs func(home string, env func(string) string) []string
	// Is reports whether a file below such a directory has conversations, by its path from there, with slashes.
	Is func(path string) bool
	// Read reads the file as a stream, in its order. It yields what the file says, and an error only if the file cannot be
	// read any further; lines that say nothing to it are counted in Unknown of what comes next, or of a last Said without a step.
	Read func(path string) iter.Seq2[*Said, error]
}

// Said is one thing that a transcript says.
type Said struct {
	// Event is what the agent's hook would have been told. A call's result is an event of its own, with the same Call.ID.
	Event Event
	Time  time.Time
	// Became is what became of a call; set with its result.
	Became Became
	// By is the agent's own word for who refused a call, such as "user" or "hook"; empty if it does not say.
	By string
	// Version is the agent's version, where the line or its session says it.
	Version string
	// Unknown counts lines since the last Said that were not understood: neither known and unimportant, nor read.
	Unknown int
}

// Became is what became of a call.
type Became string

// What becomes of calls. A call without a result has none of them.
const (
	Ran     Became = "ran"
	Failed  Became = "failed"
	Refused Became = "refused" // by a person, by the agent's own rules, or by a hook
)
