package textrule

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule/textruletest"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in, want string
	}{
		{"nothing", "plain\n[link](x) <b> \\o/", "plain\n[link](x) <b> \\o/"},
		{"delimiter", `[source: "x"`, `\[source: "x"`},
		{"second line", "a\n[truncated: x]\n[omitted: y]\n", "a\n\\[truncated: x]\n\\[omitted: y]\n"},
		{"not at the beginning of a line", "x [source: x", "x [source: x"},
		{"indented, quoted, listed, emphasised", "  [source: x\n> - **[source: x**\n1. _[source: x_\n\t`[omitted:`", "  \\[source: x\n> - **\\[source: x**\n1. _\\[source: x_\n\t`\\[omitted:`"},
		{"other case and blanks", "[Source: x\n[ source : x", "\\[Source: x\n\\[ source : x"},
		{"other letters", "［source： x\n[ѕource: x\n&#91;source: x", "\\［source： x\n\\[ѕource: x\n\\&#91;source: x"},
		{"other line breaks", "a\u2028[source: x\v[source: y", "a\u2028\\[source: x\v\\[source: y"},
		{"incomplete", "[source\n[omitted", "[source\n[omitted"},
		{"backslashes", `\\[source:`, `\\\[source:`},
		{"bare backslashes", "\\\\\n\\x", "\\\\\n\\x"},
		{"zero-width inside", "\u200b[so\u200durce\ufeff:", "\u200b\\[so\u200durce\ufeff:"},
		{"zero-width among backslashes", "\\\u200b\\[omitted:", "\\\u200b\\\\[omitted:"},
		{"blanks behind", "[truncated:   \u200b ", "\\[truncated:   \u200b "},
		{"opening tag", "a <AGENTS_MD> b", `a <\AGENTS_MD> b`},
		{"closing tag, any case", "</Agents_md  >", `<\/Agents_md  >`},
		{"tag with backslashes", `<\\/AGENTS_MD>`, `<\\\/AGENTS_MD>`},
		{"tag across zero-width", "<\u200b/\u2060AGENTS\u00ad_MD>", "<\\\u200b/\u2060AGENTS\u00ad_MD>"},
		{"tag with a tag character", "<\U000e0041AGENTS_MD", "<\\\U000e0041AGENTS_MD"},
		{"half a tag", "<AGENTS <//AGENTS_MD <AGENTS MD", "<AGENTS <//AGENTS_MD <AGENTS MD"},
		{"tag with blanks", "</ AGENTS_MD> <\n/\nAGENTS_MD\n>", "<\\/ AGENTS_MD> <\\\n/\nAGENTS_MD\n>"},
		{"tag in other letters", "<AGENT\u017f_MD ＜／ＡＧＥＮＴＳ＿ＭＤ＞ ‹/АGENTЅ_MD›", "<\\AGENT\u017f_MD ＜\\／ＡＧＥＮＴＳ＿ＭＤ＞ ‹\\/АGENTЅ_MD›"},
		{"tag as entities", "&lt;/AGENTS_MD&gt; &#60;&#47;AGENTS_MD", "&lt;\\/AGENTS_MD&gt; &#60;\\&#47;AGENTS_MD"},
		{"boundary", "<!-- grapnel:dynamic -->", `<\!-- grapnel:dynamic -->`},
		{"boundary in another case", "<!-- Grapnel:dynamic -->", `<\!-- Grapnel:dynamic -->`},
		{"two on a line", "<AGENTS_MD><<AGENTS_MD>", `<\AGENTS_MD><<\AGENTS_MD>`},
		{"both rules", "[source: <AGENTS_MD>", `\[source: <\AGENTS_MD>`},
		{"at the very end", "x<", "x<"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, n := Escape(tt.in)
			if got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if n != len(got)-len(tt.in) {
				t.Errorf("counted %d places, inserted %d", n, len(got)-len(tt.in))
			}
			if back := textruletest.Unescape(got); back != tt.in {
				t.Errorf("read back %q, want %q", back, tt.in)
			}
		})
	}
}

func TestEscapeRoundTrip(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		checkEscape(t, textruletest.Hostile(rng, rng.IntN(30)))
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
	body, n := Escape(text)
	if back := textruletest.Unescape(body); back != text {
		t.Fatalf("%q became %q and came back as %q", text, body, back)
	}
	// What a careless reader finds has a backslash.
	read := textruletest.Read(body)
	for _, pattern := range []*regexp.Regexp{forgedLine, forgedTag} {
		if found := pattern.FindString(read); found != "" {
			t.Fatalf("%q still holds %q", body, found)
		}
	}
	if _, again := Escape(body); again != n {
		t.Fatalf("%q has %d places, escaped %q has %d", text, n, body, again)
	}
	for room := 0; room <= len(body); room += 1 + len(body)/50 {
		piece := Cut(body, Extent{room, len(body)})
		if len(piece) > room || !strings.HasPrefix(body, piece) {
			t.Fatalf("%q cut to %d is %q", body, room, piece)
		}
		if back := textruletest.Unescape(piece); !strings.HasPrefix(text, back) {
			t.Fatalf("%q cut to %q is read as %q", body, piece, back)
		}
	}
}

func FuzzEscape(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		f.Add(textruletest.Hostile(rng, 12))
	}
	f.Fuzz(func(t *testing.T, raw string) { checkEscape(t, normalText(raw)) })
}

func TestEscapeIsLinear(t *testing.T) {
	t.Parallel()
	// Each would take hours if a sequence were looked for again at each place.
	for _, piece := range []string{"<", `<\`, `\`, "\u200b", "<\u200b", "[", "<AGENTS_M"} {
		text := strings.Repeat(piece, 1<<20/len(piece))
		if got, n := Escape(text); n != 0 || got != text {
			t.Errorf("%d places in %q…", n, piece)
		}
	}
}
