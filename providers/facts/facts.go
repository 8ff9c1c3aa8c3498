// Package facts holds what providers say about their prompt caches: from how
// many tokens on a prefix is cached, how many breakpoints a request may have,
// how long an entry lives.
//
// Such numbers change, so they all stand in one file with a date and sources,
// facts.json, and nowhere else. They serve warnings and shapes of requests;
// nothing is refused because of them. Where two pages of a provider differ, the
// file has the larger minimum.
//
// Start at [Load], then [Table.Lookup].
//
// It is no price list and knows nothing of what a model can do.
//
// Stability: experimental until 1.0.
package facts

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

//go:embed facts.json
var file []byte

// The names of the providers.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
	Gemini    = "gemini"
)

// Table is the whole file.
type Table struct {
	// Date is the day on which the numbers were looked up, as 2006-01-02.
	Date      string     `json:"date"`
	Providers []Provider `json:"providers"`
}

// Provider is what holds for all models of one provider, and for some.
type Provider struct {
	Name string `json:"name"`
	// Source says where the numbers are from.
	Source string `json:"source"`
	Cache
	// Models are exceptions; the first that matches counts.
	Models []Model `json:"models"`
}

// Model is what holds for the models that Match matches, a pattern of
// [path.Match]. It replaces those of the provider's numbers that it has.
type Model struct {
	Match string `json:"match"`
	Cache
}

// Cache describes a prompt cache.
type Cache struct {
	// MinimumTokens is the shortest prefix that is cached. Shorter ones are not,
	// and nobody says so.
	MinimumTokens int `json:"minimum_tokens"`
	// Breakpoints is how many a request may have; 0 if it takes none.
	Breakpoints int `json:"breakpoints,omitempty"`
	// LookbackBlocks is how far before a breakpoint an earlier entry is looked
	// for; 0 if there is no such limit.
	LookbackBlocks int `json:"lookback_blocks,omitempty"`
	// Lifetimes are those that can be asked for, the longest first; none if
	// there is no choice.
	Lifetimes []string `json:"lifetimes,omitempty"`
	// KeptFor is how long a prefix lives that nobody asks for again, if the
	// request does not say; empty if that is not known.
	KeptFor string `json:"kept_for,omitempty"`
	// Explicit says that nothing is cached unless a request has breakpoints.
	Explicit bool `json:"explicit,omitempty"`
	// StepTokens is by how many tokens a prefix grows that was found without
	// breakpoints; 0 if that is not known.
	StepTokens int `json:"step_tokens,omitempty"`
}

// Found is the answer about one model.
type Found struct {
	Cache

	// Listed says that the file speaks of this model. The numbers of others are
	// those of the provider, a guess.
	Listed bool
	// Date is the table's.
	Date string
}

// Load reads the file that is compiled in. An error means that the file is
// wrong, which a test excludes.
func Load() (*Table, error) { return parse(file) }

// parse reads a table strictly and checks it.
func parse(data []byte) (*Table, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var t Table
	if err := dec.Decode(&t); err != nil {
		return nil, fmt.Errorf("model facts: %w", err)
	}
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("model facts: %w", err)
	}
	return &t, nil
}

func (t *Table) check() error {
	var errs []error
	if _, err := time.Parse(time.DateOnly, t.Date); err != nil {
		errs = append(errs, fmt.Errorf("date: %w", err))
	}
	for i := range t.Providers {
		p := &t.Providers[i]
		if p.Name == "" || p.Source == "" || p.MinimumTokens <= 0 {
			errs = append(errs, fmt.Errorf("provider %d (%s): name, source or minimum is missing", i, p.Name))
		}
		errs = append(errs, p.checkLifetimes(p.Name))
		for j := range p.Models {
			m := &p.Models[j]
			errs = append(errs, m.checkLifetimes(p.Name+", "+m.Match))
			if _, err := path.Match(m.Match, ""); err != nil || m.Match == "" || m.MinimumTokens <= 0 {
				errs = append(errs, fmt.Errorf("provider %s, model %d (%s): pattern or minimum is wrong", p.Name, j, m.Match))
			}
		}
	}
	return errors.Join(errs...)
}

// checkLifetimes wants durations.
func (c *Cache) checkLifetimes(of string) error {
	for _, text := range append(slices.Clone(c.Lifetimes), cmp.Or(c.KeptFor, "0s")) {
		if d, err := time.ParseDuration(text); err != nil || d < 0 {
			return fmt.Errorf("%s: lifetime %q is no duration", of, text)
		}
	}
	return nil
}

// Lookup returns what is known of a model. A path before its name ("models/",
// "openai/") and case do not matter. It is false for an unknown provider.
func (t *Table) Lookup(provider, model string) (Found, bool) {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for i := range t.Providers {
		p := &t.Providers[i]
		if p.Name != provider {
			continue
		}
		out := Found{Cache: p.Cache, Date: t.Date}
		for j := range p.Models {
			m := &p.Models[j]
			if ok, err := path.Match(m.Match, model); err == nil && ok {
				out.Cache, out.Listed = over(p.Cache, m.Cache), true
				break
			}
		}
		return out, true
	}
	return Found{}, false
}

// over lays a model's numbers over the provider's.
func over(base, model Cache) Cache {
	base.MinimumTokens = model.MinimumTokens
	if model.Breakpoints != 0 {
		base.Breakpoints = model.Breakpoints
	}
	if model.LookbackBlocks != 0 {
		base.LookbackBlocks = model.LookbackBlocks
	}
	if model.Lifetimes != nil {
		base.Lifetimes = model.Lifetimes
	}
	if model.KeptFor != "" {
		base.KeptFor = model.KeptFor
	}
	if model.StepTokens != 0 {
		base.StepTokens = model.StepTokens
	}
	base.Explicit = base.Explicit || model.Explicit
	return base
}
