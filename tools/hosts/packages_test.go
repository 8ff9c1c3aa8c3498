package main

import (
	"archive/tar"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnpack has an npm that copies an archive, or fails as without a registry.
func TestUnpack(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "a.tgz")
	writeArchive(t, archive, "package/bin/agent")
	outside := filepath.Join(t.TempDir(), "b.tgz")
	writeArchive(t, outside, "../agent")
	sum, err := checksum(archive)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ npm, integrity, want string }{
		"the pinned archive":    {"cp " + archive + " .", sum, ""},
		"an archive not pinned": {"cp " + archive + " .", "", ""},
		"another archive":       {"cp " + archive + " .", "sha512-x", "instead of sha512-x"},
		"a file outside":        {"cp " + outside + " .", "", `"../agent"`},
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

func writeArchive(t *testing.T, path, name string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: 2, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("hi")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []interface{ Close() error }{w, z, f} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
