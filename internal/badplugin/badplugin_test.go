//go:build unix

package badplugin_test

import (
	"slices"
	"testing"

	"github.com/grapnelhq/grapnel/internal/badplugin"
)

// TestModes: the modes have names, and what is none is refused.
func TestModes(t *testing.T) {
	t.Parallel()

	names := badplugin.Modes()
	if !slices.IsSorted(names) || !slices.Contains(names, "good") || !slices.Contains(names, "huge") {
		t.Errorf("modes: %q", names)
	}
	if status := (badplugin.Program{Mode: "goodness"}).Run(); status != 2 {
		t.Errorf("an unknown mode exits with %d", status)
	}
}

// TestStartedByHand: no mode that serves a plugin runs without a host.
func TestStartedByHand(t *testing.T) {
	t.Parallel()

	if status := (badplugin.Program{Mode: "good"}).Run(); status != 1 {
		t.Errorf("exits with %d", status)
	}
}
