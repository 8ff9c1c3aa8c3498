package manifest

import "slices"

// Cache is what is known about the provider's prompt cache for this prompt.
type Cache struct {
	// Plan is what the adapters are asked to do.
	Plan CachePlan `json:"plan"`
	// Provider is the provider that the prompt was compiled for; empty where that is not known.
	Provider string `json:"provider,omitempty"`
	// Model is the model that the prompt was compiled for; empty where that is not known.
	Model string `json:"model,omitempty"`
	// Rules are what was known of the model's cache; absent where nothing was.
	Rules *CacheRules `json:"rules,omitempty"`
	// ToolTokens is about how many tokens the definitions of the offered tools have; absent without a tokenizer.
	ToolTokens int `json:"tool_tokens,omitempty"`
	// Predicted is how many tokens of tools and sections the provider should serve from its cache: an estimate that
	// takes no account of the conversation behind them. Null without a previous manifest, a tokenizer, or known rules
	// of the model.
	Predicted *int `json:"predicted"`
	// Miss says why nothing is predicted to come from the cache; empty where something is, or nothing is predicted.
	Miss Miss `json:"miss,omitempty"`
	// Actual is how many input tokens did come from the cache, as the provider reported; null until it has. It is
	// filled in where a record is shown and is null in what is stored and hashed.
	Actual *int `json:"actual"`
	// BrokeAt is the first section that differs from the previous manifest's
	// order; empty where nothing broke or nothing is known.
	BrokeAt string `json:"broke_at"`
	// Owner is the owner of that section.
	Owner string `json:"owner"`
	// TokensBehind is what stands from BrokeAt on and has to be read again; 0 without a tokenizer.
	TokensBehind int `json:"tokens_behind"`
}

// CacheRules are the rules of one model's cache that a prediction rests on.
type CacheRules struct {
	// MinimumTokens is the shortest prefix that is cached.
	MinimumTokens int `json:"minimum_tokens"`
	// LifetimeS is how long an unused prefix is kept, in seconds; 0 if unknown.
	LifetimeS int `json:"lifetime_s,omitempty"`
	// Step is by how many tokens a prefix grows that was found without breakpoints; 0 is any number.
	Step int `json:"step,omitempty"`
	// Explicit says that prefixes end at breakpoints only.
	Explicit bool `json:"explicit,omitempty"`
}

// Miss says why a prompt should find nothing in the provider's cache.
type Miss string

// The reasons.
const (
	MissModel   Miss = "model_changed" // a prompt for another model than the previous one
	MissTools   Miss = "tools_changed" // another list of tools, which stands in front of everything
	MissExpired Miss = "expired"       // a previous prompt that is older than what the provider keeps
	// MissSection is a change in front of the first place that the provider keeps: broke_at names it.
	MissSection Miss = "section_changed"
	MissMinimum Miss = "below_minimum" // a prefix that is the same and shorter than what the model caches
)

// CachePlan is where a provider should be asked to cache. It names places of
// the prompt; adapters translate it to what their provider takes.
type CachePlan struct {
	// Key groups requests that share the stable part.
	Key string `json:"key,omitempty"`
	// Breakpoints are the ends of prefixes worth keeping, first to last.
	Breakpoints []Breakpoint `json:"breakpoints,omitempty"`
}

// Breakpoint is the end of a prefix.
type Breakpoint struct {
	// After says what the prefix ends with.
	After BreakAfter `json:"after"`
	// SectionID is the last section in the prefix; empty after tools.
	SectionID string `json:"section_id,omitempty"`
}

// BreakAfter is a place where a prefix can end.
type BreakAfter string

// The places.
const (
	AfterTools   BreakAfter = "tools"   // behind the tool definitions, which come first
	AfterStable  BreakAfter = "stable"  // behind the stable part
	AfterDynamic BreakAfter = "dynamic" // behind the dynamic sections that did not change since the previous manifest
)

