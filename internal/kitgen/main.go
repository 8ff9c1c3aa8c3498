// Command kitgen writes the parts of the plugin kits in other languages that repeat the wire contract: types, word
// sets and tables. They come from the compiled plugin.proto, its comments, and package phases. Run it with
// "go generate ./internal/kitgen"; the package's test fails if a file is stale.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . ../..

// outputs are the generated files, by their slash-separated path below the root.
func outputs() map[string]func(*model) string {
	return map[string]func(*model) string{
		"sdks/python/src/grapnel/_types.py": python,
		"sdks/typescript/src/generated.ts":  typescript,
	}
}

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := run(root); err != nil {
		fmt.Fprintln(os.Stderr, "kitgen:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	m, err := load(root)
	if err != nil {
		return err
	}
	for name, emit := range outputs() {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.WriteFile(path, []byte(emit(m)), 0o644); err != nil { //nolint:gosec // a source file
			return err
		}
	}
	return nil
}
