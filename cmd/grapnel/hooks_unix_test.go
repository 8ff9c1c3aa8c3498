//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

const hooksConfig = `
version: 1
serve: {roots: [%[1]q]}
budgets: {phases: {tool.pre_call: {time: 20s}, turn.pre_policy: {time: 20s, require: [old.user_prompt_submit-echo]}}}
plugins:
  - name: old
    builtin: commandhooks
    grants: {contribute: [decision, prompt_context, reminder], see: [arguments, user_text, model]}
    env: {pass: [PATH, HOME]}
    config: {format: claude, files: [%[2]q]}
`

const hooksFile = `{"hooks": {
  "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo the branch is main"}]}],
  "PreToolUse": [
    {"matcher": "Bash", "hooks": [{"type": "command", "command": "$CLAUDE_PROJECT_DIR/.claude/hooks/guard.sh"}]},
    {"matcher": "Write", "hooks": [{"type": "command", "command": "./no/such/script.sh"}]}
  ]}}`

// TestCommandHooksBehindAnAgent: the scripts of one agent judge the calls of another, and the records say which did.
func TestCommandHooksBehindAnAgent(t *testing.T) {
	t.Parallel()

	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	project := filepath.Join(dir, "project")
	cfg, file := filepath.Join(dir, "grapnel.yaml"), filepath.Join(project, ".claude", "settings.json")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(project, ".claude", "hooks"), 0o755),
		os.WriteFile(file, []byte(hooksFile), 0o600),
		os.WriteFile(filepath.Join(project, ".claude", "hooks", "guard.sh"), []byte("#!/bin/sh\ngrep -q '\"rm ' && { echo 'no rm here' >&2; exit 2; }\nexit 0\n"), 0o755),
		os.WriteFile(cfg, fmt.Appendf(nil, hooksConfig, dir, file), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	s := serveIn(t, dir, "--config", cfg, "--store", "sqlite:"+filepath.Join(dir, "log.db"))
	c := dial(t, s.target(), "")
	event := func(fields string) string {
		payload := fmt.Sprintf(`{"session_id":"s","cwd":%q,"turn_id":"1",%s}`, project, fields)
		return string(answer[struct{ Answer json.RawMessage }](t, c, "hook/event", object{"host": "codex", "payload": json.RawMessage(payload)}).Answer)
	}
	call := func(tool, arguments string) string {
		return event(`"hook_event_name":"PreToolUse","tool_use_id":"c","tool_name":"` + tool + `","tool_input":` + arguments)
	}
	for _, step := range []struct{ got, want string }{
		{event(`"hook_event_name":"UserPromptSubmit","prompt":"hi"`), "the branch is main"},
		{call("Bash", `{"command":"ls"}`), "null"},
		{call("Bash", `{"command":"rm -rf /"}`), `"permissionDecision":"deny","permissionDecisionReason":"no rm here"`},
		{call("apply_patch", `{"command":"*** Begin Patch"}`), `"permissionDecision":"deny"`}, // a guard that is missing
		{event(`"hook_event_name":"Stop","last_assistant_message":"done"`), "null"},
	} {
		if !strings.Contains(step.got, step.want) {
			t.Errorf("got %s, want %s", step.got, step.want)
		}
	}
	runs := map[string]phases.Run{}
	for _, row := range answer[api.ManifestList](t, c, "manifest/list", object{"workspace_id": "local"}).Manifests {
		m := answer[manifest.Manifest](t, c, "manifest/get", object{"manifest_id": row.ManifestID})
		for _, r := range m.Runs {
			runs[r.Subscription+" "+string(r.State)] = r
		}
	}
	for _, want := range []string{"old.user_prompt_submit-echo succeeded", "old.pre_tool_use-guard succeeded", "old.pre_tool_use-guard denied", "old.pre_tool_use-script failed", "old.pre_tool_use-script filtered"} {
		if _, ok := runs[want]; !ok {
			t.Errorf("no run %q of %v", want, runs)
		}
	}
	if code, said := s.end(t, syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}
