package eino_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"

	grapnel "github.com/grapnelhq/grapnel/adapters/eino"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// A plugin in the host process denies a tool call, and the (fake) model receives the denial.
func Example() {
	ctx := context.Background()
	house := &sdk.Plugin{Name: "house", Version: "1.0.0", Hooks: []sdk.Hook{{
		Name: "guard", Kinds: []phases.Kind{phases.KindDecision},
		ToolPreCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "no " + in.Tool + " here"})
		},
	}}}
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "house", Grants: phases.Grants{Contribute: []string{"decision"}}}}}
	eng, err := runtime.New(ctx, cfg, runtime.Options{InProcess: map[string]runtime.Plugin{"house": house}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer eng.Close(ctx) //nolint:errcheck // the example ends

	guard := grapnel.New(grapnel.Options{Engine: eng, Where: func(context.Context) phases.Context {
		return phases.Context{WorkspaceID: "acme", ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent}
	}})
	shell := invokable{own{loop.Tool{Tool: phases.Tool{Name: "shell", Description: "Runs a command."}}}}
	root, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
		Name: "root", Description: "An agent.", Instruction: "You help with files.", Model: pretends{&looptest.Turn{Model: pretend}},
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{shell}}},
		Handlers:    []adk.ChatModelAgentMiddleware{guard.For("root")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(read(adk.NewRunner(ctx, adk.RunnerConfig{Agent: guard.Wrap(root)}).Query(ctx, "List the files."), nil))

	// Output:
	// I was told: the call of the tool "shell" was refused by house.guard: no shell here <nil>
}

// pretend calls the shell, and tells what came of it.
func pretend(_ context.Context, r looptest.Request) (looptest.Reply, error) {
	var reply looptest.Reply
	for _, m := range r.Messages {
		if text, is := strings.CutPrefix(m, "tool: "); is {
			reply.Text = "I was told: " + text
			return reply, nil
		}
	}
	reply.Calls = []loop.Call{{ID: "c1", Tool: "shell", Arguments: json.RawMessage(`{"command":"ls"}`)}}
	return reply, nil
}
