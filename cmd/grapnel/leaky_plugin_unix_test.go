//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// leakySecret is what the mode "leaky" puts where an argument "place=" says. It is no
// word, so that it cannot pass for a code or a name.
func leakySecret(place string) string { return "sk-SECRET of " + place + "!" }

// leakyPlaces lists the places where a plugin can put words of its own.
func leakyPlaces() []string {
	return append(slices.Collect(maps.Keys(leakyAnswers())), "version", "after", "when", "noise", "exit", "tool", "tool_panic", "tool_remark")
}

// leaky is the mode "leaky" of the bad plugin: arguments "hook=PLACE/VISIBILITY" are its hooks of turn.pre_prompt_compile,
// and those "tool=PLACE" its tools.
func leaky(p *badProgram) error {
	plugin := &sdk.Plugin{Name: "bad", Version: "1.0.0"}
	bundle := &phases.ToolBundle{BundleID: "b"}
	for _, arg := range p.args {
		kind, what, _ := strings.Cut(arg, "=")
		place, visibility, _ := strings.Cut(what, "/")
		secret := leakySecret(place)
		switch place {
		case "noise":
			_, err := io.WriteString(p.stdout, secret+"\n")
			return err
		case "exit":
			return fmt.Errorf("the last words: %s", secret)
		case "version":
			plugin.Version = secret
		}
		if kind == "hook" {
			plugin.Hooks = append(plugin.Hooks, leakyHook(p, place, phases.Visibility(visibility)))
			continue
		}
		tool := phases.Tool{Name: "t_" + place, Description: "leaks"}
		bundle.Tools = append(bundle.Tools, tool)
		plugin.Tools = append(plugin.Tools, sdk.Tool{Tool: tool, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) { return leakyTool(place, secret) }})
	}
	if len(bundle.Tools) > 0 {
		plugin.Hooks = append(plugin.Hooks, sdk.Hook{
			Name: "tools", Kinds: []phases.Kind{phases.KindToolBundle},
			PreTools: func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
				return sdk.Reply(bundle)
			},
		})
	}
	return serve.Serve(plugin)
}

func leakyHook(p *badProgram, place string, v phases.Visibility) sdk.Hook {
	hook := sdk.Hook{
		Name: place + "_" + string(v), Phase: phases.PrePromptCompile, Visibility: v,
		Kinds: []phases.Kind{phases.KindPromptSection, phases.KindAudit, phases.KindBackgroundJob},
		Any: func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
			if answer := leakyAnswers()[place]; answer != nil {
				return answer(ctx, p, c, leakySecret(place))
			}
			return nil, nil
		},
	}
	switch place {
	case "after":
		hook.After = []string{leakySecret(place)}
	case "when":
		hook.When = leakySecret(place)
	}
	return hook
}

func leakyTool(place, secret string) (*phases.ToolResult, error) {
	switch place {
	case "tool":
		return nil, sdk.Fail("down", secret)
	case "tool_panic":
		panic(secret)
	}
	return &phases.ToolResult{Content: []byte(`"fine"`), Diagnostics: []phases.Diagnostic{{Code: "slow", Severity: phases.SeverityWarning, Message: secret}}}, nil
}

type leakyAnswer func(ctx context.Context, p *badProgram, c *sdk.Call, secret string) ([]phases.Contribution, error)

