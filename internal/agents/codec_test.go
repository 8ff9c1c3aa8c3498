package agents_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
)

const toolCall = `{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/w","turn_id":"u","prompt_id":"u","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"c"}`

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
		e, err := agents.Decode("claude-code", []byte(`{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"`+tt.tool+`","tool_input":{"file_path":"/f"},"tool_response":`+tt.response+`}`))
		if err != nil {
			t.Fatal(err)
		}
		got := agents.Encode(&e, &agent.Outcome{Result: &tt.text})
		if diff := cmp.Diff(strings.TrimSpace(string(got)), tt.want); diff != "" {
			t.Errorf("%s of %s as %s (-got +want)\n%s", tt.response, tt.tool, tt.text, diff)
		}
	}
}

// TestHostilePayloads: what cannot be read is an error, for the rule of the installation; what is unknown is let through.
func TestHostilePayloads(t *testing.T) {
	t.Parallel()

	for _, host := range agents.Names() {
		event := map[string]string{"gemini": "BeforeTool", "cursor": "preToolUse"}[host]
		if event == "" {
			event = "PreToolUse"
		}
		call := `{"hook_event_name":"` + event + `","session_id":"s","tool_name":"x","tool_input":{"command":"ls"}}`
		for name, tt := range map[string]struct {
			payload string
			step    agent.Step
			fails   bool
		}{
			"unknown event":     {`{"hook_event_name":"Tomorrow","session_id":"s"}`, agent.StepNone, false},
			"unknown fields":    {strings.Replace(call, "{", `{"new":{"a":[1]},`, 1), agent.StepToolCall, false},
			"byte order mark":   {"\ufeff" + call, agent.StepToolCall, false},
			"no event":          {`{"session_id":"s","sessionId":"s","toolName":"x","toolArgs":{}}`, "", true},
			"no session":        {strings.Replace(call, `"session_id":"s",`, "", 1), "", true},
			"no tool":           {strings.Replace(call, `"tool_name":"x",`, "", 1), "", true},
			"a number for text": {strings.Replace(call, `"tool_name":"x"`, `"tool_name":7`, 1), "", true},
			"broken UTF-8":      {strings.Replace(call, "ls", "\xff", 1), agent.StepToolCall, false},
			"a NUL":             {strings.Replace(call, "ls", `\u0000`, 1), agent.StepToolCall, false},
			"half a character":  {strings.Replace(call, "ls", `\ud800`, 1), agent.StepToolCall, false},
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
			e, err := agents.Decode(host, []byte(tt.payload))
			if (err != nil) != tt.fails || err == nil && e.Step != tt.step {
				t.Errorf("%s, %s: %q, %v", host, name, e.Step, err)
			}
		}
	}
	if _, err := agents.Decode("emacs", []byte(toolCall)); err == nil || !strings.Contains(err.Error(), "amp, claude-code, codex") {
		t.Errorf("an unknown host: %v", err)
	}
}

// TestEventsOfPluginFiles: the events of a host that loads a plugin are those that its file sends.
func TestEventsOfPluginFiles(t *testing.T) {
	t.Parallel()

	amp, opencode := agents.Lookup("amp"), agents.Lookup("opencode")
	for _, a := range []*agent.Agent{amp, opencode} {
		for _, name := range slices.Concat(slices.Collect(maps.Keys(amp.Events)), slices.Collect(maps.Keys(opencode.Events))) {
			if has := a.Events[name].Step != agent.StepNone; has != strings.Contains(a.Plugin, `"`+name+`"`) {
				t.Errorf("%s: the table has %s: %t, the file has it: %t", a.Name, name, has, !has)
			}
		}
	}
}

// TestTouchedPaths: guards see which files a call is about.
func TestTouchedPaths(t *testing.T) {
	t.Parallel()

	e, err := agents.Decode("codex", []byte(`{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"apply_patch","tool_input":{"cwd":"/w","command":"*** Begin Patch\n*** Update File: a.go\n*** Move to: b.go\n*** End Patch"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e.Call.Paths, []string{"/w", "a.go", "b.go"}); diff != "" {
		t.Errorf("paths (-got +want):\n%s", diff)
	}
}
