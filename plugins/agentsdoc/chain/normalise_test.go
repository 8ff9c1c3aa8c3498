package chain

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNormalise(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in, want string
		replaced       int
	}{
		{"normal", "a\nb é\uFFFD", "a\nb é\uFFFD", 0},
		{"mark", "\uFEFFa", "a", 0},
		{"only one mark", "\uFEFF\uFEFFa", "\uFEFFa", 0},
		{"mark later", "a\uFEFF", "a\uFEFF", 0},
		{"newlines", "a\r\nb\rc\r\r\n\n", "a\nb\nc\n\n\n", 0},
		{"NUL", "a\x00b", "a\uFFFDb", 1},
		{"stray bytes", "a\xff\xfeb\x80", "a\uFFFD\uFFFDb\uFFFD", 3},
		{"half a character is one piece", "\xf0\x9f\x91x\xe6\x97", "\uFFFDx\uFFFD", 2},
		{"overlong", "\xc0\xaf\xe0\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD", 5},
		{"surrogate", "\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD", 3},
		{"beyond Unicode", "\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD", 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := normalise(tt.in)
			if got.text != tt.want || got.replaced != tt.replaced {
				t.Errorf("got %q (%d), want %q (%d)", got.text, got.replaced, tt.want, tt.replaced)
			}
		})
	}
}

func FuzzNormalise(f *testing.F) {
	f.Add("a\r\nb\xf0\x9f\x91")
	f.Add("\uFEFF\x00\r")
	f.Fuzz(checkNormalise)
}

// checkNormalise asserts what must hold of any bytes.
func checkNormalise(t *testing.T, raw string) {
	n := normalise(raw)
	if !utf8.ValidString(n.text) || strings.ContainsAny(n.text, "\r\x00") {
		t.Fatalf("%q became %q", raw, n.text)
	}
	if again := normalise(strings.TrimPrefix(n.text, byteOrderMark)); again.replaced > 0 || again.text != strings.TrimPrefix(strings.TrimPrefix(n.text, byteOrderMark), byteOrderMark) {
		t.Fatalf("%q is not stable: %q", n.text, again.text)
	}
	// A beginning of the text comes from the beginning of the bytes that is
	// counted for it.
	for at := range n.text {
		used := sourceBytes(raw, at)
		if got := normalise(raw[:used]).text; got != n.text[:at] && used > 0 {
			t.Fatalf("%d bytes of %q give %q, want %q", used, raw, got, n.text[:at])
		}
	}
	if used := sourceBytes(raw, len(n.text)); n.text != "" && used != len(raw) {
		t.Fatalf("all of %q counts as %d bytes", raw, used)
	}
}

func TestNormaliseRandom(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(9, 10))
	pieces := []string{"\r", "\n", "a", "bc", "é", "日", "\uFEFF", "\x00", "\xff", "\xe6\x97", "\xf0\x9f\x91", "\x80"}
	for range 3000 {
		var raw strings.Builder
		for range rng.IntN(12) {
			raw.WriteString(pieces[rng.IntN(len(pieces))])
		}
		checkNormalise(t, raw.String())
	}
}

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
			name: "binary override takes its folder",
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
