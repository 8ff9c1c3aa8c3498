package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFresh wants every generated file to say what the contract says now.
func TestFresh(t *testing.T) {
	t.Parallel()

	root := filepath.Join("..", "..")
	m, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, emit := range outputs() {
		have, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(have), emit(m)); diff != "" {
			t.Errorf("%s is stale, run go generate ./internal/kitgen (-have +want):\n%s", name, diff)
		}
	}
}
