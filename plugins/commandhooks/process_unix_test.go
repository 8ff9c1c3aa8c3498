//go:build unix

package commandhooks

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// TestPayloads: scripts read the fields of their agent. Each writes what it read into a file.
func TestPayloads(t *testing.T) {
	t.Parallel()

	call := &phases.ToolPreCallInput{Tool: "Bash", Arguments: json.RawMessage(`{"command":"ls <x>"}`)}
	for _, tt := range []struct {
		format string
		event  string
		in     phases.Input
		want   string
	}{
		{"claude", "PreToolUse", call, `{"session_id":"s","transcript_path":"T","cwd":"D","hook_event_name":"PreToolUse","prompt_id":"t","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"ls <x>"},"tool_use_id":"k"}`},
		{"claude", "PostToolUse", ran("out"), `{"session_id":"s","transcript_path":"T","cwd":"D","hook_event_name":"PostToolUse","prompt_id":"t","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"make"},"tool_use_id":"k","tool_response":{"stdout":"out","stderr":"","interrupted":false,"isImage":false}}`},
		{"claude", "Stop", finished("bye", 2), `{"session_id":"s","transcript_path":"T","cwd":"D","hook_event_name":"Stop","prompt_id":"t","permission_mode":"default","stop_hook_active":true,"last_assistant_message":"bye"}`},
		{"claude", "SessionStart", &phases.SessionStartInput{}, `{"session_id":"s","transcript_path":"T","cwd":"D","hook_event_name":"SessionStart","prompt_id":"t","source":"startup"}`},
		{"codex", "PreToolUse", call, `{"session_id":"s","transcript_path":null,"cwd":"D","hook_event_name":"PreToolUse","turn_id":"t","model":"","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"ls <x>"},"tool_use_id":"k"}`},
		{"gemini", "BeforeTool", call, `{"session_id":"s","transcript_path":"T","cwd":"D","hook_event_name":"BeforeTool","timestamp":"2026-01-02T03:04:05.000Z","tool_name":"run_shell_command","tool_input":{"command":"ls <x>"}}`},
		{"gemini", "AfterTool", ran("out"), `{"session_id":"s","transcript_path":"T","cwd":"D","hook_event_name":"AfterTool","timestamp":"2026-01-02T03:04:05.000Z","tool_name":"run_shell_command","tool_input":{"command":"make"},"tool_response":{"llmContent":"out","returnDisplay":"out"}}`},
		{"copilot", "preToolUse", call, `{"sessionId":"s","timestamp":1767323045000,"cwd":"D","toolName":"bash","toolArgs":{"command":"ls <x>"}}`},
		{"copilot", "PreToolUse", call, `{"session_id":"s","hook_event_name":"PreToolUse","timestamp":"2026-01-02T03:04:05Z","cwd":"D","tool_name":"Bash","tool_input":{"command":"ls <x>"}}`},
		{"copilot", "PostToolUse", ran("out"), `{"session_id":"s","hook_event_name":"PostToolUse","timestamp":"2026-01-02T03:04:05Z","cwd":"D","tool_name":"Bash","tool_input":{"command":"make"},"tool_result":{"result_type":"success","text_result_for_llm":"out"}}`},
		{"cursor", "preToolUse", call, `{"conversation_id":"s","generation_id":"t","model":"","hook_event_name":"preToolUse","cursor_version":"2.4.0","workspace_roots":["D"],"user_email":null,"transcript_path":null,"tool_name":"Shell","tool_input":{"command":"ls <x>"},"tool_use_id":"k","cwd":"D"}`},
		{"cursor", "beforeShellExecution", call, `{"conversation_id":"s","generation_id":"t","model":"","hook_event_name":"beforeShellExecution","cursor_version":"2.4.0","workspace_roots":["D"],"user_email":null,"transcript_path":null,"command":"ls <x>","cwd":"D","sandbox":false}`},
		{"cursor", "afterFileEdit", &phases.ToolPostCallInput{Tool: "Edit", Arguments: json.RawMessage(`{"file_path":"a.go","old_string":"a","new_string":"b"}`), TouchedPaths: []string{"a.go"}, Outcome: "ok"}, `{"conversation_id":"s","generation_id":"t","model":"","hook_event_name":"afterFileEdit","cursor_version":"2.4.0","workspace_roots":["D"],"user_email":null,"transcript_path":null,"file_path":"D/a.go","edits":[{"old_string":"a","new_string":"b"}]}`},
	} {
		t.Run(tt.format+" "+tt.event, func(t *testing.T) {
			t.Parallel()

			out := filepath.Join(t.TempDir(), "payload")
			p := newProject(t, tt.format, one(t, tt.format, tt.event, "cat >"+out, nil), nil)
			if _, err := p.dispatch(t.Context(), t, tt.in); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			var got, want map[string]any
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if path, ok := got["transcript_path"].(string); ok {
				if info, err := os.Stat(path); err != nil || info.Size() != 0 {
					t.Errorf("the transcript %q: %v", path, err)
				}
				got["transcript_path"] = "T"
			}
			if err := json.Unmarshal([]byte(strings.ReplaceAll(tt.want, `"D`, `"`+p.dir)), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("payload (-got +want):\n%s", diff)
			}
		})
	}
}

