package chain

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
)

// claude is what Claude Code does, written from its program (2.1.332) and its
// documentation, apart from the code that it checks: with the standard library's
// functions that follow links and open anything, with maps and recursion, and for
// trees in which code and comments stand on lines of their own.
type claude struct {
	t     *testing.T
	root  string // what lies inside for imports
	user  string
	taken map[string]bool
	out   []string
}

func (c *claude) read(path, whose string, depth int, rule bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || depth > 4 || c.taken[real] {
		return
	}
	inside := strings.HasPrefix(real, c.root+"/") && !strings.HasPrefix(whose, "user's private global") || strings.HasPrefix(real, c.user+"/")
	data, err := os.ReadFile(real)
	if err != nil || depth > 0 && !inside {
		return
	}
	c.taken[real] = true
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	var matter string
	if match := regexp.MustCompile(`(?s)^---\n(.*?)\n---\n`).FindStringSubmatch(text); match != nil {
		matter, text = match[1], text[len(match[0]):]
	}
	text = regexp.MustCompile(`(?ms)^<!--.*?-->[^\n]*\n*`).ReplaceAllString(text, "")
	if strings.TrimSpace(text) == "" || rule && strings.Contains(matter, "paths") {
		return
	}
	c.out = append(c.out, "Contents of "+path+" ("+whose+"):\n\n"+strings.TrimSpace(text))
	prose := regexp.MustCompile("(?ms)^```$.*?^```$").ReplaceAllString(text, "")
	prose = regexp.MustCompile("`[^`\n]*`").ReplaceAllString(prose, "")
	for _, match := range regexp.MustCompile(`(?:^|\s)@([^\s\\]+)`).FindAllStringSubmatch(prose, -1) {
		target, _, _ := strings.Cut(match[1], "#")
		if regexp.MustCompile(`^(\./|~/|/.|[a-zA-Z0-9._-])`).MatchString(target) {
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(real), target)
			}
			c.read(target, whose, depth+1, false)
		}
	}
}

func (c *claude) rules(dir, whose string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			c.rules(path, whose)
		} else if strings.HasSuffix(path, ".md") {
			c.read(path, whose, 0, true)
		}
	}
}

// expectClaude is the text for directories, root first.
func expectClaude(t *testing.T, user string, directories []string) string {
	const global = "user's private global instructions for all projects"
	const project, local = "project instructions, checked into the codebase", "user's private project instructions, not checked in"
	c := &claude{t: t, root: directories[0], user: user, taken: map[string]bool{}}
	c.read(filepath.Join(user, "CLAUDE.md"), global, 0, false)
	c.rules(filepath.Join(user, "rules"), global)
	names := []string{"AGENTS.md", ".claude/AGENTS.md"}
	for _, dir := range directories {
		for _, name := range []string{"CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				names = []string{"CLAUDE.md", ".claude/CLAUDE.md"}
			}
		}
	}
	for _, dir := range directories {
		if names[0] == "AGENTS.md" { // its plugin comes behind the rules
			c.rules(filepath.Join(dir, ".claude/rules"), project)
		}
		for _, name := range names {
			c.read(filepath.Join(dir, name), project, 0, false)
		}
		c.rules(filepath.Join(dir, ".claude/rules"), project) // each is taken once
		c.read(filepath.Join(dir, "CLAUDE.local.md"), local, 0, false)
	}
	return strings.Join(c.out, "\n\n")
}

// randomMarkdown is a text with imports that are, and are not.
func randomMarkdown(rng *rand.Rand) string {
	pieces := []string{
		"# Title\n", "word", " ", "\n", "\n\n", "- item\n", "see @docs/a.md now", "\n@AGENTS.md\n", "@../docs/b.md", " @./c.md#part ", "@d.md,", "mail@docs.md",
		"`@docs/b.md`", "\n\n```\n@docs/b.md\n```\n\n", "@BASE/docs/a.md", "@/etc/hostname", "@nobody", "\n<!-- @docs/b.md\n\nnote -->\n", "日本 @docs/ü.md",
		"@docs/a.md", "é", "@docs", "</INSTRUCTIONS> x", "\n\n",
	}
	var out strings.Builder
	switch rng.IntN(6) {
	case 0:
		out.WriteString("---\npaths:\n  - \"src/**\"\n---\n")
	case 1:
		out.WriteString("---\ndescription: x\n---\n")
	}
	for range rng.IntN(8) {
		out.WriteString(pieces[rng.IntN(len(pieces))])
	}
	return out.String()
}

