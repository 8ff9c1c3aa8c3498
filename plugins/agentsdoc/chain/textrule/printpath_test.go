package textrule

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPrintPath(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in, want string
	}{
		{"plain", "docs/ä b/日本/AGENTS.md", "docs/ä b/日本/AGENTS.md"},
		{"newlines", "a\nb\r\u0085\u2028\u2029", `a\u{a}b\u{d}\u{85}\u{2028}\u{2029}`},
		{"brackets and quotes", `<a>[b]"c"`, `\u{3c}a\u{3e}\u{5b}b\u{5d}\u{22}c\u{22}`},
		{"what does not show", "a\u200bb\u202ec\ufeff\U000e0041\u00ad\ufe0f", `a\u{200b}b\u{202e}c\u{feff}\u{e0041}\u{ad}\u{fe0f}`},
		{"controls", "\x00\x1b\x7f", `\u{0}\u{1b}\u{7f}`},
		{"no UTF-8", "a\xffb", `a\u{fffd}b`},
		{"as long as may be", strings.Repeat("é", 512), strings.Repeat("é", 512)},
		{"one longer", strings.Repeat("a", 256) + strings.Repeat("b", 257), strings.Repeat("a", 255) + "…" + strings.Repeat("b", 255)},
		{"no half escapes", strings.Repeat("\n", 200), strings.Repeat(`\u{a}`, 51) + "…" + strings.Repeat(`\u{a}`, 51)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := PrintPath(tt.in); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestPrintPlainPath(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"as other tools print it", "/r/[a] \"b\"/\u200b\u202e/AGENTS.md", "/r/[a] \"b\"/\u200b\u202e/AGENTS.md"},
		{"newlines and controls", "a\nb\x1b\u0085\u2028", `a\u{a}b\u{1b}\u{85}\u{2028}`},
		{"tags", "a</agents_context>", `a\u{3c}/agents_context\u{3e}`},
		{"no UTF-8", "a\xff\xfeb", "a\uFFFD\uFFFDb"},
		{"one too long", strings.Repeat("a", 256) + strings.Repeat("b", 257), strings.Repeat("a", 255) + "…" + strings.Repeat("b", 255)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := PrintPlainPath(tt.in); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func FuzzPrintPath(f *testing.F) {
	f.Add("a/b\nc")
	f.Add(strings.Repeat("\u200b/", 300))
	f.Fuzz(func(t *testing.T, path string) {
		got := PrintPath(path)
		if utf8.RuneCountInString(got) > maxPrinted || !utf8.ValidString(got) || strings.ContainsFunc(got, unprintable) {
			t.Errorf("%q is printed as %q", path, got)
		}
		if again := PrintPath(got); again != got {
			t.Errorf("%q is printed as %q, and that as %q", path, got, again)
		}
	})
}
