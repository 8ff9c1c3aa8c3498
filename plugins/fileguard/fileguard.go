// Package fileguard is the plugin that keeps what is in files of secrets (.env, private keys, credentials of tools) from
// the model: it denies calls of tools and prompts that would bring it, and removes it from results.
//
// The hook "call" judges every text in a call's arguments, whatever the tool: as a path, a glob or a command, which it
// reads as a shell does. The hook "prompt" denies prompts that mention such a file with @, since agents attach its content
// without a call. The hook "result" is the second line: it redacts what came in another way, such as by a program that puts the
// name together. Package internal/facts/guard judges; docs/SECURITY.md says what it cannot see.
//
// Stability: experimental until 1.0.
package fileguard

import (
	"context"
	_ "embed" // for the schema
	"encoding/json"
	"os"
	"os/user"
	"slices"
	"strconv"

	"github.com/grapnelhq/grapnel/internal/facts/guard"
	"github.com/grapnelhq/grapnel/internal/facts/protect"
	"github.com/grapnelhq/grapnel/internal/facts/secret"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// code is the reason code of the plugin's denials.
const code = "protected_file"

// configSchema is the JSON Schema of [config].
//
//go:embed schema.json
var configSchema []byte

// config is the operator's configuration; schema.json describes each key.
type config struct {
	Defaults      bool     `json:"defaults"`
	Deny          []string `json:"deny"`
	Allow         []string `json:"allow"`
	RedactSecrets bool     `json:"redact_secrets"`
	RedactValues  bool     `json:"redact_values"`
}

// New returns the plugin. It looks at the machine's files, and takes the home directory from HOME or the user's entry.
func New() *sdk.Plugin { return newPlugin(home) }

func newPlugin(home func() string) *sdk.Plugin {
	return &sdk.Plugin{
		Name:         "fileguard",
		Version:      "0.1.0",
		Doc:          "Keeps what is in .env files, private keys and the like from the model.",
		ConfigSchema: configSchema,
		OnConfigure: func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
			g, err := configure(c.Config)
			if err != nil {
				return sdk.Setup{}, err
			}
			g.Home = home()
			return sdk.Setup{Hooks: hooks(g)}, nil
		},
	}
}

func home() string {
	if dir, err := os.UserHomeDir(); err == nil {
		return dir
	}
	if u, err := user.Current(); err == nil {
		return u.HomeDir
	}
	return ""
}

// configure makes the guard that a configuration describes. Errors are [*phases.ConfigError].
func configure(data json.RawMessage) (*guard.Guard, error) {
	c := config{Defaults: true, RedactSecrets: true, RedactValues: true}
	if err := sdk.DecodeConfig(data, &c); err != nil {
		return nil, err
	}
	for name, list := range map[string][]string{"deny": c.Deny, "allow": c.Allow} {
		for i, pattern := range list {
			if _, err := protect.New([]string{pattern}, nil); err != nil {
				return nil, sdk.ConfigErrorf("/"+name+"/"+strconv.Itoa(i), "%v", err)
			}
		}
	}
	deny, allow := protect.Defaults()
	if !c.Defaults {
		deny, allow = nil, nil
	}
	if len(deny)+len(c.Deny) == 0 {
		return nil, sdk.ConfigErrorf("/deny", "nothing is protected: name patterns, or leave the defaults on")
	}
	set, err := protect.New(append(deny, c.Deny...), append(allow, c.Allow...))
	if err != nil {
		return nil, err
	}
	g := &guard.Guard{Set: set, Values: c.RedactValues}
	if c.RedactSecrets {
		g.Secrets = secret.Formats()
	}
	return g, nil
}

// hooks are the subscriptions. All of them fail closed: that is what they are for.
func hooks(g *guard.Guard) []sdk.Hook {
	decision, closed := []phases.Kind{phases.KindDecision}, phases.OnFailure{Default: phases.FailClosed}
	list := []sdk.Hook{
		{
			Name: "prompt", Doc: "denies prompts that mention a protected file with @", Role: phases.RoleValidate, Kinds: decision, Needs: []string{"user_text"},
			PrePolicy: func(_ context.Context, call *sdk.Call, in *phases.PrePolicyInput) ([]phases.Contribution, error) {
				if in.UserText.Withheld {
					return deny("the prompt cannot be judged: it was withheld from the guard")
				}
				return verdict(g.Prompt(in.UserText.Value, call.Context.Dir))
			},
		},
		{
			Name: "call", Doc: "denies calls that would read a protected file", Role: phases.RoleValidate, Kinds: decision, Needs: []string{"arguments"},
			ToolPreCall: func(_ context.Context, call *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
				if slices.Contains(call.Withheld, "arguments") {
					return deny("the call cannot be judged: its arguments were withheld from the guard")
				}
				return verdict(g.Call(in.Tool, in.Arguments, in.TouchedPaths, call.Context.Dir))
			},
		},
		{
			Name: "result", Doc: "removes what is in protected files from results", Role: phases.RoleTransform, Kinds: []phases.Kind{phases.KindRewrite}, Needs: []string{"arguments", "result"},
			ToolPostCall: func(_ context.Context, call *sdk.Call, in *phases.ToolPostCallInput) ([]phases.Contribution, error) {
				return redact(g, call, in)
			},
		},
	}
	for i := range list {
		list[i].Idempotent, list[i].OnFailure, list[i].Visibility = true, closed, phases.VisibilityUserAudit
	}
	return list
}

func verdict(f *guard.Finding) ([]phases.Contribution, error) {
	if f == nil {
		return nil, nil
	}
	return deny(f.Reason())
}

func deny(reason string) ([]phases.Contribution, error) {
	return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: reason, ReasonCode: code})
}

// redact replaces the result as a whole: what it is rewritten to may be JSON, or any text.
func redact(g *guard.Guard, call *sdk.Call, in *phases.ToolPostCallInput) ([]phases.Contribution, error) {
	left, changed := g.Result(in.Tool, in.Arguments, in.TouchedPaths, in.Result.Text, in.Result.Truncated || in.Result.Withheld, call.Context.Dir)
	if !changed {
		return nil, nil
	}
	value := json.RawMessage(left)
	if !json.Valid(value) || !json.Valid([]byte(in.Result.Text)) {
		text, err := json.Marshal(left)
		if err != nil {
			return nil, err
		}
		value = text
	}
	return sdk.Reply(&phases.Rewrite{Path: "", Value: value})
}
