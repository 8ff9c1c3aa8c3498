//go:build unix

package badplugin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// tools serves tools that do what hooks of other modes do, and offers them with
// the hook "h". "echo" is the good one, and hidden in the domain "extra" is
// "whisper".
func (p *Program) tools() error {
	calls := map[string]sdk.ToolHandler{
		"echo": echo, "whisper": echo, "deaf": deafTool,
		"crash": func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
			p.Exit(3)
			return nil, errors.New("the process lives")
		},
		"big": func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
			return sdk.Text(strings.Repeat("x", 5<<20)), nil
		},
	}
	bundle := &phases.ToolBundle{BundleID: "bad"}
	plugin := &sdk.Plugin{Name: "bad", Version: "1.0.0"}
	for _, name := range []string{"echo", "deaf", "crash", "big", "whisper"} {
		tool := phases.Tool{Name: name, Description: "is " + name}
		if name == "whisper" {
			tool.HiddenDomain = "extra"
		}
		bundle.Tools = append(bundle.Tools, tool)
		plugin.Tools = append(plugin.Tools, sdk.Tool{Tool: tool, Call: calls[name]})
	}
	plugin.Hooks = []sdk.Hook{{
		Name: "h", Kinds: []phases.Kind{phases.KindToolBundle},
		PreTools: func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
			return sdk.Reply(bundle)
		},
	}}
	return serve.Serve(plugin)
}

// echo answers with what it was told.
func echo(_ context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
	return sdk.Text(fmt.Sprintf("%s %s of turn %s, key %s", c.Tool, c.Arguments, c.Context.TurnID, c.IdempotencyKey)), nil
}

// deafTool never answers.
func deafTool(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) { select {} }
