package chain

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
)

// asHost does to a text what hosts do: a line of the form of their own mark of a
// cut gets a backslash, whatever blanks are around it, and so does their boundary.
func asHost(text string) string {
	text = strings.ReplaceAll(text, "<!-- grapnel:dynamic -->", `<\!-- grapnel:dynamic -->`)
	marker := regexp.MustCompile(`(?m)^([ \t]*\[)(truncated: kept [0-9,]+ of [0-9,]+ characters\][ \t]*)$`)
	return marker.ReplaceAllString(text, `$1\$2`)
}

func TestRenderForHost(t *testing.T) {
	if testing.Short() {
		t.Skip("volume without concurrency: it runs without -short")
	}
	t.Parallel()
	rng := rand.New(rand.NewPCG(61, 62))
	pieces := []string{"  [truncated: kept 15,950 of 40,212 characters]\n", "[truncated: kept 1 of 2 characters] \n", "<!-- grapnel:dynamic -->", "plain words\n"}
	changed := 0
	for range 600 {
		c := chainOf()
		c.Options = preset(t, []Preset{PresetDefault, PresetDefault, PresetCodex, PresetCodelia}[rng.IntN(4)])
		for i := range 1 + rng.IntN(4) {
			var text strings.Builder
			for range rng.IntN(30) {
				text.WriteString(pieces[rng.IntN(len(pieces))])
				text.WriteString(agentsdoctest.Hostile(rng, rng.IntN(3)))
			}
			s := source(ScopeProject, strings.Repeat("d/", i)+"AGENTS.md", text.String())
			if s.Text == "" {
				s.State, s.Reason = StateSkipped, ReasonBlank
			}
			c.Sources = append(c.Sources, s)
		}
		full := Render(c, Budget{plenty, plenty})
		b := Budget{plenty, rng.IntN(full.Chars + 40)}
		r := RenderForHost(c, b)
		if c.Options.Layout != LayoutDelimited {
			checkList(t, c, r)
		}
		after := asHost(r.Text)
		if n := utf8.RuneCountInString(after); n > b.Chars {
			t.Fatalf("%d characters in a prompt, the host allows %d", n, b.Chars)
		}
		if Render(c, b).Text != r.Text {
			changed++
		}
	}
	if changed < 100 {
		t.Errorf("only %d texts needed room for the host: the test sees too little", changed)
	}
}
