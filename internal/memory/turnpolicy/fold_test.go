package turnpolicy

import (
	"testing"
	"unicode/utf8"
)

func TestFold(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"case", "Remember THAT", "remember that"},
		{"accents", "N’oublie pas l'Été", "n'oublie pas l'ete"},
		{"combining accents", "e\u0301te\u0301", "ete"},
		{"umlauts", "Lösche Größe", "losche grosse"},
		{"more letters", "çñøłœæšžýı", "cnoloeaeszyi"},
		{"full width", "ＲＥＭ，ｘ！　？", "rem,x! ?"},
		{"quotes", "“a” „b“ ‘c’", `"a" "b" 'c'`},
		{"dashes", "a–b—c‑d", "a—b—c-d"},
		{"invisible", "re\u200bmem\u00adber\ufe0f", "remember"},
		{"bidirectional", "\u202eforget\u202c", "forget"},
		{"spaces", "a\u00a0b\u3000c\td", "a b c d"},
		{"controls", "a\x00b\x1ac\r\n", "a b c \n"},
		{"no UTF-8", "a\xffb", "a\ufffdb"},
		{"left alone", "请记住 覚えて", "请记住 覚えて"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := fold(tt.in).text; got != tt.want {
				t.Errorf("%q folds to %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

// FuzzFold: folding is idempotent, and its offsets lead back to where the bytes come
// from.
func FuzzFold(f *testing.F) {
	f.Add("Größe: “Été”, e\u0301 ＲＥＭ \u200b請記住\xff\x1a")
	f.Fuzz(func(t *testing.T, source string) {
		folded := fold(source)
		if again := fold(folded.text); again.text != folded.text {
			t.Fatalf("%q folds to %q, and that to %q", source, folded.text, again.text)
		}
		if !utf8.ValidString(folded.text) {
			t.Fatalf("%q is no text", folded.text)
		}
		if len(folded.at) != len(folded.text)+1 {
			t.Fatalf("%d offsets for %d bytes", len(folded.at), len(folded.text))
		}
		last := int32(0)
		for i, r := range folded.text {
			at := folded.at[i]
			if at < last || int(at) > len(source) || r == blanked {
				t.Fatalf("byte %d of %q comes from %d", i, folded.text, at)
			}
			last = at
		}
		if got := source[folded.at[0]:folded.at[len(folded.text)]]; len(folded.text) > 0 && fold(got).text != folded.text {
			t.Fatalf("all of %q leads back to %q", folded.text, got)
		}
	})
}
