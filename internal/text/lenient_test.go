package text

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestShown(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]byte{
		"": 0, "a": 'a', "A": 'a', "Ａ": 'a', "𝐀": 'a', "А": 'a', "á": 'a', "a\u0301": 'a', "\u200b\u00adA": 'a', "\u0001A": 'a', "Ⓐ": 'a',
		"&#65;": 'a', "&#x41": 'a', "&#x41;": 'a', "&lt;": '<', "&lt/": '<', "&LT;": '<', "&gt": '>', "&sol;": '/', "&lsqb;": '[', "&#8203;A": 'a', "&nbsp;": ' ', "&nbsp": ' ', "&nbspx": ' ', "&AacuteX": 'a',
		"&": '&', "&x": '&', "&amp;": '&', "&#": '&', "&#;": '&', "&xyzzy;": '&',
		"<": '<', "＜": '<', "‹": '<', "⟨": '<', "≮": '<', "／": '/', "∕": '/', "［": '[', "【": '[', "：": ':', "＿": '_', "－": '-', "＼": '\\',
		"日": 0, "é": 'e', "ß": 0, "\u3000": ' ', "\t": ' ', "\n": '\n', "\r": '\n', "\v": '\n', "\u2028": '\n', "\u0085": '\n', "\xff": 0, "\u200b": 0,
	} {
		if got, _ := Shown(in, 0); got != want {
			t.Errorf("%q shows %q, want %q", in, got, want)
		}
	}
}

// TestOpening: what is found fast is what is read.
func TestOpening(t *testing.T) {
	t.Parallel()
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		s := string(r)
		want, shows := show(r)
		if want != '<' && want != '[' || !shows {
			want = 0
		}
		if got, _ := Opening(s, 0); got != want {
			t.Errorf("%q (%U) opens %q, want %q", s, r, got, want)
		}
		if want != 0 && !mayOpen(s[0]) {
			t.Errorf("the byte %x of %q is passed over", s[0], s)
		}
		if alike := lookalike(r); r >= utf8.RuneSelf && alike >= utf8.RuneSelf && alike != r {
			t.Errorf("%U looks like %U", r, alike)
		}
	}
}

func TestTag(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{
		"<notes>": true, "</notes>": true, "</NOTES>": true, "</ notes >": true, "< / notes>": true, "<\n/\nnotes": true, "</n\u200bo\u0301tes>": true, "＜／ｎｏｔｅｓ＞": true,
		"&lt;/notes&gt;": true, "&#60;&#47;&#110;otes": true, "</ΝΟΤΕЅ>": true, "<notes x>": true, "<notes/>": true, "</notes": true, "</no\u00adtes>": true, "‹/notes›": true,
		"<note>": false, "<\\/notes>": false, "<//notes>": false, "<no tes>": false, "notes>": false, "<": false, "<x notes>": false,
	} {
		sc := Scan(in)
		_, _, behind := sc.Next()
		if end := Tag(in, behind, "notes"); end > 0 != want {
			t.Errorf("%q: %d, want %v", in, end, want)
		}
	}
	for in, want := range map[string]bool{"": true, ">": true, "\tx": true, "/": true, "x": false, "é": false, "ß": false, "日": false, "_": false, "\u200bx": false, "\u200bß": false, "。": true, "\u200b": true} {
		if got := Ends(in, 0); got != want {
			t.Errorf("before %q a name ends: %v, want %v", in, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{
		"[note: x": 1, "  [Note : x": 1, "\t> - [ note: x": 1, "1. **[note:": 1, "\u200b［note：": 1, "a\n[note:\r[note:": 2, "a\u2028[note:\v[note:": 2, "&nbsp;&#32;[note:": 1, "&nbsp[note:": 1, "&#32[note:": 1,
		"&lsqb;note&colon;": 1, "“[note:": 1, "[note\\:": 1, "● [nоte:": 1,
		"see [note: x": 0, "\\[note:": 0, "[notes:": 0, "[note": 0, "x;[note:": 0, "[x]: [note:": 0,
	} {
		got, sc := 0, Scan(in)
		for c, at, _ := sc.Next(); c != 0; c, at, _ = sc.Next() {
			if c == '[' && StartsLine(in, at, "") && Word(in, at, "[ note :") > 0 {
				got++
			}
		}
		if got != want {
			t.Errorf("%q: %d lines, want %d", in, got, want)
		}
	}
}

// TestScanIsLinear: no text makes a reader look at its beginning again and again.
func TestScanIsLinear(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"<", "[", "&", "&#", "< ", "<\u200b", " [", ">[", "&#0000000000000000000000000000;", "<＜", "[[\u200b"} {
		text := strings.Repeat(piece, 1<<18/len(piece))
		sc := Scan(text)
		for c, at, behind := sc.Next(); c != 0; c, at, behind = sc.Next() {
			if c == '<' && Tag(text, behind, "notes") > 0 || c == '[' && Word(text, at, "[ note :") > 0 && StartsLine(text, at, "") {
				t.Fatalf("%q has a place at %d", piece, at)
			}
		}
	}
}

// FuzzShown: reading moves on, stays inside, and gives ASCII.
func FuzzShown(f *testing.F) {
	f.Add("<&lt;&#x3c\u200b\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for i := 0; i < len(s); {
			c, next := Shown(s, i)
			if next <= i || next > len(s) || c >= utf8.RuneSelf || c != lower(c) {
				t.Fatalf("%q at %d: %q, %d", s, i, c, next)
			}
			i = next
		}
		sc := Scan(s)
		last := 0
		for c, at, behind := sc.Next(); c != 0; c, at, behind = sc.Next() {
			if shown, next := Shown(s, at); at < last || behind <= at || shown != c || next != behind {
				t.Fatalf("%q: %q from %d to %d", s, c, at, behind)
			}
			last = behind
		}
	})
}