// TestEnvironment: a script has what its agent sets and what the operator passed, and nothing of the plugin's session.
func TestEnvironment(t *testing.T) {
	t.Setenv("GRAPNEL_PLUGIN", "cookie")
	t.Setenv("PLUGIN_UNIX_SOCKET_DIR", "/x")
	t.Setenv("GRAPNEL_MARK", "m")
	t.Setenv("PASSED", "yes")
	for _, tt := range []struct {
		format string
		event  string
		want   []string
	}{
		{"claude", "PreToolUse", []string{"CLAUDE_PROJECT_DIR=D"}},
		{"codex", "PreToolUse", nil},
		{"gemini", "BeforeTool", []string{"GEMINI_PROJECT_DIR=D", "GEMINI_SESSION_ID=s", "CLAUDE_PROJECT_DIR=D", "EXTRA=a"}},
		{"copilot", "preToolUse", []string{"EXTRA=a", "WHO=yes!"}},
		{"cursor", "preToolUse", []string{"CURSOR_PROJECT_DIR=D", "CURSOR_VERSION=2.4.0", "CLAUDE_PROJECT_DIR=D"}},
	} {
		out := filepath.Join(t.TempDir(), "env")
		more := map[string]any{"env": map[string]string{"EXTRA": "a", "WHO": "${PASSED}!"}}
		p := newProject(t, tt.format, one(t, tt.format, tt.event, "env >"+out+"; pwd >>"+out, more), nil)
		if _, err := p.dispatch(t.Context(), t, bash("ls")); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		got := "\n" + strings.ReplaceAll(string(data), p.dir, "D")
		for _, want := range append(tt.want, "PASSED=yes", "GRAPNEL_MARK=m", "D") {
			if !strings.Contains(got, "\n"+want+"\n") {
				t.Errorf("%s: no %s in %s", tt.format, want, got)
			}
		}
		if strings.Contains(got, "GRAPNEL_PLUGIN") || strings.Contains(got, "PLUGIN_UNIX_SOCKET_DIR") {
			t.Errorf("%s: the plugin's session is in %s", tt.format, got)
		}
	}
}

// TestExecForm: a program with arguments is started without a shell, with its places filled in.
func TestExecForm(t *testing.T) {
	t.Parallel()

	p := newProject(t, "claude", one(t, "claude", "PreToolUse", "sh", map[string]any{
		"args": []string{"-c", `printf '%s' "$1 $2" >&2; exit 2`, "x", "${CLAUDE_PROJECT_DIR}/a b", "$(id)`id`"},
	}), nil)
	want := "deny " + p.dir + "/a b $(id)`id`"
	if got := p.shown(t, bash("ls")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestPath: no program is taken from a relative directory of PATH, and one that is not set stays so for the host.
func TestPath(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"bash", "sh"} {
		if err := os.WriteFile(name, []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{".:" + os.Getenv("PATH"), ""} {
		t.Setenv("PATH", path)
		if got := guard(t, `echo no >&2; exit 2`).shown(t, bash("ls")); got != "deny no" {
			t.Errorf("PATH=%s: got %s", path, got)
		}
		if got := os.Getenv("PATH"); got != path {
			t.Errorf("PATH is %s, was %s", got, path)
		}
	}
}

// TestPromptContext: what a hook of a message brings comes in the phase for it, once, and not from a message it denied.
func TestPromptContext(t *testing.T) {
	t.Parallel()

	p := newProject(t, "claude", one(t, "claude", "UserPromptSubmit", `grep -q secret && echo no >&2 && exit 2; echo the branch is main`, nil), nil)
	for _, step := range []struct {
		in   phases.Input
		want string
	}{
		{said("hi"), ""},
		{&phases.PrePromptContextInput{}, "context the branch is main"},
		{&phases.PrePromptContextInput{}, ""},
		{said("my secret"), "deny no"},
		{&phases.PrePromptContextInput{}, ""},
	} {
		if got := p.shown(t, step.in); got != step.want {
			t.Errorf("got %q, want %q", got, step.want)
		}
	}
}

// TestNoDirectory: a guard does not judge another directory than that of the session.
func TestNoDirectory(t *testing.T) {
	t.Parallel()

	p := guard(t, `exit 0`)
	p.dir = filepath.Join(p.dir, "gone")
	if got := p.shown(t, bash("ls")); got != "failure no_directory" {
		t.Errorf("got %s", got)
	}
}