// leakyAnswers are the ways to put words into the answer of a hook.
func leakyAnswers() map[string]leakyAnswer {
	all := map[string]leakyAnswer{
		"panic": func(_ context.Context, _ *badProgram, _ *sdk.Call, secret string) ([]phases.Contribution, error) {
			panic(secret)
		},
		"crash": func(_ context.Context, p *badProgram, _ *sdk.Call, secret string) ([]phases.Contribution, error) {
			_, _ = fmt.Fprintln(p.stderr, "the user wrote:", secret)
			os.Exit(7)
			return nil, nil
		},
		"host_call": func(ctx context.Context, _ *badProgram, c *sdk.Call, secret string) ([]phases.Contribution, error) {
			_, err := c.Host.Call(ctx, secret, secret, json.RawMessage(`{}`))
			return nil, err
		},
	}
	for place, failed := range leakyErrors() {
		all[place] = func(_ context.Context, _ *badProgram, _ *sdk.Call, secret string) ([]phases.Contribution, error) {
			return nil, failed(secret)
		}
	}
	for place, c := range leakyContributions() {
		all[place] = func(_ context.Context, _ *badProgram, _ *sdk.Call, secret string) ([]phases.Contribution, error) {
			return sdk.Reply(c(secret))
		}
	}
	return all
}

// leakyErrors are the errors of a hook with words in them.
func leakyErrors() map[string]func(secret string) *phases.Error {
	return map[string]func(string) *phases.Error{
		"error":       func(s string) *phases.Error { return sdk.Fail("down", s) },
		"plugin_code": func(s string) *phases.Error { return sdk.Fail(s, "down") },
		"cause":       func(s string) *phases.Error { return &phases.Error{Code: phases.Cause(s), Message: "down"} },
		"safe_error": func(s string) *phases.Error {
			return &phases.Error{Code: phases.CausePluginError, PluginCode: "down", Message: s, SafeForUser: true}
		},
	}
}

// leakyContributions are contributions with words in them that are not content.
func leakyContributions() map[string]func(secret string) phases.Contribution {
	remark := func(d phases.Diagnostic) phases.Contribution {
		d.Severity = phases.SeverityWarning
		return &phases.Noop{Common: phases.Common{Diagnostics: []phases.Diagnostic{d}}}
	}
	section := func(s phases.PromptSection) phases.Contribution { return &s }
	return map[string]func(secret string) phases.Contribution{
		"remark": func(s string) phases.Contribution { return remark(phases.Diagnostic{Code: "slow", Message: s}) },
		"safe_remark": func(s string) phases.Contribution {
			return remark(phases.Diagnostic{Code: "slow", Message: s, SafeForUser: true})
		},
		"remark_code": func(s string) phases.Contribution {
			return remark(phases.Diagnostic{Code: s, Message: "m", SafeForUser: true})
		},
		"remark_slot": func(s string) phases.Contribution {
			return remark(phases.Diagnostic{Code: "slow", Slot: s, Cause: phases.Cause(s), Message: s})
		},
		"diagnostic": func(s string) phases.Contribution {
			return &phases.ManifestDiagnostic{Code: "slow", Message: s, Severity: "warning"}
		},
		"diagnostic_code": func(s string) phases.Contribution { return &phases.ManifestDiagnostic{Code: s} },
		"severity": func(s string) phases.Contribution {
			return &phases.ManifestDiagnostic{Code: "slow", Severity: phases.Severity(s)}
		},
		"audit_kind": func(s string) phases.Contribution { return &phases.Audit{EventKind: s} },
		"audit": func(s string) phases.Contribution {
			return &phases.Audit{EventKind: "e", Details: fmt.Appendf(nil, "%q", s)}
		},
		"job_kind":   func(s string) phases.Contribution { return &phases.BackgroundJob{JobKind: s} },
		"section_id": func(s string) phases.Contribution { return section(phases.PromptSection{SectionID: s}) },
		"stability": func(s string) phases.Contribution {
			return section(phases.PromptSection{SectionID: "s", Stability: phases.Stability(s)})
		},
		"domain":          func(s string) phases.Contribution { return &phases.Noop{Common: phases.Common{Domain: s}} },
		"contribution_id": func(s string) phases.Contribution { return &phases.Noop{Common: phases.Common{ContributionID: s}} },
		// A kind that was not declared is dropped before its id is looked at.
		"dropped_id": func(s string) phases.Contribution {
			return &phases.PromptContext{Common: phases.Common{ContributionID: s}, Content: strings.Repeat("x", 3)}
		},
	}
}
