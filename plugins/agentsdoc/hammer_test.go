package agentsdoc

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/phases"
)

// TestHooksAtOnce has all hooks of a session run at the same time, with another
// session beside it: each nested file is told once.
func TestHooksAtOnce(t *testing.T) {
	t.Parallel()
	const directories = 40
	tree := map[string]string{".git/HEAD": "", "AGENTS.md": "top"}
	for i := range directories {
		tree[fmt.Sprintf("d%d/AGENTS.md", i)] = fmt.Sprintf("deep %d", i)
	}
	base := build(t, tree)
	p := newPlugin(powers{view: chain.OS{}, getenv: noVariables})
	configure(t, p, `{"global":false}`, &fakeHost{})
	where := inSession("s", base)
	ask(t, p, where, phases.AnswerBudget{})

	var told atomic.Int64
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range directories {
				paths := []string{fmt.Sprintf("d%d/x", (i+worker*7)%directories)}
				for _, c := range dispatch(t, p, "touching", where, &phases.ToolPreCallInput{Tool: "x", TouchedPaths: paths}, phases.AnswerBudget{}) {
					if r, ok := c.(*phases.Reminder); ok {
						told.Add(int64(strings.Count(r.Text, "\n[source: ")))
					}
				}
			}
		})
	}
	all.Go(func() {
		for i := range 20 {
			ask(t, p, where, phases.AnswerBudget{})
			dispatch(t, p, "changed", where, &phases.PrePromptCompileInput{}, phases.AnswerBudget{})
			other := inSession("other", base)
			other.Epoch = i
			ask(t, p, other, phases.AnswerBudget{})
			dispatch(t, p, "end", other, &phases.SessionEndInput{}, phases.AnswerBudget{})
		}
	})
	all.Wait()
	if told.Load() != directories {
		t.Errorf("%d files were told of, want %d", told.Load(), directories)
	}
}
