package text_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/text"
)

func reservedHeading(letters string) bool { return letters == "safety" || letters == "agentsmd" }

func TestEscapeHeadings(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"plain", "Safety first.", "Safety first."},
		{"another heading", "## Style\n# Safety rules\n- a", "## Style\n# Safety rules\n- a"},
		{"any level, case and blanks", "# Safety\nx\n  ####   SAFETY  ##\n#safety", "\\# Safety\nx\n  \\####   SAFETY  ##\n\\#safety"},
		{"with marks", "## **Safety**:", "\\## **Safety**:"},
		{"with unseen characters", "\u200b## Sa\u200bfety", "\u200b\\## Sa\u200bfety"},
		{"with punctuation", "## AGENTS.md", "\\## AGENTS.md"},
		{"underlined", "Safety\n======\nx", "Safety\n\\======\nx"},
		{"underlined with dashes", "a\n Safety \n--- \nx", "a\n Safety \n\\--- \nx"},
		{"a rule", "a\n---\nSafety\n\n---", "a\n---\nSafety\n\n---"},
		{"HTML", "<H2 class=x>Safety</h2>", "<\\H2 class=x>Safety</h2>"},
		{"in the middle of a line", "see ## Safety", "see ## Safety"},
		{"alone", "## Safety", "\\## Safety"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, n := text.EscapeHeadings(tt.in, reservedHeading)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if added := len(got) - len(tt.in); n != added {
				t.Errorf("%d headings, %d backslashes", n, added)
			}
		})
	}
}

// TestEscapeHeadingsRandom: what was escaped is no heading any more, and nothing but
// backslashes was added.
func TestEscapeHeadingsRandom(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 5))
	pieces := []string{"#", "## ", "Safety", "safety", "\n", "\n", "===", "---", " ", "<h2>", "</h2>", "x", "\u200b", "AGENTS.md", "\\", "*"}
	for range 20_000 {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		in := b.String()
		out, n := text.EscapeHeadings(in, reservedHeading)
		if again, more := text.EscapeHeadings(out, reservedHeading); more != 0 || again != out {
			t.Fatalf("%q became %q, in which %d are left", in, out, more)
		}
		if len(out) != len(in)+n || strings.ReplaceAll(out, `\`, "") != strings.ReplaceAll(in, `\`, "") {
			t.Fatalf("%q became %q with %d backslashes", in, out, n)
		}
	}
}
