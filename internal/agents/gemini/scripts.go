package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/claudecode"
	"github.com/grapnelhq/grapnel/phases"
)

func scripts() *agent.Scripts {
	return &agent.Scripts{
		Format: "gemini", Directories: []string{".gemini"}, Words: []string{"BeforeTool", "AfterTool", "BeforeAgent"},
		Settings: []string{"enabled", "disabled", "notifications"}, Grouped: true, Timeout: 60 * time.Second, Unit: time.Millisecond,
		Tools: map[agent.Class]string{
			agent.Shell: "run_shell_command", agent.Read: "read_file", agent.Write: "write_file", agent.Edit: "replace", agent.Grep: "grep_search",
			agent.Glob: "glob", agent.Fetch: "web_fetch", agent.Search: "google_web_search",
		},
		Others:  []string{"list_directory", "read_many_files", "save_memory", "write_todos", "activate_skill"},
		MCPName: func(server, tool string) string { return "mcp_" + server + "_" + tool },
		Matcher: matcher, Payload: payloadOf,
		Environ: func(_ *agent.Hook, f *agent.Facts, vars map[string]string) {
			vars["GEMINI_PROJECT_DIR"], vars["GEMINI_CWD"], vars["CLAUDE_PROJECT_DIR"] = f.Dir, f.Dir, f.Dir
			vars["GEMINI_SESSION_ID"] = f.Session
		},
		Text: textOf, Answer: answer, BlocksOnExit: true,
	}
}

func matcher(h *agent.Hook) (exact []string, expression string) {
	text := strings.TrimSpace(h.Matcher)
	if h.Step != agent.StepToolCall && h.Step != agent.StepToolResult {
		return []string{text}, ""
	}
	if _, err := regexp.Compile(text); err != nil && !strings.Contains(text, "(?") { // which JavaScript may know
		return []string{text}, "" // as it does itself
	}
	return nil, text
}

// payloadOf has the fields of docs/hooks/reference.md, which have the names of Claude Code's.
func payloadOf(h *agent.Hook, f *agent.Facts) map[string]any {
	p := claudecode.Payload(h, f)
	for _, name := range []string{"agent_id", "permission_mode", "model", "tool_use_id", "last_assistant_message", "custom_instructions"} {
		delete(p, name)
	}
	p["timestamp"] = f.Now.UTC().Format("2006-01-02T15:04:05.000Z")
	switch h.Step {
	case agent.StepStop:
		p["prompt"], p["prompt_response"] = f.Prompt, f.Text
	case agent.StepToolResult:
		p["tool_response"] = map[string]any{"llmContent": f.Result, "returnDisplay": f.Result}
	default: // it has no more
	}
	return p
}

// textOf is standard output, or standard error if that is empty; JSON may stand in a JSON text.
func textOf(o *agent.Output, out []byte) []byte {
	if len(out) == 0 {
		out = bytes.TrimSpace(o.Stderr)
	}
	var inner string
	if json.Unmarshal(out, &inner) == nil {
		out = []byte(strings.TrimSpace(inner))
	}
	return out
}

// answer: JSON counts on every exit code. Without JSON 0 is fine, and any code but 0 and 1 blocks. 1 is a warning there; here
// it is a failure, as a script that crashed ends with it.
func answer(h *agent.Hook, o *agent.Output, out []byte, f *agent.Facts) (a agent.Answer, err error) {
	switch {
	case agent.IsObject(out) && h.AsHost && !json.Valid(out) && o.Code == 0: // a text, by the agent's own rule
		a.AddNote(string(out))
		a.Ignored = "it is not JSON"
	case agent.IsObject(out):
		if a, err = said(h, out, f); err != nil && o.Code != 2 {
			return agent.Answer{}, h.Invalid(o, err)
		}
		if o.Code == 2 && a.Verdict != phases.VerdictDeny && a.Result == nil {
			h.Block(&a, string(o.Stderr), true)
		}
	case o.Code == 0:
		a.AddNote(string(out))
	case o.Code == 1:
		return agent.Answer{}, h.FailedExit(o)
	default:
		h.Block(&a, string(out), true)
	}
	return a, nil
}

func said(h *agent.Hook, out []byte, f *agent.Facts) (a agent.Answer, err error) {
	var s agent.ClaudeAnswer
	var sp struct {
		Input   map[string]json.RawMessage `json:"tool_input"`
		Context string                     `json:"additionalContext"`
	}
	if err := h.DecodeSaid(out, false, &s, &sp); err != nil {
		return agent.Answer{}, err
	}
	a.Lost = agent.Others(s.Specific, "hookEventName", "tool_input", "additionalContext")
	a.AddNote(s.SystemMessage)
	a.AddContext(sp.Context)
	switch d := s.Decision; d {
	case "", "allow", "approve":
	case "block", "deny":
		h.Block(&a, cmp.Or(s.StopReason, s.Reason), true)
	case "ask":
		if h.Step == agent.StepToolCall {
			a.Verdict, a.Reason = phases.VerdictAsk, s.Reason
		}
	default:
		return agent.Answer{}, fmt.Errorf("the decision %q is none of allow, deny, block and ask", d)
	}
	if h.Step == agent.StepSessionStart { // advisory there
		a.Verdict, a.Reason = "", ""
	} else {
		h.End(&a, &s)
	}
	if len(sp.Input) > 0 && h.Step == agent.StepToolCall && a.Verdict != phases.VerdictDeny {
		merged := map[string]json.RawMessage{} // it merges with the arguments
		_ = json.Unmarshal(f.Arguments, &merged)
		maps.Copy(merged, sp.Input)
		a.Arguments, err = json.Marshal(merged)
	}
	return a, err
}
