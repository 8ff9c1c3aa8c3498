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
