package textrule

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule/textruletest"
)

func TestCut(t *testing.T) {
	t.Parallel()
	const family = "👨\u200d👩\u200d👧" // 18 bytes, 5 characters
	tests := []struct {
		name, body   string
		bytes, chars int
		want         string
	}{
		{"fits", "abc", 3, 3, "abc"},
		{"no room", "abc", 0, 3, ""},
		{"no characters", "abc", 3, 0, ""},
		{"negative", "abc", -1, -1, ""},
		{"bytes bind", "ééé", 5, 9, "éé"},
		{"characters bind", "ééé", 9, 1, "é"},
		{"line that keeps half", "abcd\nefgh", 8, 8, "abcd"},
		{"line that keeps less", "abc\nefghi", 8, 8, "abc\nefgh"},
		{"line break just behind", "abcd\nefgh", 4, 4, "abcd"},
		{"line break is the last that fits", "abcd\nefgh", 5, 5, "abcd"},
		{"blank lines stay", "ab\n\n\nefgh", 5, 5, "ab\n\n"},
		{"first line is empty", "\nabc", 2, 2, "\na"},
		{"whole graphemes", "ab" + family + "c", 19, 99, "ab"},
		{"whole graphemes by characters", "ab" + family + "c", 99, 6, "ab"},
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
			if got := Cut(tt.body, Extent{tt.bytes, tt.chars}); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestGraphemeBoundary(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		text := textruletest.Hostile(rng, 1+rng.IntN(8))
		at := rng.IntN(len(text))
		for !utf8.RuneStart(text[at]) {
			at--
		}
		// The plain way: count from the beginning.
		want := 0
		for g := uniseg.NewGraphemes(text); g.Next(); {
			if _, to := g.Positions(); to <= at {
				want = to
			}
		}
		if want == 0 {
			want = at
		}
		if got := graphemeBoundary(text, at); got != want {
			t.Fatalf("%q at %d: got %d, want %d", text, at, got, want)
		}
	}
}

func TestPrefixIn(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		text := textruletest.Hostile(rng, rng.IntN(10))
		room := Extent{rng.IntN(40) - 2, rng.IntN(40) - 2}
		got := text[:PrefixIn(text, room)]
		if got != "" && !ExtentOf(got).Fits(room) {
			t.Fatalf("%q in %v gives %q", text, room, got)
		}
		if rest := text[len(got):]; rest != "" {
			_, size := utf8.DecodeRuneInString(rest)
			if ExtentOf(text[:len(got)+size]).Fits(room) {
				t.Fatalf("%q in %v gives only %q", text, room, got)
			}
		}
	}
}

func TestCutOfLongGrapheme(t *testing.T) {
	t.Parallel()
	body := "e" + strings.Repeat("\u0301", 20000)
	got := Cut(body, Extent{1000, math.MaxInt})
	if len(got) != 999 {
		t.Errorf("kept %d bytes of one endless grapheme in 1000", len(got))
	}
}
