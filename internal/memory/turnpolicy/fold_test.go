package turnpolicy

import (
	"testing"
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
