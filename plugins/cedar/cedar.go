// Package cedar is the plugin that judges calls of tools, and prompts, by rules in the language Cedar: each command of a
// call, each file that it reads or writes, each host that it connects to. The rules are files, or a text in the
// configuration; docs/RULES.md says how to write them.
//
// A call with which no rule is concerned goes on: the plugin never allows, it only does not object. A rule that forbids
// denies, or asks if it has the annotation @ask. Rules are checked against the model of package cedar ([Schema]) when they
// are read, and one that cannot be evaluated denies. When a file changes, the next call is judged by what it has then; a
// mistake in it leaves the rules in force that were there before.
//
// Start reading at [New], then ruleset.judge. Package github.com/cedar-policy/cedar-go parses, checks and evaluates.
//
// Stability: experimental until 1.0.
package cedar

import (
	"context"
	_ "embed" // for the schema
	"slices"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// configSchema is the JSON Schema of [config].
//
//go:embed schema.json
var configSchema []byte

// config is the operator's configuration; schema.json describes each key.
type config struct {
	Files    []string `json:"files"`
	Sets     []string `json:"sets"`
	Policies string   `json:"policies"`
	Default  string   `json:"default"`
}

// New returns the plugin. It reads the files of its configuration.
func New() *sdk.Plugin {
	return &sdk.Plugin{
		Name:         "cedar",
		Version:      "0.1.0",
		Doc:          "Judges calls of tools by rules in Cedar.",
		ConfigSchema: configSchema,
		OnConfigure: func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
			var cfg config
			if err := sdk.DecodeConfig(c.Config, &cfg); err != nil {
				return sdk.Setup{}, err
			}
			k, err := newKeeper(&cfg)
			if err != nil {
				return sdk.Setup{}, err
			}
			return sdk.Setup{Hooks: hooks(k)}, nil
		},
	}
}

// hooks are the subscriptions; prompts are judged only if a rule names them. Both fail closed.
func hooks(k *keeper) []sdk.Hook {
	var policy []string
	if k.sees {
		policy = []string{phases.SeePolicy}
	}
	list := []sdk.Hook{{
		Name: "call", Doc: "judges a call, its commands, files and hosts", Needs: append(policy, "arguments", "facts"),
		ToolPreCall: func(ctx context.Context, call *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
			if withheld(call, "arguments", "facts", phases.SeePolicy) {
				return sdk.Reply(undecidable("they must see arguments and facts, and policy if they use it; grant that"))
			}
			return k.judge(ctx, newCall(call.Dispatch, in, &in.Facts), call.Context.TurnID)
		},
	}}
	if k.prompts {
		list = append(list, sdk.Hook{
			Name: "prompt", Doc: "judges a prompt", Needs: append(policy, "user_text"),
			PrePolicy: func(ctx context.Context, call *sdk.Call, in *phases.PrePolicyInput) ([]phases.Contribution, error) {
				if withheld(call, "user_text", phases.SeePolicy) {
					return sdk.Reply(undecidable("they must see user_text, and policy if they use it; grant that"))
				}
				return k.judge(ctx, newPrompt(call.Dispatch, in), call.Context.TurnID)
			},
		})
	}
	for i := range list {
		list[i].Role, list[i].Kinds = phases.RoleValidate, []phases.Kind{phases.KindDecision, phases.KindManifestDiagnostic}
		list[i].Idempotent, list[i].OnFailure, list[i].Visibility = true, phases.OnFailure{Default: phases.FailClosed}, phases.VisibilityUserAudit
	}
	return list
}

// withheld reports whether a call lacks one of the names. The turn's policies are withheld only from hooks that need them.
func withheld(call *sdk.Call, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(call.Withheld, name) })
}
