// Package kitgen writes the parts of the plugin kits in other languages that repeat the wire contract: types, word
// sets and tables. They come from the compiled plugin.proto, its comments, and package phases. Its test fails if a file
// is stale; "go generate ./internal/docs/kitgen" writes them.
package kitgen

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

//go:generate go test . -update

var update = flag.Bool("update", false, "write the generated files")

// TestFresh wants every generated file to say what the contract says now.
func TestFresh(t *testing.T) {
	t.Parallel()

	root := filepath.Join("..", "..", "..")
	m, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, emit := range map[string]func(*model) string{
		"sdks/python/src/grapnel/_types.py": python,
		"sdks/typescript/src/generated.ts":  typescript,
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if *update {
			if err := os.WriteFile(path, []byte(emit(m)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(have), emit(m)); diff != "" {
			t.Errorf("%s is stale, run go generate ./internal/docs/kitgen (-have +want):\n%s", name, diff)
		}
	}
}
