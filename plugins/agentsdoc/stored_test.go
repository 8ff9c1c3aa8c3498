package agentsdoc

import (
	"testing"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/phases"
)

func TestPersistCallsTheHostOnce(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{".git/HEAD": "", "AGENTS.md": "one", "a/AGENTS.md": "deep"})
	host := &fakeHost{}
	p := newPlugin(powers{view: chain.OS{}, getenv: noVariables})
	configure(t, p, `{"global":false}`, host)
	where := inSession("s", base)
	for range 3 {
		ask(t, p, where, phases.AnswerBudget{})
		dispatch(t, p, "touched", where, &phases.ToolPostCallInput{Tool: "x", TouchedPaths: []string{"a/x"}}, phases.AnswerBudget{})
	}
	if host.gets != 1 || host.puts != 2 {
		t.Errorf("%d gets and %d puts, want 1 and 2: the block, and what was delivered", host.gets, host.puts)
	}
}
