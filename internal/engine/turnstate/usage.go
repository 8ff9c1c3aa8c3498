package turnstate

import (
	"sync"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

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
	// Ref names the prompt; nil without one.
	Ref *phases.DecisionRef
	// ofAgent says that an agent sends several requests with it; used is the sum of what was reported of these.
	ofAgent  bool
	used     phases.Usage
	requests int
}

// Compiled counts a prompt by its manifest.
func (u *Usage) Compiled(r *Round, m *manifest.Manifest) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last, *r = m.ManifestID, Round{id: m.ManifestID, ofAgent: m.Cache.OfAgent, Ref: &phases.DecisionRef{ManifestID: m.ManifestID, Seq: m.Seq}}
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

// Last returns an agent's last prompt.
func (u *Usage) Last(r *Round) Round {
	u.mu.Lock()
	defer u.mu.Unlock()
	return *r
}

// Take makes the prompt of another turn an agent's last one. It returns false if there is one already.
func (u *Usage) Take(r *Round, of Round) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if r.id != "" || u.rounds > 0 {
		return false
	}
	*r, r.heard = of, true // the other turn's silence would not be this one's
	return true
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

// IsPrompt reports whether there is one.
func (r Round) IsPrompt() bool { return r.id != "" }

// Add makes a report about one request a report about all that were sent with the prompt, if there may be several.
func (u *Usage) Add(r *Round, of *manifest.Usage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if r.ofAgent {
		r.used, r.requests = r.used.Add(of.Usage), r.requests+1
		of.Usage, of.Rounds = r.used, r.requests
	}
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
