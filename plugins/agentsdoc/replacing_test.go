package agentsdoc_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/runtime"
)

// TestReplacedTextIsAnnounced has the words and places that codex has (codex-rs/core/src/context/world_state/agents_md.rs), in a
// session that goes from one directory to the next.
func TestReplacedTextIsAnnounced(t *testing.T) {
	t.Parallel()
	const replaced = "These AGENTS.md instructions replace all previously provided AGENTS.md instructions.\n\n"
	base := build(t, map[string]string{"one/AGENTS.md": "one", "two/AGENTS.md": "two", "none/x": ""})
	for preset, announced := range map[string]bool{"codex": true, "claude": false} {
		h := session(t, inside(t, "{global: false, preset: "+preset+"}", runtime.Options{}), "s", base)
		for _, step := range []struct{ dir, want string }{
			{"one", "one"}, {"two", replaced + "two"}, {"two", replaced + "two"}, {"none", "The previously provided AGENTS.md instructions no longer apply."}, {"one", "one"},
		} {
			h.where.Dir = base + "/" + step.dir
			var text strings.Builder
			for _, m := range h.compile().Prompt.UserMessages {
				text.WriteString(m.Text)
			}
			if _, got, _ := strings.Cut(text.String(), "<INSTRUCTIONS>\n"); announced && got != step.want+"\n</INSTRUCTIONS>" || !announced && strings.Contains(text.String(), "previously") {
				t.Errorf("%s, %s: got %q, want %q", preset, step.dir, text.String(), step.want)
			}
		}
	}
}
