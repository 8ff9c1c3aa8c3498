package docstest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var goRun = regexp.MustCompile(`\bgo (?:-C (\S+) )?run (\.\S*)`)

// TestGoRun: what README.md, the documents and the examples start with "go run" is a package of the module that they start
// it in, from the root of a checkout.
func TestGoRun(t *testing.T) {
	t.Parallel()

	texts := map[string]string{}
	for _, d := range documents(t) {
		texts[d.name] = d.text
	}
	mains, err := filepath.Glob(filepath.Join(root(t), "examples", "*", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range mains {
		texts[path] = fileText(t, path)
	}
	n := 0
	for name, text := range texts {
		for _, m := range goRun.FindAllStringSubmatch(text, -1) {
			n++
			start := filepath.Join(root(t), m[1])
			program := filepath.Join(start, m[2])
			if _, err := os.Stat(program); err != nil || module(program) != module(start) {
				t.Errorf("%s: %s: no package of that module (%v)", name, m[0], err)
			}
		}
	}
	if n < 5 {
		t.Errorf("only %d commands were found", n)
	}
}

// module is the directory of the module that a directory belongs to.
func module(dir string) string {
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	return ""
}
