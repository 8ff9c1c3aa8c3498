package bridge_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/bridge"
	"github.com/grapnelhq/grapnel/bridge/plugin"
	"github.com/grapnelhq/grapnel/phases"
)

const toolCall = `{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/w","turn_id":"u","prompt_id":"u","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"c"}`

// TestAnswers checks that each host gets exactly the fields it needs.
func TestAnswers(t *testing.T) {
	t.Parallel()

	text := func(s string) *string { return &s }
	result := strings.Replace(strings.Replace(toolCall, "PreToolUse", "PostToolUse", 1), `,"tool_use_id"`, `,"tool_response":{"stdout":"key","stderr":"","interrupted":false,"isImage":false},"tool_use_id"`, 1)
	prompt := `{"hook_event_name":"UserPromptSubmit","session_id":"s","cwd":"/w","turn_id":"u","prompt":"hi"}`
	failure := strings.Replace(strings.Replace(toolCall, "PreToolUse", "PostToolUseFailure", 1), `,"tool_use_id"`, `,"error":"key","tool_use_id"`, 1)
	permission := strings.Replace(toolCall, "PreToolUse", "PermissionRequest", 1)
	stop := `{"hook_event_name":"Stop","session_id":"s","cwd":"/w","turn_id":"u","last_assistant_message":"done","stop_hook_active":false}`
	deny := bridge.Outcome{Verdict: phases.VerdictDeny, Reason: "no <shell> here"}
	ask := bridge.Outcome{Verdict: phases.VerdictAsk, Reason: "really?"}
	rewrite := bridge.Outcome{Arguments: []byte(`{"command":"ls -l"}`)}
	for _, tt := range []struct {
		name, host, payload string
		outcome             bridge.Outcome
		want                string
	}{
		{"nothing", "claude-code", toolCall, bridge.Outcome{}, ""},
		{"deny", "claude-code", toolCall, deny, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no <shell> here"}}`},
		{"ask", "claude-code", toolCall, ask, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"really?"}}`},
		{"rewrite", "claude-code", toolCall, rewrite, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"ls -l"}}}`},
		{"permission", "claude-code", permission, deny, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"no <shell> here"}}}`},
		{"permission, ask", "claude-code", permission, ask, ""},
		{"result", "claude-code", result, bridge.Outcome{Result: text("***")}, `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"stdout":"***","stderr":"","interrupted":false,"isImage":false}}}`},
		{"error", "claude-code", failure, bridge.Outcome{Result: text("***")}, `{"hookSpecificOutput":{"hookEventName":"PostToolUseFailure","additionalContext":"the result of the tool is to be read as: ***"}}`},
		{"block", "claude-code", prompt, deny, `{"decision":"block","reason":"no <shell> here"}`},
		{"context", "claude-code", prompt, bridge.Outcome{Context: "Be kind."}, `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"Be kind."}}`},

		{"go on", "claude-code", stop, deny, `{"decision":"block","reason":"no <shell> here"}`},
		{"stop", "claude-code", stop, bridge.Outcome{}, ""},

		{"go on", "codex", stop, deny, `{"decision":"block","reason":"no <shell> here"}`},
		{"nothing", "codex", toolCall, bridge.Outcome{}, ""},
		{"deny", "codex", toolCall, deny, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no <shell> here"}}`},
		{"ask", "codex", toolCall, ask, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"a person must allow it, and this host's hooks cannot ask: really?"}}`},
		{"rewrite", "codex", toolCall, rewrite, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"ls -l"}}}`},
		{"permission", "codex", permission, deny, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"no <shell> here"}}}`},
		{"result", "codex", result, bridge.Outcome{Result: text("***")}, `{"decision":"block","reason":"***"}`},
		{"block", "codex", prompt, deny, `{"decision":"block","reason":"no <shell> here"}`},
		{"context", "codex", prompt, bridge.Outcome{Context: "Be kind."}, `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"Be kind."}}`},
	} {
		e, err := bridge.Decode(tt.host, []byte(tt.payload))
		if err != nil {
			t.Errorf("%s of %s: %v", tt.name, tt.host, err)
			continue
		}
		got, err := bridge.Encode(&e, &tt.outcome)
		if diff := cmp.Diff(strings.TrimSpace(string(got)), tt.want); err != nil || diff != "" {
			t.Errorf("%s of %s: %v (-got +want)\n%s", tt.name, tt.host, err, diff)
		}
	}
}

// TestRewrittenResults: what Claude Code is given for a rewritten result has the shape of the tool, which the host checks,
// and nothing of what the tool gave.
func TestRewrittenResults(t *testing.T) {
	t.Parallel()

	told := `{"decision":"block","reason":"the result of the tool is to be read as: new",`
	output := `"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":`
	for _, tt := range []struct{ tool, response, text, want string }{
		{"X", `"old"`, "new", `{` + output + `"new"}}`},
		{"X", `{"type":"a","list":[{"n":1,"s":"old"}]}`, `{"type":"a","list":[{"n":2,"s":"new"},{"n":3,"s":""}]}`, `{` + output + `{"type":"a","list":[{"n":2,"s":"new"},{"n":3,"s":""}]}}}`},
		{"X", `{"type":"a","path":"old","content":"old","n":1.50}`, "new", told + output + `{"content":"new","n":1.50,"path":"","type":"a"}}}`},
		{"X", `{"a":{"s":"old"}}`, `{"a":{}}`, `{"decision":"block","reason":"the result of the tool is to be read as: {\"a\":{}}",` + output + `{"a":{"s":"{\"a\":{}}"}}}}`},
		{"X", `{"n":1}`, "new", `{"decision":"block","reason":"the result of the tool is to be read as: new"}`},
		{"Read", `{"type":"text","file":{"content":"old"}}`, "new\nlines", `{` + output + `{"type":"text","file":{"filePath":"/f","content":"new\nlines","numLines":2,"startLine":1,"totalLines":2}}}}`},
		{"Read", `{"type":"image","file":{"base64":"old"}}`, "new", `{` + output + `{"type":"text","file":{"filePath":"/f","content":"new","numLines":1,"startLine":1,"totalLines":1}}}}`},
		{"Glob", `{"numFiles":2,"filenames":["old","old2"]}`, "new", `{` + output + `{"filenames":["new",""],"numFiles":2}}}`},
		{"mcp__a__b", `[{"type":"text","text":"old"}]`, "new", `{` + output + `"new"}}`},
	} {
		e, err := bridge.Decode("claude-code", []byte(`{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"`+tt.tool+`","tool_input":{"file_path":"/f"},"tool_response":`+tt.response+`}`))
		if err != nil {
			t.Fatal(err)
		}
		got, err := bridge.Encode(&e, &bridge.Outcome{Result: &tt.text})
		if diff := cmp.Diff(strings.TrimSpace(string(got)), tt.want); err != nil || diff != "" {
			t.Errorf("%s of %s as %s: %v (-got +want)\n%s", tt.response, tt.tool, tt.text, err, diff)
		}
	}
}

// TestHostilePayloads: what cannot be read is an error, for the rule of the installation; what is unknown is let through.
func TestHostilePayloads(t *testing.T) {
	t.Parallel()

	for _, host := range bridge.Hosts() {
		event := map[string]string{"gemini": "BeforeTool", "cursor": "preToolUse"}[host]
		if event == "" {
			event = "PreToolUse"
		}
		call := `{"hook_event_name":"` + event + `","session_id":"s","tool_name":"x","tool_input":{"command":"ls"}}`
		for name, tt := range map[string]struct {
			payload string
			step    bridge.Step
			fails   bool
		}{
			"unknown event":     {`{"hook_event_name":"Tomorrow","session_id":"s"}`, bridge.StepNone, false},
			"unknown fields":    {strings.Replace(call, "{", `{"new":{"a":[1]},`, 1), bridge.StepToolCall, false},
			"byte order mark":   {"\ufeff" + call, bridge.StepToolCall, false},
			"no event":          {`{"session_id":"s","sessionId":"s","toolName":"x","toolArgs":{}}`, "", true},
			"no session":        {strings.Replace(call, `"session_id":"s",`, "", 1), "", true},
			"no tool":           {strings.Replace(call, `"tool_name":"x",`, "", 1), "", true},
			"a number for text": {strings.Replace(call, `"tool_name":"x"`, `"tool_name":7`, 1), "", true},
			"broken UTF-8":      {strings.Replace(call, "ls", "\xff", 1), bridge.StepToolCall, false},
			"a NUL":             {strings.Replace(call, "ls", `\u0000`, 1), bridge.StepToolCall, false},
			"half a character":  {strings.Replace(call, "ls", `\ud800`, 1), bridge.StepToolCall, false},
			"a raw NUL":         {strings.Replace(call, "ls", "\x00", 1), "", true},
			"a name twice":      {strings.Replace(call, "{", `{"tool_name":"y",`, 1), "", true},
			"and escaped":       {strings.Replace(call, "{", `{"tool\u005fname":"y",`, 1), "", true},
			"in another case":   {strings.Replace(call, "{", `{"Tool_Name":"y",`, 1), "", true},
			"twice deep down":   {strings.Replace(call, `"ls"`, `[{"a":1,"a":2}]`, 1), "", true},
			"a list":            {`[]`, "", true},
			"nothing":           {``, "", true},
			"null":              {`null`, "", true},
			"two objects":       {call + call, "", true},
			"half an object":    {call[:len(call)-1], "", true},
			"a deep value":      {strings.Replace(call, `"ls"`, strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000), 1), "", true},
		} {
			e, err := bridge.Decode(host, []byte(tt.payload))
			if (err != nil) != tt.fails || err == nil && e.Step != tt.step {
				t.Errorf("%s, %s: %q, %v", host, name, e.Step, err)
			}
		}
	}
	if _, err := bridge.Decode("emacs", []byte(toolCall)); err == nil || !strings.Contains(err.Error(), "amp, claude-code, codex") {
		t.Errorf("an unknown host: %v", err)
	}
}

// TestEveryEventHasAnArchive: no event is mapped without a golden file.
func TestEveryEventHasAnArchive(t *testing.T) {
	t.Parallel()

	for _, host := range bridge.Hosts() {
		for name := range bridge.Steps(host) {
			if _, err := os.Stat(filepath.Join("testdata", host, name+".txtar")); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestEventsOfPluginFiles: the events of a host that loads a plugin are those that its file sends.
func TestEventsOfPluginFiles(t *testing.T) {
	t.Parallel()

	amp, opencode := bridge.Steps("amp"), bridge.Steps("opencode")
	for host, steps := range map[string]map[string]bridge.Step{"amp": amp, "opencode": opencode} {
		file := string(plugin.File(host, ""))
		for _, name := range slices.Concat(slices.Sorted(maps.Keys(amp)), slices.Sorted(maps.Keys(opencode))) {
			if _, has := steps[name]; has != strings.Contains(file, `"`+name+`"`) {
				t.Errorf("%s: the table has %s: %t, the file has it: %t", host, name, has, !has)
			}
		}
	}
}

// TestTouchedPaths: guards see which files a call is about.
func TestTouchedPaths(t *testing.T) {
	t.Parallel()

	e, err := bridge.Decode("codex", []byte(`{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"apply_patch","tool_input":{"cwd":"/w","command":"*** Begin Patch\n*** Update File: a.go\n*** Move to: b.go\n*** End Patch"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e.Call.Paths, []string{"/w", "a.go", "b.go"}); diff != "" {
		t.Errorf("paths (-got +want):\n%s", diff)
	}
}
