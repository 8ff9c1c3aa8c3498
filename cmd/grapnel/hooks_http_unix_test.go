//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestInstalledHTTPHooks: what install --http wrote is followed to the letter, as the agent does it, with the vendor's
// payload, against the gateway that it names.
func TestInstalledHTTPHooks(t *testing.T) {
	t.Parallel()

	dir := must(os.MkdirTemp("", "hook"))(t) //nolint:usetesting // the path of a socket is short
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	in := func(name string) string { return filepath.Join(dir, name) }
	const guard = `
version: 1
serve: {roots: [%q]}
budgets: {phases: {tool.pre_call: {time: 20s}}}
plugins:
  - name: house
    builtin: scripted
    grants: {contribute: [decision], see: [arguments]}
    config:
      hooks: [{id: guard, phase: tool.pre_call, role: validate, when: 'tool.name == "Bash"', respond: [{kind: decision, verdict: deny, reason: not here}]}]
`
	if err := errors.Join(
		os.Mkdir(in("bin"), 0o700), os.Mkdir(in("w"), 0o700), os.WriteFile(in("bin/grapnel-hook"), []byte("#!/bin/sh\n"), 0o700),
		os.WriteFile(in("g.yaml"), fmt.Appendf(nil, guard, dir), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	s := serveIn(t, dir, "--config", in("g.yaml"), "--store", "sqlite:"+in("log.db"), "--listen", "127.0.0.1:0", "--socket", in("s.sock"))
	install, _ := programCommand(t, "install", "claude-code", "--http", "--config", in("g.yaml"))
	install.Env = append(install.Env, append(homeIn(dir), "PATH="+in("bin"))...)
	if out, err := install.CombinedOutput(); err != nil || !strings.Contains(string(out), "export GRAPNEL_TOKEN=") {
		t.Fatalf("%v: %s", err, out)
	}
	var settings struct {
		Hooks map[string][]struct {
			Hooks []struct {
				Type    string            `json:"type"`
				URL     string            `json:"url"`
				Headers map[string]string `json:"headers"`
				Allowed []string          `json:"allowedEnvVars"`
			} `json:"hooks"`
		} `json:"hooks"`
	}
	data, err := os.ReadFile(in(".claude/settings.json"))
	if err == nil {
		err = json.Unmarshal(data, &settings)
	}
	if err != nil || len(settings.Hooks["PreToolUse"]) != 1 {
		t.Fatalf("%v: %s", err, data)
	}
	hook := settings.Hooks["PreToolUse"][0].Hooks[0]
	token := must(os.ReadFile(in(".local/share/grapnel/token")))(t)
	payload := vendorPayload(t, "claude-code", "PreToolUse", in("w"))
	post := func(token string, body []byte) (status int, answer string) {
		req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, hook.URL, bytes.NewReader(body)))(t)
		req.Header.Set("Content-Type", "application/json")
		for name, value := range hook.Headers {
			req.Header.Set(name, os.Expand(value, func(string) string { return token }))
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // it was only read
		text := must(io.ReadAll(resp.Body))(t)
		return resp.StatusCode, string(text)
	}
	if hook.Type != "http" || len(hook.Allowed) != 1 || !strings.Contains(hook.Headers["Authorization"], "$"+hook.Allowed[0]) {
		t.Errorf("the hook is %+v", hook)
	}
	secret := strings.TrimSpace(string(token))
	if status, answer := post(secret, payload); status != http.StatusOK || !strings.Contains(answer, `"permissionDecision":"deny","permissionDecisionReason":"not here"`) {
		t.Errorf("%d: %s", status, answer)
	}
	if status, answer := post(secret, bytes.Replace(payload, []byte(`"Bash"`), []byte(`"Read"`), 1)); status != http.StatusOK || strings.Contains(answer, "permissionDecision\"") {
		t.Errorf("another tool: %d: %s", status, answer)
	}
	for name, tt := range map[string]struct {
		token string
		body  []byte
	}{
		"no token": {"", payload}, "a wrong token": {"x", payload}, "no JSON": {secret, []byte("hello")}, "half": {secret, payload[:len(payload)/2]},
		"a directory elsewhere": {secret, vendorPayload(t, "claude-code", "PreToolUse", "/etc")}, "no session": {secret, []byte(`{"hook_event_name":"PreToolUse","tool_name":"Bash"}`)},
		"3 MiB": {secret, append(payload, bytes.Repeat([]byte(" "), 3<<20)...)},
	} {
		if status, answer := post(tt.token, tt.body); status/100 == 2 {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	if code, said := s.end(t, syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}

// vendorPayload is the payload of an event as the archives of package agents have it from the agent's own contract.
func vendorPayload(t *testing.T, host, event, dir string) []byte {
	t.Helper()
	archive := must(txtar.ParseFile(filepath.Join("..", "..", "internal", "agents", strings.ReplaceAll(host, "-", ""), "testdata", event+".txtar")))(t)
	for _, f := range archive.Files {
		if f.Name == "payload.json" {
			return bytes.Replace(f.Data, []byte(`"/w"`), fmt.Appendf(nil, "%q", dir), 1)
		}
	}
	t.Fatal("there is no payload")
	return nil
}
