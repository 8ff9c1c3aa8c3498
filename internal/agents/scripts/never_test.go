package scripts_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agents/scripts"
)

// TestNever: a matcher that fits nothing of its agent's says why, and one that may fit says nothing.
func TestNever(t *testing.T) {
	t.Parallel()

	const claude, codex, gemini, copilot, cursor = "claude", "codex", "gemini", "copilot", "cursor"
	for _, tt := range []struct {
		format               string
		event, matcher, rule string
		want                 string
	}{
		{claude, "PreToolUse", "mcp__payments", "", "mcp__payments__.*"},
		{claude, "PreToolUse", "Bash|mcp__payments", "", "mcp__payments__.*"},
		{claude, "PreToolUse", "bash", "", "it is Bash"},
		{claude, "PreToolUse", "^bash$", "", "there is Bash"},
		{claude, "PreToolUse", "Edit, bash", "", "it is Bash"},
		{claude, "PreToolUse", "Bash(git push:*)", "", `go into "if"`},
		{claude, "PreToolUse", ",", "", "names no tool"},
		{claude, "PreToolUse", "*", "bash(git *)", "it is Bash"},
		{claude, "SessionStart", "start", "", "fits none of startup"},
		{claude, "PreCompact", "Auto", "", "fits none of manual"},
		{claude, "StopFailure", "rate_limit", "", "fits none of unknown"},
		{codex, "PreToolUse", "shell_command|bash", "", "it is Bash"},
		{gemini, "BeforeTool", "Run_Shell_Command", "", "there is run_shell_command"},
		{gemini, "BeforeTool", "run_shell_command(rm)", "", "no tool has such a name"},
		{gemini, "SessionStart", "boot", "", "fits none of"},
		{copilot, "preToolUse", "Bash", "", "there is bash"},
		{cursor, "preToolUse", "^shell$", "", "there is Shell"},
		{cursor, "stop", "end", "", "does not fit Stop"},

		{claude, "PreToolUse", "", "", ""},
		{claude, "PreToolUse", "*", "", ""},
		{claude, "PreToolUse", "Edit, Write", "", ""},
		{claude, "PreToolUse", " Write ", "", ""},
		{claude, "PreToolUse", "mcp__payments__pay", "", ""},
		{claude, "PreToolUse", "mcp__payments__.*", "", ""},
		{claude, "PreToolUse", "mcp__.*", "", ""},
		{claude, "PreToolUse", "Notebook.*", "", ""},
		{claude, "PreToolUse", "SomethingNew", "", ""},
		{claude, "PreToolUse", "^(Some|Thing)New", "", ""},
		{claude, "PreToolUse", "(?i)bash", "", ""},
		{claude, "PreToolUse", "Bash", "Bash(git *)", ""},
		{claude, "Stop", "whatever", "", ""},
		{codex, "PreToolUse", "Write|apply_patch", "", ""},
		{gemini, "BeforeTool", "mcp_payments_.*", "", ""},
		{copilot, "PreToolUse", "Bash", "", ""},
		{cursor, "beforeShellExecution", "rm -rf", "", ""},
		{cursor, "preToolUse", "MCP:pay", "", ""},
	} {
		if got := strings.Join(scripts.Never(hook(t, tt.format, tt.event, tt.matcher, tt.rule)), "; "); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s %s %q %q: %q, want %q", tt.format, tt.event, tt.matcher, tt.rule, got, tt.want)
		}
	}
}
