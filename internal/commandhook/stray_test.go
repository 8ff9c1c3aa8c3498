package commandhook

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestMisplaced: a word that forbids a call, where the agent would not read it, is a failure of the script; where the agent
// reads it, it is a deny.
func TestMisplaced(t *testing.T) {
	t.Parallel()

	const specific = `{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}}`
	for _, tt := range []struct {
		format    Format
		event     string
		out       string
		misplaced bool
	}{
		{Claude, "PreToolUse", specific, false},
		{Claude, "PreToolUse", `{"permissionDecision": "deny"}`, true},
		{Claude, "PreToolUse", `{"permission": "deny"}`, true},
		{Codex, "PreToolUse", specific, false},
		{Gemini, "BeforeTool", `{"decision": "deny", "reason": "no"}`, false},
		{Gemini, "BeforeTool", `{"permissionDecision": "deny"}`, true},
		{Gemini, "BeforeTool", specific, true},
		{Copilot, "preToolUse", `{"permissionDecision": "deny", "permissionDecisionReason": "no"}`, false},
		{Copilot, "preToolUse", `{"decision": "block", "reason": "no"}`, true},
		{Cursor, "preToolUse", `{"permission": "deny"}`, false},
		{Cursor, "preToolUse", `{"decision": "deny"}`, false},
		{Cursor, "beforeShellExecution", `{"permissionDecision": "Deny"}`, true},
	} {
		a, err := Of(tt.format, tt.event).Answer(&Output{Stdout: []byte(tt.out)}, &Facts{}, false)
		if (err != nil) != tt.misplaced || !tt.misplaced && a.Verdict != phases.VerdictDeny {
			t.Errorf("%s %s %s: verdict %q, error %v", tt.format, tt.event, tt.out, a.Verdict, err)
		}
		if _, err := Of(tt.format, tt.event).Answer(&Output{Stdout: []byte(tt.out)}, &Facts{}, true); err != nil && tt.format != Codex {
			t.Errorf("%s %s %s as the host does: %v", tt.format, tt.event, tt.out, err)
		}
	}
}

// TestStrayLongLine: many objects in one long line cost time in proportion to its length.
func TestStrayLongLine(t *testing.T) {
	t.Parallel()

	for _, unit := range []string{"{", "{} ", `{"decision": "deny"} `, "[["} {
		out := "see " + strings.Repeat(unit, 2_000_000/len(unit)) + "."
		if a, err := Of(Claude, "UserPromptSubmit").Answer(&Output{Stdout: []byte(out)}, &Facts{}, false); err != nil || a.Verdict != "" {
			t.Errorf("%s: %v, %q", unit, err, a.Verdict)
		}
	}
}
