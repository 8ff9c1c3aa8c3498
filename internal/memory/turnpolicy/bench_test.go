package turnpolicy

import (
	"strings"
	"testing"
)

// BenchmarkClassify is what a turn pays, by the kind of its text.
func BenchmarkClassify(b *testing.B) {
	rules := builtin(b)
	for _, bm := range []struct{ name, text string }{
		{"wish", "Fix the failing test, and remember that we target Go 1.26."},
		{"none", "Refactor the parser into two files and keep the exported names as they are."},
		{"8k", strings.Repeat("The parser reads a token and looks at the next one. ", 160)},
		{"1M", strings.Repeat("The parser reads a token and looks at the next one.\n", 20_000)},
		{"hostile", hostile()},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.SetBytes(int64(len(bm.text)))
			for b.Loop() {
				rules.Wishes(bm.text)
			}
		})
	}
}

// hostile is a text of the greatest size that is looked at, with the words that make
// rules worth trying in one sentence after another.
func hostile() string {
	return strings.Repeat("please, and don't not without stop remember that my i we forget everything what you know about memory save store this that it, ", lookHead)
}
