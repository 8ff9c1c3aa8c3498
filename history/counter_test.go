package history

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func newCounter(t testing.TB, o CounterOptions) *Counter {
	t.Helper()
	c, err := NewCounter(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCounterCount(t *testing.T) {
	t.Parallel()

	// The numbers are those of the reference implementation.
	tests := []struct {
		name, text   string
		cl100k, o200 int
	}{
		{"nothing", "", 0, 0},
		{"words", "hello world", 2, 2},
		{"sentence", "tiktoken is great!", 6, 6},
		{"special token as text", "<|endoftext|>", 7, 7},
		{"newlines", "a\n\n\nb", 3, 3},
		{"a byte that is not UTF-8", "\xff", 1, 1},
		{"a character that the codec passes over", "a\x7fb", 3, 3},
		{"the replacement character", "\ufffd", 1, 1},
	}
	cl, o2 := newCounter(t, CounterOptions{}), newCounter(t, CounterOptions{Encoding: O200kBase})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			for range 2 { // counted, then remembered
				if got := cl.Count(tt.text); got != tt.cl100k {
					t.Errorf("%s: Count(%q) = %d, want %d", cl.Encoding(), tt.text, got, tt.cl100k)
				}
				if got := o2.Count(tt.text); got != tt.o200 {
					t.Errorf("%s: Count(%q) = %d, want %d", o2.Encoding(), tt.text, got, tt.o200)
				}
			}
		})
	}
}

func TestNewCounterErrors(t *testing.T) {
	t.Parallel()

	for _, o := range []CounterOptions{{Encoding: "p50k_base"}, {Remember: -1}} {
		if _, err := NewCounter(o); err == nil {
			t.Errorf("NewCounter(%+v) gave no error", o)
		}
	}
}

func TestCounterIsBounded(t *testing.T) {
	t.Parallel()

	c := newCounter(t, CounterOptions{Remember: 10})
	known := func(text string) bool {
		_, recent := c.recent[c.hash(text)]
		_, older := c.older[c.hash(text)]
		return recent || older
	}
	for i := range 100 {
		c.Count("always")
		c.Count(fmt.Sprint("text ", i))
		if n := len(c.recent) + len(c.older); n > 20 {
			t.Fatalf("%d counts are kept, want at most 20", n)
		}
		if !known("always") {
			t.Fatalf("what is asked for all the time was forgotten at text %d", i)
		}
	}
	if known("text 0") {
		t.Error("the oldest count is still there")
	}
}

// TestCounterPieces compares counting in pieces with counting at once.
func TestCounterPieces(t *testing.T) {
	t.Parallel()

	c := newCounter(t, CounterOptions{})
	words := []string{"a", "Word", " the", "\n", " ", "  ", "\t", "12", "!", "é", "\u2003", "\r\n", "'s", "世界", strings.Repeat(" \n", 200)}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var b strings.Builder
		for range 1 + rng.IntN(60) {
			b.WriteString(words[rng.IntN(len(words))])
		}
		text := b.String()
		pieces := 0
		for rest := text; rest != ""; pieces++ {
			rest = rest[pieceEnd(rest):]
		}
		want, err := c.load().Count(text)
		if err != nil {
			t.Fatal(err)
		}
		got := c.Count(text)
		if got < want-pieces+1 || got > want+pieces-1 {
			t.Errorf("Count = %d in %d pieces, at once %d, for %q", got, pieces, want, text)
		}
	}
}
