package sdk

import (
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

func TestSectionSize(t *testing.T) {
	t.Parallel()
	notes := phases.Frame{Open: "<NOTES>", Close: "</NOTES>"}
	tests := []struct {
		name, body string
		frame      phases.Frame
		want       int
	}{
		{"no frame", "é\r\nb", phases.Frame{}, 3},
		{"frame", "ab", notes, len("<NOTES>\nab\n</NOTES>")},
		{"frame without a body", "", notes, len("<NOTES>\n</NOTES>")},
		{"the frame's tag", "</NOTES>", notes, len("<NOTES>\n<\\/NOTES>\n</NOTES>")},
		{"the host's lines", text.Boundary + "\n[truncated: kept 1", phases.Frame{}, len(text.Boundary+"\n[truncated: kept 1") + 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := SectionSize(tt.frame, tt.body); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestCutLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		limit    int
		want     string
		cut      bool
	}{
		{"fits", " a\n b\t", 3, "a b", false},
		{"nothing", "a", 0, "", true},
		{"nothing of nothing", " ", 0, "", false},
		{"word", "one two three", 10, "one two…", true},
		{"long word", "one twothreefour", 12, "one twothre…", true},
		{"grapheme", "ae\u0301", 2, "a…", true},
		{"invalid", "a\xffb", 9, "a\ufffdb", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, cut := CutLine(tt.in, tt.limit); got != tt.want || cut != tt.cut {
				t.Errorf("got %q, %v, want %q, %v", got, cut, tt.want, tt.cut)
			}
		})
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"plain", "docs/ä b/日本/AGENTS.md", "docs/ä b/日本/AGENTS.md"},
		{"newlines", "a\nb\r\u0085\u2028\u2029", `a\u{a}b\u{d}\u{85}\u{2028}\u{2029}`},
		{"brackets and quotes", "<a>[b]\"c`", `\u{3c}a\u{3e}\u{5b}b\u{5d}\u{22}c\u{60}`},
		{"what does not show", "a\u200bb\u202ec\ufeff\U000e0041\u00ad\ufe0f", `a\u{200b}b\u{202e}c\u{feff}\u{e0041}\u{ad}\u{fe0f}`},
		{"controls", "\x00\x1b\x7f", `\u{0}\u{1b}\u{7f}`},
		{"invalid", "a\xffb", `a\u{fffd}b`},
		{"as long as may be", strings.Repeat("é", 512), strings.Repeat("é", 512)},
		{"one longer", strings.Repeat("a", 256) + strings.Repeat("b", 257), strings.Repeat("a", 255) + "…" + strings.Repeat("b", 255)},
		{"no half escapes", strings.Repeat("\n", 200), strings.Repeat(`\u{a}`, 51) + "…" + strings.Repeat(`\u{a}`, 51)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := PlainName(tt.in); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func FuzzText(f *testing.F) {
	f.Add("a/b\nc", 3)
	f.Add(strings.Repeat("\u200b/", 300), 100)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		name := PlainName(s)
		if CountChars(name) > maxName || !utf8.ValidString(name) || PlainName(name) != name || strings.ContainsFunc(name, unicode.IsControl) {
			t.Errorf("PlainName(%q) = %q", s, name)
		}
		line, cut := CutLine(s, limit)
		if whole, _ := CutLine(s, math.MaxInt); CountChars(line) > max(0, limit) || cut != (line != whole) {
			t.Errorf("CutLine(%q, %d) = %q, %v", s, limit, line, cut)
		}
		if one := OneLine(s); OneLine(one) != one || strings.ContainsAny(one, "\n\r") {
			t.Errorf("OneLine(%q) = %q", s, one)
		}
		if clean := CleanText(s); !utf8.ValidString(clean) || strings.ContainsAny(clean, "\r\x00") {
			t.Errorf("CleanText(%q) = %q", s, clean)
		}
	})
}
