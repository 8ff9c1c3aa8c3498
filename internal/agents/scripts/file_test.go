package scripts_test

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/scripts"
)

// read reads a file as it would lie in a project of its agent.
func read(t *testing.T, f, text string) *scripts.File {
	t.Helper()
	path := map[string]string{
		"claude": "/p/.claude/settings.json", "codex": "/p/.codex/hooks.json", "gemini": "/p/.gemini/settings.json",
		"copilot": "/p/.github/hooks/a.json", "cursor": "/p/.cursor/hooks.json",
	}[f]
	file, err := scripts.Read(f, path, "/home/me", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// hook reads a file with one hook.
func hook(t *testing.T, format, event, matcher, rule string) *agent.Hook {
	t.Helper()
	h := map[string]any{"type": "command", "command": "x", "matcher": matcher, "if": rule}
	var entry any = h
	if format != "cursor" && format != "copilot" {
		entry = map[string]any{"matcher": matcher, "hooks": []any{h}}
	}
	text, err := json.Marshal(map[string]any{"hooks": map[string]any{event: []any{entry}}})
	if err != nil {
		t.Fatal(err)
	}
	file := read(t, format, string(text))
	if len(file.Hooks) != 1 {
		t.Fatalf("%s: %+v", text, file)
	}
	return &file.Hooks[0]
}

// TestRead: files in the style of those that people have, agent by agent.
func TestRead(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name   string
		format string
		text   string
		want   []string // ID, matcher, command, directory, timeout; or ID and why it is skipped
	}{
		{
			"claude", "claude", `{
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
			"codex", "codex", `{"hooks": {"PreToolUse": [{"matcher": "(?!x)", "hooks": [{"type": "command", "command": "a.sh"}]}], "PreModelRequest": [{"hooks": [{"type": "command", "command": "b"}]}]}}`,
			[]string{"- pre_model_request-b hooks do not see", "! pre_tool_use-a its matcher is not an expression"},
		},
		{
			"gemini", "gemini", `{ // comments are fine
			"hooksConfig": {"disabled": ["off"]}, "hooks": {"enabled": true, "BeforeTool": [{"matcher": "write_.*", "sequential": true, "hooks": [
				{"type": "command", "name": "on", "command": "node \"//not a comment.js\"", "timeout": 1500}, {"type": "command", "name": "off", "command": "z"}]}]}}`,
			[]string{"before_tool-not write_.* /p 1.5s", "- before_tool-z hooksConfig.disabled names it"},
		},
		{
			"copilot", "copilot", `{"version": 1, "hooks": {"preToolUse": [
				{"type": "command", "bash": "./scripts/a.sh", "powershell": "x", "cwd": "tools", "timeoutSec": 15, "env": {"A": "b"}}, {"exec": "/bin/check", "args": ["-x"]}, {"powershell": "only"},
				{"type": "http", "url": "https://x"}], "permissionRequest": [{"bash": "p"}]}}`,
			[]string{"pre_tool_use-a  /p/tools 15s", "pre_tool_use-check  /p 30s", "! permission_request-p Grapnel does not know", "! pre_tool_use-entry there is no command", "! pre_tool_use-http the agent posts"},
		},
		{
			"cursor", "cursor", `{"version": 1, "hooks": {"beforeShellExecution": [{"command": ".cursor/hooks/net.sh", "matcher": "curl|wget", "failClosed": true, "timeout": 30}],
				"beforeReadFile": [{"command": "x"}], "beforeTabFileRead": [{"command": "y"}], "stop": [{"command": "z", "loop_limit": null}]}}`,
			[]string{"before_shell_execution-net curl|wget /p 30s block", "stop-z  /p 1m0s", "! before_read_file-x the content of a file", "! before_tab_file_read-y Grapnel has no phase"},
		},
		{
			"all are off", "claude", `{"disableAllHooks": true, "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "a.sh"}]}]}}`,
			[]string{"- pre_tool_use-a disableAllHooks is set"},
		},
		{"nothing", "claude", `{"permissions": {}}`, nil},
		{"odd shapes", "claude", `{"hooks": {"PreToolUse": 7, "Stop": [7, {"hooks": [8]}]}}`, []string{"! pre_tool_use-entry its value", "! stop-entry the entry", "! stop-entry-2 the hook"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			file := read(t, tt.format, tt.text)
			var got []string
			for i := range file.Hooks {
				h := &file.Hooks[i]
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
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
	if _, err := scripts.Read("vim", "/x", "", nil); err == nil {
		t.Error("an unknown format")
	}
	if _, err := scripts.Read("claude", "/x", "", []byte(`{"hooks": []}`)); err == nil {
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
		if _, err := scripts.Read("claude", "/x", "", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := scripts.Read("copilot", "/x", "", []byte(`{"env":{"A":"","a":""},"hooks":{"preToolUse":[{"bash":"x","env":{"A":"","a":""}}],"PreToolUse":[]}}`)); err != nil {
		t.Errorf("names that differ in case: %v", err)
	}
}

// table reads rows of columns that are divided by tabs.
func table(t *testing.T, name string) (rows [][]string) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "#") {
			rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		}
	}
	return rows
}

// TestMatches: each agent's own matchers, on the names that it has for a tool.
func TestMatches(t *testing.T) {
	t.Parallel()

	for _, row := range table(t, "matches.tsv") {
		var args struct {
			Path string `json:"file_path"`
		}
		_ = json.Unmarshal([]byte(row[5]), &args) // not all have one
		f := &agent.Facts{Tool: row[4], Arguments: json.RawMessage(row[5]), Dir: "/p"}
		if args.Path != "" {
			f.Paths = []string{args.Path}
		}
		if got := scripts.Matches(hook(t, row[0], row[1], row[2], row[3]), f); strconv.FormatBool(got) != row[6] {
			t.Errorf("%q: %t", row, got)
		}
	}
}

// TestGuess: the agent of a file by its place, else by its words.
func TestGuess(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		path, text string
		want       string
	}{
		{"/p/.codex/hooks.json", "", "codex"},
		{"/home/me/.cursor/hooks.json", "", "cursor"},
		{"/p/.github/hooks/x.json", "", "copilot"},
		{"/x.json", `{"hooks":{"BeforeTool":[]}}`, "gemini"},
		{"/x.json", `{"hooks":{"preToolUse":[{"bash":"x","timeoutSec":1}]}}`, "copilot"},
		{"/x.json", `{"hooks":{"PreToolUse":[]}}`, "claude"},
	} {
		if got := scripts.Guess(tt.path, []byte(tt.text)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.path, got, tt.want)
		}
	}
}

// FuzzRead: no file makes it panic, and what it reads has names.
func FuzzRead(f *testing.F) {
	f.Add("claude", `{"hooks":{"PreToolUse":[{"matcher":"a|b","hooks":[{"type":"command","command":"x","if":"Bash(a*)"}]}]}}`)
	f.Add("cursor", `{"hooks":{"stop":[{"command":"x","loop_limit":null}]}} // x`)
	f.Fuzz(func(t *testing.T, format, text string) {
		file, err := scripts.Read(format, "/p/.claude/settings.json", "/home/me", []byte(text))
		if err != nil {
			return
		}
		for i := range file.Hooks {
			h := &file.Hooks[i]
			facts := &agent.Facts{Tool: "Bash", Arguments: json.RawMessage(`{"command":"a b"}`), Dir: "/p"}
			scripts.Matches(h, facts)
			payload, err := scripts.Payload(h, facts)
			if err != nil || !json.Valid(payload) || h.ID == "" {
				t.Errorf("%q: %s, %v", h.ID, payload, err)
			}
			_, _ = scripts.Answer(h, &agent.Output{Stdout: []byte(text)}, facts)
		}
	})
}
