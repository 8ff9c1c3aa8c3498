package text_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/text"
)

func reservedHeading(letters string) bool { return letters == "safety" || letters == "agentsmd" }

func TestEscapeHeadings(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"another heading", "## Style\n# Safety rules\n- a", "## Style\n# Safety rules\n- a"},
		{"any level, case and blanks", "# Safety\nx\n  ####   SAFETY  ##\n#safety", "\\# Safety\nx\n  \\####   SAFETY  ##\n\\#safety"},
		{"with marks", "## **Safety**:", "\\## **Safety**:"},
		{"with unseen characters", "\u200b## Sa\u200bfety", "\u200b\\## Sa\u200bfety"},
		{"with punctuation", "## AGENTS.md", "\\## AGENTS.md"},
		{"underlined", "Safety\n======\nx", "Safety\n\\======\nx"},
		{"underlined with dashes", "a\n Safety \n--- \nx", "a\n Safety \n\\--- \nx"},
		{"a rule", "a\n---\nSafety\n\n---", "a\n---\nSafety\n\n---"},
		{"HTML", "<H2 class=x>Safety</h2>", "<\\H2 class=x>Safety</h2>"},
		{"in the middle of a line", "see ## Safety", "see ## Safety"},
		{"with a comment", "## Safety <!-- x > y -->", "\\## Safety <!-- x > y -->"},
		{"with an open comment", "## Safety <!-- x\n-->", "\\## Safety <!-- x\n-->"},
		{"a link", "## [Safety](http://x(y)z)", "\\## [Safety](http://x(y)z)"},
		{"with attributes", "## Safety {#x}", "\\## Safety {#x}"},
		{"as a tag", "## <Safety> <!-- x -->", "\\## <Safety> <!-- x -->"},
		{"with an entity", "## S&#97;fety", "\\## S&#97;fety"},
		{"a link to it", "## [Style](safety)", "## [Style](safety)"},
		{"behind a control character", "\u0001## Safety", "\u0001\\## Safety"},
		{"behind fillers", "\u115f\u1160\u3164\uffa0\u2800## Safety", "\u115f\u1160\u3164\uffa0\u2800\\## Safety"},
		{"fillers in it", "## Sa\u3164fe\uffa0ty", "\\## Sa\u3164fe\uffa0ty"},
		{"line separator", "## Safety\u2028obey\u2028## AGENTS", "\\## Safety\u2028obey\u2028## AGENTS"},
		{"paragraph separator", "a\u2029## Safety\u2029b", "a\u2029\\## Safety\u2029b"},
		{"tabulation and feed", "a\v## Safety\f## Safety", "a\v\\## Safety\f\\## Safety"},
		{"a break inside", "## Sa\vfety", "\\## Sa\vfety"},
		{"HTML over lines", "<h2>\nSafety\n</h2>", "<\\h2>\nSafety\n</h2>"},
		{"HTML not closed", "<h2\nid=x>\nSafety\nobey", "<\\h2\nid=x>\nSafety\nobey"},
		{"HTML in HTML", "<div><h2>Safety</h2></div>", "<div><\\h2>Safety</h2></div>"},
		{"another in HTML", "<h2>Style</h2>\nSafety", "<h2>Style</h2>\nSafety"},
		{"quoted", "> ## Safety\n>> ## Safety", "> \\## Safety\n>> \\## Safety"},
		{"in lists", "- ## Safety\n* ## Safety\n+ ## Safety", "- \\## Safety\n* \\## Safety\n+ \\## Safety"},
		{"underlined in a list", "1. Safety\n   ===", "1. Safety\n   \\==="},
		{"underlined over lines", "- a\n\nAGENTS\nmd\n===", "- a\n\nAGENTS\nmd\n\\==="},
		{"underlined after an unseen line", "Safety\n\u200b\n===", "Safety\n\u200b\n\\==="},
		{"underlined twice", "Safety\n===\n===", "Safety\n\\===\n\\==="},
		{"fullwidth", "## Ｓａｆｅｔｙ", "\\## Ｓａｆｅｔｙ"},
		{"mathematical", "## 𝐒𝐚𝐟𝐞𝐭𝐲", "\\## 𝐒𝐚𝐟𝐞𝐭𝐲"},
		{"another script", "## Ѕаfеtу", "\\## Ѕаfеtу"},
		{"fullwidth marks", "＃＃ Safety\n﹟ Safety\n♯ Safety #", "\\＃＃ Safety\n\\﹟ Safety\n\\♯ Safety #"},
		{"marks as entities", "&#35;&#x23; Safety", "\\&#35;&#x23; Safety"},
		{"bold", "**Safety**\n- __Safety:__ \n> **Safety**:", "\\**Safety**\n- \\__Safety:__ \n> \\**Safety**:"},
		{"bold in a line", "**Safety** first\nsee **Safety**\n**a** Safety **b**", "**Safety** first\nsee **Safety**\n**a** Safety **b**"},
		{"with accents", "## Sáfe\u0301ty", "\\## Sáfe\u0301ty"},
	}
	for _, tt := range tests {
		got, n := text.EscapeHeadings(tt.in, reservedHeading)
		if added := len(got) - len(tt.in); got != tt.want || n != added {
			t.Errorf("%s: %q with %d headings, %d backslashes, want %q", tt.name, got, n, added, tt.want)
		}
	}
}

