package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// desk is a plugin that runs in process. It recalls something else in each turn, as a
// memory does, and has a hidden tool.
func desk() *sdk.Plugin {
	add := phases.Tool{
		Name: "add", Description: "Adds two numbers.", HiddenDomain: "arithmetic",
		InputSchema: json.RawMessage(`{"type": "object", "required": ["a", "b"],
			"properties": {"a": {"type": "number"}, "b": {"type": "number"}}}`),
	}
	return &sdk.Plugin{
		Name: "desk", Version: "1.0.0", Doc: "Recalls things, and adds numbers.",
		Hooks: []sdk.Hook{{
			Name: "recall", Kinds: []phases.Kind{phases.KindPromptSection},
			PrePromptCompile: func(_ context.Context, c *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.PromptSection{
					SectionID: "memory_recall", Title: "Memory Recall", Content: recall(c.Context.TurnID),
				})
			},
		}, {
			Name: "tools", Kinds: []phases.Kind{phases.KindToolBundle},
			PreTools: func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.ToolBundle{BundleID: "desk", Tools: []phases.Tool{add}})
			},
		}},
		Tools: []sdk.Tool{{Tool: add, Call: func(_ context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
			var args struct {
				A float64 `json:"a"`
				B float64 `json:"b"`
			}
			if err := json.Unmarshal(c.Arguments, &args); err != nil {
				return nil, fmt.Errorf("the arguments: %w", err)
			}
			return sdk.Text(fmt.Sprint(args.A + args.B)), nil
		}}},
	}
}

func recall(turn string) string {
	return "What is known of turn " + turn + ":\n" + strings.Repeat("- The user likes short answers.\n", 20)
}
