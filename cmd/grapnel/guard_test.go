package main

import (
	"context"
	"encoding/json"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// guardPlugin is "guardplugin": a plugin's program with a policy by the user's words,
// two guards that go by it, one by its condition and one by what it sees, and a hidden
// tool.
func guardPlugin() {
	tool := phases.Tool{Name: "send_mail", HiddenDomain: "mail", InputSchema: json.RawMessage(`{"type":"object"}`)}
	serve.Main(&sdk.Plugin{
		Name: "guard", Version: "1.0.0",
		Tools: []sdk.Tool{{Tool: tool, Call: func(_ context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
			return sdk.Text("sent in " + c.Context.ThreadID), nil
		}}},
		Hooks: []sdk.Hook{
			{
				Name: "mode", Kinds: []phases.Kind{phases.KindPolicy},
				PrePolicy: func(_ context.Context, _ *sdk.Call, in *phases.PrePolicyInput) ([]phases.Contribution, error) {
					if in.UserText.Value != "read only" {
						return nil, nil
					}
					return sdk.Reply(&phases.Policy{Common: phases.Common{Domain: "files"}, Key: "mode", Value: json.RawMessage(`"ro"`)})
				},
			},
			{
				Name: "by-condition", Kinds: []phases.Kind{phases.KindDecision}, When: `policy["files/mode"] == "ro" && tool.name == "write"`,
				ToolPreCall: func(context.Context, *sdk.Call, *phases.ToolPreCallInput) ([]phases.Contribution, error) {
					return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "read only", ReasonCode: "ro"})
				},
			},
			{
				Name: "by-sight", Kinds: []phases.Kind{phases.KindDecision},
				ToolPreCall: func(_ context.Context, c *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
					if mode, ok := c.Policy("files", "mode"); ok && string(mode) == `"ro"` && in.Tool == "delete" {
						return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "read only", ReasonCode: "ro"})
					}
					return nil, nil
				},
			},
			{
				Name: "tools", Kinds: []phases.Kind{phases.KindToolBundle},
				PreTools: func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
					return sdk.Reply(&phases.ToolBundle{BundleID: "mail", Tools: []phases.Tool{tool}})
				},
			},
		},
	})
}

// guardConfig declares it, with a switch for each guard.
const guardConfig = `version: 1
budgets:
  phases:
    turn.pre_policy: {time: 20s, require: [guard.mode]}
    turn.pre_tool_materialization: {time: 20s}
    tool.pre_call: {time: 20s}
plugins:
  - name: guard
    command: %s
    unsafe_path: true
    grants: {contribute: ['*'], policies: ['files/*'], tools: ['*'], see: [user_text, tool, policy]}
    subscriptions:
      guard.mode: {timeout: 20s}
      guard.tools: {timeout: 20s}
      guard.by-condition: {timeout: 20s, enabled: %v}
      guard.by-sight: {timeout: 20s, enabled: %v}
`
