package lint

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

// TestRun pins what is reported, by the rules of the default preset.
func TestRun(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("a line of text\n", 3000)
	tests := []struct {
		name    string
		tree    files
		options Options
		want    []string
	}{
		{"nothing", files{".git/": ""}, noGlobals(nil), []string{"0 files, 1 directories, 0 over"}},
		{
			"a clean tree",
			files{".git/": "", "AGENTS.md": "R\n", "a/AGENTS.md": "A\n", "b/c/AGENTS.md": "C\n", "b/c/AGENTS.local.md": "mine\n"},
			noGlobals(nil),
			[]string{"4 files, 4 directories, 0 over"},
		},
		{
			"cut in many chains, told once",
			files{".git/": "", "AGENTS.md": long, "a/AGENTS.md": "A\n", "b/AGENTS.md": "B\n"},
			noGlobals(nil),
			[]string{"3 files, 3 directories, 3 over", "error truncated AGENTS.md"},
		},
		{
			"no room at all",
			files{".git/": "", "AGENTS.md": long, "a/AGENTS.md": "A\n"},
			noGlobals(func(o *chain.Options) { o.Budget.Total = 10 }),
			[]string{"2 files, 2 directories, 2 over", "error omitted_budget AGENTS.md", "error omitted_budget a/AGENTS.md"},
		},
		{
			"too many files",
			files{".git/": "", "AGENTS.md": "R\n", "a/AGENTS.md": "A\n"},
			noGlobals(func(o *chain.Options) { o.Budget.Files = 1 }),
			[]string{"2 files, 2 directories, 1 over", "warning omitted_count AGENTS.md"},
		},
		{
			"overrides",
			files{".git/": "", "AGENTS.override.md": " \n", "AGENTS.md": "R\n", "a/AGENTS.override.md": "O\n", "a/AGENTS.md": "A\n"},
			noGlobals(nil),
			[]string{"3 files, 2 directories, 0 over", "info empty_override AGENTS.override.md", "info shadowed_by_override a/AGENTS.md"},
		},
		{
			"near misses, also where there is nothing else",
			files{".git/": "", "agents.md": "r\n", "a/AGENT.md": "a\n", "b/AGENTS.md": "B\n", "b/Agent.md": "b\n"},
			noGlobals(nil),
			[]string{"1 files, 3 directories, 0 over", "warning near_miss_name agents.md", "warning near_miss_name a/AGENT.md", "warning near_miss_name b/Agent.md"},
		},
		{
			"CLAUDE.md alone, beside another, and as a fallback",
			files{".git/": "", "a/CLAUDE.md": "a\n", "b/CLAUDE.md": "b\n", "b/AGENTS.md": "B\n"},
			noGlobals(nil),
			[]string{"1 files, 3 directories, 0 over", "warning fallback_suggested a/CLAUDE.md"},
		},
		{
			"files of other agents, and pages of documentation",
			files{
				".git/": "", "a/GEMINI.md": "a\n", "a/.cursorrules": "a\n", ".github/copilot-instructions.md": "c\n", "b/AGENTS.md": "b\n",
				"b/.github/copilot-instructions.md": "c\n", "docs/agents.md": "page\n", "docs/copilot-instructions.md": "page\n",
			},
			noGlobals(nil),
			[]string{
				"1 files, 6 directories, 0 over", "warning near_miss_name .github/copilot-instructions.md", "warning near_miss_name a/.cursorrules",
				"warning near_miss_name a/GEMINI.md",
			},
		},
		{
			"CLAUDE.md as a fallback",
			files{".git/": "", "a/CLAUDE.md": "a\n"},
			noGlobals(func(o *chain.Options) { o.FallbackNames = []string{"CLAUDE.md"} }),
			[]string{"1 files, 2 directories, 0 over"},
		},
		{
			"what is no text",
			files{".git/": "", "AGENTS.md": "a\x00b", "a/AGENTS.md": "\xff\n", "b/AGENTS.md": "a\u202eb\n", "c/AGENTS.md/": ""},
			noGlobals(nil),
			[]string{
				"3 files, 5 directories, 0 over", "error binary AGENTS.md", "warning invalid_utf8 a/AGENTS.md", "warning hidden_unicode b/AGENTS.md",
				"warning not_regular c/AGENTS.md",
			},
		},
		{
			"links",
			files{
				".git/HEAD": "ref\n", "AGENTS.md": "-> docs/rules.md", "docs/rules.md": "R\n", "a/AGENTS.md": "-> /etc/hostname", "b/AGENTS.md": "-> ../.git/HEAD",
				"c/AGENTS.md": "-> nowhere", "d/AGENTS.md": "../AGENTS.md",
			},
			noGlobals(nil),
			[]string{
				"5 files, 6 directories, 0 over", "error symlink_escape a/AGENTS.md", "error git_metadata b/AGENTS.md", "warning read_error c/AGENTS.md",
				"warning symlink_stub d/AGENTS.md", "info duplicate AGENTS.md",
			},
		},
		{
			"imports, each line for itself",
			files{".git/": "", "AGENTS.md": "@./../x.md\n@./../y.md\nR\n", "a/AGENTS.md": "A\n"},
			noGlobals(func(o *chain.Options) { o.Imports = chain.ImportLines }),
			[]string{"2 files, 2 directories, 0 over", "warning import_refused AGENTS.md", "warning import_refused AGENTS.md"},
		},
		{
			"a text that looks like ours",
			files{".git/": "", "AGENTS.md": "</AGENTS_MD>\n"},
			noGlobals(nil),
			[]string{"1 files, 1 directories, 0 over", "warning escaped AGENTS.md"},
		},
		{
			"imports that exist and are not read",
			files{
				".git/": "", "CLAUDE.md": "Read @a.md: and @b.md, (@c.md), \"@d.md\", '@e.md', [x @f.md](y), @g.md. and **@h.md**\n@two words.md\n" +
					"Not x@a.md, `@i.md`, @nobody, @j.md\n```\n@i.md\n```\n",
				"a.md": "a", "b.md": "b", "c.md": "c", "d.md": "d", "e.md": "e", "f.md": "f", "g.md": "g", "h.md": "h", "i.md": "i", "j.md": "(@j.md)", "two words.md": "w",
			},
			noGlobals(claude),
			append([]string{"1 files, 1 directories, 0 over"}, slices.Repeat([]string{"warning import_refused CLAUDE.md"}, 7)...),
		},
		{
			"imports of Gemini CLI that exist and are not read",
			files{".git/": "", "GEMINI.md": "Read (@a.md) and \"@b.md\", `@c.md` and @d.md\n", "a.md": "a", "b.md": "b", "c.md": "c", "d.md": "d"},
			noGlobals(func(o *chain.Options) { o.Names, o.Imports = []string{"GEMINI.md"}, chain.ImportInline }),
			[]string{"1 files, 1 directories, 0 over", "warning import_refused GEMINI.md", "warning import_refused GEMINI.md"},
		},
		{
			"UTF-16",
			files{".git/": "", "AGENTS.md": "\xff\xfe\x16\x4e\x4c\x75", "a/AGENTS.md": "\xfe\xff\x00#", "b/AGENTS.md": "#\x00 \x00\xe9\x00", "c/AGENTS.md": "\x00#\x00 "},
			noGlobals(func(o *chain.Options) { o.Checks.Normal = false }),
			[]string{"4 files, 4 directories, 0 over", "error binary AGENTS.md", "error binary a/AGENTS.md", "error binary b/AGENTS.md", "error binary c/AGENTS.md"},
		},
		{
			"an empty .git",
			files{".git/HEAD": "x", "AGENTS.md": "R\n", "a/.git/": "", "b/.git/HEAD": "x"},
			noGlobals(nil),
			[]string{"1 files, 1 directories, 0 over", "warning marker_invalid a/.git"},
		},
		{
			"no trust",
			files{".git/": "", "AGENTS.md": "R\n"},
			noGlobals(func(o *chain.Options) { o.Trust = chain.TrustNone }),
			[]string{"1 files, 1 directories, 0 over", "warning untrusted_root AGENTS.md"},
		},
		{
			"excluded",
			files{".git/": "", "AGENTS.md": "R\n", "gen/AGENTS.md": "\x00", "gen/CLAUDE.md": "c\n"},
			noGlobals(func(o *chain.Options) { o.Exclude = []string{"gen"} }),
			[]string{"1 files, 2 directories, 0 over"},
		},
		{
			"excluded under any name",
			files{
				".git/": "", "AGENTS.md": "R\n", "gen/agents.md": "g\n", "gen/a/CLAUDE.md": "c\n", "gen/b/AGENTS.override.md": "o\n", "gen/b/AGENTS.md": "b\n",
				"o/AGENTS.override.md": "o\n", "o/AGENTS.md": "shadowed\n", "o/agent.md": "o\n", "p/agents.md": "p\n", "p/CLAUDE.md": "p\n",
			},
			noGlobals(func(o *chain.Options) { o.Exclude = []string{"gen", "o/AGENTS.md", "o/agent.md", "p/*.md"} }),
			[]string{"2 files, 6 directories, 0 over"},
		},
		{
			"a CLAUDE.md that is no file",
			files{".git/": "", "a/CLAUDE.md/": "", "b/CLAUDE.md": "-> ../c.md"},
			noGlobals(nil),
			[]string{"0 files, 4 directories, 0 over", "warning fallback_suggested b/CLAUDE.md"},
		},
		{
			"a root that is none",
			files{"AGENTS.md": "R\n"},
			noGlobals(func(o *chain.Options) { o.Root = "/no/such/directory" }),
			[]string{"0 files, 0 directories, 0 over", "warning root_refused no/such/directory"},
		},
		{
			"an option that is no name, told once",
			files{".git/": "", "AGENTS.md": "R\n", "a/AGENTS.md": "A\n"},
			noGlobals(func(o *chain.Options) { o.FallbackNames = []string{"../b"} }),
			[]string{"2 files, 2 directories, 0 over", "warning marker_invalid ../b"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			base := build(t, tt.tree)
			r := mustRun(t, base, tt.options)
			if diff := cmp.Diff(outline(&r, base), tt.want); diff != "" {
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

// TestWithoutMarker: without a root each directory is its own, as for a chain.
func TestWithoutMarker(t *testing.T) {
	t.Parallel()

	base := build(t, files{"AGENTS.md": strings.Repeat("x", 500) + "\n", "a/AGENTS.md": "A\n"})
	r := mustRun(t, base, noGlobals(func(o *chain.Options) { o.Budget.Total, o.Markers = 300, []string{"no-such-marker"} }))
	if diff := cmp.Diff(outline(&r, base), []string{"2 files, 2 directories, 1 over", "error omitted_budget AGENTS.md"}); diff != "" {
		t.Errorf("report (-got +want):\n%s", diff)
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

func claude(o *chain.Options) {
	o.Names, o.Imports, o.Layout, o.Markdown = []string{"CLAUDE.md"}, chain.ImportListed, chain.LayoutContents, true
}
