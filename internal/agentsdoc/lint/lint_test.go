package lint

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

// TestRun runs each case of testdata/run.txt.
func TestRun(t *testing.T) {
	t.Parallel()

	data, err := os.ReadFile("testdata/run.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n=== ")[1:] {
		name, rest, _ := strings.Cut(text, "\n")
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			tree := files{}
			head, rest, _ := strings.Cut(rest, "\noptions: ")
			for line := range strings.Lines(head) {
				name, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				tree[unquoted(name)] = unquoted(text)
			}
			options, want, _ := strings.Cut(rest, "\n")
			base, o := build(t, tree), noGlobals(nil)
			if err := json.Unmarshal([]byte(options), &o.Chain); err != nil {
				t.Fatal(err)
			}
			r := mustRun(t, base, o)
			if diff := cmp.Diff(outline(&r, base), strings.Split(want, "\n")); diff != "" {
				t.Errorf("report (-got +want):\n%s", diff)
			}
			for _, d := range r.Problems {
				if d.Severity != d.Code.Severity() || d.Detail == "" {
					t.Errorf("%s: severity %s, detail %q", d.Code, d.Severity, d.Detail)
				}
			}
		})
	}
}

// unquoted is a text that may be a Go string.
func unquoted(text string) string {
	if plain, err := strconv.Unquote(text); err == nil {
		return plain
	}
	return text
}

// TestNotLookedAt pins which directories are omitted, and that they are counted.
func TestNotLookedAt(t *testing.T) {
	t.Parallel()

	bad := "\x00"
	base := build(t, files{
		".git/info/exclude": "/private/\n", ".gitignore": "build/\n!kept/build/\n*.tmp\n",
		"AGENTS.md":              "R\n",
		"node_modules/AGENTS.md": bad, "a/vendor/AGENTS.md": bad, "third_party/AGENTS.md": bad, ".venv/AGENTS.md": bad, "target/x/AGENTS.md": bad,
		"build/AGENTS.md": bad, "a/build/AGENTS.md": bad, "x.tmp/AGENTS.md": bad, "private/AGENTS.md": bad,
		"kept/build/AGENTS.md": "K\n",
		"nested/.git":          "gitdir: ../.git/modules/nested\n", "nested/AGENTS.md": bad, "nested/deeper/AGENTS.md": bad,
		"jj/.jj/repo": "", "jj/AGENTS.md": bad,
		"link": "-> nested", ".hg/": "",
		"a/private/AGENTS.md": "P\n",
	})
	r := mustRun(t, base, noGlobals(nil))
	got := [...]int{r.Files, r.Directories, r.Nested, r.Ignored, r.Foreign, len(r.Problems)}
	// The root, a, a/private, kept and kept/build are looked at.
	if want := [...]int{3, 5, 2, 4, 5, 0}; got != want {
		t.Errorf("files, directories, nested, ignored, foreign, problems: %v, want %v: %v", got, want, outline(&r, base))
	}
}

// TestFromBelow: the tree begins at the root, wherever in it lint is called.
func TestFromBelow(t *testing.T) {
	t.Parallel()

	base := build(t, files{".git/": "", "AGENTS.md": "R\n", "a/b/AGENTS.md": "B\n", "c/AGENTS.md": "C\n"})
	if r := mustRun(t, filepath.Join(base, "a", "b"), noGlobals(nil)); r.Root != base || r.Files != 3 {
		t.Errorf("root %s with %d files, want %s with 3", r.Root, r.Files, base)
	}
}

// TestWorstCut: of a file that is cut in several chains, the one that keeps the
// least is shown.
func TestWorstCut(t *testing.T) {
	t.Parallel()

	text := func(n int) string { return strings.Repeat("0123456789abcdef\n", n) }
	base := build(t, files{".git/": "", "AGENTS.md": text(200), "a/AGENTS.md": "A\n", "b/AGENTS.md": text(100), "c/AGENTS.md": text(40)})
	r := mustRun(t, base, noGlobals(func(o *chain.Options) { o.Budget.Total = 3000 }))
	i := slices.IndexFunc(r.Problems, func(d chain.Diagnostic) bool { return filepath.Dir(d.Path) == base })
	if i < 0 {
		t.Fatalf("the root's file is not reported: %v", outline(&r, base))
	}
	if d := r.Problems[i].Detail; !strings.Contains(d, "in the chain of b/; not whole in 3 more chains") {
		t.Errorf("detail %q", d)
	}
}

// TestChars: characters bound a chain as bytes do.
func TestChars(t *testing.T) {
	t.Parallel()

	base := build(t, files{".git/": "", "AGENTS.md": strings.Repeat("ä", 600) + "\n"})
	for chars, over := range map[int]int{0: 0, 400: 1, 5000: 0} {
		o := noGlobals(nil)
		o.Chars = chars
		if r := mustRun(t, base, o); r.ChainsOverBudget != over {
			t.Errorf("with %d characters %d chains are over, want %d", chars, r.ChainsOverBudget, over)
		}
	}
}

// TestCancelled: a run that nobody wants any more ends.
func TestCancelled(t *testing.T) {
	t.Parallel()

	base := build(t, files{".git/": "", "a/b/": ""})
	ctx, cancel := context.WithCancel(t.Context())
	o := noGlobals(nil)
	o.Seen = cancel
	r, err := Run(ctx, base, o)
	if err == nil || r.Directories != 1 {
		t.Errorf("error %v after %d directories, want the context's after 1", err, r.Directories)
	}
}
