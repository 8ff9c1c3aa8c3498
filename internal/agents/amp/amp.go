// Package amp describes Amp. Its contract: amp plugins show-docs of @ampcode/cli 0.0.1790142911.
package amp

import (
	_ "embed" // for the plugin

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/pluginfile"
)

//go:embed amp.ts
var plugin string

// Agent describes the agent.
func Agent() *agent.Agent {
	room, end := agent.Room{Most: agent.Unlimited}, []string{"agent.end"}
	return &agent.Agent{
		Name: "amp", Decode: pluginfile.Decode, Encode: pluginfile.Encode, Plugin: plugin,
		Events: map[string]agent.Meaning{
			"SessionStart":     {Step: agent.StepSessionStart, From: []string{"session.start"}},
			"UserPromptSubmit": {Step: agent.StepPrompt, Room: room, From: []string{"agent.start"}},
			"PreToolUse":       {Step: agent.StepToolCall, From: []string{"tool.call"}},
			"PostToolUse":      {Step: agent.StepToolResult, Room: room, From: []string{"tool.result"}},
			"Stop":             {Step: agent.StepStop, From: end},
			"StopFailure":      {Step: agent.StepFailed, From: end},
			"Interrupt":        {Step: agent.StepInterrupted, From: end},

			"changes.prompt": {Why: "the prompt behind the button is judged when the person sends it"},
		},
		Install: agent.Install{
			Files: map[agent.Scope]string{agent.User: ".config/amp/plugins/grapnel.ts", agent.Project: ".amp/plugins/grapnel.ts"},
			Notes: []string{"run \"plugins: reload\" in Amp's command palette, or start Amp again"},
		},
		Above: []agent.AbovePlace{{Kind: "plugin", Last: true, Files: []string{"~/.config/amp/plugins/*.ts", "./.amp/plugins/*.ts"}, Powers: map[string][]string{
			"answer or change calls that Grapnel judged": {"tool.call"},
			"change results that Grapnel judged":         {"tool.result"},
		}}},
		Contract: &agent.Contract{
			Package: "@ampcode/cli", PerSystem: true, Files: "amp*", Run: []string{"plugins", "show-docs"},
			What: "PluginEventMap of amp plugins show-docs", From: []string{"interface PluginEventMap {"}, To: "}", Name: `'([\w.]+)':`,
		},
	}
}