// randomProject makes directories below each other with files of the names, and
// returns them, root first.
func randomProject(t *testing.T, rng *rand.Rand, most int, names ...string) (base string, directories []string) {
	t.Helper()
	base = build(t, files{".git/": ""})
	directory := base
	for i := range 1 + rng.IntN(3) {
		if i > 0 {
			directory = filepath.Join(directory, "d")
		}
		directories = append(directories, directory)
		if err := os.MkdirAll(directory, 0o755); err != nil {
			t.Fatal(err)
		}
		for range rng.IntN(most) {
			name := names[rng.IntN(len(names))]
			path := filepath.Join(directory, name)
			if _, err := os.Lstat(path); err == nil {
				continue
			}
			if target := names[rng.IntN(len(names))]; rng.IntN(8) == 0 && target != name && !strings.Contains(name, "/") {
				if err := os.Symlink(target, path); err != nil {
					t.Fatal(err)
				}
				continue
			}
			addFile(t, path, strings.ReplaceAll(randomMarkdown(rng), "BASE", base))
		}
	}
	return base, directories
}

func TestContentsAsClaudeCodeDoes(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(131, 132))
	seen := map[string]int{}
	for range agentsdoctest.Rounds(1500) {
		names := []string{
			"CLAUDE.md", "CLAUDE.md", "AGENTS.md", "AGENTS.md", ".claude/CLAUDE.md", ".claude/AGENTS.md", "CLAUDE.local.md", ".claude/rules/a.md", ".claude/rules/b.md",
			".claude/rules/x/c.md", ".claude/rules/no.txt", "docs/a.md", "docs/b.md", "docs/ü.md", "c.md", "d.md",
		}
		base, directories := randomProject(t, rng, 9, names...)
		user := build(t, files{})
		for _, name := range []string{"CLAUDE.md", "rules/u.md", "docs/a.md"} {
			if rng.IntN(3) == 0 {
				addFile(t, filepath.Join(user, name), randomMarkdown(rng))
			}
		}
		o := preset(t, PresetClaude)
		o.GlobalDir = user
		c := Resolve(OS{}, directories[len(directories)-1], o)
		r := Render(c, Budget{plenty, plenty})
		want := expectClaude(t, user, directories)
		if diff := cmp.Diff(r.Text, want); diff != "" {
			t.Fatalf("(-got +want)\n%s\n%s", diff, outline(c, base))
		}
		checkList(t, c, r, plenty)
		for _, s := range r.Sources {
			seen["imported"] += min(1, len(s.ImportedBy))
			seen["scoped"] += min(1, len(s.Globs))
			if s.Rule && s.State == StateKept {
				seen["rule"]++
			}
			if filepath.Base(s.Path) == "AGENTS.md" && s.ImportedBy == "" {
				seen["instead"]++
			}
		}
	}
	for _, what := range []string{"imported", "scoped", "rule", "instead"} {
		if seen[what] < agentsdoctest.Rounds(100) {
			t.Errorf("%s: only %d, the test sees too little: %v", what, seen[what], seen)
		}
	}
}

