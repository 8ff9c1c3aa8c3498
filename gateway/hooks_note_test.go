package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/manifest"
)

// TestHostEvents: what an agent says of itself is on record, with the turn that it belongs to or the next one, and in a
// record of its own if there is none.
func TestHostEvents(t *testing.T) {
	t.Parallel()

	log := logStore(t)
	p := coached(t, &coach{text: "Be brief."}, log)
	const loaded = `{"session_id":"%s","hook_event_name":"InstructionsLoaded","file_path":"/w/%s","memory_type":"Project","load_reason":"session_start"}`
	for _, payload := range []string{
		fmt.Sprintf(loaded, "s", "CLAUDE.md"),
		`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"/probe a","prompt_id":"1","source":"loop_wakeup"}`,
		`{"session_id":"s","hook_event_name":"UserPromptExpansion","expansion_type":"slash_command","command_name":"probe","command_args":"a","prompt":"/probe a","prompt_id":"1"}`,
		`{"session_id":"s","hook_event_name":"PreSkillShellCommand","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"x:preamble-0","command_name":"probe","invoked_by":"user","prompt_id":"1"}`,
		`{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"mcp__f__r","tool_input":{},"tool_use_id":"c","mcp_server":{"name":"f","source":"project"},"prompt_id":"1"}`,
		`{"session_id":"s","hook_event_name":"PermissionDenied","agent_id":"a","tool_name":"Bash","tool_input":{},"tool_use_id":"d","reason":"no","prompt_id":"1"}`,
		fmt.Sprintf(loaded, "s", "sub/CLAUDE.md"),
		`{"session_id":"s","hook_event_name":"Stop"}`,
		`{"session_id":"s","hook_event_name":"PreModelSwitch","from_model":"a","to_model":"b","source":"command"}`,
		`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"hi","prompt_id":"2"}`,
		`{"session_id":"s","hook_event_name":"SessionEnd","reason":"other"}`,
		fmt.Sprintf(loaded, "alone", "CLAUDE.md"),
		`{"session_id":"alone","hook_event_name":"SessionEnd","reason":"other"}`,
	} {
		if status, got := p.hook(t, "claude-code", payload); status != http.StatusOK || strings.Contains(got, "deny") {
			t.Errorf("%s: status %d: %s", payload, status, got)
		}
	}
	var files, said []string
	for _, m := range append(records(t, log, "s"), records(t, log, "alone")...) {
		for _, f := range m.Files {
			if f.Status == manifest.FileOfHost {
				files = append(files, m.TurnID+" "+f.Path)
			}
		}
		for _, e := range m.HostEvents {
			words := []string{e.Event, e.CallID}
			for _, f := range e.Facts {
				words = append(words, f.Name+"="+f.Value)
			}
			said = append(said, strings.Join(words, " "))
		}
	}
	for what, got := range map[string][]string{
		"1 /w/CLAUDE.md\n2 /w/CLAUDE.md\n2 /w/sub/CLAUDE.md": files,
		strings.Join([]string{
			"InstructionsLoaded  file_path=/w/CLAUDE.md memory_type=Project load_reason=session_start",
			"UserPromptSubmit  source=loop_wakeup",
			"UserPromptExpansion  command_name=probe expansion_type=slash_command",
			"PreSkillShellCommand x:preamble-0 command_name=probe invoked_by=user",
			`PreToolUse c mcp_server={"name":"f","source":"project"}`,
			"PermissionDenied d tool_name=Bash reason=no",
			"InstructionsLoaded  file_path=/w/sub/CLAUDE.md memory_type=Project load_reason=session_start",
			"PreModelSwitch  source=command from_model=a to_model=b",
			"InstructionsLoaded  file_path=/w/CLAUDE.md memory_type=Project load_reason=session_start",
		}, "\n"): said,
	} {
		if strings.Join(got, "\n") != what {
			t.Errorf("on record is\n%s\nwant\n%s", strings.Join(got, "\n"), what)
		}
	}
}
