package compiler

import (
	"cmp"
	_ "embed"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

//go:embed cachefacts.json
var cacheFacts []byte

// The names of the providers.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
	Gemini    = "gemini"
)

// CacheFacts is what providers say about their prompt caches, as of a date. They serve warnings and shapes of
// requests; nothing is refused because of them. Where two pages of a provider differ, the larger minimum counts.
type CacheFacts struct {
	// Date is the day on which the numbers were looked up, as 2006-01-02.
	Date      string          `json:"date"`
	Providers []CacheProvider `json:"providers"`
}

// CacheProvider is what holds for the models of one provider.
type CacheProvider struct {
	Name string `json:"name"`
	// Source says where the numbers are from.
	Source string `json:"source"`
	CacheFact
	// Models are exceptions; the first that matches counts.
	Models []CacheModel `json:"models"`
}

// CacheModel replaces numbers of its provider for the models that match a pattern of [path.Match].
type CacheModel struct {
	Match string `json:"match"`
	CacheFact
}

// CacheFact describes a prompt cache.
type CacheFact struct {
	// MinimumTokens is the shortest prefix that is cached; nobody reports shorter ones.
	MinimumTokens int `json:"minimum_tokens"`
	// Breakpoints is how many a request may have; 0 if it takes none.
	Breakpoints int `json:"breakpoints,omitempty"`
	// LookbackBlocks is how far before a breakpoint the provider looks for an earlier entry; 0 means no limit.
	LookbackBlocks int `json:"lookback_blocks,omitempty"`
	// Lifetimes are those that can be asked for, the longest first; empty without a choice.
	Lifetimes []string `json:"lifetimes,omitempty"`
	// KeptFor is how long an unused prefix lives by default; empty if unknown.
	KeptFor string `json:"kept_for,omitempty"`
	// Explicit says that nothing is cached unless a request has breakpoints.
	Explicit bool `json:"explicit,omitempty"`
	// StepTokens is by how many tokens a prefix grows that was found without breakpoints; 0 if unknown.
	StepTokens int `json:"step_tokens,omitempty"`
}

// ModelCache is what is known of one model's cache.
type ModelCache struct {
	CacheFact

	// Listed says that the facts name this model; otherwise they are its provider's, a guess.
	Listed bool
	// Date is when the facts were collected.
	Date string
}

// LoadCacheFacts returns the facts that are compiled in. A test excludes errors.
func LoadCacheFacts() (*CacheFacts, error) { return parseCacheFacts(cacheFacts) }

func parseCacheFacts(data []byte) (*CacheFacts, error) {
	var t CacheFacts
	if err := jsonscan.Decode(data, &t); err != nil {
		return nil, fmt.Errorf("cache facts: %w", err)
	}
	return &t, nil
}

// Lookup returns what is known of a model. A path before its name ("models/",
// "openai/") and case do not matter. It is false for an unknown provider.
func (t *CacheFacts) Lookup(provider, model string) (ModelCache, bool) {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for i := range t.Providers {
		p := &t.Providers[i]
		if p.Name != provider {
			continue
		}
		out := ModelCache{CacheFact: p.CacheFact, Date: t.Date}
		for _, m := range p.Models {
			if ok, err := path.Match(m.Match, model); err == nil && ok {
				out.Listed = true
				out.override(&m.CacheFact)
				break
			}
		}
		return out, true
	}
	return ModelCache{}, false
}

// override applies a model's numbers to its provider's.
func (f *CacheFact) override(model *CacheFact) {
	f.MinimumTokens = model.MinimumTokens
	f.Breakpoints = cmp.Or(model.Breakpoints, f.Breakpoints)
	f.LookbackBlocks = cmp.Or(model.LookbackBlocks, f.LookbackBlocks)
	f.KeptFor = cmp.Or(model.KeptFor, f.KeptFor)
	f.StepTokens = cmp.Or(model.StepTokens, f.StepTokens)
	f.Explicit = f.Explicit || model.Explicit
	if model.Lifetimes != nil {
		f.Lifetimes = model.Lifetimes
	}
}

// Rules returns the rules for predictions. The lifetime is the one that the host asks for,
// such as "1h"; empty is the provider's default. The error is about the lifetime. A host that
// sends breakpoints to a provider that finds prefixes by itself sets Explicit in the result.
func (f ModelCache) Rules(lifetime string) (CacheRules, error) {
	rules := CacheRules{MinimumTokens: f.MinimumTokens, Explicit: f.Explicit, Step: f.StepTokens}
	var err error
	if rules.Lifetime, err = time.ParseDuration(cmp.Or(lifetime, f.KeptFor, "0")); err != nil {
		return rules, fmt.Errorf("cache lifetime: %w", err)
	}
	return rules, nil
}

// Rules returns a model's rules with the default lifetime, as the engine's option CacheRules
// wants them. It is false for an unknown provider.
func (t *CacheFacts) Rules(provider, model string) (CacheRules, bool) {
	found, ok := t.Lookup(provider, model)
	if !ok {
		return CacheRules{}, false
	}
	rules, err := found.Rules("")
	return rules, err == nil
}
