package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// configSchema is what the operator may write under "config". The host checks it before the plugin sees anything.
const configSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["until", "tools"],
  "properties": {
    "until":  {"type": "string", "description": "the end of the freeze, RFC 3339"},
    "tools":  {"type": "array", "items": {"type": "string"}, "description": "tools that are denied until then"},
    "reason": {"type": "string", "description": "why, for people and models"}
  }
}`

// newPlugin is the plugin as data. Its hooks close over the configuration, so
// they come from OnConfigure; hooks that need none stand in the literal.
func newPlugin() *sdk.Plugin {
	return &sdk.Plugin{
		Name:         "freeze",
		Version:      "1.0.0",
		Doc:          "Announces a change freeze, and keeps it.",
		ConfigSchema: json.RawMessage(configSchema),
		OnConfigure: func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
			f, err := parse(c.Config)
			if err != nil {
				return sdk.Setup{}, err
			}
			return sdk.Setup{Hooks: f.hooks(), Tools: []sdk.Tool{{Tool: statusTool(), Call: f.status}}}, nil
		},
	}
}

// freeze is one configuration. It never changes: several calls read it at the same time.
type freeze struct {
	Until  time.Time `json:"until"`
	Tools  []string  `json:"tools"`
	Reason string    `json:"reason"`
}

// parse reads what the schema has checked already. A [phases.ConfigError] points
// to the mistake; the host shows the operator file and line.
func parse(data json.RawMessage) (*freeze, error) {
	f := &freeze{Reason: "change freeze"}
	err := json.Unmarshal(data, f)
	if bad, ok := errors.AsType[*time.ParseError](err); ok {
		return nil, &phases.ConfigError{Pointer: "/until", Message: fmt.Sprintf("%s is not a time; write one like 2026-12-24T12:00:00Z", bad.Value)}
	}
	if err != nil {
		return nil, &phases.ConfigError{Message: err.Error()}
	}
	return f, nil
}

func (f *freeze) hooks() []sdk.Hook {
	return []sdk.Hook{
		{
			Name:             "announce",
			Doc:              "tells the model that a freeze is on",
			Kinds:            []phases.Kind{phases.KindPromptSection},
			PrePromptCompile: f.announce,
		}, {
			Name:     "offer",
			Doc:      "offers the tool freeze_status",
			Kinds:    []phases.Kind{phases.KindToolBundle},
			Needs:    []string{"tool_calling"},
			PreTools: f.offer,
		}, {
			// A validator runs after all other hooks of its phase, on what they have made of the call. It fails
			// closed: a guard that cannot answer denies. It says what it looks at: a host that does not show it that
			// does not run it, and says so.
			Name:        "guard",
			Doc:         "denies tools that change things",
			Kinds:       []phases.Kind{phases.KindDecision},
			Role:        phases.RoleValidate,
			Needs:       []string{"tool"},
			ToolPreCall: f.guard,
		},
	}
}

// on reports whether the freeze lasts. The clock is the turn's, not our own: a
// test, a replay and a user in another time zone then see the same.
func (f *freeze) on(c phases.Context) bool { return c.Now.Before(f.Until) }

func (f *freeze) announce(_ context.Context, call *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
	if !f.on(call.Context) {
		return nil, nil // nothing to say
	}
	return sdk.Reply(&phases.PromptSection{SectionID: "freeze", Title: "Change freeze", Content: f.text()})
}

func (f *freeze) offer(_ context.Context, _ *sdk.Call, in *phases.PreToolsInput) ([]phases.Contribution, error) {
	if !in.ToolCalling {
		return nil, nil // not granted (see: tool_calling), or the model calls none
	}
	return sdk.Reply(&phases.ToolBundle{BundleID: "freeze", Tools: []phases.Tool{statusTool()}})
}

func (f *freeze) guard(_ context.Context, call *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
	if !f.on(call.Context) || !slices.Contains(f.Tools, in.Tool) {
		return nil, nil // no opinion
	}
	return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: f.text(), ReasonCode: "freeze"})
}

func statusTool() phases.Tool {
	return phases.Tool{Name: "freeze_status", Description: "Says whether a change freeze is on, and until when."}
}

func (f *freeze) status(_ context.Context, call *sdk.ToolCall) (*phases.ToolResult, error) {
	if !f.on(call.Context) {
		return sdk.Text("No freeze is on."), nil
	}
	return sdk.Text(f.text()), nil
}

func (f *freeze) text() string {
	return fmt.Sprintf("No changes until %s: %s.", f.Until.Format("2 January 2006 15:04 MST"), f.Reason)
}
