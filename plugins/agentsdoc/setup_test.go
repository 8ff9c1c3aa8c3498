package agentsdoc

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/thread"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

var build = agentsdoctest.Build

func write(tb testing.TB, path, text string) {
	tb.Helper()
	agentsdoctest.Put(tb, "", path, text)
}

// noVariables is the getenv of an empty environment.
func noVariables(string) string { return "" }

// configured returns a plugin with a configuration in force, and no
// environment.
func configured(tb testing.TB, config string) *sdk.Plugin {
	tb.Helper()
	p := newPlugin(powers{view: chain.OS{}, getenv: noVariables})
	configure(tb, p, config, nil)
	return p
}

// configure puts a configuration in force, with a host that grants its services.
// The watch of the plugin ends with the test.
func configure(tb testing.TB, p *sdk.Plugin, config string, host *fakeHost) {
	tb.Helper()
	c := &phases.Configuration{Instance: "agentsdoc", Config: json.RawMessage(config)}
	if host != nil {
		c.Host, c.Services = host, []string{stateService}
		if host.documents != nil {
			c.Services = append(c.Services, thread.Service)
		}
	}
	if _, err := p.Configure(tb.Context(), c); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if _, err := p.Configure(context.WithoutCancel(tb.Context()), &phases.Configuration{Config: []byte(`{"enabled":false}`)}); err != nil {
			tb.Error(err)
		}
	})
}

// ask dispatches the hook and returns its one contribution, or nil.
func ask(tb testing.TB, p *sdk.Plugin, where phases.Context, room phases.AnswerBudget) phases.Contribution {
	tb.Helper()
	switch cs := dispatch(tb, p, "prompt", where, &phases.PrePromptCompileInput{}, room); len(cs) {
	case 0:
		return nil
	case 1:
		return cs[0]
	default:
		tb.Fatalf("%d contributions", len(cs))
		return nil
	}
}

// dispatch calls a hook.
func dispatch(tb testing.TB, p *sdk.Plugin, hook string, where phases.Context, in phases.Input, room phases.AnswerBudget) []phases.Contribution {
	tb.Helper()
	res, err := p.Dispatch(tb.Context(), &phases.Dispatch{
		Subscription: "agentsdoc." + hook, Hook: hook, Phase: phases.PhaseOf(in), Context: where, Input: in, Budget: room,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return res.Contributions
}

// askSection is ask where there must be a section.
func askSection(tb testing.TB, p *sdk.Plugin, where phases.Context, room phases.AnswerBudget) *phases.PromptSection {
	tb.Helper()
	c := ask(tb, p, where, room)
	s, ok := c.(*phases.PromptSection)
	if !ok {
		tb.Fatalf("got %T, want a section", c)
	}
	return s
}

// codes are the codes of a contribution's diagnostics.
func codes(c phases.Contribution) []string {
	var out []string
	for _, d := range c.Head().Diagnostics {
		out = append(out, d.Code)
	}
	return out
}

// inDir is a context that only knows its directory.
func inDir(elems ...string) phases.Context {
	return phases.Context{Dir: filepath.Join(elems...)}
}
