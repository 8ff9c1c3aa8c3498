package copilot

import (
	"bytes"
	"cmp"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/claudecode"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

func scripts() *agent.Scripts {
	return &agent.Scripts{
		Format: "copilot", Directories: []string{".github", ".copilot"}, Words: []string{"timeoutSec", "powershell", "agentStop", "userPromptSubmitted"},
		Event: eventOf, Timeout: 30 * time.Second, Unit: time.Second,
		Tools: map[agent.Class]string{
			agent.Shell: "bash", agent.Read: "view", agent.Write: "create", agent.Edit: "edit", agent.Grep: "grep", agent.Glob: "glob",
			agent.Fetch: "web_fetch", agent.Search: "web_search",
		},
		More: map[string]agent.Class{"powershell": agent.Shell, "str_replace_editor": agent.Edit, "apply_patch": agent.Edit, "rg": agent.Grep},
		Matcher: func(h *agent.Hook) (exact []string, expression string) {
			if h.Matcher == "**" && isPascal(h) {
				return nil, ""
			}
			return nil, "^(?:" + h.Matcher + ")$"
		},
		Take: take, Dir: func(project, _ string) string { return project }, Payload: payloadOf, ExpandsEnv: true,
		Text: func(_ *agent.Output, out []byte) []byte { return withoutProgress(out) }, Answer: read, Lists: true, CrashDenies: true,
	}
}

// eventOf returns an event's name in Pascal case, in which VS Code writes it.
func eventOf(name string) string {
	switch name {
	case "userPromptSubmitted":
		return "UserPromptSubmit"
	case "agentStop":
		return "Stop"
	case transformed, "":
		return name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// isPascal reports whether a hook is one in the shape of VS Code.
func isPascal(h *agent.Hook) bool { return h.Event[0] >= 'A' && h.Event[0] <= 'Z' }

func take(h *agent.Hook, e *agent.Entry) {
	if h.Command = cmp.Or(e.Bash, e.Command); e.Exec != "" {
		h.Command, h.Args = e.Exec, append([]string{}, e.Args...)
	}
	switch {
	case filepath.IsAbs(e.Cwd):
		h.Dir = e.Cwd
	case e.Cwd != "":
		h.Dir = filepath.Join(h.Dir, e.Cwd)
	}
	if isPascal(h) {
		h.Names = claudecode.Scripts()
	}
}

// payloadOf has the fields of the hooks reference: in camel case, or in snake case where the event is in Pascal case.
func payloadOf(h *agent.Hook, f *agent.Facts) map[string]any {
	p := map[string]any{"sessionId": f.Session, "timestamp": f.Now.UnixMilli(), "cwd": f.Dir}
	args := "toolArgs"
	if isPascal(h) {
		p["timestamp"], p["hookEventName"], args = f.Now.UTC().Format(time.RFC3339Nano), h.Event, "toolInput"
	}
	switch h.Step {
	case agent.StepSessionStart:
		p["source"] = f.Source
	case agent.StepPrompt:
		p["prompt"] = f.Prompt
	case agent.StepToolCall, agent.StepToolResult, agent.StepToolFailed:
		p["toolName"] = f.Name
		if p[args] = f.Input(); h.Step == agent.StepToolResult {
			p["toolResult"] = cased(h, map[string]any{"resultType": "success", "textResultForLlm": f.Result})
		} else if h.Step == agent.StepToolFailed {
			p["error"] = f.Result
		}
	case agent.StepStop:
		p["transcriptPath"], p["stopReason"], p["stop_hook_active"] = f.Transcript, "end_turn", f.Forced > 0
	case agent.StepFailed:
		p["error"], p["errorContext"], p["recoverable"] = map[string]any{"message": f.Text, "name": "Error"}, "model_call", false
	case agent.StepOnlyCompact:
		p["transcriptPath"], p["trigger"], p["customInstructions"] = f.Transcript, f.Trigger(), ""
	case agent.StepSessionEnd:
		p["reason"] = cmp.Or(f.Source, "complete")
	default: // it has no more
	}
	return cased(h, p)
}

// cased is an object with the names in the case of the event.
func cased(h *agent.Hook, p map[string]any) map[string]any {
	if !isPascal(h) {
		return p
	}
	out := map[string]any{}
	for name, v := range p {
		out[agent.Snake(name)] = v
	}
	return out
}

// withoutProgress takes away the lines that are whole JSON objects of the type progress.
func withoutProgress(out []byte) []byte {
	var kept [][]byte
	for line := range bytes.Lines(out) {
		if agent.TextOf(jsonscan.Member(line, "type")) != "progress" {
			kept = append(kept, line)
		}
	}
	return bytes.TrimSpace(bytes.Join(kept, nil))
}

// read reads an answer: one JSON object. 2 denies a call whatever it says, and is context for a failed tool; any other code
// fails.
func read(h *agent.Hook, o *agent.Output, out []byte, _ *agent.Facts) (a agent.Answer, err error) {
	if o.Code != 0 && o.Code != 2 {
		return agent.Answer{}, h.FailedExit(o)
	}
	if len(out) > 0 && (out[0] == '{' || out[0] == '[') {
		a, err = said(h, out)
	}
	switch {
	case o.Code == 2 && h.Step == agent.StepToolCall:
		if a.Verdict != phases.VerdictDeny {
			h.Block(&a, cmp.Or(a.Reason, string(o.Stderr)), false)
		}
		a.Arguments = nil
	case o.Code == 2 && h.Step == agent.StepToolFailed:
		a = agent.Answer{}
		a.AddContext(string(out))
	case o.Code == 2:
		a = agent.Answer{}
		a.AddNote(strings.TrimSpace(string(o.Stderr)))
	case err != nil:
		return agent.Answer{}, h.Invalid(o, err)
	}
	return a, nil
}

func said(h *agent.Hook, out []byte) (a agent.Answer, err error) {
	var s answer
	if err := h.Decode(out, false, &s); err != nil {
		return agent.Answer{}, err
	}
	if agent.IsSet(s.Specific) {
		return agent.Answer{}, errors.New("hookSpecificOutput is Claude Code's; here the fields stand at the top")
	}
	a.Lost = agent.Others(out, "permissionDecision", "permissionDecisionReason", "modifiedArgs", "modifiedResult", "additionalContext", "decision", "reason")
	a.AddContext(s.Context)
	switch h.Step {
	case agent.StepToolCall:
		if err := h.Decide(&a, s.Permission, s.Why); err != nil {
			return agent.Answer{}, err
		}
		return a, a.Rewrite(s.Arguments)
	case agent.StepStop:
		if s.Decision == "block" {
			h.Block(&a, s.Reason, false)
		}
	case agent.StepToolResult:
		if s.Result != nil {
			a.Result = &s.Result.Text
		}
	default: // context alone
	}
	return a, nil
}
