package agentsdoc

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
)

// TestHooksAtOnce has all hooks of a session run at the same time, with another
// session beside it: each nested file is told once.
func TestHooksAtOnce(t *testing.T) {
	t.Parallel()
	const folders = 40
	tree := map[string]string{".git/HEAD": "", "AGENTS.md": "top"}
	for i := range folders {
		tree[fmt.Sprintf("d%d/AGENTS.md", i)] = fmt.Sprintf("deep %d", i)
	}
	base := build(t, tree)
	p := newPlugin(powers{view: chain.OS{}, getenv: environment(nil)})
	configure(t, p, `{"global":false}`, &fakeHost{})
	where := inSession("s", base)
	ask(t, p, where, phases.Room{})

	var told atomic.Int64
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range folders {
				paths := []string{fmt.Sprintf("d%d/x", (i+worker*7)%folders)}
				for _, c := range dispatch(t, p, "touching", where, &phases.ToolPreCallInput{Tool: "x", TouchedPaths: paths}, phases.Room{}) {
					if r, ok := c.(*phases.Reminder); ok {
						told.Add(int64(strings.Count(r.Text, "\n[source: ")))
					}
				}
			}
		})
	}
	all.Go(func() {
		for i := range 20 {
			ask(t, p, where, phases.Room{})
			dispatch(t, p, "changed", where, &phases.PrePromptCompileInput{}, phases.Room{})
			other := inSession("other", base)
			other.Epoch = i
			ask(t, p, other, phases.Room{})
			dispatch(t, p, "end", other, &phases.SessionEndInput{}, phases.Room{})
		}
	})
	all.Wait()
	if told.Load() != folders {
		t.Errorf("%d files were told of, want %d", told.Load(), folders)
	}
}
