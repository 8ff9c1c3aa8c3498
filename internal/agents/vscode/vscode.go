// Package vscode describes the agents of VS Code (preview).
//
// Its contract: docs/agents/reference/hooks-reference.md of microsoft/vscode-docs at 024cb9b with mcp-configuration.md beside
// it, and of microsoft/vscode platform/chat/common/hookCommandTypes.ts at 33be5f5, chat/vscode-node/chatHookService.ts and
// intents/node/toolCallingLoop.ts at 01808b5 of extensions/copilot/src. That source reads the decision of a subagent's stop where
// it reads that of a stop, unlike the reference. It takes no text with a prompt, and leaves a rewrite that is not of the tool's
// schema aside.
package vscode

import (
	"cmp"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/claudecode"
)

// Agent describes the agent. Its answers have the shape and the rules of Claude Code's.
func Agent() *agent.Agent {
	room := agent.Room{Most: agent.Unlimited}
	return &agent.Agent{
		Name: "vscode", Decode: agent.Decoder(decode), Encode: encode, Scripts: claudecode.Scripts(),
		Events: map[string]agent.Meaning{
			"SessionStart":     {Step: agent.StepSessionStart},
			"UserPromptSubmit": {Step: agent.StepPrompt},
			"PreToolUse":       {Step: agent.StepToolCall, Room: room},
			"PostToolUse":      {Step: agent.StepToolResult, Room: room},
			"Stop":             {Step: agent.StepStop},
			"SubagentStart":    {Step: agent.StepSubagent, Room: room},
			"SubagentStop":     {Step: agent.StepStop},
			"PreCompact":       {Step: agent.StepOnlyCompact},
		},
		Install: agent.Install{
			Files:   map[agent.Scope]string{agent.Project: ".github/hooks/grapnel-vscode.json"},
			Servers: map[agent.Scope]string{agent.Project: ".vscode/mcp.json"}, ServersKey: "servers", Server: agent.StdioServer,
			Shell: []string{"/bin/sh", "-c"}, Entry: agent.ShellEntry,
			Notes: []string{"Copilot CLI reads the same directory: install one of both in a project, or every call is judged twice"},
		},
	}
}

type payload struct {
	agent.Payload

	// The common fields are in camelCase.
	CamelName    string `json:"hookEventName"`
	CamelSession string `json:"sessionId"`
}

func decode(a *agent.Agent, p *payload) (agent.Event, error) {
	p.Name, p.SessionID = cmp.Or(p.Name, p.CamelName), cmp.Or(p.SessionID, p.CamelSession)
	return p.Event(a), nil
}

func encode(e *agent.Event, o *agent.Outcome) any {
	said := agent.ClaudeSpecific{Event: e.Name}
	denied := o.Verdict != ""
	switch {
	case e.Step == agent.StepPrompt && denied:
		return agent.ClaudeAnswer{Continue: new(bool), StopReason: o.Reason}
	case e.Step == agent.StepStop && denied:
		said.Decision, said.Reason = agent.Marshal("block"), o.Reason
	case e.Step == agent.StepToolCall && denied:
		said.Permission, said.Why = string(o.Verdict), o.Reason
	case e.Step == agent.StepToolCall:
		said.Input, said.Context = o.Arguments, o.Context
	case e.Step == agent.StepToolResult && o.Result != nil: // all that is left is to tell the model
		return agent.Block(agent.ToRead(*o.Result))
	case e.Step == agent.StepToolResult, e.Step == agent.StepSubagent:
		said.Context = o.Context
	}
	return said.Answer()
}
