package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

const house = `  - name: agentsdoc
    builtin: agentsdoc
    grants: {contribute: [prompt_section, reminder], sections: [agents_md], see: [touched_paths, state]}
  - name: house
    builtin: scripted
    grants: {contribute: [decision]}
    config:
      hooks:
        - {id: guard, phase: tool.pre_call, when: 'tool.name == "Bash"', respond: [{kind: decision, verdict: deny, reason: no shell in this house}]}
`

// TestStart: the first events start one gateway, without a configuration too, and after it was killed they start another.
// The guard has judged each call, though the gateway is killed as soon as it has answered, and each is on record. With a guard
// that cannot start, all are denied.
func TestStart(t *testing.T) {
	t.Parallel()

	h := newUser(t, "")
	if err := os.Remove(filepath.Join(h.dir, "grapnel", "grapnel.yaml")); err != nil {
		t.Fatal(err)
	}
	h.wake(t)
	h.end(t, syscall.SIGKILL)
	if code, _, _ := h.hook(t, strings.NewReader(prompt), "--no-start", "claude-code", "UserPromptSubmit"); code != exitBlocked {
		t.Errorf("after a kill: exit code %d", code)
	}
	before := h.started(t)
	var hooks sync.WaitGroup
	for range 8 {
		hooks.Go(func() { h.hook(t, strings.NewReader(prompt), "claude-code", "UserPromptSubmit") })
	}
	hooks.Wait()
	h.wake(t)
	if n := h.started(t) - before; n != 1 {
		t.Errorf("%d gateways were started, want 1", n)
	}

	const shell, read = `"Bash","tool_input":{"command":"cat .env"}`, `"Read","tool_input":{}`
	calls := []struct{ plugins, tool, want string }{
		{house, shell, "no shell in this house"},
		{house, shell, "no shell in this house"},
		{house, read, ""},
		{house + "  - {name: late, command: ./mien, grants: {contribute: [decision]}}\n", read, `"permissionDecision":"deny"`},
		{house + "  - {name: late, command: /bin/false, grants: {contribute: [rewrite]}}\n", read, `"permissionDecision":"deny"`},
	}
	for n, c := range calls {
		h.end(t, syscall.SIGKILL)
		h.configure(t, c.plugins)
		payload := fmt.Sprintf(`{"hook_event_name":"PreToolUse","session_id":"s%d","tool_use_id":"c","tool_name":%s}`, n, c.tool)
		code, out, errs := h.hook(t, strings.NewReader(payload), "claude-code", "PreToolUse")
		if code != exitAllowed || !strings.Contains(out, c.want) || c.want == "" && out != "" {
			t.Errorf("call %d: exit code %d, answer %q, want %q: %s", n, code, out, c.want, errs)
		}
	}
	h.end(t, syscall.SIGKILL)
	recorded, refused := h.grapnel(t, h.dir, "", "manifest", "calls", "--json")
	for n := range calls {
		if want := fmt.Sprintf(`"thread_id": "s%d"`, n); !strings.Contains(recorded, want) {
			t.Errorf("no record of call %d: %s%s", n, recorded, refused)
		}
	}
}

// started is how many gateways have listened.
func (h *home) started(t *testing.T) int {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(filepath.Dir(h.socket), "hook.log"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(log, []byte("listening on unix:"))
}
