package codex

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/claudecode"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/phases"
)

// names matches what is a list of names, and not an expression.
var names = lazyregexp.New(`^[\w|]*$`)

// scripts follows schema.rs, engine/*.rs and events/*.rs of codex-rs/hooks.
func scripts() *agent.Scripts {
	return &agent.Scripts{
		Format: "codex", Directories: []string{".codex"}, Grouped: true, Plugins: true, Timeout: 600 * time.Second, Unit: time.Second,
		Tools:  map[agent.Class]string{agent.Shell: "Bash", agent.Write: "apply_patch", agent.Edit: "apply_patch"},
		Others: []string{"Write", "Edit"}, EditAliases: []string{"apply_patch", "Write", "Edit"},
		Matcher: func(h *agent.Hook) (exact []string, expression string) {
			if names().MatchString(h.Matcher) {
				return strings.Split(h.Matcher, "|"), ""
			}
			return nil, h.Matcher
		},
		Payload: payloadOf,
		Environ: func(h *agent.Hook, _ *agent.Facts, vars map[string]string) {
			if h.PluginRoot != "" {
				vars["PLUGIN_ROOT"] = h.PluginRoot
			}
		},
		Answer: answer, Lists: true, KeepsMark: true, AfterCompaction: true,
	}
}

// payloadOf has the fields of the *CommandInput types, which differ from Claude Code's in few.
func payloadOf(h *agent.Hook, f *agent.Facts) map[string]any {
	p := claudecode.Payload(h, f)
	delete(p, "error")
	p["transcript_path"], p["model"], p["turn_id"] = nil, f.Model, f.Turn
	if h.Step == agent.StepSessionStart {
		p["permission_mode"] = "default"
		delete(p, "turn_id")
	}
	return p
}

// answer: exit code 0 and JSON that fits the schema exactly, or 2 and a reason on standard error; all else is a failed hook.
// Plain text is context for a prompt and the start of a session, and an error at a stop.
func answer(h *agent.Hook, o *agent.Output, out []byte, _ *agent.Facts) (a agent.Answer, err error) {
	switch {
	case o.Code == 2 && len(bytes.TrimSpace(o.Stderr)) == 0:
		return agent.Answer{}, h.Failed(agent.CodeExit, "ended with exit code 2 and wrote no reason to standard error", o)
	case o.Code == 2:
		h.Block(&a, string(o.Stderr), true)
	case o.Code != 0:
		return agent.Answer{}, h.FailedExit(o)
	case len(out) == 0:
	case agent.IsObject(out) || out[0] == '[' || h.Step == agent.StepStop:
		if a, err = said(h, out); err != nil {
			return agent.Answer{}, h.Invalid(o, err)
		}
	case h.Step == agent.StepPrompt || h.Step == agent.StepSessionStart:
		a.AddContext(string(out))
	}
	return a, nil
}

// fields are those of hookSpecificOutput that the schema of a step has.
func fields(s agent.Step) []string {
	switch s {
	case agent.StepToolCall:
		return []string{"hookEventName", "permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext"}
	case agent.StepToolResult:
		return []string{"hookEventName", "additionalContext", "updatedToolOutput", "updatedMCPToolOutput"}
	case agent.StepPrompt, agent.StepSessionStart:
		return []string{"hookEventName", "additionalContext"}
	default:
		return nil
	}
}

func said(h *agent.Hook, out []byte) (a agent.Answer, err error) {
	var s agent.ClaudeAnswer
	var sp agent.ClaudeSpecific
	if err := h.DecodeSaid(out, true, &s, &sp); err != nil {
		return agent.Answer{}, err
	}
	if agent.IsSet(s.Specific) {
		known := fields(h.Step)
		if more := agent.Others(s.Specific, known...); len(more) > 0 || known == nil || sp.Event != h.Event {
			return agent.Answer{}, fmt.Errorf("hookSpecificOutput of %q with %s", sp.Event, strings.Join(more, ", "))
		}
	}
	if s.Decision == "" && given(out, "decision") || sp.Permission == "" && given(s.Specific, "permissionDecision") {
		return agent.Answer{}, errors.New("an empty decision")
	}
	ends := s.Continue != nil && !*s.Continue
	a.AddNote(s.SystemMessage)
	a.AddContext(sp.Context)
	if h.Step == agent.StepToolCall {
		err = permission(h, &a, out, &s, &sp, ends)
	} else {
		err = decide(h, &a, out, &s, &sp, ends)
	}
	if err == nil && ends {
		if h.End(&a, &s); h.Step == agent.StepToolResult {
			a.Result = new(cmp.Or(s.Reason, s.StopReason, "PostToolUse hook stopped execution"))
		}
	}
	return a, err
}

// given reports whether an answer has a member, be it empty, which is not the same as none for Codex.
func given(raw json.RawMessage, name string) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(raw, &members) == nil && agent.IsSet(members[name])
}

func decide(h *agent.Hook, a *agent.Answer, out []byte, s *agent.ClaudeAnswer, sp *agent.ClaudeSpecific, ends bool) error {
	decision, reason := s.Decision, strings.TrimSpace(s.Reason)
	switch {
	case decision != "" && decision != "block":
		return fmt.Errorf("the decision %q is not block", decision)
	case ends:
		return nil
	case decision == "block" && reason == "":
		return errors.New("decision block without a reason")
	case decision == "block":
		h.Block(a, reason, true)
	case h.Step == agent.StepToolResult && given(out, "reason"):
		return errors.New("a reason without a decision")
	case h.Step == agent.StepToolResult && s.SuppressOutput:
		return errors.New("suppressOutput is not supported")
	}
	if a.Result == nil {
		a.Replace(json.RawMessage(cmp.Or(string(sp.Output), string(sp.MCPOutput))))
	}
	return nil
}

func permission(h *agent.Hook, a *agent.Answer, out []byte, s *agent.ClaudeAnswer, sp *agent.ClaudeSpecific, ends bool) error {
	if ends || given(out, "stopReason") || s.SuppressOutput {
		return errors.New("PreToolUse does not support continue: false, stopReason and suppressOutput")
	}
	word, why := sp.Permission, strings.TrimSpace(sp.Why)
	if sp.Permission == "" && !given(s.Specific, "permissionDecisionReason") && !agent.IsSet(sp.Input) { // the older words
		reason := strings.TrimSpace(s.Reason)
		switch {
		case s.Decision == "block" && reason != "":
			h.Block(a, reason, false)
		case s.Decision != "" || given(out, "reason"):
			return fmt.Errorf("the decision %q needs to be block, with a reason", s.Decision)
		}
		return nil
	}
	switch {
	case word == "deny" && why != "" && !agent.IsSet(sp.Input):
		h.Block(a, why, false)
	case word == "allow" && agent.IsSet(sp.Input):
		a.Verdict, a.Reason = phases.VerdictAllow, why
		return a.Rewrite(sp.Input)
	default:
		return fmt.Errorf("the permissionDecision %q is supported as deny with a reason, or as allow with updatedInput", word)
	}
	return nil
}
