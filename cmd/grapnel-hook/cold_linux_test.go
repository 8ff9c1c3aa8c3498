package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const coldConfig = `version: 1
plugins:
  - name: agentsdoc
    builtin: agentsdoc
    grants: {contribute: [prompt_section, reminder], sections: [agents_md], see: [touched_paths, state]}
  - name: house
    builtin: scripted
    grants: {contribute: [decision]}
    config:
      hooks:
        - {id: guard, phase: tool.pre_call, when: 'tool.name == "Bash"', respond: [{kind: decision, verdict: deny, reason: no shell in this house}]}
`

const (
	bash = `{"hook_event_name":"PreToolUse","session_id":"s%d","tool_use_id":"c","tool_name":"Bash","tool_input":{"command":"cat .env"}}`
	view = `{"hook_event_name":"PreToolUse","session_id":"s%d","tool_use_id":"c","tool_name":"Read","tool_input":{}}`
)

// TestEventNames: no spelling of an event's name lets a call past the guard, and an event that nobody knows is said so, once.
func TestEventNames(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the gateway")
	}
	t.Parallel()

	h := newHome(t, "grapnel")
	t.Cleanup(func() { h.kill(t) })
	config := filepath.Join(h.dir, "c.yaml")
	if err := os.WriteFile(config, []byte(strings.Replace(coldConfig, `tool.name == "Bash"`, "true", 1)+"store: sqlite:"+h.dir+"/grapnel.db\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.wake(t, "--config", config)
	for _, tt := range []struct {
		args, named string
		code        int
		want        string
	}{
		{"gemini BeforeTool", "BeforeTool", exitAllowed, "no shell"},
		{"gemini BeforeTool", "beforeTool", exitBlocked, "which is written BeforeTool"},
		{"gemini BeforeTool", "PreToolUse", exitBlocked, "which amp, claude-code, codex"},
		{"gemini BeforeTool", "BeforeToolCall", exitBlocked, "installed for BeforeTool"},
		{"gemini BeforeTool", "AfterModel", exitBlocked, "installed for BeforeTool"},
		{"gemini BeforeTool", "", exitBlocked, "names no event"},
		{"gemini SessionStart", "BeforeTool", exitBlocked, "installed for SessionStart"},
		{"--on-failure allow gemini SessionStart", "BeforeTool", exitAllowed, "installed for SessionStart"},
		{"gemini SessionStart", "SessionEnd", exitAllowed, "installed for SessionStart"},
		{"gemini", "before_tool", exitBlocked, "which is written BeforeTool"},
		{"cursor", "PreToolUse", exitBlocked, "which is written preToolUse"},
		{"codex", "notification", exitAllowed, ""},
		{"opencode", "tool.execute.before", exitBlocked, "Grapnel's plugin file sends there, PreToolUse"},
		{"opencode", "PreToolUse", exitAllowed, "no shell"},
		{"gemini NewEvent", "NewEvent", exitAllowed, ""},
		{"gemini NewEvent", "NewEvent", exitAllowed, ""},
	} {
		payload := fmt.Sprintf(`{"hook_event_name":%q,"session_id":"n","conversation_id":"n","cwd":%q,"tool_name":"Bash","tool_input":{"command":"cat .env"}}`, tt.named, h.dir)
		code, out, errs := h.hook(t, strings.NewReader(payload), append([]string{"--config", config}, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(out+errs, tt.want) || tt.want == "" && out+errs != "" {
			t.Errorf("%s, named %q: exit code %d, want %d: %s%s", tt.args, tt.named, code, tt.code, out, errs)
		}
	}
	log, err := os.ReadFile(filepath.Join(filepath.Dir(h.socket), "hook.log"))
	if err != nil || strings.Count(string(log), "NewEvent") != 1 {
		t.Errorf("%v: %s", err, log)
	}
	h.hook(t, strings.NewReader(`{"hook_event_name":"SessionEnd","session_id":"n"}`), "--config", config, "gemini", "SessionEnd")
	shown, err := exec.CommandContext(t.Context(), filepath.Join(h.dir, "bin", "grapnel"), "manifest", "show", "latest", "--thread", "n", "--json", "--store", "sqlite:"+h.dir+"/grapnel.db").Output()
	if err != nil || !strings.Contains(string(shown), "no event that this version of Grapnel knows") {
		t.Errorf("%v: %s", err, shown)
	}
}

// TestColdStart: the first event starts the gateway, which is killed as soon as it has answered. The guard has judged each
// call, and each is on record. With a guard that cannot start, all are denied.
func TestColdStart(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the gateway")
	}
	t.Parallel()

	h := newHome(t, "grapnel")
	t.Cleanup(func() { h.kill(t) })
	file := filepath.Join(h.dir, "grapnel", "grapnel.yaml")
	configure := func(text string) {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	call := func(n int, payload, want string) {
		t.Helper()
		h.kill(t)
		code, out, errs := h.hook(t, strings.NewReader(fmt.Sprintf(payload, n)), "claude-code", "PreToolUse")
		h.kill(t)
		if code != exitAllowed || !strings.Contains(out, want) || want == "" && out != "" {
			t.Errorf("call %d: exit code %d, answer %q, want %q: %s", n, code, out, want, errs)
		}
	}
	configure(coldConfig)
	const rounds = 6
	for n := range rounds {
		call(n, bash, "no shell in this house")
	}
	call(rounds, view, "")
	for i, broken := range []string{"  - {name: late, command: ./mien, grants: {contribute: [decision]}}\n", "  - {name: late, command: /bin/false, grants: {contribute: [rewrite]}}\n"} {
		configure(coldConfig + broken)
		call(rounds+1+i, view, `"permissionDecision":"deny"`)
	}
	list := exec.CommandContext(t.Context(), filepath.Join(h.dir, "bin", "grapnel"), "manifest", "calls", "--json", "--store", "sqlite:"+filepath.Join(h.dir, ".local/share/grapnel/grapnel.db"))
	recorded, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for n := range rounds + 3 {
		if want := fmt.Sprintf(`"thread_id": "s%d"`, n); !strings.Contains(string(recorded), want) {
			t.Errorf("no record of call %d: %s", n, recorded)
		}
	}
}
