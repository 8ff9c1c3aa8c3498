package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plant makes files below a folder; "-> X" is a link to X.
func plant(t *testing.T, base string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// put writes one file.
func put(t *testing.T, path, text string) {
	t.Helper()
	plant(t, filepath.Dir(path), map[string]string{filepath.Base(path): text})
}

// ourselves is a link, for plant, to this program: it is what its name says.
func ourselves(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return "-> " + self
}

// must returns the value of a call. Its error ends the test.
func must[R any](r R, err error) func(testing.TB) R {
	return func(tb testing.TB) R {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return r
	}
}
