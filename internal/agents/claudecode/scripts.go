package claudecode

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/phases"
)

// names matches what is a list of names, and not an expression.
var names = lazyregexp.New(`^[\w ,|-]*$`)

// Scripts are the rules for scripts, which VS Code shares.
func Scripts() *agent.Scripts {
	return &agent.Scripts{
		Format: "claude", Directories: []string{".claude"}, Grouped: true, Plugins: true, Timeout: 600 * time.Second, Unit: time.Second,
		Tools: map[agent.Class]string{
			agent.Shell: "Bash", agent.Read: "Read", agent.Write: "Write", agent.Edit: "Edit", agent.Grep: "Grep", agent.Glob: "Glob",
			agent.Fetch: "WebFetch", agent.Search: "WebSearch",
		},
		More: map[string]agent.Class{"MultiEdit": agent.Edit, "NotebookEdit": agent.Edit, "PowerShell": agent.Shell},
		Others: []string{
			"Task", "Agent", "TodoWrite", "Skill", "LS", "NotebookRead", "BashOutput", "KillShell", "ExitPlanMode", "AskUserQuestion", "SlashCommand", "ToolSearch",
		},
		Matcher: matcher, Take: func(h *agent.Hook, e *agent.Entry) { h.Args, h.If = e.Args, e.If },
		Payload: func(h *agent.Hook, f *agent.Facts) map[string]any {
			p := Payload(h, f)
			if f.Turn != "" {
				p["prompt_id"] = f.Turn
			}
			return p
		},
		Environ: func(h *agent.Hook, f *agent.Facts, vars map[string]string) {
			vars["CLAUDE_PROJECT_DIR"] = cmp.Or(h.Project, f.Dir)
		},
		Answer: answer, AfterCompaction: true,
	}
}

func matcher(h *agent.Hook) (exact []string, expression string) {
	if names().MatchString(h.Matcher) {
		return strings.FieldsFunc(h.Matcher, func(c rune) bool { return strings.ContainsRune(" ,|", c) }), ""
	}
	return nil, h.Matcher
}

// Payload has the fields of BaseHookInput and of the event's own type, as far as other agents of this shape have them too.
func Payload(h *agent.Hook, f *agent.Facts) map[string]any {
	p := map[string]any{"session_id": f.Session, "transcript_path": f.Transcript, "cwd": f.Dir, "hook_event_name": h.Event}
	if f.Agent != "" {
		p["agent_id"] = f.Agent
	}
	if h.Step != agent.StepSessionStart && h.Step != agent.StepSessionEnd {
		p["permission_mode"] = "default"
	}
	switch h.Step {
	case agent.StepSessionStart:
		if p["source"] = f.Source; f.Model != "" {
			p["model"] = f.Model
		}
	case agent.StepPrompt:
		p["prompt"] = f.Prompt
	case agent.StepToolCall, agent.StepToolResult, agent.StepToolFailed:
		p["tool_name"], p["tool_input"], p["tool_use_id"] = f.Name, f.Input(), f.CallID
		switch h.Step {
		case agent.StepToolResult:
			p["tool_response"] = response(f)
		case agent.StepToolFailed:
			p["error"] = f.Result
		default: // no tool has run
		}
	case agent.StepStop:
		p["stop_hook_active"], p["last_assistant_message"] = f.Forced > 0, f.Text
	case agent.StepFailed:
		p["error"], p["error_details"] = "unknown", f.Text
	case agent.StepCompact, agent.StepOnlyCompact:
		p["trigger"], p["custom_instructions"] = f.Trigger(), nil
	case agent.StepCompacted:
		p["trigger"], p["compact_summary"] = f.Trigger(), f.Text
	case agent.StepSessionEnd:
		p["reason"] = cmp.Or(f.Source, "other")
	default: // it has no more
	}
	return p
}

