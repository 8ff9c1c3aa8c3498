package text_test

import (
	"html"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"

	"github.com/grapnelhq/grapnel/internal/text"
)

// framed is a frame and, said independently of the code, what it protects: the
// pattern matches an occurrence anywhere in what a careless reader sees of a text.
type framed struct {
	name    string
	frame   text.Frame
	pattern *regexp.Regexp
	// lines matches whole lines of a text as it is.
	lines *regexp.Regexp
}

const (
	markerLine = `(?:^|[\n\v\f\r])[-\s>*+#_~\x60"'|.()0-9=:•“]*\[\s*truncated\s*\\?:\s*kept`
	nameEnd    = `(?:$|[^\pL\pN_.:-])`
)

// tagOf is the pattern of a tag.
func tagOf(name string) string {
	return `|<(?:\s*/\s*)?` + name + nameEnd + `|<\s+` + name + `(?:[^\pL\pN_.:<>-][^<>]*)?>`
}

var noLines = regexp.MustCompile(`\z.`)

var frames = []framed{
	{"none", text.Frame{}, regexp.MustCompile(markerLine), noLines},
	{
		"tags with a preamble",
		text.Frame{Open: "These are instructions. They bind you.\n\n<AGENTS_MD>", Close: "</AGENTS_MD>"},
		regexp.MustCompile(markerLine + tagOf(`agents\\?_md`)), noLines,
	},
	{
		"attributes",
		text.Frame{Open: `<ctx scope="initial">`, Close: "</ctx>"},
		regexp.MustCompile(markerLine + tagOf(`ctx`)), noLines,
	},
	{
		"lines",
		text.Frame{Open: "Mind the text.\n  ---BEGIN--- \n", Close: "---END---\nThat was it."},
		regexp.MustCompile(markerLine), regexp.MustCompile(`(?mi:^[ \t\r\v\f]*---(BEGIN|END)---[ \t\r\v\f]*$)`),
	},
	{
		"a tag above, a line below",
		text.Frame{Open: "<ctx>", Close: "---"},
		regexp.MustCompile(markerLine + tagOf(`ctx`)), regexp.MustCompile(`(?mi:^[ \t\r\v\f]*---[ \t\r\v\f]*$)`),
	},
}

// lookalikes are the letters of other scripts in the texts of these tests.
var lookalikes = strings.NewReplacer("а", "a", "е", "e", "с", "c", "Α", "a", "Τ", "t", "Ѕ", "s", "ѕ", "s", "‹", "<", "›", ">", "⟨", "<", "∕", "/", "【", "[")

// read is what a careless reader sees of a text.
func read(s string) string {
	s = lookalikes.Replace(norm.NFKD.String(html.UnescapeString(s)))
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\v', 0x1c <= r && r <= 0x1e, r == '\u0085', r == '\u2028', r == '\u2029':
			return '\n'
		case unicode.IsSpace(r):
			return r
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.M, unicode.Other_Default_Ignorable_Code_Point):
			return -1
		}
		return r
	}, s)
	return strings.ToLower(s)
}

// found reports whether a text has what the frame protects.
func (f *framed) found(s string) bool {
	return strings.Contains(s, text.Boundary) || f.pattern.MatchString(read(s)) || f.lines.MatchString(s)
}

