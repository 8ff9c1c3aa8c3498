package archtest

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWalks: CONTRIBUTING.md names for each way to add something the files that know its example.
func TestWalks(t *testing.T) {
	t.Parallel()

	data, err := os.ReadFile(filepath.Join("..", "..", "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	generated := regexp.MustCompile(`(?m)^// Code generated`)
	for begin, knows := range map[string]string{
		"**A phase**":                 `RuntimePreContext|turn_pre_context`,
		"**A kind of contribution**":  `\bBackgroundJob\b`,
		"**An agent**":                `Name: "cursor"|agents/cursor"`,
		"**A command**":               `hooksImport`,
		"**A method of the gateway**": `"jobs/retry"`,
	} {
		_, walk, found := strings.Cut(string(data), begin)
		if !found {
			t.Errorf("CONTRIBUTING.md has no %s", begin)
			continue
		}
		walk, _, _ = strings.Cut(walk, "\n\n")
		var told, want []string
		for _, m := range regexp.MustCompile("`([a-z_/0-9]+\\.(?:go|proto)|internal/agents/[a-z]+)`").FindAllStringSubmatch(walk, -1) {
			told = append(told, m[1])
		}
		out, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "grep", "-lE", knows, "--", "*.go", "*.proto").Output()
		if err != nil {
			t.Fatal(err)
		}
		for file := range strings.FieldsSeq(string(out)) {
			source, err := os.ReadFile(filepath.Join("..", "..", file))
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") || generated.Match(source) || isExample(file) {
				continue
			}
			if dir := path.Dir(file); slices.Contains(told, dir) {
				file = dir
			}
			want = append(want, file)
		}
		slices.Sort(told)
		slices.Sort(want)
		if diff := cmp.Diff(told, slices.Compact(want)); diff != "" {
			t.Errorf("%s of CONTRIBUTING.md (-told +know it):\n%s", begin, diff)
		}
	}
}

// isExample reports whether a file only uses what a walk adds: programs of tests and plugins.
func isExample(file string) bool {
	return strings.HasPrefix(file, "plugins/")
}
