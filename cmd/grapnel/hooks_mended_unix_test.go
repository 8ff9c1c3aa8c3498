//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTurnAfterAMendedConfiguration: a turn of an agent that began under a broken configuration is judged by the mended
// one; until then the reason names who failed, and why.
func TestTurnAfterAMendedConfiguration(t *testing.T) {
	t.Parallel()

	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg := filepath.Join(dir, "grapnel.yaml")
	const config = `
version: 1
serve: {roots: [%[1]q]}
budgets: {phases: {tool.pre_call: {time: 20s, require: [%[2]s]}}}
plugins:
  - name: house
    builtin: scripted
    grants: {contribute: [decision], see: [arguments]}
    config: {hooks: [{id: guard, phase: tool.pre_call, role: validate, respond: [{kind: decision, verdict: allow}]}]}
%[3]s`
	const missing = "  - {name: other, command: ./no-such-guard, unsafe_path: true, grants: {contribute: [decision]}}\n"
	write := func(required, more string) {
		t.Helper()
		if err := os.WriteFile(cfg, fmt.Appendf(nil, config, dir, required, more), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("other.guard", missing)
	s := serveIn(t, dir, "--config", cfg, "--socket", filepath.Join(dir, "s"))
	secret, err := readSecret(filepath.Join(dir, ".local", "share", "grapnel", madeSecret))
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, s.target(), secret)
	event := func(host, fields string) string {
		payload := fmt.Sprintf(`{"session_id":"s","cwd":%q,"turn_id":"1","prompt_id":"1",%s}`, dir, fields)
		return string(answer[struct{ Answer json.RawMessage }](t, c, "hook/event", object{"host": host, "payload": json.RawMessage(payload)}).Answer)
	}
	const call = `"hook_event_name":"PreToolUse","tool_use_id":"c","tool_name":"Bash","tool_input":{"command":"ls"}`
	for _, host := range []string{"claude-code", "codex"} {
		event(host, `"hook_event_name":"UserPromptSubmit","prompt":"hi"`)
		if got := event(host, call); !strings.Contains(got, "deny") || !strings.Contains(got, "other.guard") {
			t.Errorf("%s, broken: %s", host, got)
		}
	}
	write("house.guard", "")
	if r := answer[struct {
		OK    bool
		Error string
	}](t, c, "config/reload", nil); !r.OK {
		t.Fatal(r.Error)
	}
	for _, host := range []string{"claude-code", "codex"} {
		if got := event(host, call); strings.Contains(got, `"permissionDecision":"deny"`) {
			t.Errorf("%s, mended: %s", host, got)
		}
	}
	s.end(t, syscall.SIGTERM)
}
