package turnpolicy

import (
	"strings"
	"testing"
)

// TestBlank shows what is blanked as underscores, which the inputs have none of.
func TestBlank(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in, want string
		fence          string
	}{
		{"plain", "remember me", "remember me", ""},
		{"block of code", "a\n```go\nx\n```\nb", "a\n_____\n_\n___\nb", ""},
		{"block without end", "a\n~~~\nx\ny", "a\n___\n_\n_", ""},
		{"block from before", "x\n```\nb", "_\n___\nb", "```"},
		{"other block from before", "x\n~~~\nb", "_\n___\nb", "~~~"},
		{"code in a line", "call `forget()` now", "call __________ now", ""},
		{"code with more ticks", "a ``b ` c`` d", "a _________ d", ""},
		{"tick without partner", "a ` b", "a ` b", ""},
		{"quoted mail", "> remember\nb", "__________\nb", ""},
		{"comment", "// remember\n# title\nb", "___________\n_______\nb", ""},
		{"quotes", `say "hi there" to`, "say __________ to", ""},
		{"quoted sentence", `she said "go." remember`, `she said ____. remember`, ""},
		{"inches", `a 5" screen and a 7" one`, `a 5" screen and a 7" one`, ""},
		{"not closed", `say "hi there`, `say "hi there`, ""},
		{"not over paragraphs", "say \"hi\n\nthere\" to", "say \"hi\n\nthere\" to", ""},
		{"over lines", "say \"hi\nthere\" to", "say ___\n______ to", ""},
		{"apostrophes", "don't forget that i'm the users' friend", "don't forget that i'm the users' friend", ""},
		{"single quotes", "say 'don't save this' to", "say _________________ to", ""},
		{"guillemets", "dis « oui » et »ja« so", "dis _________ et ______ so", ""},
		{"corner marks", "「覚えて」を訳して", "_______________を訳して", ""},
		{"quote inside a script without spaces", `把"记住"翻译`, "把________翻译", ""},
	}
	for _, tt := range tests {
		if got := strings.ReplaceAll(blank(tt.in, tt.fence), string(rune(blanked)), "_"); got != tt.want {
			t.Errorf("%s: %q\n got %q\nwant %q", tt.name, tt.in, got, tt.want)
		}
	}
}

// TestBlankLongQuote: a mark that is closed far away is none.
func TestBlankLongQuote(t *testing.T) {
	t.Parallel()
	text := `"` + strings.Repeat("x", maxQuote) + `" y`
	if got := blank(text, ""); got != text {
		t.Errorf("blanked: %q", got)
	}
}
