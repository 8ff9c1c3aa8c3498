package compiler

import (
	"fmt"
	"strings"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// findUnstable compares the sections that were declared stable with those of
// the session's previous manifest. One that changed is reported and, if that is
// wanted, moved to the dynamic part. It stays there because the previous
// manifest then has it as dynamic.
func (c *compilation) findUnstable() {
	for _, s := range c.sections {
		if s.Stability != stable {
			continue
		}
		before := find(c.in.Previous, s.SectionID)
		if before == nil {
			continue
		}
		changed := before.Stability == stable && before.Fingerprint != s.Fingerprint && alike(before.Fingerprint, s.Fingerprint)
		if changed {
			c.reportUnstable(s)
		}
		if c.in.MoveUnstable && (changed || before.Stability == dynamic) {
			s.Stability = dynamic
			s.pace = PaceTurn
		}
	}
}

func (c *compilation) reportUnstable(s *section) {
	what := "it was left in the stable part"
	if c.in.MoveUnstable {
		what = "it was moved to the dynamic part"
	}
	c.diagnose(s.SectionID, phases.SeverityWarning, CodeUnstable,
		fmt.Sprintf("section %s is declared stable but changed within the session; %s", s.SectionID, what))
	if s.Owner != manifest.OwnerBuiltin && s.Owner != manifest.OwnerHost {
		c.out.Diagnostics[len(c.out.Diagnostics)-1].Plugin = s.Owner
	}
}

// alike reports whether two fingerprints were made the same way: a session
// may live through a change of the key's setting.
func alike(a, b string) bool {
	kindA, _, _ := strings.Cut(a, ":")
	kindB, _, _ := strings.Cut(b, ":")
	return kindA == kindB
}

func find(list []manifest.Section, id string) *manifest.Section {
	for i := range list {
		if list[i].SectionID == id {
			return &list[i]
		}
	}
	return nil
}

// planCache says where the prompt departs from the previous one and which
// prefixes are worth keeping.
func (c *compilation) planCache() {
	same := 0 // sections that the previous prompt began with, too
	if len(c.in.Previous) > 0 {
		same = len(c.out.Sections)
	}
	if at, broke := manifest.FirstBreak(c.in.Previous, c.out.Sections); broke {
		same = at.Index
		c.out.Cache.BrokeAt, c.out.Cache.Owner = at.SectionID, at.Owner
		for _, s := range c.out.Sections[at.Index:] {
			if s.Tokens != nil {
				c.out.Cache.TokensBehind += *s.Tokens
			}
		}
	}
	c.out.Prompt.CachePlan = c.breakpoints(same)
	c.out.Cache.Plan = c.out.Prompt.CachePlan
}

// breakpoints places at most three: behind the tools, the stable part, and the
// dynamic sections among the first so many, which did not change.
func (c *compilation) breakpoints(same int) manifest.CachePlan {
	var plan manifest.CachePlan
	if len(c.out.Tools) > 0 {
		plan.Breakpoints = append(plan.Breakpoints, manifest.Breakpoint{After: manifest.AfterTools})
	}
	lastStable, lastSame := "", ""
	for i, s := range c.sections {
		switch {
		case part(s) == partStable:
			lastStable = s.SectionID
		case part(s) == partDynamic && i < same:
			lastSame = s.SectionID
		}
	}
	if lastStable != "" {
		plan.Key = c.out.Fingerprints.FingerprintStable
		plan.Breakpoints = append(plan.Breakpoints, manifest.Breakpoint{After: manifest.AfterStable, SectionID: lastStable})
	}
	if lastSame != "" {
		plan.Breakpoints = append(plan.Breakpoints, manifest.Breakpoint{After: manifest.AfterDynamic, SectionID: lastSame})
	}
	return plan
}
