//go:build race

package memory

// raceEnabled says that the race detector is on, which makes code several times
// slower: what is timed is not judged then.
const raceEnabled = true
