package compiler

import (
	"fmt"
	"strings"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// findUnstable compares the sections that were declared stable with those of
// the session's previous prompt. One that changed is reported and, if that is
// wanted, moved to the dynamic part. It stays there because the previous
// prompt then has it as dynamic.
func (c *compilation) findUnstable() {
	if c.in.Previous == nil || !c.in.Previous.SameSession {
		return
	}
	for _, s := range c.sections {
		if s.Stability != stable {
			continue
		}
		before := find(c.in.Previous.Sections, s.SectionID)
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
	if s.Owner != phases.OwnerBuiltin && s.Owner != phases.OwnerHost {
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