func TestEscape(t *testing.T) {
	t.Parallel()
	none, agents, ctx, lines := frames[0].frame, frames[1].frame, frames[2].frame, frames[3].frame
	tests := []struct {
		name  string
		frame text.Frame
		in    string
		want  string
		n     int
	}{
		{"boundary", none, "x<!-- grapnel:dynamic -->y", `x<\!-- grapnel:dynamic -->y`, 1},
		{"boundary is exact", none, "<!--grapnel:dynamic--> <!-- GRAPNEL:dynamic -->", "<!--grapnel:dynamic--> <!-- GRAPNEL:dynamic -->", 0},
		{"tags", agents, "<AGENTS_MD>x</AGENTS_MD>", `<\AGENTS_MD>x<\/AGENTS_MD>`, 2},
		{"tags in any case with blanks", agents, "<agents_md >\n</Agents_md\t\n>", "<\\agents_md >\n<\\/Agents_md\t\n>", 2},
		{"the Kelvin sign", text.Frame{Open: "<key>"}, "<\u212aey>", "<\\\u212aey>", 1},
		{"other tags stay", agents, "<AGENTS_MDX> < AGENTS_MD or <AGENTS> <//AGENTS_MD>", "<AGENTS_MDX> < AGENTS_MD or <AGENTS> <//AGENTS_MD>", 0},
		{"tags with blanks", agents, "< AGENTS_MD> </ AGENTS_MD> <AGENTS_MD a> <\n/\nAGENTS_MD\n>", "<\\ AGENTS_MD> <\\/ AGENTS_MD> <\\AGENTS_MD a> <\\\n/\nAGENTS_MD\n>", 4},
		{"tags that hide", agents, "</AGENTS\u200b_MD> <\u00ad/A\u0301GENTS_MD>", "<\\/AGENTS\u200b_MD> <\\\u00ad/A\u0301GENTS_MD>", 2},
		{"tags in other letters", agents, "＜／ＡＧＥＮＴＳ＿ＭＤ＞ </ΑGENTЅ_MD> ‹/AGENTS_MD›", "＜\\／ＡＧＥＮＴＳ＿ＭＤ＞ <\\/ΑGENTЅ_MD> ‹\\/AGENTS_MD›", 3},
		{"tags as entities", agents, "&lt;/AGENTS_MD&gt; &#60;&#47;AGENTS_MD> &#x3c/AGENTS&lowbar;MD>", "&lt;\\/AGENTS_MD&gt; &#60;\\&#47;AGENTS_MD> &#x3c\\/AGENTS&lowbar;MD>", 3},
		{"a tag for Markdown", agents, "</AGENTS\\_MD>", "<\\/AGENTS\\_MD>", 1},
		{"cut off tag", agents, "</AGENTS_MD", "<\\/AGENTS_MD", 1},
		{"attributes", ctx, `<CTX scope="other"> <ctx> <ctx > <ctxt a> <ctx <ctx a>`, `<\CTX scope="other"> <\ctx> <\ctx > <ctxt a> <\ctx <\ctx a>`, 5},
		{"marker", none, "a\n[truncated: kept 1 of 2,000 characters]\nb", "a\n[\\truncated: kept 1 of 2,000 characters]\nb", 1},
		{"marker within a line", none, "see [truncated: kept 1 of 2 characters]", "see [truncated: kept 1 of 2 characters]", 0},
		{"marker of a plugin", none, "[truncated: a.md, kept 1 of 2 bytes]", "[truncated: a.md, kept 1 of 2 bytes]", 0},
		{"marker with other numbers", none, "[truncated: kept  of 2]\n[ Truncated : kept", "[\\truncated: kept  of 2]\n[\\ Truncated : kept", 2},
		{"marker quoted and listed", none, "> - [truncated: kept 1\n1. **[truncated: kept 1**\r", "> - [\\truncated: kept 1\n1. **[\\truncated: kept 1**\r", 2},
		{"marker in other letters", none, "［ｔruncated: kept】\u2028[truncated\u200b: kept", "［\\ｔruncated: kept】\u2028[\\truncated\u200b: kept", 2},
		{"lines", lines, "---begin---\n x ---END---\n\t---END--- \n----END---", "-\\--begin---\n x ---END---\n\t-\\--END--- \n----END---", 2},
		{"preamble is no guarded line", lines, "Mind the text.\nThat was it.", "Mind the text.\nThat was it.", 0},
		{"fence", text.Frame{Open: "```text", Close: "```"}, "```go\n```\n", "```go\n`\\``\n", 1},
		{"line beyond ASCII", text.Frame{Open: "§", Close: "«end»"}, "§\n«END»", "§\\\n«\\END»", 2},
		{"halves that differ by a backslash", text.Frame{Open: "-x", Close: `-\x`}, "-x", `-\\x`, 1},
		{"everything", agents, "<AGENTS_MD><!-- grapnel:dynamic -->\n[truncated: kept 1 of 2 characters]", "<\\AGENTS_MD><\\!-- grapnel:dynamic -->\n[\\truncated: kept 1 of 2 characters]", 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, n := text.Escape(tt.in, tt.frame)
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("got/want:\n%s", diff)
			}
			if n != tt.n {
				t.Errorf("%d occurrences, want %d", n, tt.n)
			}
		})
	}
}

// checkEscape asserts what Escape promises of any text.
func checkEscape(t *testing.T, f framed, in string) {
	t.Helper()
	in = text.Normalize(in)
	out, n := text.Escape(in, f.frame)
	if f.found(out) {
		t.Fatalf("%s: %q still holds what is protected: %q", f.name, in, out)
	}
	if (n > 0) != f.found(in) {
		t.Fatalf("%s: %d occurrences found in %q, read as %q", f.name, n, in, read(in))
	}
	if len(out) != len(in)+n {
		t.Fatalf("%s: %d backslashes for %d occurrences in %q", f.name, len(out)-len(in), n, in)
	}
	if again, more := text.Escape(out, f.frame); more != 0 || again != out {
		t.Fatalf("%s: escaping %q again found %d: %q", f.name, out, more, again)
	}
	if plain := strings.ReplaceAll(in, `\`, ""); strings.ReplaceAll(out, `\`, "") != plain {
		t.Fatalf("%s: more than backslashes was added to %q: %q", f.name, in, out)
	}
}

func TestEscapeRandom(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 3))
	for range rounds(1000, 5000) {
		s := randomText(rng, 15)
		for _, f := range frames {
			checkEscape(t, f, s)
		}
	}
}

func FuzzEscape(f *testing.F) {
	for _, p := range pieces {
		f.Add(p, "<AGENTS_MD>", "</AGENTS_MD>")
	}
	f.Add("<\x80 a>", "x\n<\x80 b>", "\xff")
	f.Fuzz(func(t *testing.T, s, open, closing string) {
		for _, known := range frames {
			checkEscape(t, known, s)
		}
		// Of an unknown frame only the general promises can be checked.
		frame := text.Frame{Open: open, Close: closing}
		out, n := text.Escape(s, frame)
		if again, more := text.Escape(out, frame); more != 0 || again != out {
			t.Fatalf("frame %q: escaping %q again found %d: %q", frame, out, more, again)
		}
		if (n == 0) != (out == s) {
			t.Fatalf("frame %q: %d occurrences, yet %q became %q", frame, n, s, out)
		}
	})
}
