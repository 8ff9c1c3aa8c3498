package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// allGrants allows everything.
func allGrants() phases.Grants {
	all := []string{"*"}
	return phases.Grants{
		Contribute: all, Sections: all, StableSections: all, Policies: all, Domains: all, Tools: all, Host: all, See: all,
	}
}

// hosted is an engine with plugins inside the host.
type hosted struct {
	cfg  config.Config
	opts runtime.Options
}

// newHosted declares each plugin under its own name with all grants.
func newHosted(plugins ...*sdk.Plugin) *hosted {
	h := &hosted{cfg: config.Config{Version: 1}, opts: runtime.Options{InProcess: map[string]runtime.Plugin{}}}
	for _, p := range plugins {
		h.cfg.Plugins = append(h.cfg.Plugins, config.Plugin{Name: p.Name, Grants: allGrants()})
		h.opts.InProcess[p.Name] = p
	}
	return h
}

// start makes the engine and closes it at the end of the test.
func (h *hosted) start(t testing.TB) *runtime.Engine {
	t.Helper()
	eng, err := runtime.New(t.Context(), &h.cfg, h.opts)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := eng.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return eng
}

// section is a hook that contributes one section.
func section(name, id, content string) sdk.Hook {
	return sdk.Hook{
		Name: name, Kinds: []phases.Kind{phases.KindPromptSection},
		PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.PromptSection{SectionID: id, Title: id, Content: content})
		},
	}
}

// plugin is a plugin of some hooks.
func plugin(name string, hooks ...sdk.Hook) *sdk.Plugin {
	return &sdk.Plugin{Name: name, Version: "1.0.0", Hooks: hooks}
}

// runOf returns the ledger's row of a subscription.
func runOf(t *testing.T, out *phases.Outcome, id string) phases.Run {
	t.Helper()
	for _, r := range out.Runs {
		if r.Subscription == id {
			return r
		}
	}
	t.Fatalf("no run of %s in %v", id, out.Runs)
	return phases.Run{}
}
