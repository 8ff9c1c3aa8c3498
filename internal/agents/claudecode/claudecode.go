// Package claudecode describes Claude Code.
//
// Its contract, for 2.1.332: sdk.d.ts of @anthropic-ai/claude-agent-sdk 0.3.332 (HookInput, SyncHookJSONOutput, and the handler
// types in Settings), sdk-tools.d.ts of @anthropic-ai/claude-code for the shapes of results, code.claude.com/docs/en/hooks and
// /mcp, and runs of the program (make hosts). The shell lines of a skill take no answer but a deny: any updatedInput keeps the
// line from running, and so does ask.
package claudecode

import (
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
)

const (
	skillLine  = "PreSkillShellCommand" // a shell line in the text of a skill or command
	typedSkill = "UserPromptExpansion"  // a skill or command that somebody types: no call of the tool Skill

	noTeams  = "lists of tasks and teams have no phase; the calls of a team are judged like all others"
	noAsking = "no phase decides what a person answers a server"
)

// Agent describes the agent.
func Agent() *agent.Agent {
	a := &agent.Agent{
		Name: "claude-code", Events: events(), Decode: agent.Decoder(decode), Encode: encode, Scripts: Scripts(),
		Install: agent.Install{
			Files:   map[agent.Scope]string{agent.User: ".claude/settings.json", agent.Project: ".claude/settings.json", agent.Local: ".claude/settings.local.json"},
			Servers: map[agent.Scope]string{agent.User: ".claude.json", agent.Project: ".mcp.json"}, ServersKey: "mcpServers", Server: agent.StdioServer,
			Home: "CLAUDE_CONFIG_DIR", Shell: []string{"/bin/sh", "-c"}, ProjectVariable: "CLAUDE_PROJECT_DIR", Entry: entry, Nested: true, HTTP: true,
			Mod: modFiles, ModDir: ".claude/skills/grapnel", ModSeats: "prependPlugins", ModSeat: "grapnel@skills-dir",
			Notes: []string{"start Claude Code again: running sessions keep the hooks that they began with"},
		},
		Above: above(),
		Contract: &agent.Contract{
			Package: "@anthropic-ai/claude-agent-sdk", Files: "sdk.d.ts", What: "HOOK_EVENTS in sdk.d.ts",
			From: []string{"HOOK_EVENTS: readonly ["}, To: "]", Name: `['"](\w+)['"]`,
		},
	}
	a.Transcripts = transcripts(a)
	return a
}

func events() map[string]agent.Meaning {
	room := agent.Room{Most: 10_000, UTF16: true} // longer texts go to a file
	runs, noMatcher := agent.Script{Runs: true}, agent.Script{Runs: true, NoMatcher: true}
	silent, decides := agent.Script{Runs: true, Silent: true}, agent.Script{Decides: true}
	return map[string]agent.Meaning{
		"SessionStart":       {Step: agent.StepSessionStart, NoHTTP: true, Script: runs},
		"UserPromptSubmit":   {Step: agent.StepPrompt, Room: room, Script: agent.Script{Runs: true, NoMatcher: true, Timeout: 30 * time.Second}},
		"PreToolUse":         {Step: agent.StepToolCall, Room: room, Script: runs},
		"PostToolUse":        {Step: agent.StepToolResult, Room: room, Script: runs},
		"PostToolUseFailure": {Step: agent.StepToolFailed, Room: room, Script: runs},
		"Stop":               {Step: agent.StepStop, Script: noMatcher},
		"StopFailure":        {Step: agent.StepFailed, Script: silent},
		"PreCompact":         {Step: agent.StepCompact, Script: runs},
		"PostCompact":        {Step: agent.StepCompacted, Script: silent},
		"SessionEnd":         {Step: agent.StepSessionEnd, Script: silent},
		"PermissionRequest":  {Step: agent.StepPermission, Script: agent.Script{Why: agent.NoPermission, Decides: true}},
		"SubagentStart":      {Step: agent.StepSubagent, Room: room, Script: agent.Script{Why: agent.NoSubagent}},
		"SubagentStop":       {Step: agent.StepStop, Script: agent.Script{Why: agent.NoSubagent, Decides: true}},
		skillLine: {Step: agent.StepToolCall, Script: agent.Script{
			Why: "the shell lines of skills are calls of the shell here, which scripts for PreToolUse judge", Decides: true, OnlyDenies: true,
		}},
		typedSkill:           {Step: agent.StepToolCall, Room: room, Script: agent.Script{At: agent.StepPrompt, Decides: true}},
		"InstructionsLoaded": {Step: agent.StepFile},
		"ConfigChange":       {Step: agent.StepConfig, Script: agent.Script{At: agent.StepPrompt, Decides: true}},
		"PermissionDenied":   {Step: agent.StepNote},
		"PreModelSwitch":     {Step: agent.StepNote, Script: decides},
		"PostModelSwitch":    {Step: agent.StepNote},

		// Those of our mod, by the names of the events that it takes.
		"prompt.compose": {Step: agent.StepCompose, OfMod: true},
		"http.fetch":     {Step: agent.StepRequest, OfMod: true},
		"turn.step":      {Step: agent.StepUsage, OfMod: true},

		"PostToolBatch": {Why: agent.ToolEvent + "PostToolUse", Script: decides},
		"Notification":  {Why: agent.OnlyTells}, "MessageDisplay": {Why: agent.OnlyTells},
		"Setup":        {Why: "it prepares a checkout before there is a session", NoHTTP: true},
		"TeammateIdle": {Why: noTeams}, "TaskCreated": {Why: noTeams, Script: decides}, "TaskCompleted": {Why: noTeams, Script: decides},
		"Elicitation": {Why: noAsking, Script: decides}, "ElicitationResult": {Why: noAsking, Script: decides},
		"WorktreeCreate": {Why: "whoever answers it makes the worktree; its calls are judged like all others", Script: decides},
		"WorktreeRemove": {Why: "nothing is decided any more"}, "CwdChanged": {Why: "each call names its directory"},
		"DirectoryAdded": {Why: "each call names its files"}, "FileChanged": {Why: "calls that change files are judged before"},
	}
}

func entry(c *agent.Command, a *agent.Agent, event string) agent.Handler {
	h := agent.Handler{Type: "command", Command: c.Program, Args: c.Args(a, event)}
	if c.URL != "" && a.ByHTTP(event) {
		h = agent.Handler{
			Type: "http", URL: strings.TrimSuffix(c.URL, "/") + agent.HookPath + a.Name, Variables: []string{agent.TokenVariable},
			Headers: map[string]string{"Authorization": "Bearer $" + agent.TokenVariable},
		}
	}
	if c.Blocks(a, event) {
		h.OnFailure = "block" // also when the program is gone, or takes too long
	}
	return h
}
