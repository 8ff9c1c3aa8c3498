package turnstate

import "sync"

// Usage is what a turn knows of its rounds with the provider.
type Usage struct {
	mu sync.Mutex
	// last is the manifest of the last prompt, and rounds the number of prompts.
	last   string
	rounds int
	// reported is set once the host has reported a round.
	reported bool
}

// Compiled counts a prompt, whose manifest has the id.
func (u *Usage) Compiled(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = id
	u.rounds++
}

// Prompt returns the manifest of the last prompt, if there is one.
func (u *Usage) Prompt() (id string, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last, u.rounds > 0
}

// Round returns the manifest that a report about one round is for, if there is one.
func (u *Usage) Round() (id string, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.rounds > 0 {
		u.reported = true
	}
	return u.last, u.rounds > 0
}

// Whole returns the manifest and the number of rounds that a report about the whole turn is
// for; 0 if there is nothing to report.
func (u *Usage) Whole() (string, int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reported {
		return "", 0
	}
	return u.last, u.rounds
}
