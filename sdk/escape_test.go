package sdk

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
)

// sample is the escaper whose places agentsdoctest.Unescape knows.
func sample() Escaper {
	return Escaper{
		Tags:  []string{BoundaryTag, "AGENTS_MD"},
		Lines: []string{"[ source :", "[ truncated :", "[ omitted :"},
	}
}

func TestEscape(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in, want string
	}{
		{"nothing", "plain\n[link](x) <b> \\o/", "plain\n[link](x) <b> \\o/"},
		{"delimiter", `[source: "x"`, `\[source: "x"`},
		{"not at the beginning of a line", "x [source: x", "x [source: x"},
		{"indented, quoted, listed, emphasised", "  [source: x\n> - **[source: x**\n1. _[source: x_\n\t`[omitted:`", "  \\[source: x\n> - **\\[source: x**\n1. _\\[source: x_\n\t`\\[omitted:`"},
		{"other case and blanks", "[Source: x\n[ source : x", "\\[Source: x\n\\[ source : x"},
		{"other letters", "［source： x\n[ѕource: x\n&#91;source: x", "\\［source： x\n\\[ѕource: x\n\\&#91;source: x"},
		{"other line breaks", "a\u2028[source: x\v[source: y", "a\u2028\\[source: x\v\\[source: y"},
		{"incomplete", "[source\n[omitted", "[source\n[omitted"},
		{"bare backslashes", "\\\\\n\\x", "\\\\\n\\x"},
		{"zero-width among backslashes", "\\\u200b\\[omitted:", "\\\u200b\\\\[omitted:"},
		{"blanks behind", "[truncated:   \u200b ", "\\[truncated:   \u200b "},
		{"closing tag, any case", "</Agents_md  >", `<\/Agents_md  >`},
		{"tag with backslashes", `<\\/AGENTS_MD>`, `<\\\/AGENTS_MD>`},
		{"tag across zero-width", "<\u200b/\u2060AGENTS\u00ad_MD>", "<\\\u200b/\u2060AGENTS\u00ad_MD>"},
		{"tag with a tag character", "<\U000e0041AGENTS_MD", "<\\\U000e0041AGENTS_MD"},
		{"half a tag", "<AGENTS <//AGENTS_MD <AGENTS MD", "<AGENTS <//AGENTS_MD <AGENTS MD"},
		{"tag with blanks", "</ AGENTS_MD> <\n/\nAGENTS_MD\n>", "<\\/ AGENTS_MD> <\\\n/\nAGENTS_MD\n>"},
		{"tag in other letters", "<AGENT\u017f_MD ＜／ＡＧＥＮＴＳ＿ＭＤ＞ ‹/АGENTЅ_MD›", "<\\AGENT\u017f_MD ＜\\／ＡＧＥＮＴＳ＿ＭＤ＞ ‹\\/АGENTЅ_MD›"},
		{"tag as entities", "&lt;/AGENTS_MD&gt; &#60;&#47;AGENTS_MD", "&lt;\\/AGENTS_MD&gt; &#60;\\&#47;AGENTS_MD"},
		{"boundary", "<!-- grapnel:dynamic -->", `<\!-- grapnel:dynamic -->`},
		{"both rules", "[source: <AGENTS_MD>", `\[source: <\AGENTS_MD>`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, n := sample().Escape(tt.in)
			if got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if n != len(got)-len(tt.in) {
				t.Errorf("counted %d places, inserted %d", n, len(got)-len(tt.in))
			}
			if back := agentsdoctest.Unescape(got); back != tt.in {
				t.Errorf("read back %q, want %q", back, tt.in)
			}
		})
	}
}

// Our lines and tags, for a reader who is careless but for backslashes.
var (
	forgedLine = regexp.MustCompile("(?:^|\\n)[-\\s>*+#_~`\"'|.()0-9=:•]*\\[\\s*(?:source|truncated|omitted)\\s*:")
	forgedTag  = regexp.MustCompile(`<\s*/?\s*agents_md`)
)

// checkEscape asserts what must hold of any text, at any cut.
func checkEscape(t *testing.T, text string) {
	t.Helper()
	e := sample()
	body, n := e.Escape(text)
	if back := agentsdoctest.Unescape(body); back != text {
		t.Fatalf("%q became %q and came back as %q", text, body, back)
	}
	read := agentsdoctest.Read(body)
	for _, pattern := range []*regexp.Regexp{forgedLine, forgedTag} {
		if found := pattern.FindString(read); found != "" {
			t.Fatalf("%q still holds %q", body, found)
		}
	}
	if _, again := e.Escape(body); again != n {
		t.Fatalf("%q has %d places, escaped %q has %d", text, n, body, again)
	}
	for limit := 0; limit <= len(body); limit += 1 + len(body)/50 {
		piece := e.Cut(body, limit, len(body))
		if len(piece) > limit || !strings.HasPrefix(body, piece) {
			t.Fatalf("%q cut to %d is %q", body, limit, piece)
		}
		if back := agentsdoctest.Unescape(piece); !strings.HasPrefix(text, back) {
			t.Fatalf("%q cut to %q is read as %q", body, piece, back)
		}
	}
}

func FuzzEscape(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		f.Add(agentsdoctest.Hostile(rng, 12))
	}
	f.Fuzz(func(t *testing.T, raw string) { checkEscape(t, CleanText(raw)) })
}

func TestCut(t *testing.T) {
	t.Parallel()
	const family = "👨\u200d👩\u200d👧" // 18 bytes, 5 characters
	tests := []struct {
		name, body   string
		bytes, chars int
		want         string
	}{
		{"no room", "abc", 0, 3, ""},
		{"no characters", "abc", 3, 0, ""},
		{"characters bind", "ééé", 9, 1, "é"},
		{"line that keeps half", "abcd\nefgh", 8, 8, "abcd"},
		{"line that keeps less", "abc\nefghi", 8, 8, "abc\nefgh"},
		{"line break is the last that fits", "abcd\nefgh", 5, 5, "abcd"},
		{"blank lines stay", "ab\n\n\nefgh", 5, 5, "ab\n\n"},
		{"whole graphemes", "ab" + family + "c", 19, 99, "ab"},
		{"a grapheme that is too long by itself", family, 10, 99, "👨\u200d"},
		{"letter with a mark", "xe\u0301", 3, 9, "x"},
		{"not in an escaped line", "ab\n\\[source: x", 8, 99, "ab"},
		{"not in an escaped line that comes late", "a\nbcdefghijk\n\\[source: x", 18, 99, "a\nbcdefghijk"},
		{"not in an escaped line that comes first", `\[source: x`, 8, 99, ""},
		{"behind an escaped line's word", `\[source: xyz`, 11, 99, `\[source: x`},
		{"not in an escaped tag", `abc <\/AGENTS_MD>`, 15, 99, "abc "},
		{"behind an escaped tag", `abc <\/AGENTS_MD>`, 16, 99, `abc <\/AGENTS_MD`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := sample().Cut(tt.body, tt.bytes, tt.chars); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCutOfLongGrapheme(t *testing.T) {
	t.Parallel()
	body := "e" + strings.Repeat("\u0301", 20000)
	if got := (Escaper{}).Cut(body, 1000, math.MaxInt); len(got) != 999 {
		t.Errorf("kept %d bytes of one endless grapheme in 1000", len(got))
	}
}
