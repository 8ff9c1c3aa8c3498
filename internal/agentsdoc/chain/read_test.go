package chain

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestResolveText(t *testing.T) {
	t.Parallel()
	root := `root "" found=true`
	runCases(t, []resolveCase{
		{
			name: "binary near the beginning",
			tree: files{".git/": "", "AGENTS.md": strings.Repeat("x", 8191) + "\x00"},
			want: lines(root, "skipped project AGENTS.md (binary)", "! error binary AGENTS.md"),
		},
		{
			name: "NUL later on is replaced",
			tree: files{".git/": "", "AGENTS.md": strings.Repeat("x", 8192) + "\x00"},
			want: lines(root, "kept project AGENTS.md: "+strings.Repeat("x", 8192)+"\uFFFD", "! warning invalid_utf8 AGENTS.md"),
		},
		{
			name: "binary override takes its directory",
			tree: files{".git/": "", "AGENTS.override.md": "\x00", "AGENTS.md": "one"},
			want: lines(root, "skipped project AGENTS.override.md (binary)", "! error binary AGENTS.override.md", "! info shadowed_by_override AGENTS.md"),
		},
		{
			name: "invalid bytes",
			tree: files{".git/": "", "AGENTS.md": "a\xffb"},
			want: lines(root, "kept project AGENTS.md: a\uFFFDb", "! warning invalid_utf8 AGENTS.md"),
		},
		{
			name: "newlines at the end are no part of the text",
			tree: files{".git/": "", "AGENTS.md": "\n a \r\n\r\n\n"},
			want: lines(root, "kept project AGENTS.md: \n a "),
		},
	})
}

func TestReadCap(t *testing.T) {
	t.Parallel()
	// The cap falls into the middle of a character.
	long := "x" + strings.Repeat("é", maxRead/2)
	base := build(t, files{".git/": "", "AGENTS.md": long})
	for name, view := range views() {
		c := Resolve(view, base, Options{Budget: Limits{File: 2 * maxRead}})
		s := c.Sources[0]
		if s.Bytes != int64(len(long)) || len(s.Text) != maxRead-1 || !utf8.ValidString(s.Text) {
			t.Errorf("%s: %d bytes, text of %d", name, s.Bytes, len(s.Text))
		}
		if len(c.Diagnostics) != 1 || c.Diagnostics[0].Code != CodeReadCap {
			t.Errorf("%s: %+v", name, c.Diagnostics)
		}
		got := Render(c, Budget{4 * maxRead, 4 * maxRead}).Sources[0]
		if got.State != StateTruncated || got.Kept != maxRead-1 {
			t.Errorf("%s: %s, kept %d", name, got.State, got.Kept)
		}
	}
}