// response has the shape that Bash gives; what other tools give is a text, or their JSON.
func response(f *agent.Facts) any {
	if json.Valid([]byte(f.Result)) && strings.HasPrefix(strings.TrimSpace(f.Result), "{") {
		return json.RawMessage(f.Result)
	}
	if f.Class == agent.Shell {
		return bashOutput{Stdout: f.Result}
	}
	return f.Result
}

// answer: standard output that begins with { is JSON, on every exit code. 2 blocks whatever it says. On others valid JSON
// alone counts. Plain text is context for a prompt and the start of a session. Unlike the agent, which takes it for text, this
// takes broken JSON for a failure.
func answer(h *agent.Hook, o *agent.Output, out []byte, _ *agent.Facts) (a agent.Answer, err error) {
	if agent.IsObject(out) {
		a, err = said(h, out)
	}
	switch {
	case o.Code == 2 && a.Verdict == phases.VerdictDeny: // with its own reason
		return a, nil
	case o.Code == 2:
		h.Block(&a, string(o.Stderr), false)
		return a, nil
	case err != nil && h.AsHost && !json.Valid(out) && o.Code == 0: // a text, by the agent's own rule
		a = agent.Answer{Ignored: err.Error()}
	case err != nil:
		return agent.Answer{}, h.Invalid(o, err)
	case agent.IsObject(out):
		return a, nil
	case o.Code != 0:
		return agent.Answer{}, h.FailedExit(o)
	}
	if h.Step == agent.StepPrompt || h.Step == agent.StepSessionStart {
		a.AddContext(string(out))
	}
	return a, nil
}

func said(h *agent.Hook, out []byte) (agent.Answer, error) {
	var s agent.ClaudeAnswer
	var sp agent.ClaudeSpecific
	if err := h.DecodeSaid(out, false, &s, &sp); err != nil {
		return agent.Answer{}, err
	}
	if agent.IsSet(s.Specific) && sp.Event != h.Event {
		return agent.Answer{}, fmt.Errorf("hookSpecificOutput.hookEventName is %q", sp.Event)
	}
	if d := s.Decision; d != "" && d != "block" && d != "approve" {
		return agent.Answer{}, fmt.Errorf("the decision %q is neither block nor approve", d)
	}
	a := agent.Answer{Lost: append(
		agent.Others(out, "continue", "stopReason", "suppressOutput", "systemMessage", "decision", "reason", "hookSpecificOutput"),
		agent.Others(s.Specific, "hookEventName", "permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext", "updatedToolOutput", "updatedMCPToolOutput")...)}
	a.AddNote(s.SystemMessage)
	a.AddContext(sp.Context)
	if err := decide(h, &a, &s, &sp); err != nil {
		return agent.Answer{}, err
	}
	h.End(&a, &s)
	return a, nil
}

// decide takes the fields that decide and rewrite.
func decide(h *agent.Hook, a *agent.Answer, s *agent.ClaudeAnswer, sp *agent.ClaudeSpecific) error {
	blocks := s.Decision == "block"
	switch {
	case h.Step == agent.StepToolCall:
		word, why := sp.Permission, sp.Why
		if word == "" { // the older words
			word, why = map[string]string{"block": "deny", "approve": "allow"}[s.Decision], cmp.Or(why, s.Reason)
		}
		if word == "defer" {
			a.Verdict, a.Reason = phases.VerdictAsk, "the call was put off by "+h.Title()
			a.Lost = append(a.Lost, "permissionDecision defer")
			return nil
		}
		if err := h.Decide(a, word, why); err != nil {
			return err
		}
		return a.Rewrite(sp.Input)
	case h.Step == agent.StepStop && !blocks && len(a.Context) > 0: // the conversation goes on with it
		a.Verdict, a.Reason, a.Context = phases.VerdictDeny, strings.Join(a.Context, "\n\n"), nil
	case h.Step == agent.StepToolResult:
		a.Replace(json.RawMessage(cmp.Or(string(sp.Output), string(sp.MCPOutput))))
	}
	if blocks {
		h.Block(a, s.Reason, false)
	}
	return nil
}
