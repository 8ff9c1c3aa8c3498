package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnpack has an npm that copies an archive, or fails as without a registry.
func TestUnpack(t *testing.T) {
	files := t.TempDir()
	archive := filepath.Join(files, "a.tgz")
	err := errors.Join(os.MkdirAll(filepath.Join(files, "package", "bin"), 0o700), os.WriteFile(filepath.Join(files, "package", "bin", "agent"), []byte("hi"), 0o700),
		runCommand(t.Context(), files, "tar", "-czf", archive, "package"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := checksum(archive)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ npm, integrity, want string }{
		"the pinned archive":    {"cp " + archive + " .", sum, ""},
		"an archive not pinned": {"cp " + archive + " .", "", ""},
		"another archive":       {"cp " + archive + " .", "sha512-x", "instead of sha512-x"},
		"a broken archive":      {"echo x > a.tgz", "", "tar"},
		"no archive":            {"true", sum, "made 0 archives"},
		"no registry":           {"echo no route; exit 1", sum, "no route"},
	} {
		t.Run(name, func(t *testing.T) {
			bin, dir := t.TempDir(), filepath.Join(t.TempDir(), "agent-1")
			if err := os.WriteFile(filepath.Join(bin, "npm"), []byte("#!/bin/sh\n"+c.npm+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
			err := (&source{integrity: c.integrity}).unpack(t.Context(), "agent@1", dir)
			_, statErr := os.Stat(filepath.Join(dir, "package", "bin", "agent"))
			switch {
			case c.want == "" && (err != nil || statErr != nil):
				t.Errorf("got %v, %v", err, statErr)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || statErr == nil):
				t.Errorf("got %v, want %q and no files", err, c.want)
			}
			if left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "get-*")); err != nil || len(left) > 0 {
				t.Errorf("left %q, %v", left, err)
			}
		})
	}
}
