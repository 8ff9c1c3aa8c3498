//go:build unix

package commandhooks

import (
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestOutcomes: what comes of what real scripts do is what the agent's contract says, or a failure.
//
//nolint:funlen // a table
func TestOutcomes(t *testing.T) {
	t.Parallel()

	const claude, codex, gemini, copilot, cursor = "claude", "codex", "gemini", "copilot", "cursor"
	specific := func(event, fields string) string {
		return `echo '{"hookSpecificOutput":{"hookEventName":"` + event + `",` + fields + `}}'`
	}
	ls := bash("ls")
	for _, tt := range []struct {
		format         string
		event, script  string
		in             phases.Input
		want           string
		rewrites, asIs bool
	}{
		// Claude Code: exit codes.
		{claude, "PreToolUse", `exit 0`, ls, "", false, false},
		{claude, "PreToolUse", `echo fine`, ls, "", false, false},
		{claude, "PreToolUse", `echo "no rm" >&2; exit 2`, ls, "deny no rm", false, false},
		{claude, "PreToolUse", specific("PreToolUse", `"permissionDecision":"allow"`) + `; echo no >&2; exit 2`, ls, "deny no", false, false},
		{claude, "PreToolUse", specific("PreToolUse", `"permissionDecision":"deny","permissionDecisionReason":"json"`) + `; echo stderr >&2; exit 2`, ls, "deny json", false, false},
		{claude, "PreToolUse", `echo '{"decision":3}'; echo no >&2; exit 2`, ls, "deny no", false, false},
		{claude, "PreToolUse", `echo oops >&2; exit 1`, ls, "failure exit_code", false, false},
		{claude, "PreToolUse", specific("PreToolUse", `"permissionDecision":"deny","permissionDecisionReason":"r"`) + `; exit 1`, ls, "deny r", false, false},
		{claude, "PreToolUse", `no-such-program`, ls, "failure not_found", false, false},
		{claude, "PreToolUse", `/etc/passwd`, ls, "failure not_executable", false, false},
		{claude, "PreToolUse", `kill -9 $$`, ls, "failure signal", false, false},
		{claude, "PreToolUse", `python3 -c 'raise ValueError(1)'`, ls, "failure exit_code", false, false},
		// Claude Code: JSON.
		{claude, "PreToolUse", specific("PreToolUse", `"permissionDecision":"ask","permissionDecisionReason":"sure?"`), ls, "ask sure?", false, false},
		{claude, "PreToolUse", specific("PreToolUse", `"permissionDecision":"allow"`), ls, "allow", false, false},
		{claude, "PreToolUse", specific("PreToolUse", `"permissionDecision":"deny","permissionDecisionReason":"r","new":1`), ls, "deny r | hook_not_carried Grapnel cannot do what the hook asked for: new", false, false},
		{claude, "PreToolUse", specific("PreToolUse", `"permissionDecision":"deny","permissionDecisionReason":7`), ls, "failure invalid_output", false, false},
		{claude, "PreToolUse", specific("PreToolUse", `"permissionDecision":"no"`), ls, "failure invalid_output", false, false},
		{claude, "PreToolUse", specific("PostToolUse", `"permissionDecision":"deny"`), ls, "failure invalid_output", false, false},
		{claude, "PreToolUse", `echo '{"decision":"block","reason":"old words"}'`, ls, "deny old words", false, false},
		{claude, "PreToolUse", `echo '{"hookSpecificOutput": '`, ls, "failure invalid_output", false, false},
		{claude, "PreToolUse", `echo '{"continue":false,"stopReason":"enough"}'`, ls, "deny enough | hook_not_carried Grapnel cannot do what the hook asked for: continue", false, false},
		{claude, "PreToolUse", specific("PreToolUse", `"permissionDecision":"allow","updatedInput":{"command":"ls -l"},"additionalContext":"ctx"`), ls, `allow | rewrite {"command":"ls -l"} | reminder ctx`, true, false},
		{claude, "PreToolUse", specific("PreToolUse", `"permissionDecision":"allow","updatedInput":{"command":"ls -l"}`), ls, "failure rewrite_not_declared", false, false},
		{claude, "PreToolUse", specific("PreToolUse", `"updatedInput":"ls"`), ls, "failure invalid_output", true, false},
		{claude, "PostToolUse", `echo "fix the lint" >&2; exit 2`, ran("x"), "reminder fix the lint", false, false},
		{claude, "PostToolUse", `echo '{"decision":"block","reason":"look again"}'`, ran("x"), "reminder look again", false, false},
		{claude, "PostToolUse", specific("PostToolUse", `"updatedToolOutput":{"stdout":"[gone]","stderr":"","interrupted":false,"isImage":false}`), ran("key"), `rewrite "[gone]"`, false, false},
		{claude, "PostToolUse", `echo '{"systemMessage":"hi"}'`, ran("x"), "hook_message hi", false, false},
		{claude, "UserPromptSubmit", `echo '{"decision":"block","reason":"not now"}'`, said("hi"), "deny not now", false, false},
		{claude, "UserPromptSubmit", `echo no secrets >&2; exit 2`, said("hi"), "deny no secrets", false, false},
		{claude, "UserPromptSubmit", `date >/dev/null`, said("hi"), "", false, false},
		{claude, "SessionStart", `echo branch main`, &phases.SessionStartInput{Source: "startup"}, "context branch main", false, false},
		{claude, "SessionStart", specific("SessionStart", `"additionalContext":"c","sessionTitle":"t"`), &phases.SessionStartInput{}, "context c | hook_not_carried Grapnel cannot do what the hook asked for: sessionTitle", false, false},
		{claude, "Stop", `echo '{"decision":"block","reason":"run the tests"}'`, finished("done", 0), "deny run the tests", false, false},
		{claude, "Stop", `grep -q '"stop_hook_active":true' && exit 0; echo again >&2; exit 2`, finished("done", 1), "", false, false},
		{claude, "Stop", specific("Stop", `"additionalContext":"do the docs"`), finished("done", 0), "deny do the docs", false, false},
		{claude, "Stop", `echo '{"continue":false,"decision":"block","reason":"r"}'`, finished("done", 0), "", false, false},
		{claude, "PreCompact", `echo no >&2; exit 2`, &phases.PreCompactionInput{}, "hook_message no | hook_not_carried Grapnel cannot do what the hook asked for: a block", false, false},

		// Codex: what its schema lacks is a failed hook.
		{codex, "PreToolUse", specific("PreToolUse", `"permissionDecision":"deny","permissionDecisionReason":"r"`), ls, "deny r", false, false},
		{codex, "PreToolUse", specific("PreToolUse", `"permissionDecision":"deny","permissionDecisionReason":"r","foo":1`), ls, "failure invalid_output", false, false},
		{codex, "PreToolUse", `echo '{"foo":1}'`, ls, "failure invalid_output", false, false},
		{codex, "PreToolUse", specific("PreToolUse", `"permissionDecision":"ask","permissionDecisionReason":"r"`), ls, "failure invalid_output", false, false},
		{codex, "PreToolUse", specific("PreToolUse", `"permissionDecision":"allow"`), ls, "failure invalid_output", false, false},
		{codex, "PreToolUse", specific("PreToolUse", `"permissionDecision":"deny"`), ls, "failure invalid_output", false, false},
		{codex, "PreToolUse", specific("PreToolUse", `"permissionDecision":"allow","updatedInput":{"command":"ls -l"}`), ls, `allow | rewrite {"command":"ls -l"}`, true, false},
		{codex, "PreToolUse", `echo '{"decision":"block","reason":"old"}'`, ls, "deny old", false, false},
		{codex, "PreToolUse", `echo '{"decision":"approve"}'`, ls, "failure invalid_output", false, false},
		{codex, "PreToolUse", `echo '{"continue":false}'`, ls, "failure invalid_output", false, false},
		{codex, "PreToolUse", `echo '[]'`, ls, "failure invalid_output", false, false},
		{codex, "PreToolUse", `echo plain`, ls, "", false, false},
		{codex, "PreToolUse", `echo no >&2; exit 2`, ls, "deny no", false, false},
		{codex, "PreToolUse", `exit 2`, ls, "failure exit_code", false, false},
		{codex, "PreToolUse", `exit 1`, ls, "failure exit_code", false, false},
		{codex, "PostToolUse", `echo '{"decision":"block","reason":"hidden"}'`, ran("key"), `rewrite "hidden"`, false, false},
		{codex, "PostToolUse", `echo '{"continue":false,"stopReason":"stop"}'`, ran("key"), `rewrite "stop" | hook_message stop | hook_not_carried Grapnel cannot do what the hook asked for: continue`, false, false},
		{codex, "PostToolUse", specific("PostToolUse", `"additionalContext":"c"`), ran("x"), "reminder c", false, false},
		{codex, "UserPromptSubmit", `echo '{"decision":"block"}'`, said("hi"), "failure invalid_output", false, false},
		{codex, "SessionStart", `echo text`, &phases.SessionStartInput{Source: "clear"}, "context text", false, false},
		{codex, "Stop", `echo text`, finished("done", 0), "failure invalid_output", false, false},
		{codex, "Stop", `echo '{"decision":"block","reason":"go on"}'`, finished("done", 0), "deny go on", false, false},

		// Gemini CLI: JSON counts on every exit code, also on standard error; without JSON, 0 and 1 go on.
		{gemini, "BeforeTool", `echo '{"decision":"deny","reason":"r"}'; exit 1`, ls, "deny r", false, false},
		{gemini, "BeforeTool", `echo '{"decision":"block","reason":"r"}' >&2`, ls, "deny r", false, false},
		{gemini, "BeforeTool", `echo '{"decision":"ask","reason":"r"}'`, ls, "ask r", false, false},
		{gemini, "BeforeTool", `echo no >&2; exit 2`, ls, "deny no", false, false},
		{gemini, "BeforeTool", `echo no >&2; exit 3`, ls, "deny no", false, false},
		{gemini, "BeforeTool", `echo warn >&2; exit 1`, ls, "failure exit_code", false, false},
		{gemini, "BeforeTool", `no-such-program`, ls, "failure not_found", false, false},
		{gemini, "BeforeTool", `no-such-program 2>/dev/null; echo gone; exit 127`, ls, "deny gone", false, true},
		{gemini, "BeforeTool", `echo hello`, ls, "hook_message hello", false, false},
		{gemini, "BeforeTool", `echo '{"hookSpecificOutput":{"tool_input":{"dir":"/x"}}}'`, ls, `rewrite {"command":"ls","dir":"/x"}`, true, false},
		{gemini, "AfterTool", `echo '{"decision":"deny","reason":"secret"}'`, ran("key"), `rewrite "secret"`, false, false},
		{gemini, "AfterTool", `echo '{"hookSpecificOutput":{"additionalContext":"c","tailToolCallRequest":{}}}'`, ran("x"), "reminder c | hook_not_carried Grapnel cannot do what the hook asked for: tailToolCallRequest", false, false},
		{gemini, "BeforeAgent", `echo '{"decision":"deny","reason":"r"}'`, said("hi"), "deny r", false, false},
		{gemini, "AfterAgent", `echo '{"decision":"deny","reason":"again"}'`, finished("done", 0), "deny again", false, false},

		// Copilot: a call is denied by 2, any other code fails; progress is taken away.
		{copilot, "preToolUse", `echo '{"type":"progress","message":"…"}'; echo '{"permissionDecision":"deny","permissionDecisionReason":"r"}'`, ls, "deny r", false, false},
		{copilot, "preToolUse", `echo '{"permissionDecision":"allow"}'; echo no >&2; exit 2`, ls, "deny no", false, false},
		{copilot, "preToolUse", `exit 1`, ls, "failure exit_code", false, false},
		{copilot, "preToolUse", `echo '{"permissionDecision":"deny"}{}'`, ls, "failure invalid_output", false, false},
		{copilot, "preToolUse", `echo '{"hookSpecificOutput":{"permissionDecision":"deny"}}'`, ls, "failure invalid_output", false, false},
		{copilot, "preToolUse", `echo '{"permissionDecision":"allow","modifiedArgs":{"command":"ls -l"}}'`, ls, `allow | rewrite {"command":"ls -l"}`, true, false},
		{copilot, "postToolUse", `echo '{"modifiedResult":{"resultType":"success","textResultForLlm":"[gone]"},"additionalContext":"c"}'`, ran("key"), `rewrite "[gone]" | reminder c`, false, false},
		{copilot, "agentStop", `echo '{"decision":"block","reason":"more"}'`, finished("done", 0), "deny more", false, false},
		{copilot, "userPromptSubmitted", `echo '{"decision":"block"}'`, said("hi"), "", false, false},

		// Cursor: exit code 0 and JSON, or 2.
		{cursor, "preToolUse", `echo '{"permission":"deny","user_message":"u","agent_message":"a"}'`, ls, "deny a", false, false},
		{cursor, "preToolUse", `echo '{"decision":"deny","reason":"old"}'`, ls, "deny old", false, false},
		{cursor, "preToolUse", `echo '{"permission":"allow","updated_input":{"command":"ls -l"}}'`, ls, `allow | rewrite {"command":"ls -l"}`, true, false},
		{cursor, "beforeShellExecution", `grep -q '"command":"ls"' && echo '{"permission":"ask","user_message":"u"}'`, ls, "ask u", false, false},
		{cursor, "beforeShellExecution", `echo no >&2; exit 2`, ls, "deny no", false, false},
		{cursor, "beforeShellExecution", `echo not json`, ls, "failure invalid_output", false, false},
		{cursor, "beforeShellExecution", `exit 1`, ls, "failure exit_code", false, false},
		{cursor, "beforeSubmitPrompt", `echo '{"continue":false,"user_message":"no"}'`, said("hi"), "deny no", false, false},
		{cursor, "afterShellExecution", `echo logged`, ran("x"), "", false, false},
		{cursor, "postToolUse", `echo '{"additional_context":"c"}'`, ran("x"), "reminder c", false, false},
		{cursor, "sessionStart", `echo '{"additional_context":"c","env":{"A":"b"}}'`, &phases.SessionStartInput{}, "context c | hook_not_carried Grapnel cannot do what the hook asked for: env", false, false},
		{cursor, "stop", `echo '{"followup_message":"more"}'`, finished("done", 0), "deny more", false, false},
		{cursor, "stop", `echo '{"followup_message":"more"}'`, finished("done", 5), "", false, false},
	} {
		t.Run(tt.format+" "+tt.event+" "+tt.script, func(t *testing.T) {
			t.Parallel()

			cfg := map[string]any{"as_host": tt.asIs}
			if tt.rewrites {
				cfg["rewrites"] = true
			}
			if got := newProject(t, tt.format, one(t, tt.format, tt.event, tt.script, nil), cfg).shown(t, tt.in); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
