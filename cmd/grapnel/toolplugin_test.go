package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// toolPlugin is a program that is a plugin with tools, for scripts.
func toolPlugin() {
	answers := map[string]string{"greet": `"Good morning."`, "numbers": `[1,2]`, "secret": `"x"`, "broken": `"out of order"`, "failing": "", "count": ""}
	p := &sdk.Plugin{Name: "words", Version: "1.0.0"}
	for _, name := range []string{"broken", "count", "failing", "greet", "numbers", "secret"} {
		p.Tools = append(p.Tools, sdk.Tool{
			Tool: phases.Tool{Name: name, Description: "a tool"},
			Call: func(ctx context.Context, call *sdk.ToolCall) (*phases.ToolResult, error) {
				switch {
				case !call.OutsideTurn:
					return nil, sdk.Fail("in_turn", "it is called in a turn")
				case name == "count":
					if _, err := call.Host.Call(ctx, "state", "put", json.RawMessage(`{"value": 7}`)); err != nil {
						return nil, err
					}
					kept, err := call.Host.Call(ctx, "state", "get", nil)
					return &phases.ToolResult{Content: kept}, err
				case name == "failing":
					return nil, sdk.Fail("upstream", "no answer")
				case name == "greet" && !strings.Contains(string(call.Arguments), "Ada"):
					return &phases.ToolResult{Content: json.RawMessage(`"whom?"`), IsError: true}, nil
				}
				return &phases.ToolResult{Content: json.RawMessage(answers[name]), IsError: name == "broken"}, nil
			},
		})
	}
	serve.Main(p)
}
