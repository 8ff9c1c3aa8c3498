package main

import (
	"strings"
	"testing"
)

// TestReadInputIsBounded reads one byte too many, and exactly enough.
func TestReadInputIsBounded(t *testing.T) {
	t.Parallel()

	a := &app{in: strings.NewReader(strings.Repeat("x", maxInput+1))}
	if _, err := a.readInput("input", "-"); err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("got error %v", err)
	}
	a.in = strings.NewReader(strings.Repeat("x", maxInput))
	if data, err := a.readInput("input", "-"); err != nil || len(data) != maxInput {
		t.Errorf("got %d bytes and %v", len(data), err)
	}
}
