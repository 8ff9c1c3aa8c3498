package text_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

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

// rounds is how often a random test repeats itself: a few times on every run, and often with GRAPNEL_LONG=1.
func rounds(short, long int) int {
	if os.Getenv("GRAPNEL_LONG") == "1" {
		return long
	}
	return short
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
}

// TestAllocatesNothing: texts with nothing to change cost no garbage.
func TestAllocatesNothing(t *testing.T) {
	clean := strings.Repeat("text with <b>tags</b>, < marks, # and [brackets]\n1. b\n> quote\u2028é\n", 30)
	for name, do := range map[string]func(){
		"Normalize":      func() { text.Normalize("\ufeffclean text\n") },
		"Sanitize":       func() { text.Sanitize("plugin said añ", 80) },
		"EscapeHeadings": func() { text.EscapeHeadings(clean, reservedHeading) },
		"Scan": func() {
			sc := text.Scan(clean)
			for c, at, behind := sc.Next(); c != 0; c, at, behind = sc.Next() {
				text.Tag(clean, behind, "notes")
				text.StartsLine(clean, at, "")
			}
		},
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

func TestNormalize(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "a\nb\n": "a\nb\n", "a\r\nb\r\n": "a\nb\n", "a\rb\r": "a\nb\n", "a\r\r\nb": "a\n\nb", "a\n\rb": "a\n\nb",
		"\ufeffa": "a", "\ufeff\ufeffa\ufeff": "\ufeffa\ufeff", "\ufeff\r\n": "\n", "a\u2028b\u0085c\vd": "a\u2028b\u0085c\vd",
	} {
		if got := text.Normalize(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestValid(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                 "",
		"añ😀\ufffd":        "",
		"ab\x00c":          "text has a NUL character at byte 2",
		"12345678é\xff":    "text is not valid UTF-8 at byte 10",
		"é\xe2\x82":        "text is not valid UTF-8 at byte 2",
		"\xed\xa0\x80":     "text is not valid UTF-8 at byte 0",
		"a\x00\xff":        "text has a NUL character at byte 1",
		"a\xff\x00":        "text is not valid UTF-8 at byte 1",
		"\ufffd\xff\ufffd": "text is not valid UTF-8 at byte 3",
	} {
		got := ""
		if err := text.Valid(in); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestRepair(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"añ😀\ufffd": "añ😀\ufffd", "a\x00\x00b": "a\ufffd\ufffdb", "a\xff\xfe\x80b\xe2\x82": "a\ufffdb\ufffd", "\xff\x00": "\ufffd\ufffd",
	} {
		if got := text.Repair(in); got != want || text.Valid(got) != nil {
			t.Errorf("Repair(%q) = %q, want %q", in, got, want)
		}
	}
}
