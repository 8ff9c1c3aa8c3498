package commandhook_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/commandhook"
)

// read reads a file as it would lie in a project of its agent.
func read(t *testing.T, f commandhook.Format, text string) *commandhook.File {
	t.Helper()
	path := map[commandhook.Format]string{
		commandhook.Claude: "/p/.claude/settings.json", commandhook.Codex: "/p/.codex/hooks.json", commandhook.Gemini: "/p/.gemini/settings.json",
		commandhook.Copilot: "/p/.github/hooks/a.json", commandhook.Cursor: "/p/.cursor/hooks.json",
	}[f]
	file, err := commandhook.Read(f, path, "/home/me", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestRead: files in the style of those that people have, agent by agent.
func TestRead(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name   string
		format commandhook.Format
		text   string
		want   []string // ID, matcher, command, directory, timeout; or ID and why it is skipped
	}{
		{
			"claude", commandhook.Claude, `{
			"model": "opus", "hooks": {
			"PreToolUse": [{"matcher": "Bash", "hooks": [
				{"type": "command", "command": "python3 \"$CLAUDE_PROJECT_DIR\"/.claude/hooks/guard.py", "timeout": 5},
				{"type": "command", "command": "~/.claude/guard.sh"}, {"type": "command", "command": "jq -r .tool_input.command >> log"},
				{"type": "prompt", "prompt": "ok?"}, {"type": "command", "command": "x.ps1", "shell": "powershell"}, {"command": "no type"}]}],
			"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "uv run ctx.py", "async": true}]}],
			"Stop": [{"type": "command", "command": "flat"}], "Future": [{"hooks": [{"type": "command", "command": "x"}]}]}}`,
			[]string{
				"pre_tool_use-guard Bash /p 5s", "pre_tool_use-guard-2 Bash /p 10m0s", "pre_tool_use-jq Bash /p 10m0s", "user_prompt_submit-ctx  /p 30s background",
				"- future-x Grapnel has no phase", "! pre_tool_use-prompt hooks of the type", "! pre_tool_use-x it needs PowerShell", "- pre_tool_use-no it has no type", "- stop-flat the entry has no list",
			},
		},
		{
			"codex", commandhook.Codex, `{"hooks": {"PreToolUse": [{"matcher": "(?!x)", "hooks": [{"type": "command", "command": "a.sh"}]}], "PreModelRequest": [{"hooks": [{"type": "command", "command": "b"}]}]}}`,
			[]string{"- pre_model_request-b hooks do not see", "! pre_tool_use-a its matcher is not an expression"},
		},
		{
			"gemini", commandhook.Gemini, `{ // comments are fine
			"hooksConfig": {"disabled": ["off"]}, "hooks": {"enabled": true, "BeforeTool": [{"matcher": "write_.*", "sequential": true, "hooks": [
				{"type": "command", "name": "on", "command": "node \"//not a comment.js\"", "timeout": 1500}, {"type": "command", "name": "off", "command": "z"}]}]}}`,
			[]string{"before_tool-not write_.* /p 1.5s", "- before_tool-z hooksConfig.disabled names it"},
		},
		{
			"copilot", commandhook.Copilot, `{"version": 1, "hooks": {"preToolUse": [
				{"type": "command", "bash": "./scripts/a.sh", "powershell": "x", "cwd": "tools", "timeoutSec": 15, "env": {"A": "b"}}, {"exec": "/bin/check", "args": ["-x"]}, {"powershell": "only"},
				{"type": "http", "url": "https://x"}], "permissionRequest": [{"bash": "p"}]}}`,
			[]string{"pre_tool_use-a  /p/tools 15s", "pre_tool_use-check  /p 30s", "! permission_request-p Grapnel does not know", "! pre_tool_use-entry there is no command", "! pre_tool_use-http the agent posts"},
		},
		{
			"cursor", commandhook.Cursor, `{"version": 1, "hooks": {"beforeShellExecution": [{"command": ".cursor/hooks/net.sh", "matcher": "curl|wget", "failClosed": true, "timeout": 30}],
				"beforeReadFile": [{"command": "x"}], "beforeTabFileRead": [{"command": "y"}], "stop": [{"command": "z", "loop_limit": null}]}}`,
			[]string{"before_shell_execution-net curl|wget /p 30s block", "stop-z  /p 1m0s", "! before_read_file-x the content of a file", "! before_tab_file_read-y Grapnel has no phase"},
		},
		{
			"all are off", commandhook.Claude, `{"disableAllHooks": true, "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "a.sh"}]}]}}`,
			[]string{"- pre_tool_use-a disableAllHooks is set"},
		},
		{"nothing", commandhook.Claude, `{"permissions": {}}`, nil},
		{"odd shapes", commandhook.Claude, `{"hooks": {"PreToolUse": 7, "Stop": [7, {"hooks": [8]}]}}`, []string{"! pre_tool_use-entry its value", "! stop-entry the entry", "! stop-entry-2 the hook"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			file := read(t, tt.format, tt.text)
			var got []string
			for i := range file.Handlers {
				h := &file.Handlers[i]
				dir := h.Dir
				if dir == "" {
					dir = h.Project
				}
				line := strings.Join([]string{h.ID, h.Matcher, dir, h.Timeout.String()}, " ")
				if h.Background {
					line += " background"
				}
				if h.OnFailure != "" {
					line += " " + h.OnFailure
				}
				got = append(got, line)
			}
			for _, s := range file.Skipped {
				mark := "- "
				if s.Decides {
					mark = "! "
				}
				got = append(got, mark+s.ID+" "+s.Why)
			}
			for i := range got {
				if i < len(tt.want) && strings.HasPrefix(got[i], tt.want[i]) {
					got[i] = tt.want[i]
				}
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
	if _, err := commandhook.Read("vim", "/x", "", nil); err == nil {
		t.Error("an unknown format")
	}
	if _, err := commandhook.Read(commandhook.Claude, "/x", "", []byte(`{"hooks": []}`)); err == nil {
		t.Error("hooks that are a list")
	}
	for text, want := range map[string]string{
		"{\"hooks\": {\n\"PreToolUse\": [], // a guard\n\"PreToolUse\": []}}": `line 3: the name "PreToolUse" is there twice, first in line 2`,
		"{\"hooks\": {\n\"PreToolUse\": [],\n\"\\u0050reToolUse\": []}}":      `line 3: the name "PreToolUse" is there twice, first in line 2`,
		"{\"hooks\": {\"Stop\": []},\n\"hooks\": {}}":                         `line 2: the name "hooks" is there twice`,
		"{\"hooks\": {}, \"more\": [{\"a\": 1,\n\"a\": 2}]}":                  `line 2: the name "a" is there twice`,
		"{\"Hooks\": {}}": `line 1: the name "Hooks" must be written "hooks"`,
		"{\"hooks\": {\"Stop\": [\n{\"Matcher\": \"x\", \"hooks\": []}]}}":            `line 2: the name "Matcher" must be written "matcher"`,
		"{\"hooks\": {\"Stop\": [{\"hooks\": [\n{\"Command\": \"x\"}]}]}}":            `line 2: the name "Command" must be written "command"`,
		"{\"hooks\": {\"Stop\": [{\"hooks\": [\n{\"type\": \"a\",\n\"type\": 1}]}]}}": `line 3: the name "type" is there twice`,
	} {
		if _, err := commandhook.Read(commandhook.Claude, "/x", "", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := commandhook.Read(commandhook.Copilot, "/x", "", []byte(`{"env":{"A":"","a":""},"hooks":{"preToolUse":[{"bash":"x","env":{"A":"","a":""}}],"PreToolUse":[]}}`)); err != nil {
		t.Errorf("names that differ in case: %v", err)
	}
}

// TestMatches: each agent's own matchers, on the names that it has for a tool.
func TestMatches(t *testing.T) {
	t.Parallel()

	events := map[commandhook.Format]string{
		commandhook.Claude: "PreToolUse", commandhook.Codex: "PreToolUse", commandhook.Gemini: "BeforeTool", commandhook.Copilot: "preToolUse", commandhook.Cursor: "preToolUse",
	}
	for _, tt := range []struct {
		format             commandhook.Format
		event, matcher, If string
		tool, arguments    string
		want               bool
	}{
		{commandhook.Claude, "", "", "", "Bash", "", true},
		{commandhook.Claude, "", "*", "", "Bash", "", true},
		{commandhook.Claude, "", "Edit|Write", "", "Write", "", true},
		{commandhook.Claude, "", "Edit, Write", "", "Write", "", true},
		{commandhook.Claude, "", "Edit", "", "NotebookEdit", "", false},
		{commandhook.Claude, "", "Edit.*", "", "NotebookEdit", "", true},
		{commandhook.Claude, "", "Bash", "", "run_shell_command", "", true}, // of another agent
		{commandhook.Claude, "", "Bash", "", "shell", "", true},
		{commandhook.Claude, "", "Write", "", "apply_patch", "", true},
		{commandhook.Claude, "", "mcp__memory", "", "mcp__memory__read", "", false},
		{commandhook.Claude, "", "mcp__memory__.*", "", "mcp__memory__read", "", true},
		{commandhook.Claude, "", "bash", "", "Bash", "", false},
		{commandhook.Claude, "", "", "Bash(git *)", "Bash", `{"command":"git push"}`, true},
		{commandhook.Claude, "", "", "Bash(git *)", "Bash", `{"command":"FOO=bar git push"}`, true},
		{commandhook.Claude, "", "", "Bash(git *)", "Bash", `{"command":"npm test && git push"}`, true},
		{commandhook.Claude, "", "", "Bash(rm *)", "Bash", `{"command":"echo $(rm -rf /)"}`, true},
		{commandhook.Claude, "", "", "Bash(git *)", "Bash", `{"command":"ls"}`, false},
		{commandhook.Claude, "", "", "Bash(git:*)", "Bash", `{"command":"git"}`, true},
		{commandhook.Claude, "", "", "Edit(*.ts)", "Write", `{"file_path":"/p/src/a.ts"}`, true},
		{commandhook.Claude, "", "", "Edit(*.ts)", "Edit", `{"file_path":"/p/src/a.go"}`, false},
		{commandhook.Claude, "", "", "Edit(src/**)", "Edit", `{"file_path":"/p/src/x/a.go"}`, true},
		{commandhook.Claude, "", "", "Edit(src/**)", "Edit", `{"file_path":"/p/lib/src/a.go"}`, false},
		{commandhook.Codex, "", "Bash", "", "Bash", "", true},
		{commandhook.Codex, "", "^Ba", "", "Bash", "", true},
		{commandhook.Codex, "", "Write", "", "apply_patch", "", true},
		{commandhook.Codex, "", "mcp__memory", "", "mcp__memory__read", "", false},
		{commandhook.Gemini, "", "write_.*", "", "Write", "", true},
		{commandhook.Gemini, "", "shell", "", "Bash", "", true}, // anywhere in run_shell_command
		{commandhook.Gemini, "", "[", "", "[", "", true},
		{commandhook.Gemini, "", "mcp_gh_.*", "", "mcp__gh__list", "", true},
		{commandhook.Copilot, "", "bash|edit", "", "Bash", "", true},
		{commandhook.Copilot, "", "bas", "", "Bash", "", false},
		{commandhook.Copilot, "PreToolUse", "Bash", "", "bash", "", true},
		{commandhook.Copilot, "PreToolUse", "**", "", "bash", "", true},
		{commandhook.Cursor, "", "Shell|Read", "", "Bash", "", true},
		{commandhook.Cursor, "", "MCP:list", "", "mcp__gh__list", "", true},
		{commandhook.Cursor, "beforeShellExecution", "curl|wget", "", "Bash", `{"command":"x | curl"}`, true},
		{commandhook.Cursor, "beforeShellExecution", "curl", "", "Bash", `{"command":"ls"}`, false},
		{commandhook.Cursor, "beforeShellExecution", "curl", "", "Bash", `{"command":"curl x","Command":"ls"}`, true},
		{commandhook.Cursor, "beforeShellExecution", "", "", "Read", "", false},
		{commandhook.Cursor, "beforeMCPExecution", "", "", "mcp__gh__list", "", true},
	} {
		event := tt.event
		if event == "" {
			event = events[tt.format]
		}
		h := map[string]any{"type": "command", "command": "x"}
		if tt.If != "" {
			h["if"] = tt.If
		}
		var entry any = map[string]any{"matcher": tt.matcher, "hooks": []any{h}}
		if tt.format == commandhook.Cursor || tt.format == commandhook.Copilot {
			h["matcher"] = tt.matcher
			entry = h
		}
		text, err := json.Marshal(map[string]any{"hooks": map[string]any{event: []any{entry}}})
		if err != nil {
			t.Fatal(err)
		}
		file := read(t, tt.format, string(text))
		if len(file.Handlers) != 1 {
			t.Fatalf("%+v: %+v", tt, file)
		}
		var args struct {
			Path string `json:"file_path"`
		}
		_ = json.Unmarshal([]byte(tt.arguments), &args)
		f := &commandhook.Facts{Tool: tt.tool, Arguments: json.RawMessage(tt.arguments), Dir: "/p"}
		if args.Path != "" {
			f.Paths = []string{args.Path}
		}
		if got := file.Handlers[0].Matches(f); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestGuess: the agent of a file by its place, else by its words.
func TestGuess(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		path, text string
		want       commandhook.Format
	}{
		{"/p/.codex/hooks.json", "", commandhook.Codex},
		{"/home/me/.cursor/hooks.json", "", commandhook.Cursor},
		{"/p/.github/hooks/x.json", "", commandhook.Copilot},
		{"/x.json", `{"hooks":{"BeforeTool":[]}}`, commandhook.Gemini},
		{"/x.json", `{"hooks":{"preToolUse":[{"bash":"x","timeoutSec":1}]}}`, commandhook.Copilot},
		{"/x.json", `{"hooks":{"PreToolUse":[]}}`, commandhook.Claude},
	} {
		if got := commandhook.Guess(tt.path, []byte(tt.text)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.path, got, tt.want)
		}
	}
}

// FuzzRead: no file makes it panic, and what it reads has names.
func FuzzRead(f *testing.F) {
	f.Add("claude", `{"hooks":{"PreToolUse":[{"matcher":"a|b","hooks":[{"type":"command","command":"x","if":"Bash(a*)"}]}]}}`)
	f.Add("cursor", `{"hooks":{"stop":[{"command":"x","loop_limit":null}]}} // x`)
	f.Fuzz(func(t *testing.T, format, text string) {
		file, err := commandhook.Read(commandhook.Format(format), "/p/.claude/settings.json", "/home/me", []byte(text))
		if err != nil {
			return
		}
		for i := range file.Handlers {
			h := &file.Handlers[i]
			facts := &commandhook.Facts{Tool: "Bash", Arguments: json.RawMessage(`{"command":"a b"}`), Dir: "/p"}
			h.Matches(facts)
			payload, err := h.Payload(facts)
			if err != nil || !json.Valid(payload) || h.ID == "" {
				t.Errorf("%q: %s, %v", h.ID, payload, err)
			}
			_, _ = h.Answer(&commandhook.Output{Stdout: []byte(text)}, facts, false)
		}
	})
}
