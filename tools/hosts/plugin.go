package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// What the probes look for.
const (
	asked     = "asked"     // the name of the marker of the call as the model made it
	rewritten = "rewritten" // of the rewritten call
	secret    = "hunter2"   // what the command prints
	redacted  = "(redacted)"
	brought   = "The sky is green today." // the context of a hook
	because   = "because the probe wants it"
)

// newPlugin is a guard that does what the name of the agent's working directory says.
func newPlugin() *sdk.Plugin {
	return &sdk.Plugin{
		Name: "probe", Version: "1.0.0", Doc: "Decides as the name of the directory says.",
		Hooks: []sdk.Hook{
			{Name: "context", Kinds: []phases.Kind{phases.KindPromptSection}, PrePromptCompile: bring},
			{Name: "prompt", Kinds: []phases.Kind{phases.KindDecision}, PrePolicy: judgePrompt},
			{Name: "call", Kinds: []phases.Kind{phases.KindDecision, phases.KindRewrite}, ToolPreCall: judgeCall},
			{Name: "result", Kinds: []phases.Kind{phases.KindRewrite}, ToolPostCall: redact},
			{Name: "tools", Kinds: []phases.Kind{phases.KindToolBundle}, PreTools: offer},
			{Name: "end", Kinds: []phases.Kind{phases.KindDecision}, PreEnd: goOn},
		},
		Tools: []sdk.Tool{{Tool: told, Call: tell}},
	}
}

var told = phases.Tool{Name: "tell", Description: "Tells it"} //nolint:gochecknoglobals // immutable

func offer(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
	return sdk.Reply(&phases.ToolBundle{BundleID: "probe", Tools: []phases.Tool{told}})
}

func tell(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
	return &phases.ToolResult{Content: json.RawMessage(`"` + secret + `"`)}, nil
}

func probeOf(call *sdk.Call) string { return filepath.Base(call.Context.Dir) }

func bring(_ context.Context, call *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
	if probeOf(call) != "context" {
		return nil, nil
	}
	return sdk.Reply(&phases.PromptSection{SectionID: "sky", Title: "Sky", Content: brought})
}

func judgePrompt(_ context.Context, call *sdk.Call, _ *phases.PrePolicyInput) ([]phases.Contribution, error) {
	if probeOf(call) != "deny-prompt" {
		return nil, nil
	}
	return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: because})
}

func judgeCall(_ context.Context, call *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
	switch probeOf(call) {
	case "guard":
		if !forbidden(in) {
			return sdk.Reply(&phases.Decision{Verdict: phases.VerdictAllow})
		}
		fallthrough
	case "deny":
		return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: because})
	case "ask":
		return sdk.Reply(&phases.Decision{Verdict: phases.VerdictAsk, Reason: because})
	case "rewrite":
		var args struct {
			Command string `json:"command"`
		}
		if err := json.Unmarshal(in.Arguments, &args); err != nil {
			return nil, err
		}
		value, err := json.Marshal(strings.ReplaceAll(args.Command, asked, rewritten))
		if err != nil {
			return nil, err
		}
		return sdk.Reply(&phases.Rewrite{Path: "/command", Value: value})
	case "late":
		time.Sleep(30 * time.Second) // longer than any hook may take
	}
	return nil, nil
}

// forbidden reports whether a call is one that the guard of the checks denies: it names .env, or the tool is a skill or
// that of the MCP server.
func forbidden(in *phases.ToolPreCallInput) bool {
	return strings.Contains(string(in.Arguments), ".env") || in.Tool == "Skill" || strings.HasSuffix(in.Tool, "_tell")
}

// redact replaces the secret in a result, or the whole of it.
func redact(_ context.Context, call *sdk.Call, in *phases.ToolPostCallInput) ([]phases.Contribution, error) {
	var text string
	switch probeOf(call) {
	case "erase":
	case "redact":
		text = strings.ReplaceAll(in.Result.Text, secret, redacted)
		if json.Valid([]byte(in.Result.Text)) {
			return sdk.Reply(&phases.Rewrite{Value: json.RawMessage(text)})
		}
	default:
		return nil, nil
	}
	value, err := json.Marshal(text)
	if err != nil {
		return nil, err
	}
	return sdk.Reply(&phases.Rewrite{Value: value})
}

func goOn(_ context.Context, call *sdk.Call, in *phases.PreEndInput) ([]phases.Contribution, error) {
	if probeOf(call) != "go-on" || in.Forced > 1 {
		return nil, nil
	}
	return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: because})
}