// Break is the place where a prompt stops being the previous one.
type Break struct {
	// Index is the place in the later list from which on everything has to be
	// read anew. It is the length of that list where only its end was removed.
	Index int
	// SectionID and Owner are those of the section that was changed, added, moved or removed there.
	SectionID, Owner string
}

// FirstBreak compares the sections of two prompts in order and returns the first
// difference. It is false if there is none, or no earlier prompt. A section that
// was added behind all others counts: the conversation behind it is read again.
func FirstBreak(earlier, later []Section) (Break, bool) {
	if len(earlier) == 0 {
		return Break{}, false
	}
	i := 0
	for i < len(earlier) && i < len(later) && sameInPlace(&earlier[i], &later[i]) {
		i++
	}
	if i == len(earlier) && i == len(later) {
		return Break{}, false
	}
	var culprit *Section
	switch {
	case i == len(later):
		culprit = &earlier[i]
	case i == len(earlier) || holds(later[i:], earlier[i].SectionID):
		culprit = &later[i] // changed, or put before what stood here
	default:
		culprit = &earlier[i] // removed
	}
	return Break{Index: i, SectionID: culprit.SectionID, Owner: culprit.Owner}, true
}

// sameInPlace compares the stability too: it decides on which side of the boundary a section stands.
func sameInPlace(a, b *Section) bool {
	return a.SectionID == b.SectionID && a.Fingerprint == b.Fingerprint && a.Placement == b.Placement && a.Stability == b.Stability
}

func holds(list []Section, id string) bool {
	return slices.ContainsFunc(list, func(s Section) bool { return s.SectionID == id })
}

// BlamedTurn says what one prompt cost the provider's cache. A list of them is
// the output of "grapnel manifest blame".
type BlamedTurn struct {
	TurnID     string `json:"turn_id"`
	ManifestID string `json:"manifest_id"`
	// BrokeAt is the first section that differs from the previous prompt of the thread, in order: changed, added,
	// moved or removed. It is empty for the first prompt and where nothing broke.
	BrokeAt string `json:"broke_at"`
	// Owner is the owner of that section.
	Owner string `json:"owner"`
	// TokensBehind is what stands from BrokeAt on and had to be read anew; 0 without a tokenizer.
	TokensBehind int `json:"tokens_behind"`
	// Expected is true behind a compaction: the history was replaced, so the
	// cache was lost whatever the sections did.
	Expected bool `json:"expected"`
}

// Blame compares each prompt with the one before it in the same workspace and thread, and names the section that
// broke the cached prefix. The list is in the order in which records were appended and may hold several threads. The
// result has one entry per record, in that order, and is never nil.
//
// Prompts that were never sent (see [Manifest.Sent]) are skipped. A prompt follows a
// compaction if it has the previous prompt's session and a later epoch.
func Blame(list []*Manifest) []BlamedTurn {
	out := make([]BlamedTurn, 0, len(list))
	last := map[[2]string]*Manifest{}
	for _, m := range list {
		row := BlamedTurn{TurnID: m.TurnID, ManifestID: m.ManifestID}
		thread := [2]string{m.WorkspaceID, m.ThreadID}
		if before := last[thread]; before != nil && m.Sent() {
			row.blame(before, m)
		}
		if m.Sent() {
			last[thread] = m
		}
		out = append(out, row)
	}
	return out
}

func (t *BlamedTurn) blame(before, m *Manifest) {
	t.Expected = before.SessionID == m.SessionID && m.Epoch > before.Epoch
	at, broke := FirstBreak(before.Sections, m.Sections)
	if !broke {
		return
	}
	t.BrokeAt, t.Owner = at.SectionID, at.Owner
	for _, s := range m.Sections[at.Index:] {
		if s.Tokens != nil {
			t.TokensBehind += *s.Tokens
		}
	}
}

// Sent reports whether the record's prompt was given to the host to be sent. The
// record of a blocked turn has no sections, or says nothing about the cache.
func (m *Manifest) Sent() bool {
	c := &m.Cache
	return len(m.Sections) > 0 && (c.Plan.Key != "" || len(c.Plan.Breakpoints) > 0 || c.BrokeAt != "")
}
