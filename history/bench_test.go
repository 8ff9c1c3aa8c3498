package history

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// longThread is 200 entries with 400 KiB in all: words, code and numbers, no
// two entries alike.
func longThread() []Entry {
	const line = "The build of module %d failed: internal/engine/plan/order.go:%d: undefined: layer (want 0x%x).\n"
	entries := make([]Entry, 200)
	for i := range entries {
		var b strings.Builder
		for n := 0; b.Len() < 400<<10/len(entries); n++ {
			fmt.Fprintf(&b, line, i, n*i, n)
		}
		entries[i] = Entry{ID: strconv.Itoa(i), TurnID: strconv.Itoa(i / 4), Role: []Role{RoleUser, RoleAssistant}[i%2], Text: b.String()[:400<<10/len(entries)]}
	}
	return entries
}

func benchmarkSelect(b *testing.B, prepare func(c *Counter)) {
	in := Input{Entries: longThread(), Summary: "Before this, modules 1 to 9 were built."}
	c := newCounter(b, CounterOptions{})
	c.Count("load the vocabulary")
	for b.Loop() {
		prepare(c)
		w, err := Select(in, Settings{ContextTokens: 200_000, ReserveTokens: 8_000}, c.Count)
		if err != nil || len(w.Entries) != 200 {
			b.Fatal(len(w.Entries), err)
		}
	}
}

// BenchmarkSelect200x400KiBWarm has all counts in memory. The aim is 5 ms.
func BenchmarkSelect200x400KiBWarm(b *testing.B) {
	benchmarkSelect(b, func(*Counter) {})
}

// BenchmarkSelect200x400KiBCold has none, but the vocabulary. The aim is 60 ms.
func BenchmarkSelect200x400KiBCold(b *testing.B) {
	benchmarkSelect(b, func(c *Counter) { clear(c.recent); clear(c.older) })
}
