package chain

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

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
		{"---\npaths: \"**\"\n---\nx", nil, true, true, "x", "everything"},
		{"---\nglobs: a\n---\nx", nil, true, true, "x", "the key of another tool"},
		{"---\nno end\n", nil, true, true, "---\nno end\n", "no end"},
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
