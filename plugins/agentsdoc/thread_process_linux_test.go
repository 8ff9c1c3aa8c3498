package agentsdoc_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestDocumentsOfAProcess: as a process of its own the plugin has the text that was
// saved last, in each turn, also in one that was started anew; files stay as they
// were until then.
func TestDocumentsOfAProcess(t *testing.T) {
	t.Parallel()
	var saved atomic.Int64
	eng := startGranted(t, treeGrants, "{source: both, global: false}", documents(func(context.Context) (string, error) {
		return fmt.Sprintf(`{"effective":{"doc":{"id":"01J","content":"text %d"},"source_path":["a"]},"diagnostics":[]}`, saved.Load()), nil
	}))
	base := build(t, map[string]string{"r/.git/HEAD": "", "r/AGENTS.md": "of the files"})
	h := session(t, eng.Engine, "s", base+"/r")
	turn := func(name, want string) {
		t.Helper()
		saved.Add(1)
		text := section(h.compile())
		files := strings.Index(text, "\n"+want+"\n")
		if doc := strings.Index(text, fmt.Sprintf("\ntext %d\n", saved.Load())); files < 0 || doc < files {
			t.Errorf("%s: the text is\n%s", name, text)
		}
	}
	turn("first", "of the files")
	write(t, base+"/r/AGENTS.md", "edited")
	turn("next", "of the files")
	eng.kill(t)
	if got := state(h.compile(), "agentsdoc.thread_prompt"); got != phases.StateSucceeded {
		t.Errorf("after the end of its process the hook %s", got)
	}
	turn("of another process", "edited")
}
