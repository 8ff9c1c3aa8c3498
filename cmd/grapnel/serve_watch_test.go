package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSteady: a change counts once it has been seen twice, and once only; what is put
// back in between is none.
func TestSteady(t *testing.T) {
	t.Parallel()

	file := filepath.Join(t.TempDir(), "f")
	look := func(text string) fileLook {
		t.Helper()
		if text == "" {
			_ = os.Remove(file)
		} else if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return lookAt([]string{file})
	}
	known := look("a")
	s := steady{known, known}
	for i, step := range []struct {
		text string
		want bool
	}{
		{"a", false},
		{"b", false},
		{"b", true},
		{"b", false},
		{"c", false},
		{"cc", false},
		{"cc", true},
		{"d", false},
		{"cc", false},
		{"cc", false},
		{"", false},
		{"", true},
		{"", false},
		{"a", false},
		{"a", true},
	} {
		if got := s.settled(look(step.text)); got != step.want {
			t.Errorf("step %d, %q: %v", i, step.text, got)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if s.settled(lookAt([]string{file})) || !s.settled(lookAt([]string{file})) {
		t.Error("a directory in the file's place is no change")
	}
}
