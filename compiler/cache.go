package compiler

import (
	"cmp"
	"fmt"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// planCache says where the prompt departs from the previous one, which prefixes are worth
// caching, and how much of this one the provider should have cached.
func (c *compilation) planCache() {
	cache := &c.out.Cache
	cache.Provider, cache.Model = valid(c.in.Provider), valid(c.in.Model)
	if c.in.CountTokens != nil {
		cache.ToolTokens = c.toolTokens()
	}
	if cache.OfAgent = c.in.HooksOnly; cache.OfAgent {
		return
	}
	cache.Plan = c.breakpoints()
	c.out.Prompt.CachePlan = cache.Plan
	if rules := c.in.CacheRules; rules != nil {
		cache.Rules = recordedRules(rules)
		c.warnOfMinimum(rules)
	}
	if prev := c.in.Previous; prev != nil {
		m := manifest.Manifest{Fingerprints: c.out.Fingerprints, Sections: c.out.Sections, Tools: c.out.Tools, Cache: *cache}
		m.CreatedAt, m.Profile, m.CompilerVersion = prev.CreatedAt.Add(prev.Age), c.out.Profile, Version
		m.Judge(&prev.Outline)
		*cache = m.Cache
	}
}

func recordedRules(r *CacheRules) *manifest.CacheRules {
	return &manifest.CacheRules{MinimumTokens: r.MinimumTokens, LifetimeS: int(r.Lifetime.Seconds()), Step: r.Step, Explicit: r.Explicit}
}

// tokens adds up the sections' tokens; 0 without a tokenizer.
func tokens(sections []manifest.Section) int {
	n := 0
	for i := range sections {
		if t := sections[i].Tokens; t != nil {
			n += *t
		}
	}
	return n
}

// breakpoints places at most three: behind the tools, the stable part, and the dynamic sections that did not change.
func (c *compilation) breakpoints() manifest.CachePlan {
	var plan manifest.CachePlan
	if len(c.out.Offered) > 0 {
		plan.Breakpoints = append(plan.Breakpoints, manifest.Breakpoint{After: manifest.AfterTools})
	}
	begin, end := c.dynamicPart()
	if begin > 0 {
		plan.Key = c.out.Fingerprints.FingerprintStable
		plan.Breakpoints = append(plan.Breakpoints, manifest.Breakpoint{After: manifest.AfterStable, SectionID: c.sections[begin-1].SectionID})
	}
	if n := c.steady(c.out.Sections[begin:end]); n > 0 {
		plan.Breakpoints = append(plan.Breakpoints, manifest.Breakpoint{After: manifest.AfterDynamic, SectionID: c.sections[begin+n-1].SectionID})
	}
	return plan
}

func (c *compilation) dynamicPart() (begin, end int) {
	for _, s := range c.sections {
		switch part(&s.Section) {
		case partStable:
			begin++
			end++
		case partDynamic:
			end++
		}
	}
	return begin, end
}

// steady counts the leading dynamic sections that equal those of the previous prompt.
func (c *compilation) steady(now []manifest.Section) int {
	if c.in.Previous == nil {
		return 0
	}
	n := 0
	for i := range c.in.Previous.Sections {
		before := &c.in.Previous.Sections[i]
		if before.Placement != phases.PlacementSystem || before.Stability == stable {
			continue
		}
		if n == len(now) || before.SectionID != now[n].SectionID || before.Hash != manifest.MarkOf(now[n].Hash) {
			break
		}
		n++
	}
	return n
}

// warnOfMinimum warns of a prompt that is too short for the provider's cache.
func (c *compilation) warnOfMinimum(rules *CacheRules) {
	_, end := c.dynamicPart()
	if !rules.Explicit {
		end = len(c.out.Sections) // messages of the prompt are part of what is compared
	}
	whole := c.out.Cache.ToolTokens + tokens(c.out.Sections[:end])
	if whole == 0 || whole >= rules.MinimumTokens {
		return
	}
	severity := phases.SeverityInfo // the conversation behind the prompt may make up for it
	if rules.Explicit {
		severity = phases.SeverityWarning
	}
	c.diagnose("", severity, codeBelowMinimum, fmt.Sprintf("tools and prompt have about %s tokens together, and %s caches from %s on",
		text.Thousands(whole), cmp.Or(oneLine(c.in.Model), "the model"), text.Thousands(rules.MinimumTokens)))
}

// toolTokens counts the offered definitions as canonical JSON, an estimate: providers write them in other forms.
func (c *compilation) toolTokens() int {
	n := 0
	for i := range c.out.Offered {
		tool := c.out.Offered[i].Definition
		tool.HiddenDomain = "" // not in a request
		b, err := toolEncoder().Append(nil, &tool)
		if err != nil {
			b = append([]byte(valid(tool.Description)), tool.InputSchema...) // not JSON
		}
		n += c.in.CountTokens(string(b))
	}
	return n
}
