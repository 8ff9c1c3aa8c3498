package scripts_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/scripts"
	"github.com/grapnelhq/grapnel/phases"
)

// TestMisplaced: a word that forbids a call, where the agent would not read it, is a failure of the script; where the agent
// reads it, it is a deny.
func TestMisplaced(t *testing.T) {
	t.Parallel()

	const specific = `{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}}`
	for _, tt := range []struct {
		agent     string
		event     string
		out       string
		misplaced bool
	}{
		{"claude-code", "PreToolUse", specific, false},
		{"claude-code", "PreToolUse", `{"permissionDecision": "deny"}`, true},
		{"claude-code", "PreToolUse", `{"permission": "deny"}`, true},
		{"codex", "PreToolUse", specific, false},
		{"gemini", "BeforeTool", `{"decision": "deny", "reason": "no"}`, false},
		{"gemini", "BeforeTool", `{"permissionDecision": "deny"}`, true},
		{"gemini", "BeforeTool", specific, true},
		{"copilot", "preToolUse", `{"permissionDecision": "deny", "permissionDecisionReason": "no"}`, false},
		{"copilot", "preToolUse", `{"decision": "block", "reason": "no"}`, true},
		{"cursor", "preToolUse", `{"permission": "deny"}`, false},
		{"cursor", "preToolUse", `{"decision": "deny"}`, false},
		{"cursor", "beforeShellExecution", `{"permissionDecision": "Deny"}`, true},
	} {
		h := scripts.Of(agents.Lookup(tt.agent), tt.event)
		if _, err := scripts.Answer(h, &agent.Output{Stdout: []byte(tt.out)}, &agent.Facts{}); err != nil && tt.agent != "codex" {
			t.Errorf("%s %s %s as the host does: %v", tt.agent, tt.event, tt.out, err)
		}
		h.AsHost = false
		a, err := scripts.Answer(h, &agent.Output{Stdout: []byte(tt.out)}, &agent.Facts{})
		if (err != nil) != tt.misplaced || !tt.misplaced && a.Verdict != phases.VerdictDeny {
			t.Errorf("%s %s %s: verdict %q, error %v", tt.agent, tt.event, tt.out, a.Verdict, err)
		}
	}
}

// TestStrayLongLine: many objects in one long line cost time in proportion to its length.
func TestStrayLongLine(t *testing.T) {
	t.Parallel()

	for _, unit := range []string{"{", "{} ", `{"decision": "deny"} `, "[["} {
		h := scripts.Of(agents.Lookup("claude-code"), "UserPromptSubmit")
		h.AsHost = false
		out := "see " + strings.Repeat(unit, 300_000/len(unit)) + "."
		if a, err := scripts.Answer(h, &agent.Output{Stdout: []byte(out)}, &agent.Facts{}); err != nil || a.Verdict != "" {
			t.Errorf("%s: %v, %q", unit, err, a.Verdict)
		}
	}
}
