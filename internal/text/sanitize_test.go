package text_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/text"
)

func TestSanitize(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		limit    int
		want     string
	}{
		{"clean", "plain text, añ😀", 100, "plain text, añ😀"},
		{"no room", "abc", 0, ""},
		{"cut", "abcd", 3, "ab…"},
		{"cut to nothing", "abcd", 1, "…"},
		{"newlines and tabs", "a\nb\tc\r\n", 100, `a\u{a}b\u{9}c\u{d}\u{a}`},
		{"replacement is not cut", "ab\ncd", 7, `ab\u{a}…`[:2] + "…"},
		{"replacement fits with the ellipsis", "ab\ncd", 8, `ab\u{a}…`},
		{"colour", "\x1b[1;31mred\x1b[0m", 100, "red"},
		{"title by BEL", "\x1b]0;owned\x07text", 100, "text"},
		{"charset", "\x1b(Btext\x1bc", 100, "text"},
		{"unfinished sequence", "\x1b[1;", 100, `\u{1b}[1;`},
		{"unfinished title", "\x1b]0;title", 100, `\u{1b}]0;title`},
		{"title over a newline", "\x1b]0;a\nb\x07", 100, `\u{1b}]0;a\u{a}b\u{7}`},
		{"title too long", "\x1b]" + strings.Repeat("x", 300) + "\x07", 10, `\u{1b}]xx…`},
		{"lone escape", "a\x1b", 100, `a\u{1b}`},
		{"C1", "\u009b31m", 100, `\u{9b}31m`},
		{"bidi, zero-width, separators, no-break", "a\u202eb\u200bc\u2028d\u00a0e", 100, `a\u{202e}b\u{200b}c\u{2028}d\u{a0}e`},
		{"tag characters", "a\U000e0041", 100, `a\u{e0041}`},
		{"not UTF-8", "a\xffb", 100, "a\ufffdb"},
	}
	for _, tt := range tests {
		if got := text.Sanitize(tt.in, tt.limit); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzSanitize(f *testing.F) {
	for _, p := range append(pieces, "\x1b[0m", "\x1b]0;x\x07", "\x1b", "\xff") {
		f.Add(p+"x"+p, 7)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		got := text.Sanitize(s, limit)
		if n := text.Chars(got); n > max(limit, 0) || !utf8.ValidString(got) {
			t.Fatalf("Sanitize(%q, %d) = %q", s, limit, got)
		}
		for _, r := range got {
			if !strconv.IsPrint(r) {
				t.Fatalf("Sanitize(%q, %d) = %q shows %U", s, limit, got, r)
			}
		}
		if again := text.Sanitize(got, limit); again != got {
			t.Fatalf("sanitizing %q again gives %q", got, again)
		}
	})
}
