package agentsdoc

import (
	"encoding/json"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/phases"
)

// keeper is the plugin under a configuration, with a host that keeps state.
func keeper(tb testing.TB, config string) *docs {
	tb.Helper()
	s, err := settingsOf(json.RawMessage(config), noVariables)
	if err != nil {
		tb.Fatal(err)
	}
	host := &fakeHost{}
	d := newDocs(powers{view: chain.OS{}}, s, &phases.Configuration{Host: host, Services: []string{stateService}})
	tb.Cleanup(d.watcher.Close)
	return d
}

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

func FuzzTake(f *testing.F) {
	base := build(f, map[string]string{".git/HEAD": "", "AGENTS.md": "one"})
	d := keeper(f, `{"global":false}`)
	s := newSession(sessionKey{session: "s"})
	d.setBlock(s, &phases.Context{Dir: base}, newBlock(d.view, d.options, base, phases.AnswerBudget{}))
	f.Add([]byte(d.encode(s)))
	f.Add([]byte(`{"schema":1,"nested":{"schema":1}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newSession(sessionKey{session: "s"})
		d.takeGiven(s, data)
		if s.nested != nil && s.nested.Dir == "" {
			t.Error("nobody knows where it was delivered")
		}
	})
}
