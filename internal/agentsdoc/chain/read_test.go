package chain

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestBinary: a NUL near the beginning makes a file binary, and one later on is replaced.
func TestBinary(t *testing.T) {
	t.Parallel()
	for before, want := range map[int]Code{binaryProbe - 1: CodeBinary, binaryProbe: CodeInvalidUTF8} {
		c := Resolve(OS{}, build(t, files{".git/": "", "AGENTS.md": strings.Repeat("x", before) + "\x00"}), Options{})
		if got := codes(c.Diagnostics); len(got) != 1 || got[0] != want || (c.Sources[0].State == StateKept) != (want == CodeInvalidUTF8) {
			t.Errorf("after %d bytes: %v", before, got)
		}
	}
}

func TestReadCap(t *testing.T) {
	t.Parallel()
	// The cap falls into the middle of a character.
	long := "x" + strings.Repeat("é", maxRead/2)
	base := build(t, files{".git/": "", "AGENTS.md": long})
	for name, view := range views() {
		c := Resolve(view, base, defaults(func(o *Options) { o.Budget.File = 2 * maxRead }))
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
