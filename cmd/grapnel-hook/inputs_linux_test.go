package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestInputs: with manifest.keep_inputs the gateway keeps calls with what it takes to repeat them, also when it is killed; the
// command line shows them without secrets, and after an erasure none of it is in a file.
func TestInputs(t *testing.T) {
	t.Parallel()

	h := newUser(t, "manifest: {keep_inputs: calls}\n")
	send := func(event, more string) {
		t.Helper()
		payload := fmt.Sprintf(`{"hook_event_name":%q,"session_id":"s","cwd":%q,"prompt_id":"1"%s}`, event, h.dir, more)
		if code, _, errs := h.hook(t, strings.NewReader(payload), "claude-code", event); code != exitAllowed {
			t.Fatalf("%s: exit code %d: %s", event, code, errs)
		}
	}
	says := func(want bool, text string, args ...string) {
		t.Helper()
		if out, errs := h.grapnel(t, h.dir, "", args...); strings.Contains(out+errs, text) != want {
			t.Errorf("%q says %q, and should: %t\n%s%s", args, text, want, out, errs)
		}
	}
	const token = "ghp_0123456789abcdefABCDEF0123456789abcd"
	call := func(id string) string {
		return `,"tool_name":"Bash","tool_use_id":"` + id + `","tool_input":{"command":"cat .env heron-` + id + ` ` + token + `"}`
	}
	out, errs := h.grapnel(t, h.dir, "", "install", "claude-code", "--json")
	for _, event := range []string{"UserPromptSubmit", "PreToolUse", "PostToolUse"} {
		if !strings.Contains(out, event) {
			t.Errorf("without plugins %s is not installed: %s%s", event, out, errs)
		}
	}
	h.wake(t)
	send("UserPromptSubmit", `,"prompt":"heron-prompt"`)
	send("PreToolUse", call("c1"))
	h.end(t, syscall.SIGKILL)
	h.wake(t)
	send("PostToolUse", call("c1")+`,"tool_response":{"stdout":"heron-result","stderr":""}`)
	send("PreToolUse", call("c2"))

	calls := []string{"manifest", "calls"}
	says(true, "heron-c1", calls...)
	says(true, "heron-prompt", calls...)
	says(true, `"call_id": "c1"`, append(calls, "--json")...)
	for _, form := range []string{"--json", "--json=false"} {
		says(false, token, append(calls, form)...)
		says(true, token, append(calls, form, "--text")...)
	}
	backtest := []string{"backtest", "--from", "log"}
	says(true, "of 2 calls in 1 session, 2 would have been denied: 2 by rules.call", backtest...)
	says(true, `"deny": 2`, append(backtest, "--json")...)
	says(true, "heron-c1 [hidden: ", backtest...)
	says(true, "prompt: heron-prompt", backtest...)
	says(true, "no calls since", append(backtest, "--dir", t.TempDir())...)
	says(true, "cannot be combined", "backtest", "--from", "log,codex")
	says(true, "whole: ", "manifest", "verify")
	says(true, "example.com/log", "manifest", "key", "example.com/log", "--out", "log.key")
	says(true, "example.com/log", "manifest", "checkpoint", "--key-file", "log.key")
	says(true, "example.com/log", "manifest", "prove", "latest")
	if found, err := filepath.Glob(filepath.Join(h.dir, "grapnel.db*")); err != nil || len(found) == 0 || !inFiles(t, found, "heron-result") || !inFiles(t, found, token) {
		t.Errorf("the inputs are not kept: %v, %v", found, err)
	}
	says(true, "", "manifest", "erase", "--thread", "s", "--by", "ada", "--reason", "she asked", "--yes")
	h.end(t, syscall.SIGKILL)
	says(true, " inputs erased since", backtest...)
	found, err := filepath.Glob(filepath.Join(h.dir, "grapnel.db*"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(h.dir, ".cache", "grapnel", "backtest", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	found = append(found, kept...)
	for _, word := range []string{"heron", token} {
		if inFiles(t, found, word) {
			t.Errorf("%q is still in one of %q", word, found)
		}
	}
	says(true, "whole: ", "manifest", "verify")
	says(false, "heron", calls...)
}

// inFiles reports whether one of the files has a text.
func inFiles(t *testing.T, files []string, text string) bool {
	t.Helper()
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(text)) {
			return true
		}
	}
	return false
}
