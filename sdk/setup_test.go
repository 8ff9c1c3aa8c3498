package sdk_test

import (
	"context"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// compileHook is a hook of the phase before compilation with the given answer.
func compileHook(name string, cs ...phases.Contribution) sdk.Hook {
	return sdk.Hook{
		Name: name, Kinds: []phases.Kind{phases.KindPromptSection},
		PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
			return sdk.Reply(cs...)
		},
	}
}

// section is a contribution with one word.
func section(word string) *phases.PromptSection {
	return &phases.PromptSection{SectionID: "s", Content: word}
}

// plugin is a valid plugin with the given hooks.
func plugin(hooks ...sdk.Hook) *sdk.Plugin {
	return &sdk.Plugin{Name: "p", Version: "1", Hooks: hooks}
}

// ask dispatches a hook of the phase before compilation.
func ask(t *testing.T, p *sdk.Plugin, hook string) []phases.Contribution {
	t.Helper()
	res, err := p.Dispatch(t.Context(), &phases.Dispatch{Hook: hook, Phase: phases.PrePromptCompile, Input: &phases.PrePromptCompileInput{}})
	if err != nil {
		t.Fatal(err)
	}
	return res.Contributions
}

// hookNames are the names in a description.
func hookNames(d *phases.Description) []string {
	var names []string
	for i := range d.Hooks {
		names = append(names, d.Hooks[i].Name)
	}
	return names
}
