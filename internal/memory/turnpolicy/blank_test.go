package turnpolicy

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestBlank shows what is blanked as underscores, which the inputs have none of.
func TestBlank(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in, want string
		inFence        bool
	}{
		{"plain", "remember me", "remember me", false},
		{"block of code", "a\n```go\nx\n```\nb", "a\n_____\n_\n___\nb", false},
		{"block without end", "a\n~~~\nx\ny", "a\n___\n_\n_", false},
		{"block from before", "x\n```\nb", "_\n___\nb", true},
		{"other block from before", "x\n~~~\nb", "_\n___\nb", true},
		{"code in a line", "call `forget()` now", "call __________ now", false},
		{"code with more ticks", "a ``b ` c`` d", "a _________ d", false},
		{"tick without partner", "a ` b", "a ` b", false},
		{"quoted mail", "> remember\nb", "__________\nb", false},
		{"comment", "// remember\n# title\nb", "___________\n_______\nb", false},
		{"quotes", `say "hi there" to`, "say __________ to", false},
		{"quoted sentence", `she said "go." remember`, `she said ____. remember`, false},
		{"inches", `a 5" screen and a 7" one`, `a 5" screen and a 7" one`, false},
		{"not closed", `say "hi there`, `say "hi there`, false},
		{"not over paragraphs", "say \"hi\n\nthere\" to", "say \"hi\n\nthere\" to", false},
		{"over lines", "say \"hi\nthere\" to", "say ___\n______ to", false},
		{"apostrophes", "don't forget that i'm the users' friend", "don't forget that i'm the users' friend", false},
		{"single quotes", "say 'don't save this' to", "say _________________ to", false},
		{"guillemets", "dis « oui » et »ja« so", "dis _________ et ______ so", false},
		{"corner marks", "「覚えて」を訳して", "_______________を訳して", false},
		{"quote inside a script without spaces", `把"记住"翻译`, "把________翻译", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := strings.ReplaceAll(blank(tt.in, tt.inFence), string(rune(blanked)), "_")
			if got != tt.want {
				t.Errorf("%q\n got %q\nwant %q", tt.in, got, tt.want)
			}
		})
	}
}

// TestBlankLongQuote: a mark that is closed far away is none.
func TestBlankLongQuote(t *testing.T) {
	t.Parallel()
	text := `"` + strings.Repeat("x", maxQuote) + `" y`
	if got := blank(text, false); got != text {
		t.Errorf("blanked: %q", got)
	}
}

// FuzzBlank: blanking keeps the length and the lines, and changes nothing but what it
// blanks.
func FuzzBlank(f *testing.F) {
	f.Add("a `b` \"c.\" 'd' « e » \n```\nf\n", false)
	f.Add("````````'''\"\"", true)
	f.Fuzz(func(t *testing.T, source string, inFence bool) {
		text := fold(source).text
		got := blank(text, inFence)
		if len(got) != len(text) || !utf8.ValidString(got) {
			t.Fatalf("%q became %q", text, got)
		}
		for i := range len(got) {
			isStop := strings.IndexByte(".!?", got[i]) >= 0
			if got[i] != text[i] && got[i] != blanked && !isStop || (got[i] == '\n') != (text[i] == '\n') {
				t.Fatalf("%q became %q", text, got)
			}
		}
	})
}
