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
