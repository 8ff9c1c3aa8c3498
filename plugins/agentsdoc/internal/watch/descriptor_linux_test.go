package watch

import (
	"os"
	"path/filepath"
	"testing"
)

// watches counts this process's descriptors that events are read from.
func watches(t *testing.T) int {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range all {
		if to, err := os.Readlink(path); err == nil && to == "anon_inode:inotify" {
			n++
		}
	}
	return n
}

// TestDescriptors is alone, before all tests that run at the same time.
func TestDescriptors(t *testing.T) {
	base := build(t, map[string]string{"a": ""})
	before := watches(t)
	w, _ := listening(t, Options{})
	if now := watches(t); now != before {
		t.Errorf("%d descriptors with nothing watched, %d before", now, before)
	}
	must(t, w.Watch("one", Seen{base: {"a": {}}}))
	must(t, w.Watch("two", Seen{base: {"a": {}}}))
	w.Forget("one")
	if now := watches(t); now != before+1 {
		t.Errorf("%d descriptors while something is watched, %d before", now, before)
	}
	w.Forget("two")
	if now := watches(t); now != before {
		t.Errorf("%d descriptors with nothing watched any more, %d before", now, before)
	}
}