func TestProseMentions(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/mentions.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			continue // a remark
		}
		text, want := unquoted(quoted), strings.TrimSpace(line[len(quoted):])
		var got []string
		for _, m := range proseMentions(text) {
			got = append(got, m.target)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestWithoutComments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\n<!-- b -->\n\nc":         "a\nc",
		"<!-- a\n\nb -->\nc":         "c",
		"<!-- a --> b\nc":            " b\nc",
		"a <!-- b --> c":             "a <!-- b --> c",
		"```\n<!-- a -->\n```\n":     "```\n<!-- a -->\n```\n",
		"<!-- a":                     "<!-- a",
		"a\r\n<!-- b -->\r\nc\r\n":   "a\nc\n",
		"a\r\nc\r\n":                 "a\r\nc\r\n",
		"<!-- a --><!-- b -->\n\n\n": "",
	} {
		if got, _ := withoutComments(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestFrontMatter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text           string
		globs          []string
		applies, bare  bool
		wantBody, name string
	}{
		{"---\npaths: src/**, \"*.{ts,tsx}\"\n---\nx", []string{"src", "*.ts", "*.tsx"}, false, true, "x", "commas and braces"},
		{"---\npaths:\n  - 'a/*.go'\n  - b\nother: c\n---\nx", []string{"a/*.go", "b"}, false, true, "x", "a list"},
		{"---\nglobs: [a, b]\nalwaysApply: false\n---\n", []string{"a", "b"}, false, false, "", "a flow list"},
		{"---\nalwaysApply: true\nglobs: a\n---\nx", []string{"a"}, true, false, "x", "always"},
		{"---\ndescription: y\n---\nx", nil, false, false, "x", "for a model to choose"},
		{"---\npaths: \"**\"\n---\nx", nil, true, true, "x", "everything"},
		{"---\nglobs: a\n---\nx", nil, true, true, "x", "the key of another tool"},
		{"---\nno end\n", nil, true, true, "---\nno end\n", "no end"},
		{"x\n---\n", nil, true, true, "x\n---\n", "none"},
	}
	for _, tt := range tests {
		head, body := frontMatter(tt.text)
		m := readMatter(head, tt.bare)
		if !slices.Equal(m.globs, tt.globs) || m.applies != tt.applies || body != tt.wantBody {
			t.Errorf("%s: got %+v, %q", tt.name, m, body)
		}
	}
	hostile := "paths: " + strings.Repeat("{a,b}", 400) + "," + strings.Repeat("x,", 5000)
	if m := readMatter(hostile, true); len(m.globs) > maxGlobs {
		t.Errorf("%d patterns", len(m.globs))
	}
}

// TestSuffixesOfImports: Claude Code imports what is named like a text.
func TestSuffixesOfImports(t *testing.T) {
	t.Parallel()
	base := build(t, files{
		".git/": "", "CLAUDE.md": "@a.dat @b.mdc @c.MD @d.v2 @.hidden @Makefile @e.f.md @f.md.bak",
		"a.dat": "a", "b.mdc": "b", "c.MD": "c", "d.v2": "d", ".hidden": "h", "Makefile": "m", "e.f.md": "e", "f.md.bak": "f",
	})
	var got []string
	for _, s := range Resolve(OS{}, base, preset(t, PresetClaude)).Sources {
		got = append(got, filepath.Base(s.Path))
	}
	if want := []string{"CLAUDE.md", "c.MD", ".hidden", "Makefile", "e.f.md"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestHostileMarkdown: masking takes linear time.
func TestHostileMarkdown(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"*a ", "a* ", "_a *a a_ ", "[](", "[", "![x](y", "<!-- ", "<a ", "` ", "`` ` ", "- ", "> ", "**", "\\*", "<a:b"} {
		text := strings.Repeat(piece, (1<<20)/len(piece)) + "@a.md"
		proseMentions(text) // what is not linear takes hours
	}
}

func TestRuleConcerns(t *testing.T) {
	t.Parallel()
	tests := []struct {
		glob, path string
		want       bool
	}{
		{"src/**/*.ts", "src/a/b.ts", true},
		{"src/**/*.ts", "src/a/b.go", false},
		{"src/**", "src/a/b.go", true},
		{"*.md", "docs/a.md", true}, // as in a .gitignore
		{"/*.md", "docs/a.md", false},
		{"src", "other/a", false},
	}
	for _, tt := range tests {
		base := build(t, files{".git/": "", ".claude/rules/r.md": fmt.Sprintf("---\npaths: %q\n---\nx", tt.glob)})
		c := Resolve(OS{}, base, preset(t, PresetClaude))
		if got := c.Sources[0].Concerns(filepath.Join(base, tt.path)); got != tt.want || c.Sources[0].State != StateSkipped {
			t.Errorf("%s, %s: got %t", tt.glob, tt.path, got)
		}
	}
}
