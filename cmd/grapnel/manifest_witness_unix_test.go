//go:build unix

package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// TestWitnessWaits: while one command has the checkpoint that was signed last, through whatever link, another one neither
// reads nor signs.
func TestWitnessWaits(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	last, link := filepath.Join(dir, "seen.txt"), filepath.Join(dir, "link.txt")
	unlock := must(lockBeside(t.Context(), last, lockTime, ""))(t)
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it waits no longer
	for _, path := range []string{last, link} {
		if err := (&app{}).cosign(ctx, nil, nil, nil, path); err == nil || !strings.Contains(err.Error(), "another command signs with it") {
			t.Errorf("%s: %v", path, err)
		}
		if path == last {
			plant(t, dir, map[string]string{"seen.txt": "", "link.txt": "-> seen.txt"})
		}
	}
}
