package claudecode

import "github.com/grapnelhq/grapnel/internal/agents/agent"

// above is what stands above settings hooks in runs of 2.1.332.
func above() []agent.AbovePlace {
	files := []string{
		"~/.claude/settings.json", "/etc/claude-code/managed-settings.json", "/etc/claude-code/managed-settings.d/*.json",
		"/Library/Application Support/ClaudeCode/managed-settings.json", "C:/Program Files/ClaudeCode/managed-settings.json",
	}
	const hooks = "keep Grapnel's hooks from running"
	return []agent.AbovePlace{
		{Files: append(files, "./.claude/settings.json", "./.claude/settings.local.json"), Off: map[string]string{
			"disableAllHooks": hooks, "allowManagedHooksOnly": hooks, "pluginConfigs/cc-plugin-sec-default@builtin/options/allowManagedModsOnly": "keep Grapnel's mod from running",
		}},
		{Kind: agent.Mods, Files: files, Last: true, Own: modSource, Powers: map[string][]string{
			"allow calls that Grapnel denied":                  {"tool.check", "tool.judge"},
			"answer or change calls so that Grapnel sees none": {"tool.call", "tool.run"},
			hooks:                                      {"classic.*"},
			"drop or rewrite prompts":                  {"prompt.submit", "prompt.mention", "command.run"},
			"change what the model reads":              {"prompt.compose", "prompt.section", "prompt.context", "prompt.attachment", "skill.prompt", "attribution.text", "session.append", "session.compact", "agent.spawn", "agent.report", "turn.*"},
			"read and rewrite requests to the model":   {"http.fetch"},
			"hide tools and agents, and describe them": {"tool.list", "tool.offer", "tool.describe", "agent.offer"},
			"keep other mods from working":             {"engine.create", "plugin.register"},
		}},
	}
}
