package main

import (
	"strings"
	"testing"
)

// FuzzPosition asserts that a place is always inside the text.
func FuzzPosition(f *testing.F) {
	f.Add([]byte("{\n\"a\": }"), 8)
	f.Add([]byte("\xff\n\n"), -3)
	f.Fuzz(func(t *testing.T, data []byte, offset int) {
		line, column := position(data, offset)
		lines := strings.Split(string(data), "\n")
		if line < 1 || line > len(lines) || column < 1 || column > len(lines[line-1])+1 {
			t.Errorf("position %d:%d of %q", line, column, data)
		}
	})
}

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
