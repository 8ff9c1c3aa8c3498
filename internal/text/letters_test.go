package text

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzLetters compares the fast paths with the plain rules.
func FuzzLetters(f *testing.F) {
	for _, s := range []string{"", "house_rules", "AGENTS.md 2", "Ѕafety", "Sa\u00adfety", "é", "ａ", "a_b__c", "a*b**", "１＃", "\xff#", "x=y", "**a**:", "__a_\u2028b"} {
		f.Add(s)
	}
	f.Fuzz(checkFastPaths)
}

// TestFastPaths is FuzzLetters for longer texts, in which every byte of a word matters.
func TestFastPaths(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(8, 8))
	pieces := strings.Split("a,b,word,plain text, ,\n,\r,\v,\x1c,\x1f,\x7f,é,\u0085,\u2028,\u2027,漢,‹,❮,［,<,[,&,&lt;,&x,**,__,:,#,-,\xff,\xe2,\xe2\x80,\xc2,😀", ",")
	for range 1000 {
		var b strings.Builder
		for range rng.IntN(20) {
			b.WriteString(strings.Repeat("x", rng.IntN(12)) + pieces[rng.IntN(len(pieces))])
		}
		checkFastPaths(t, b.String())
	}
}

func checkFastPaths(t *testing.T, s string) {
	t.Helper()
	if got, want := Letters(s), foreignLetters(s); got != want {
		t.Errorf("Letters(%q) = %q, by the general way %q", s, got, want)
	}
	want := !strings.ContainsAny(s, "#<=-&＃") && !strings.Contains(s, "**") && !strings.Contains(s, "__")
	if got := noHeading(s); got != want {
		t.Errorf("noHeading(%q) = %v", s, got)
	}
	line := strings.TrimRightFunc(s, func(r rune) bool { return unseen(r) || r == ':' })
	bold := strings.HasPrefix(line, "**") && strings.HasSuffix(line, "**") || strings.HasPrefix(line, "__") && strings.HasSuffix(line, "__")
	if got := isBold(s); got != (bold && len(line) > 4) {
		t.Errorf("isBold(%q) = %v", s, got)
	}
	for begin := range s {
		end := strings.IndexFunc(s[begin:], isBreak)
		next := begin + end
		if end < 0 {
			next = len(s)
		} else {
			_, size := utf8.DecodeRuneInString(s[next:])
			next += size
		}
		if gotEnd, gotNext := lineEnd(s, begin); gotNext != next || end >= 0 && gotEnd != begin+end || end < 0 && gotEnd != len(s) {
			t.Errorf("the line of %q at %d ends at %d, the next begins at %d; want %d", s, begin, gotEnd, gotNext, next)
		}
	}
	checkScan(t, s)
}

// checkScan compares a scanner with one that tries each byte.
func checkScan(t *testing.T, s string) {
	t.Helper()
	sc := Scan(s)
	for i := 0; i < len(s); {
		if !mayOpen(s[i]) {
			i++
			continue
		}
		want, behind := Opening(s, i)
		if want == 0 {
			i++
			continue
		}
		if c, at, after := sc.Next(); c != want || at != i || after != behind {
			t.Fatalf("%q: got %q from %d to %d, want %q from %d to %d", s, c, at, after, want, i, behind)
		}
		i = behind
	}
	for range 2 {
		if c, at, after := sc.Next(); c != 0 || at != len(s) || after != len(s) {
			t.Fatalf("%q: got %q from %d to %d, want no more", s, c, at, after)
		}
	}
}
