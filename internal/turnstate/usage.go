package turnstate

import "sync"

// Usage is what a turn knows of its rounds with the provider.
type Usage struct {
	mu sync.Mutex
	// last is the manifest of the last prompt, and rounds the number of prompts.
	last   string
	rounds int
	// reported is set once the host has reported the usage of a round, and silent counts the prompts that it has
	// reported nothing about.
	reported bool
	silent   int
}

// Round is the last prompt of one of a turn's agents: others may compile theirs before it is reported about. The
// turn's Usage guards it.
type Round struct {
	id    string // the manifest's; empty without a prompt
	heard bool   // it is not one of the silent
}

// Compiled counts an agent's prompt, whose manifest has the id.
func (u *Usage) Compiled(r *Round, id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last, *r = id, Round{id: id}
	u.rounds++
	u.silent++
}

// Prompts is how many prompts the turn has.
func (u *Usage) Prompts() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.rounds
}

func (u *Usage) hear(r *Round) (id string, ok bool) {
	if r.id != "" && !r.heard {
		r.heard = true
		u.silent--
	}
	return r.id, r.id != ""
}

// Silent is how many prompts the host has reported nothing about: no usage and no request.
func (u *Usage) Silent() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.silent
}

// Prompt returns the manifest that an agent's report about a request is for, that of its last prompt, if there is one.
func (u *Usage) Prompt(r *Round) (id string, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.hear(r)
}

// Reported is [Usage.Prompt] for a report about the usage of one round.
func (u *Usage) Reported(r *Round) (id string, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	id, ok = u.hear(r)
	u.reported = u.reported || ok
	return id, ok
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
