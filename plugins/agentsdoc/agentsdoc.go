package agentsdoc

import (
	"context"
	_ "embed" // for the schema
	"os"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/sdk"
)

// Fixed numbers of the subscription: what the plugin proposes to the operator.
const (
	priority = 600
	maxChars = 16_000
)

// configSchema is the JSON Schema of [Config].
//
//go:embed schema.json
var configSchema []byte

// New returns the plugin. It reads the machine's files and, when it is
// configured, the process's environment.
func New() *sdk.Plugin { return newPlugin(chain.OS{}, os.Getenv) }

// newPlugin is New with its powers given as values.
func newPlugin(view chain.FS, getenv func(string) string) *sdk.Plugin {
	return &sdk.Plugin{
		Name:         "agentsdoc",
		Version:      "0.1.0",
		Doc:          "Puts the AGENTS.md files of the working folder's source tree into the prompt.",
		ConfigSchema: configSchema,
		OnConfigure: func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
			cfg, err := ParseConfig(c.Config)
			if err != nil {
				return sdk.Setup{}, err
			}
			settings, err := cfg.Settings(getenv)
			if err != nil || !cfg.enabled() {
				return sdk.Setup{}, err
			}
			return sdk.Setup{Hooks: []sdk.Hook{promptHook(newPrompter(view, settings))}}, nil
		},
	}
}

// promptHook is the subscription agentsdoc.prompt. Failing closed is right: an
// agent that misses its instructions in silence does what they forbid.
func promptHook(p *prompter) sdk.Hook {
	return sdk.Hook{
		Name:             "prompt",
		Doc:              "the AGENTS.md files from the root of the source tree to the working folder",
		Kinds:            []phases.Kind{phases.KindPromptSection},
		Priority:         priority,
		OnFailure:        phases.OnFailure{Default: phases.FailClosed},
		Idempotent:       true,
		Budget:           phases.TextBudget{Chars: maxChars},
		Visibility:       phases.VisibilityInternal,
		PrePromptCompile: p.answer,
	}
}
