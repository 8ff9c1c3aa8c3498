package text_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/text"
)

// pieces are what random texts are made of: everything that a rule here is
// about, and things that only look like it.
var pieces = []string{
	"a", "word ", "Some words, then more. ", "\n", "\n\n", "\n", " ", "\t", "é", "e\u0301", "\u0301", "漢字", "한", "\u1112\u1161\u11ab",
	"😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪", "🇫🇷🇯🇵", "\U0001f1e9", "\u200d", "\ufe0f", "\u0600", "क्षि", "\u200b", "\ufeff", "\r", "\r\n",
	"<", ">", "</", "<AGENTS_MD>", "</agents_md \t>", "<Agents_Md\n>", "<AGENTS_MDX>", "<\\AGENTS_MD>", "< AGENTS_MD>", "AGENTS_MD", `<ctx a="b">`,
	"</ctx>", "<ctx>", text.Boundary, "<!-- grapnel:", "dynamic -->", "<!-- GRAPNEL:DYNAMIC -->", "---BEGIN---", "---begin---", "---END---", "---",
	"[truncated: kept 1 of 2 characters]", "[truncated: kept 15,950 of 40,212 characters]", "[truncated: a.md, kept 1 of 2 bytes]",
	"\n[truncated: kept 1 of 22 characters]\n", "[truncated: kept ", "characters]", "\\", "[",
	"</ ", "＜／", "&lt;", "&#47;", "AGENTS\u200b_MD", "ΑGENTЅ_MD", "ＡＧＥＮＴＳ＿ＭＤ", "agents\\_md", "‹", "›", "\n  - ", "> ", "1. ", "**", "［truncated : kept ", "【", "\u2028", "\v",
}

func randomText(rng *rand.Rand, most int) string {
	var b strings.Builder
	for range rng.IntN(most + 1) {
		b.WriteString(pieces[rng.IntN(len(pieces))])
	}
	return b.String()
}

func TestChars(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{
		"": 0, "abc": 3, "12345678": 8, "123456789é": 10, "é23456789": 9, "😀": 1, "e\u0301": 2, "12345678\xff\xfe": 10, "\x00": 1,
	} {
		if got := text.Chars(in); got != want {
			t.Errorf("Chars(%q) = %d, want %d", in, got, want)
		}
	}
	for n := range 80 { // é begins at each place of a long text
		if got := text.Chars(strings.Repeat("a", n) + "é" + strings.Repeat("b", 79-n)); got != 80 {
			t.Errorf("Chars with %d before é = %d", n, got)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		s := randomText(rng, 12)
		s = s[:rng.IntN(len(s)+1)] // perhaps within a character
		if got, want := text.Chars(s), utf8.RuneCountInString(s); got != want {
			t.Fatalf("Chars(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for in, want := range map[int]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 40212: "40,212", 123456: "123,456", 1234567: "1,234,567",
		-1: "-1", -999: "-999", -1000: "-1,000", -123456: "-123,456",
	} {
		if diff := cmp.Diff(text.Thousands(in), want); diff != "" {
			t.Errorf("Thousands(%d) got/want:\n%s", in, diff)
		}
	}
}

// TestAllocatesNothing: texts with nothing to change cost no garbage.
func TestAllocatesNothing(t *testing.T) {
	clean := strings.Repeat("text with <b>tags</b>, < marks, # and [brackets]\n1. b\n> quote\u2028é\n", 30)
	for name, do := range map[string]func(){
		"Normalize":      func() { text.Normalize("\ufeffclean text\n") },
		"Sanitize":       func() { text.Sanitize("plugin said añ", 80) },
		"EscapeHeadings": func() { text.EscapeHeadings(clean, reservedHeading) },
		"Escape": func() {
			for _, f := range frames {
				text.Escape(clean, f.frame)
			}
		},
	} {
		if n := testing.AllocsPerRun(10, do); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
