package cursor

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/phases"
)

// version is what scripts that look at it are told: the first version whose contract this is.
const version = "2.4.0"

func scripts() *agent.Scripts {
	return &agent.Scripts{
		Format: "cursor", Directories: []string{".cursor"}, Words: []string{"beforeSubmitPrompt", "beforeShellExecution", "afterFileEdit", "preToolUse"},
		Timeout: 60 * time.Second, Unit: time.Second,
		Tools: map[agent.Class]string{
			agent.Shell: "Shell", agent.Read: "Read", agent.Write: "Write", agent.Edit: "Write", agent.Grep: "Grep",
		},
		Others:  []string{"Task", "Delete", "List", "ReadLints", "Fetch"},
		MCPName: func(_, tool string) string { return "MCP:" + tool },
		Take:    take, Dir: func(project, beside string) string { return cmp.Or(project, beside) }, Payload: payloadOf,
		Environ: func(h *agent.Hook, f *agent.Facts, vars map[string]string) {
			project := cmp.Or(h.Project, f.Dir)
			vars["CURSOR_PROJECT_DIR"], vars["CLAUDE_PROJECT_DIR"], vars["CURSOR_VERSION"] = project, project, version
		},
		Answer: read,
	}
}

func take(h *agent.Hook, e *agent.Entry) {
	if e.FailClosed != nil {
		if h.OnFailure = "continue"; *e.FailClosed {
			h.OnFailure = "block"
		}
	}
	h.LoopLimit = 5 // its default
	if e.LoopLimit != nil && json.Unmarshal(e.LoopLimit, &h.LoopLimit) == nil && string(e.LoopLimit) == "null" {
		h.LoopLimit = 0
	}
}

// payloadOf has the fields of cursor.com/docs/hooks.
func payloadOf(h *agent.Hook, f *agent.Facts) map[string]any {
	p := map[string]any{
		"conversation_id": f.Session, "generation_id": f.Turn, "model": f.Model, "hook_event_name": h.Event, "cursor_version": version,
		"workspace_roots": []string{cmp.Or(h.Project, f.Dir)}, "user_email": nil, "transcript_path": nil,
	}
	switch h.Step {
	case agent.StepSessionStart:
		p["session_id"], p["is_background_agent"], p["composer_mode"] = f.Session, false, "agent"
	case agent.StepPrompt:
		p["prompt"], p["attachments"] = f.Prompt, []any{}
	case agent.StepToolCall, agent.StepToolResult, agent.StepToolFailed:
		addTool(p, h, f)
	case agent.StepStop:
		p["status"], p["loop_count"] = "completed", f.Forced
	case agent.StepText:
		p["text"] = f.Text
	case agent.StepOnlyCompact:
		p["trigger"] = f.Trigger()
	case agent.StepSessionEnd:
		p["session_id"], p["reason"], p["is_background_agent"] = f.Session, cmp.Or(f.Source, "completed"), false
	default: // it has no more
	}
	return p
}

func addTool(p map[string]any, h *agent.Hook, f *agent.Facts) {
	var result string
	switch h.Rules.Class {
	case agent.Shell:
		p["command"], p["cwd"], p["sandbox"] = f.Command(), f.Dir, false
		result = "output"
	case agent.MCP:
		p["tool_name"], p["tool_input"] = strings.TrimPrefix(f.Name, "MCP:"), string(f.Arguments) // a text, there
		result = "result_json"
	case agent.Edit:
		p["file_path"], p["edits"] = absolute(f), edits(f.Arguments)
		return
	default:
		p["tool_name"], p["tool_input"], p["tool_use_id"], p["cwd"] = f.Name, f.Input(), f.CallID, f.Dir
		result = "tool_output"
	}
	switch h.Step {
	case agent.StepToolResult:
		p[result] = f.Result
	case agent.StepToolFailed:
		p["error_message"], p["failure_type"], p["is_interrupt"] = f.Result, "error", false
	default: // it has not run
	}
}

// absolute is the first file that a call is about.
func absolute(f *agent.Facts) string {
	if len(f.Paths) == 0 || filepath.IsAbs(f.Paths[0]) {
		return strings.Join(f.Paths[:min(len(f.Paths), 1)], "")
	}
	return filepath.Join(f.Dir, f.Paths[0])
}

// replacement is one that a call makes in a file.
type replacement struct {
	Old string `json:"old_string"`
	New string `json:"new_string"`
}

// edits are the replacements that a call makes, as far as its arguments have them; a file that is written whole has one.
func edits(arguments json.RawMessage) []replacement {
	var args struct {
		replacement

		Content string        `json:"content"`
		Edits   []replacement `json:"edits"`
	}
	_ = json.Unmarshal(arguments, &args) // arguments of another shape have none
	if args.Edits == nil {
		args.Edits = []replacement{{args.Old, cmp.Or(args.New, args.Content)}}
	}
	return args.Edits
}

// read reads an answer: exit code 0 and JSON, or 2, which denies; all else fails.
func read(h *agent.Hook, o *agent.Output, out []byte, f *agent.Facts) (a agent.Answer, err error) {
	if len(out) > 0 && o.Code != 1 {
		a, err = said(h, out)
	}
	switch {
	case o.Code == 2:
		if a.Verdict != phases.VerdictDeny {
			h.Block(&a, string(o.Stderr), false)
		}
	case o.Code != 0:
		return agent.Answer{}, h.FailedExit(o)
	case err != nil && !h.Rules.Silent:
		return agent.Answer{}, h.Invalid(o, err)
	}
	if h.Step == agent.StepStop && h.LoopLimit > 0 && f.Forced >= h.LoopLimit {
		a.Verdict, a.Reason = "", ""
	}
	return a, nil
}

func said(h *agent.Hook, out []byte) (a agent.Answer, err error) {
	var s answer
	if err := h.Decode(out, false, &s); err != nil {
		return agent.Answer{}, err
	}
	a.Lost = agent.Others(out, "permission", "user_message", "agent_message", "updated_input", "decision", "reason", "continue", "additional_context", "updated_mcp_tool_output", "followup_message")
	a.AddContext(s.Context)
	switch h.Step {
	case agent.StepToolCall:
		word := cmp.Or(s.Permission, s.Decision)
		if word == "block" {
			word = "deny"
		}
		if err := h.Decide(&a, word, cmp.Or(s.ForAgent, s.Reason, s.ForUser)); err != nil {
			return agent.Answer{}, err
		}
		return a, a.Rewrite(s.Arguments)
	case agent.StepPrompt:
		if s.Continue != nil && !*s.Continue {
			h.Block(&a, s.ForUser, false)
		}
	case agent.StepStop:
		if strings.TrimSpace(s.FollowUp) != "" {
			a.Verdict, a.Reason = phases.VerdictDeny, s.FollowUp
		}
	case agent.StepToolResult:
		a.Replace(s.Output)
	default:
		a.AddNote(s.ForUser)
	}
	return a, nil
}
