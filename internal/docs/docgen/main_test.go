package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFresh wants every generated table to say what the code says now.
func TestFresh(t *testing.T) {
	t.Parallel()

	root := filepath.Join("..", "..", "..")
	names, err := documents(root)
	if err != nil || len(names) == 0 {
		t.Fatalf("documents %v: %v", names, err)
	}
	for _, name := range names {
		have, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := generate(root, string(have))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(string(have), want); diff != "" {
			t.Errorf("%s is stale, run go generate ./internal/docs/docgen (-have +want):\n%s", name, diff)
		}
	}
}
