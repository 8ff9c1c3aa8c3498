package chain

import (
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
			got, replaced := form{normal: true}.text(tt.in)
			if got != tt.want || replaced != tt.replaced {
				t.Errorf("got %q (%d), want %q (%d)", got, replaced, tt.want, tt.replaced)
			}
		})
	}
}

func FuzzForm(f *testing.F) {
	f.Add("a\r\nb\xf0\x9f\x91")
	f.Add("\uFEFF\x00\r\u202e")
	f.Fuzz(checkForms)
}

// checkForms asserts what must hold of any bytes in any form.
func checkForms(t *testing.T, raw string) {
	t.Helper()
	for _, form := range []form{{}, {strip: true}, {normal: true}, {normal: true, strip: true}} {
		checkForm(t, form, raw)
	}
}

func checkForm(t *testing.T, form form, raw string) {
	t.Helper()
	text, _ := form.text(raw)
	if !utf8.ValidString(text) || form.normal && strings.ContainsAny(text, "\r\x00") || form.strip && strings.ContainsAny(text, "\u202e\U000e0041") {
		t.Fatalf("%+v: %q became %q", form, raw, text)
	}
	if again, replaced := form.text(text); replaced > 0 || again != text && again != strings.TrimPrefix(text, byteOrderMark) {
		t.Fatalf("%+v: %q is not stable: %q", form, text, again)
	}
	// A beginning of the text comes from the beginning of the bytes that is
	// counted for it.
	for at := range text {
		used := form.sourceBytes(raw, at)
		if got, _ := form.text(raw[:used]); got != text[:at] && used > 0 {
			t.Fatalf("%+v: %d bytes of %q give %q, want %q", form, used, raw, got, text[:at])
		}
	}
	if used := form.sourceBytes(raw, len(text)); text != "" && used != len(raw) {
		t.Fatalf("%+v: all of %q counts as %d bytes", form, raw, used)
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
