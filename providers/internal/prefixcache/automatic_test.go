package prefixcache

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestAutomatic(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		sent []sent
	}{
		{"the same again, in steps", []sent{
			{0, "a:100 b:50", Usage{Input: 150}},
			{1, "a:100 b:50", Usage{150, 144, 0}},
		}},
		{"what is alike in front", []sent{
			{0, "a:100 b:50", Usage{Input: 150}},
			{1, "a:100 x:50", Usage{150, 96, 0}},
			{2, "y:100 b:50", Usage{Input: 150}},
		}},
		{"half a block", []sent{
			{0, "a:100 abcdefghijklmnop:60", Usage{Input: 160}},
			{1, "a:100 abcdefghijklmnoq:60", Usage{160, 112, 0}}, // 115 are alike
		}},
		{"the minimum", []sent{
			{0, "a:95 b:1", Usage{Input: 96}},
			{1, "a:95 c:1", Usage{Input: 96}},
			{2, "a:95 c:1", Usage{96, 96, 0}},
		}},
		{"the longest of several", []sent{
			{0, "a:100 b:100 c:100", Usage{Input: 300}},
			{1, "a:100 x:100 c:100", Usage{300, 96, 0}},
			{2, "a:100 b:100 d:100", Usage{300, 192, 0}},
		}},
		{"its lifetime", []sent{
			{0, "a:96", Usage{Input: 96}},
			{5, "a:96", Usage{96, 96, 0}},
			{10.1, "a:96", Usage{Input: 96}},
		}},
		{"an empty request", []sent{{0, "", Usage{}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			count := func(s string) int { return len(s) }
			c := NewAutomatic(AutomaticRules{MinimumTokens: 96, Step: 16, Lifetime: 5 * time.Minute, Count: count})
			for i, s := range tt.sent {
				if diff := cmp.Diff(c.Serve(moment(s.at), blocksOf(s.blocks)), s.want); diff != "" {
					t.Errorf("request %d (-got +want):\n%s", i, diff)
				}
			}
		})
	}
}

func TestAutomaticWithoutStep(t *testing.T) {
	t.Parallel()

	c := NewAutomatic(AutomaticRules{Lifetime: time.Minute, Count: func(string) int { return 0 }})
	c.Serve(moment(0), blocksOf("a:7"))
	if u := c.Serve(moment(0), blocksOf("a:7 b:1")); u != (Usage{8, 7, 0}) {
		t.Errorf("usage = %+v", u)
	}
}

func FuzzSameBeginning(f *testing.F) {
	f.Add("äb", "äc")
	f.Add("ä", "ö")
	f.Add("", "x")
	f.Add("a\xff", "a\xfe")
	f.Add("\x00\x80", "\x00")
	f.Fuzz(func(t *testing.T, a, b string) {
		got := sameBeginning(a, b)
		if len(got) > len(a) || len(got) > len(b) || a[:len(got)] != got || b[:len(got)] != got {
			t.Fatalf("%q is not what %q and %q begin with", got, a, b)
		}
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			return
		}
		if !utf8.ValidString(got) {
			t.Fatalf("%q cuts a character of %q", got, a)
		}
		if n := len(got); n < len(a) && n < len(b) {
			x, _ := utf8.DecodeRuneInString(a[n:])
			if y, _ := utf8.DecodeRuneInString(b[n:]); x == y {
				t.Fatalf("%q is too short for %q and %q", got, a, b)
			}
		}
	})
}
