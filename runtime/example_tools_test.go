package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// post is a plugin with one tool, which is hidden until a model asks for it.
func post() *sdk.Plugin {
	send := phases.Tool{
		Name: "send_mail", Description: "Sends a mail.", HiddenDomain: "mail",
		InputSchema: json.RawMessage(`{"type": "object", "properties": {"to": {"type": "string"}}}`),
	}
	return &sdk.Plugin{
		Name: "post", Version: "1.0.0",
		Hooks: []sdk.Hook{{
			Name: "tools", Kinds: []phases.Kind{phases.KindToolBundle},
			PreTools: func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.ToolBundle{BundleID: "post", Tools: []phases.Tool{send}})
			},
		}},
		Tools: []sdk.Tool{{Tool: send, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
			return sdk.Text("sent"), nil
		}}},
	}
}

// A host offers the model the tools of each prompt and hands its calls to the
// turn. Hidden tools are there once the model has asked for them.
func ExampleTurn_CallTool() {
	ctx := context.Background()
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{
		Name: "post", Grants: phases.Grants{Contribute: []string{"tool_bundle"}, Tools: []string{"send_mail"}},
	}}}
	eng, err := runtime.New(ctx, cfg, runtime.Options{InProcess: map[string]runtime.Plugin{"post": post()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = eng.Close(ctx) }()
	turn, err := eng.BeginTurn(ctx, phases.Context{ThreadID: "t", TurnID: "1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := turn.Dispatch(ctx, &phases.PreToolsInput{ToolCalling: true}); err != nil {
		fmt.Println(err)
		return
	}
	// What a model would call, one call a round.
	for _, call := range []phases.ToolCall{
		{Tool: "send_mail", Arguments: json.RawMessage(`{"to": "ann"}`)},
		{Tool: "request_tools", Arguments: json.RawMessage(`{"domains": ["mail"]}`)},
		{Tool: "send_mail", Arguments: json.RawMessage(`{"to": "ann"}`)},
	} {
		done, err := turn.Compile(ctx, runtime.CompileInput{ToolCalling: true})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, tool := range done.Tools {
			fmt.Print("[", tool.Name, "] ")
		}
		if res, err := turn.CallTool(ctx, call); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(string(res.Content))
		}
	}
	_, err = turn.End(ctx, &phases.PostTurnInput{Status: phases.TurnSucceeded})
	fmt.Println(err)
	// Output:
	// [request_tools] the tool "send_mail" is hidden: call request_tools with its domain "mail" first (forbidden)
	// [request_tools] {"loaded":[{"domain":"mail","tools":[{"description":"Sends a mail.","name":"send_mail"}]}],"still_hidden":[]}
	// [send_mail] "sent"
	// <nil>
}
