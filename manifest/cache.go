package manifest

import "slices"

// Cache is what is known about the provider's prompt cache for this prompt.
type Cache struct {
	// Plan is what the adapters are told.
	Plan CachePlan `json:"plan"`
	// Provider is the provider that the prompt was compiled for; empty where that
	// is not known.
	Provider string `json:"provider,omitempty"`
	// Model is the model that the prompt was compiled for; empty where that is not
	// known.
	Model string `json:"model,omitempty"`
	// Predicted is how many tokens of tools and sections the provider should serve
	// from its cache: an estimate that takes no account of the conversation behind
	// them. Null without a previous manifest, a tokenizer, or known rules of the
	// model.
	Predicted *int `json:"predicted"`
	// Miss says why nothing is predicted to come from the cache; empty where
	// something is, or nothing is predicted.
	Miss Miss `json:"miss,omitempty"`
	// Actual is how many input tokens did come from the cache, as the provider
	// reported; null until it has. It is filled in where a record is shown and is
	// null in what is stored and hashed.
	Actual *int `json:"actual"`
	// BrokeAt is the first section that differs from the previous manifest's
	// order; empty where nothing broke or nothing is known.
	BrokeAt string `json:"broke_at"`
	// Owner is the owner of the section BrokeAt.
	Owner string `json:"owner"`
	// TokensBehind is what stands from BrokeAt on and has to be read anew; 0
	// without a tokenizer.
	TokensBehind int `json:"tokens_behind"`
}

// Miss says why a prompt should find nothing in the provider's cache.
type Miss string

// The reasons.
const (
	// MissModel is a prompt for another model than the previous one.
	MissModel Miss = "model_changed"
	// MissTools is another list of tools, which stands in front of everything.
	MissTools Miss = "tools_changed"
	// MissExpired is a previous prompt that is older than what the provider keeps.
	MissExpired Miss = "expired"
	// MissSection is a change in front of the first place that the provider keeps:
	// broke_at names it.
	MissSection Miss = "section_changed"
	// MissMinimum is a prefix that is the same and shorter than what the model
	// caches.
	MissMinimum Miss = "below_minimum"
)

// misses returns all of them.
func misses() []Miss {
	return []Miss{MissModel, MissTools, MissExpired, MissSection, MissMinimum}
}

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
	// AfterTools is behind the tool definitions, which come first.
	AfterTools BreakAfter = "tools"
	// AfterStable is behind the stable part.
	AfterStable BreakAfter = "stable"
	// AfterDynamic is behind the dynamic sections that did not change since the
	// previous manifest.
	AfterDynamic BreakAfter = "dynamic"
)

// Break is the place where a prompt stops being the previous one.
type Break struct {
	// Index is the place in the later list from which on everything has to be
	// read anew. It is the length of that list where only its end was removed.
	Index int
	// SectionID and Owner are those of the section that was changed, added,
	// moved or removed there.
	SectionID, Owner string
}

// FirstBreak compares the sections of two prompts in order and returns where
// they part. It is false when they do not, and when there is no earlier prompt.
//
// A section that was added behind all others counts too: the conversation that
// follows the sections has to be read anew.
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

// sameInPlace looks at the stability too: a section that goes over to the other
// part has the boundary on its other side.
func sameInPlace(a, b *Section) bool {
	return a.SectionID == b.SectionID && a.Fingerprint == b.Fingerprint && a.Placement == b.Placement && a.Stability == b.Stability
}

func holds(list []Section, id string) bool {
	return slices.ContainsFunc(list, func(s Section) bool { return s.SectionID == id })
}