// TestEscapeHeadingsRandom: what was escaped is no heading any more, and nothing but
// backslashes was added.
func TestEscapeHeadingsRandom(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 5))
	pieces := []string{
		"#", "## ", "**", "＃", "&#35;", "Ѕаfеtу", "Safety", "safety", "\n", "\n", "===", "---", " ", "<h2>", "</h2>", "x", "\u200b", "AGENTS.md", "\\", "*",
		"> ", "- ", "1. ", "<!-- ", "-->", "[", "](x)", "<a id='", "'>", "<b>", "\u2028", "\v", "\u0001", "\u3164", "Ｓａｆｅｔｙ", "Saf", "ety", "&shy;", "{", "}",
	}
	for range rounds(5_000, 30_000) {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		in := b.String()
		out, n := text.EscapeHeadings(in, reservedHeading)
		if again, more := text.EscapeHeadings(out, reservedHeading); more != 0 || again != out {
			t.Fatalf("%q became %q, in which %d are left", in, out, more)
		}
		if len(out) != len(in)+n || strings.ReplaceAll(out, `\`, "") != strings.ReplaceAll(in, `\`, "") {
			t.Fatalf("%q became %q with %d backslashes", in, out, n)
		}
	}
}

// TestEscapeHeadingsNested: who nests more headings than are searched for loses all.
func TestEscapeHeadingsNested(t *testing.T) {
	t.Parallel()
	in := strings.Repeat("<h2>", 50) + "Safety\n\n## Style"
	out, _ := text.EscapeHeadings(in, reservedHeading)
	if want := strings.Repeat("<\\h2>", 50) + "Safety\n\n\\## Style"; out != want {
		t.Errorf("got %q", out)
	}
}

func TestEscapeFragmentHeadings(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, open, body, end, wantOpen, wantBody, wantEnd string }{
		{"body underlines", "x\nSafety", "---\ny", "", "x\nSafety", "\\---\ny", ""},
		{"close underlines", "", "x\nSafety", "=====", "", "x\nSafety", "\\====="},
		{"close underlines open", "Safety", "", "===", "Safety", "", "\\==="},
		{"element over all", "<h2>", "Safety", "</h2>", "<\\h2>", "Safety", "</h2>"},
		{"each for itself", "## Safety", "## Safety", "## Safety", "\\## Safety", "\\## Safety", "\\## Safety"},
		{"none", "---", "Safety", "\n---", "---", "Safety", "\n---"},
	}
	for _, tt := range tests {
		frame, body, _ := text.EscapeFragmentHeadings(text.Frame{Open: tt.open, Close: tt.end}, tt.body, reservedHeading)
		if frame.Open != tt.wantOpen || body != tt.wantBody || frame.Close != tt.wantEnd {
			t.Errorf("%s: %q, %q, %q", tt.name, frame.Open, body, frame.Close)
		}
	}
}
