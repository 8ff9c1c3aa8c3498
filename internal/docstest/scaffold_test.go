package docstest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFirstPlugins compares the plugins that docs/PLUGINS.md shows first with those that "grapnel plugin new" makes,
// whose tests cmd/grapnel runs.
func TestFirstPlugins(t *testing.T) {
	t.Parallel()

	program, err := grapnel()
	if err != nil {
		t.Fatal(err)
	}
	for lang, file := range map[string]string{"go": "main.go", "ts": "src/plugin.ts", "python": "plugin.py"} {
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), program, "plugin", "new", "keeper", "--lang", lang)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		fence := "```" + lang + "\n"
		if !strings.Contains(text(t, "docs/PLUGINS.md"), fence+fileText(t, filepath.Join(dir, "keeper", filepath.FromSlash(file)))+"```\n") {
			t.Errorf("docs/PLUGINS.md does not show the %s of: grapnel plugin new keeper --lang %s", file, lang)
		}
	}
}
