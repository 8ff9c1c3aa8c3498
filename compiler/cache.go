package compiler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// planCache says where the prompt departs from the previous one, which prefixes are worth
// caching, and how much of this one the provider should have cached.
func (c *compilation) planCache() {
	cache := &c.out.Cache
	cache.Provider, cache.Model = valid(c.in.Provider), valid(c.in.Model)
	same := 0 // sections that the previous prompt began with too
	if c.in.Previous != nil {
		if len(c.in.Previous.Sections) > 0 {
			same = len(c.out.Sections)
		}
		if at, broke := manifest.FirstBreak(c.in.Previous.Sections, c.out.Sections); broke {
			same = at.Index
			cache.BrokeAt, cache.Owner = at.SectionID, at.Owner
			cache.TokensBehind = tokens(c.out.Sections[at.Index:])
		}
	}
	cache.Plan = c.breakpoints()
	c.out.Prompt.CachePlan = cache.Plan
	if rules := c.in.CacheRules; rules != nil && c.in.CountTokens != nil {
		c.predict(rules, same)
	}
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
		if n == len(now) || before.SectionID != now[n].SectionID || before.Fingerprint != now[n].Fingerprint {
			break
		}
		n++
	}
	return n
}

// keptBefore returns how many of the first sections the previous plan's last breakpoint among them covers.
func (c *compilation) keptBefore(same int) int {
	for n := same; n > 0; n-- {
		id := c.out.Sections[n-1].SectionID
		if slices.ContainsFunc(c.in.Previous.Plan.Breakpoints, func(b manifest.Breakpoint) bool { return b.SectionID == id }) {
			return n
		}
	}
	return 0
}

// predict estimates what the provider serves from its cache, and warns of a prompt that is too short for it.
func (c *compilation) predict(rules *CacheRules, same int) {
	_, end := c.dynamicPart()
	if !rules.Explicit {
		end = len(c.out.Sections) // messages of the prompt are part of what is compared
	}
	tools := c.toolTokens()
	if whole := tools + tokens(c.out.Sections[:end]); whole > 0 && whole < rules.MinimumTokens {
		severity := phases.SeverityInfo // the conversation behind the prompt may make up for it
		if rules.Explicit {
			severity = phases.SeverityWarning
		}
		c.diagnose("", severity, CodeBelowMinimum, fmt.Sprintf("tools and prompt have about %s tokens together, and %s caches from %s on",
			text.Thousands(whole), cmp.Or(oneLine(c.in.Model), "the model"), text.Thousands(rules.MinimumTokens)))
	}
	prev := c.in.Previous
	if prev == nil || len(prev.Sections) == 0 {
		return
	}
	served, miss := 0, c.lost(rules)
	if miss == "" {
		served, miss = c.served(rules, tools, same, end)
	}
	c.out.Cache.Predicted, c.out.Cache.Miss = &served, miss
}

// lost says why nothing in the cache can be of use; empty if the sections decide.
func (c *compilation) lost(rules *CacheRules) manifest.Miss {
	prev := c.in.Previous
	differs := func(before, now string) bool { return before != "" && now != "" && before != now }
	switch {
	case differs(prev.Provider, c.in.Provider) || differs(prev.Model, c.in.Model):
		return manifest.MissModel
	case prev.Tools != c.out.Fingerprints.FingerprintTools:
		return manifest.MissTools
	case rules.Lifetime > 0 && prev.Age > rules.Lifetime:
		return manifest.MissExpired
	}
	return ""
}

// served returns the longest cached prefix, in tokens, and why there is none.
func (c *compilation) served(rules *CacheRules, tools, same, end int) (int, manifest.Miss) {
	n, found := min(same, end), 0
	if rules.Explicit {
		n = min(c.keptBefore(same), end)
	}
	keptTools := func(b manifest.Breakpoint) bool { return b.After == manifest.AfterTools }
	if n > 0 || !rules.Explicit || slices.ContainsFunc(c.in.Previous.Plan.Breakpoints, keptTools) {
		found = tools + tokens(c.out.Sections[:n])
	}
	if !rules.Explicit {
		found -= found % max(rules.Step, 1)
	}
	switch {
	case found > 0 && found >= rules.MinimumTokens:
		return found, ""
	case c.out.Cache.BrokeAt != "" && tools+tokens(c.out.Sections[:end]) >= rules.MinimumTokens:
		return 0, manifest.MissSection
	default:
		return 0, manifest.MissMinimum
	}
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
