// Package opencode describes opencode. Its contract: dist/index.d.ts of @opencode-ai/plugin 1.18.33, and
// opencode.ai/docs/plugins ("Discover").
package opencode

import (
	_ "embed" // for the plugin

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/pluginfile"
)

//go:embed opencode.ts
var plugin string

// Agent describes the agent.
func Agent() *agent.Agent {
	room, persons := agent.Room{Most: agent.Unlimited}, "providers are the person's"
	a := &agent.Agent{
		Name: "opencode", Decode: pluginfile.Decode, Encode: pluginfile.Encode, Plugin: plugin, ReplacesPrompts: true,
		Events: map[string]agent.Meaning{
			"SessionStart":     {Step: agent.StepSessionStart, From: []string{"event"}},
			"UserPromptSubmit": {Step: agent.StepPrompt, Room: room, From: []string{"chat.message", "experimental.chat.system.transform"}},
			"PreToolUse":       {Step: agent.StepToolCall, From: []string{"tool.execute.before"}},
			"PostToolUse":      {Step: agent.StepToolResult, Room: room, From: []string{"tool.execute.after"}},
			"Request":          {Step: agent.StepRequest, From: []string{"experimental.chat.messages.transform", "experimental.chat.system.transform", "chat.params"}},
			"Usage":            {Step: agent.StepUsage, From: []string{"event"}},
			"Stop":             {Step: agent.StepStop, From: []string{"experimental.text.complete", "event"}},
			"StopFailure":      {Step: agent.StepFailed, From: []string{"event"}},
			"PreCompact":       {Step: agent.StepCompact, From: []string{"experimental.session.compacting"}},
			"PostCompact":      {Step: agent.StepCompacted, From: []string{"event"}},
			"SessionEnd":       {Step: agent.StepSessionEnd, From: []string{"event"}},

			"dispose":      {Why: "nothing is open"},
			"config":       {Why: "it decides nothing; the plugin file registers the MCP server there"},
			"tool":         {Why: "plugins' tools come over that MCP server"},
			"auth":         {Why: "keys are the person's"},
			"provider":     {Why: persons},
			"chat.headers": {Why: agent.NoRequests}, "tool.definition": {Why: agent.NoRequests},
			"experimental.provider.small_model":    {Why: persons},
			"permission.ask":                       {Why: "tool.execute.before has judged the same call"},
			"command.execute.before":               {Why: "the shell lines of the command have run before it; what it brings is judged as the prompt"},
			"shell.env":                            {Why: "it sets variables, and decides nothing"},
			"experimental.compaction.autocontinue": {Why: "no phase decides it"},
		},
		Install: agent.Install{
			Files: map[agent.Scope]string{agent.User: ".config/opencode/plugins/grapnel.ts", agent.Project: ".opencode/plugins/grapnel.ts"},
			Home:  "XDG_CONFIG_HOME", Notes: []string{"start opencode again"},
		},
		Above: above(),
		Contract: &agent.Contract{
			Package: "@opencode-ai/plugin", Files: "dist/index.d.ts", What: "Hooks in index.d.ts",
			From: []string{"interface Hooks {"}, To: "\n}", Name: `(?m)^ {4}"?([\w.]+)"?\??:`,
		},
	}
	a.Transcripts = transcripts(a)
	return a
}

func above() []agent.AbovePlace {
	powers := map[string][]string{
		"change arguments that Grapnel judged": {"tool.execute.before"},
		"change results that Grapnel judged":   {"tool.execute.after"},
		"allow what opencode would ask":        {"permission.ask"},
		"change what the model reads":          {"chat.message", "experimental.chat.*", "experimental.session.compacting", "tool.definition"},
	}
	files := []string{"~/.config/opencode/plugin*/*.ts", "~/.config/opencode/plugin*/*.js", "./.opencode/plugin*/*.ts", "./.opencode/plugin*/*.js"}
	lists := []string{"~/.config/opencode/opencode.json*", "./opencode.json*", "./.opencode/opencode.json*"}
	return []agent.AbovePlace{{Kind: "plugin", Files: files, Last: true, Powers: powers}, {Kind: "plugin", Files: lists, List: "plugin", Last: true, Powers: powers}}
}
