package compiler

import (
	"errors"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
)

// check finds what only a mistake in the calling program can cause.
func check(in *Input) error {
	var errs []error
	if !slices.Contains([]phases.Profile{phases.ProfileFull, phases.ProfileMinimal, phases.ProfileNone}, in.Profile) {
		errs = append(errs, fmt.Errorf("profile %q is not full, minimal or none", in.Profile))
	}
	if in.Order != OrderReference && in.Order != OrderCache {
		errs = append(errs, fmt.Errorf("order %q is not reference or cache", in.Order))
	}
	owners := make(map[string]string, len(in.Sections)+len(in.Custom))
	for i := range in.Sections {
		errs = append(errs, claim(owners, in.Sections[i].SectionID, "plugin "+in.Sections[i].Owner, true))
	}
	for i := range in.Custom {
		s := &in.Custom[i]
		errs = append(errs, claim(owners, s.SectionID, "the host", false), checkCustom(s))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	return nil
}

// claim gives an id to its one owner. Hooks may fill the rows of the table that
// wait for them.
func claim(owners map[string]string, id, owner string, hook bool) error {
	if !phases.ValidName(id) {
		return fmt.Errorf("section %q of %s: the id is not a name", id, owner)
	}
	if r := rowOf(id); r != nil && (!hook || r.source != nil) {
		return fmt.Errorf("section %q of %s: the id is the compiler's own", id, owner)
	}
	if other, taken := owners[id]; taken {
		return fmt.Errorf("section %q of %s: the id is taken by %s", id, owner, other)
	}
	owners[id] = owner
	return nil
}

func checkCustom(s *CustomSection) error {
	switch {
	case s.Before != "" && s.After != "":
		return fmt.Errorf("section %q of the host: it stands both before %q and after %q", s.SectionID, s.Before, s.After)
	case !slices.Contains([]phases.Stability{"", phases.StabilityStable, phases.StabilityDynamic}, s.Stability):
		return fmt.Errorf("section %q of the host: stability %q is unknown", s.SectionID, s.Stability)
	case !slices.Contains([]phases.Placement{"", phases.PlacementSystem, phases.PlacementSystemMessage, phases.PlacementUserMessage}, s.Placement):
		return fmt.Errorf("section %q of the host: placement %q is unknown", s.SectionID, s.Placement)
	case s.Pace != "" && speed(s.Pace) < 0:
		return fmt.Errorf("section %q of the host: pace %q is unknown", s.SectionID, s.Pace)
	}
	return nil
}
