//go:build unix

package commandhooks

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestAnswersInText: an answer that the agent would not see, for what stands around it, is a failure of the script, and as
// the host does it a diagnostic; a text for the model that only has braces is neither.
func TestAnswersInText(t *testing.T) {
	t.Parallel()

	const claude, codex, gemini, copilot, cursor = "claude", "codex", "gemini", "copilot", "cursor"
	type guard struct {
		format        string
		event, answer string
		in            phases.Input
	}
	ls := bash("ls")
	deny := `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"r"}}`
	guards := []guard{
		{claude, "PreToolUse", deny, ls},
		{codex, "PreToolUse", deny, ls},
		{claude, "PreToolUse", `{"decision":"block","reason":"r"}`, ls},
		{gemini, "BeforeTool", `{"decision":"deny","reason":"r"}`, ls},
		{copilot, "preToolUse", `{"permissionDecision":"deny","permissionDecisionReason":"r"}`, ls},
		{cursor, "preToolUse", `{"permission":"deny","user_message":"r"}`, ls},
		{cursor, "beforeShellExecution", `{"permission":"deny"}`, ls},
		{claude, "UserPromptSubmit", `{"decision":"block","reason":"r"}`, said("hi")},
		{codex, "UserPromptSubmit", `{"decision":"block","reason":"r"}`, said("hi")},
		{gemini, "BeforeAgent", `{"decision":"deny","reason":"r"}`, said("hi")},
		{claude, "UserPromptSubmit", `{"continue":false,"stopReason":"r"}`, said("hi")},
		{claude, "Stop", `{"decision":"block","reason":"r"}`, finished("done", 0)},
		{copilot, "agentStop", `{"decision":"block","reason":"r"}`, finished("done", 0)},
		{claude, "PostToolUse", `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":"x"}}`, ran("key")},
	}
	noise := map[string]string{
		"a greeting": `echo "Shell ready"; echo 'A'`, "on the same line": `echo "ready: "'A'`, "a mark": `printf '\357\273\277'; echo 'A'`, "a colour": `printf '\033[0m'; echo 'A'`,
		"two colours": `printf '\033[1;31m'; echo 'A'; printf '\033[0m'`, "a title": `printf '\033]0;x\007'; echo 'A'`, "a fence": "echo '```json'; echo 'A'; echo '```'", "text behind": `echo 'A'; echo done`,
		"two objects": `echo 'A'; echo 'A'`, "another object": `echo '{"a":1}'; echo 'A'`, "in a list": `echo '[A]'`, "many lines": `seq 1000; printf '\n\n'; echo 'A'`,
		"noise with braces": `echo '{ not json {'; echo "{{x}}"; echo 'A'`,
	}
	for _, g := range guards {
		for name, script := range noise {
			if name != "a greeting" && (g.format != claude || g.event != "PreToolUse" && g.event != "UserPromptSubmit") {
				continue // what is found depends on whether the text is for the model, and not on the agent
			}
			t.Run(g.format+" "+g.event+" "+name, func(t *testing.T) {
				t.Parallel()

				p := newProject(t, g.format, one(t, g.format, g.event, strings.ReplaceAll(script, "A", g.answer), nil), nil)
				if got := p.shown(t, g.in); got != "failure invalid_output" {
					t.Errorf("%s: %s", script, got)
				}
			})
		}
	}
}

// TestTextThatIsNoAnswer: what an agent takes for a text stays one.
func TestTextThatIsNoAnswer(t *testing.T) {
	t.Parallel()

	const claude, codex, gemini, copilot = "claude", "codex", "gemini", "copilot"
	start := &phases.SessionStartInput{Source: "startup"}
	for _, tt := range []struct {
		format            string
		event, text, want string
		in                phases.Input
		asHost            bool
	}{
		{claude, "SessionStart", "files: {a, b}\n{\"name\":\"x\",\"reason\":\"y\"}", "context ", start, false},
		{claude, "SessionStart", "deps:\n{\"decision\":\"pending\",\"continue\":\"later\"}", "context ", start, false},
		{claude, "SessionStart", "Hooks answer {\"decision\":\"block\"} to deny a call.", "context ", start, false},
		{claude, "SessionStart", "log:\n{\"event\":{\"decision\":\"block\"}}\n", "context ", start, false},
		{codex, "SessionStart", "a template: {{x}} {\"decision\":", "context ", start, false},
		{claude, "PreToolUse", "checked {a}\n{\"level\":\"info\",\"reason\":\"x\"}", "", bash("ls"), false},
		{gemini, "BeforeTool", "checked {\"a\":1}", "hook_message ", bash("ls"), false},
		{copilot, "preToolUse", "checked {\"a\":1}", "", bash("ls"), false},
		// As the host does it.
		{claude, "PreToolUse", "hi\n{\"decision\":\"block\"}", "hook_answer_ignored ", bash("ls"), true},
		{copilot, "preToolUse", "hi\n{\"permissionDecision\":\"deny\"}", "hook_answer_ignored ", bash("ls"), true},
		{gemini, "BeforeTool", "hi\n{\"decision\":\"deny\"}", "hook_message ", bash("ls"), true},
		{claude, "SessionStart", "hi\n{\"decision\":\"block\"}", "context ", start, true},
		{claude, "PreToolUse", "{\"decision\":\"block\"} bye", "hook_answer_ignored ", bash("ls"), true},
		{claude, "PreToolUse", "\ufeff{\"decision\":\"block\",\"reason\":\"r\"}", "deny r", bash("ls"), true},
		{claude, "PreToolUse", "{\"decision\":\"approve\",\"decision\":\"block\",\"reason\":\"r\"}", "deny r", bash("ls"), true},
		{claude, "PreToolUse", "{\"decision\":\"approve\",\"decision\":\"block\",\"reason\":\"r\"}", "failure invalid_output", bash("ls"), false},
		{claude, "PreToolUse", "{\"Decision\":\"block\",\"reason\":\"r\"}", "failure invalid_output", bash("ls"), false},
	} {
		t.Run(tt.format+" "+tt.event+" "+tt.text, func(t *testing.T) {
			t.Parallel()

			got := newProject(t, tt.format, one(t, tt.format, tt.event, "cat <<'E'\n"+tt.text+"\nE", nil), map[string]any{"as_host": tt.asHost}).shown(t, tt.in)
			if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" || tt.asHost && tt.want != "deny r" && !strings.Contains(got, "hook_answer_ignored") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
