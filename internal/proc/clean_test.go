package proc

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, in string
		limit    int
		want     string
	}{
		{"plain", "all is well", 100, "all is well"},
		{"newline and tab", " a\tb\nc\r\n", 100, "a b c"},
		{"colour", "\x1b[1;31mred\x1b[0m", 100, "red"},
		{"title", "a\x1b]0;owned\x07b\x1b]0;owned\x1b\\c", 100, "abc"},
		{"title that never ends", "a\x1b]0;b", 100, "a"},
		{"device control", "a\x1bP1$r\u009cb", 100, "ab"},
		{"one-character forms", "a\u009b2Jb\u009d0;t\u009cc", 100, "abc"},
		{"character set", "a\x1b(Bb\x1bcd", 100, "abd"},
		{"broken control sequence", "a\x1b[3\x01b", 100, "ab"},
		{"escape at the end", "a\x1b", 100, "a"},
		{"NUL, bell, delete", "a\x00b\x07c\x7fd", 100, "abcd"},
		{"direction", "a\u202eb\u2066c\u200fd", 100, "abcd"},
		{"separators", "a\u2028b\u0085c", 100, "a b c"},
		{"invalid UTF-8", "a\xffb", 100, "a\ufffdb"},
		{"exact", "abcdef", 6, "abcdef"},
		{"cut", "abcdefg", 6, "abc…"},
		{"cut between characters", "ééééé", 6, "é…"},
		{"no room", "abc", 2, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if got := clean(tt.in, tt.limit); got != tt.want {
				t.Errorf("clean(%q, %d) = %q, want %q", tt.in, tt.limit, got, tt.want)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "a\x1b[31mb", "\u009d\xff\x07\u2029", strings.Repeat("é\x1b", 40), "\x1b]\x1b\\[\x1b[["} {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit %= 1 << 12
		got := clean(s, limit)
		if !utf8.ValidString(got) || len(got) > max(0, limit) {
			t.Fatalf("clean(%q, %d) = %q: invalid or too long", s, limit, got)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return unwanted(r) || r == '\u2028' || r == '\u2029' }) {
			t.Fatalf("clean(%q, %d) = %q holds a control character", s, limit, got)
		}
		if again := clean(got, limit); again != got {
			t.Fatalf("cleaning %q again gives %q", got, again)
		}
	})
}
