package commandhook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// answerCodex: exit code 0 and JSON that fits the schema exactly, or 2 and a reason on standard error; all else is a failed
// hook. Plain text is context for a prompt and the start of a session, and an error at a stop.
func answerCodex(h *Handler, o *Output, out []byte) (a Answer, err error) {
	switch {
	case o.Code == 2 && len(bytes.TrimSpace(o.Stderr)) == 0:
		return Answer{}, h.failed(CodeExit, "ended with exit code 2 and wrote no reason to standard error", o)
	case o.Code == 2:
		h.block(&a, string(o.Stderr), true)
	case o.Code != 0:
		return Answer{}, h.failed(CodeExit, fmt.Sprintf("ended with exit code %d", o.Code), o)
	case len(out) == 0:
	case isJSON(h.Format, out) || h.Moment == Stop:
		if a, err = codexSaid(h, out); err != nil {
			return Answer{}, h.invalid(o, err)
		}
		return a, nil
	case h.Moment == Prompt || h.Moment == Session:
		a.context(string(out))
	}
	return a, nil
}

// codexFields are the fields of hookSpecificOutput that the schema of a moment has.
//
//nolint:gochecknoglobals // an immutable table
var codexFields = map[Moment][]string{
	Call:    {"hookEventName", "permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext"},
	Result:  {"hookEventName", "additionalContext", "updatedToolOutput", "updatedMCPToolOutput"},
	Prompt:  {"hookEventName", "additionalContext"},
	Session: {"hookEventName", "additionalContext"},
}

func codexSaid(h *Handler, out []byte) (Answer, error) {
	var s said
	var sp specific
	if err := h.decode(out, true, &s); err != nil {
		return Answer{}, err
	}
	if isSet(s.Specific) {
		if err := h.decode(s.Specific, true, &sp); err != nil {
			return Answer{}, fmt.Errorf("hookSpecificOutput: %w", err)
		}
		if more := lost(s.Specific, codexFields[h.Moment]...); len(more) > 0 || codexFields[h.Moment] == nil || sp.Event != h.Event {
			return Answer{}, fmt.Errorf("hookSpecificOutput of %q with %s", sp.Event, strings.Join(more, ", "))
		}
	}
	ends := s.Continue != nil && !*s.Continue
	var a Answer
	a.note(text(s.SystemMessage))
	a.context(text(sp.Context))
	err := codexDecision(h, &a, &s, &sp, ends)
	if err == nil && ends {
		if h.end(&a, cmp.Or(text(s.StopReason), text(s.Reason))); h.Moment == Result {
			why := cmp.Or(text(s.Reason), text(s.StopReason), "PostToolUse hook stopped execution")
			a.Result = &why
		}
	}
	return a, err
}

func codexDecision(h *Handler, a *Answer, s *said, sp *specific, ends bool) error {
	decision, reason := text(s.Decision), strings.TrimSpace(text(s.Reason))
	if h.Moment == Call {
		return codexPermission(h, a, s, sp, ends)
	}
	switch {
	case decision != "" && decision != "block":
		return fmt.Errorf("the decision %q is not block", decision)
	case ends:
		return nil
	case decision == "block" && reason == "":
		return errors.New("decision block without a reason")
	case decision == "block":
		h.block(a, reason, true)
	case h.Moment == Result && s.Reason != nil:
		return errors.New("a reason without a decision")
	case h.Moment == Result && s.SuppressOutput:
		return errors.New("suppressOutput is not supported")
	}
	if raw := cmp.Or(string(sp.Output), string(sp.MCPOutput)); isSet(json.RawMessage(raw)) && a.Result == nil {
		a.Result = resultText(json.RawMessage(raw))
	}
	return nil
}

func codexPermission(h *Handler, a *Answer, s *said, sp *specific, ends bool) error {
	if ends || s.StopReason != nil || s.SuppressOutput {
		return errors.New("PreToolUse does not support continue: false, stopReason and suppressOutput")
	}
	permission, why := text(sp.Permission), strings.TrimSpace(text(sp.Why))
	if sp.Permission == nil && sp.Why == nil && !isSet(sp.Input) { // the older words
		reason := strings.TrimSpace(text(s.Reason))
		switch {
		case text(s.Decision) == "block" && reason != "":
			h.block(a, reason, false)
		case s.Decision != nil || s.Reason != nil:
			return fmt.Errorf("the decision %q needs to be block, with a reason", text(s.Decision))
		}
		return nil
	}
	switch {
	case permission == "deny" && why != "" && !isSet(sp.Input):
		h.block(a, why, false)
	case permission == "allow" && isSet(sp.Input):
		a.Verdict, a.Reason = phases.VerdictAllow, why
		return a.rewrite(sp.Input, true)
	default:
		return fmt.Errorf("the permissionDecision %q is supported as deny with a reason, or as allow with updatedInput", permission)
	}
	return nil
}

// answerGemini: JSON of standard output, or of standard error if that is empty, counts on every exit code. Without JSON 0 is
// fine, and any code but 0 and 1 blocks. 1 is a warning there; here it is a failure, as a script that crashed ends with it.
func answerGemini(h *Handler, o *Output, out []byte, f *Facts) (a Answer, err error) {
	switch {
	case isObject(out) && h.asText(out) && o.Code == 0:
		a.note(string(out))
		a.Ignored = "it is not JSON"
	case isObject(out):
		if a, err = geminiSaid(h, out, f); err != nil && o.Code != 2 {
			return Answer{}, h.invalid(o, err)
		}
		if o.Code == 2 && a.Verdict != phases.VerdictDeny && a.Result == nil {
			h.block(&a, string(o.Stderr), true)
		}
	case o.Code == 0:
		a.note(string(out))
	case o.Code == 1:
		return Answer{}, h.exit(o)
	default:
		h.block(&a, string(out), true)
	}
	return a, nil
}

// geminiText is what it reads of an output.
func geminiText(o *Output, out []byte) []byte {
	if len(out) == 0 {
		out = bytes.TrimSpace(o.Stderr)
	}
	var inner string
	if json.Unmarshal(out, &inner) == nil {
		out = []byte(strings.TrimSpace(inner)) // JSON in a JSON text
	}
	return out
}

// geminiSpecific is hookSpecificOutput, as Gemini CLI has it.
type geminiSpecific struct {
	Input   map[string]json.RawMessage `json:"tool_input"`
	Context string                     `json:"additionalContext"`
}

func geminiSaid(h *Handler, out []byte, f *Facts) (Answer, error) {
	var s said
	var sp geminiSpecific
	if err := h.decode(out, false, &s); err != nil {
		return Answer{}, err
	}
	if isSet(s.Specific) {
		if err := h.decode(s.Specific, false, &sp); err != nil {
			return Answer{}, fmt.Errorf("hookSpecificOutput: %w", err)
		}
	}
	a := Answer{Lost: lost(s.Specific, "hookEventName", "tool_input", "additionalContext")}
	a.note(text(s.SystemMessage))
	a.context(sp.Context)
	switch d := text(s.Decision); d {
	case "", "allow", "approve":
	case "block", "deny":
		h.block(&a, cmp.Or(text(s.StopReason), text(s.Reason)), true)
	case "ask":
		if h.Moment == Call {
			a.Verdict, a.Reason = phases.VerdictAsk, text(s.Reason)
		}
	default:
		return Answer{}, fmt.Errorf("the decision %q is none of allow, deny, block and ask", d)
	}
	if h.Moment == Session { // advisory there
		a.Verdict, a.Reason = "", ""
	} else if s.Continue != nil && !*s.Continue {
		h.end(&a, cmp.Or(text(s.StopReason), text(s.Reason)))
	}
	if len(sp.Input) == 0 || h.Moment != Call || a.Verdict == phases.VerdictDeny {
		return a, nil
	}
	merged := map[string]json.RawMessage{} // it merges with the arguments
	_ = json.Unmarshal(f.Arguments, &merged)
	maps.Copy(merged, sp.Input)
	raw, err := json.Marshal(merged)
	a.Arguments = raw
	return a, err
}

// answerCopilot: lines of progress are taken away, and the rest is one JSON object. 2 denies a call whatever it says, and is
// context for a failed tool; any other code fails.
func answerCopilot(h *Handler, o *Output, out []byte) (a Answer, err error) {
	if o.Code != 0 && o.Code != 2 {
		return Answer{}, h.failed(CodeExit, fmt.Sprintf("ended with exit code %d", o.Code), o)
	}
	if isJSON(h.Format, out) {
		a, err = copilotSaid(h, out)
	}
	switch {
	case o.Code == 2 && h.Moment == Call:
		if a.Verdict != phases.VerdictDeny {
			h.block(&a, cmp.Or(a.Reason, string(o.Stderr)), false)
		}
		a.Arguments = nil
	case o.Code == 2 && h.Moment == Failed:
		a = Answer{}
		a.context(string(out))
	case o.Code == 2:
		a = Answer{}
		a.note(strings.TrimSpace(string(o.Stderr)))
	case err != nil:
		return Answer{}, h.invalid(o, err)
	}
	return a, nil
}

// copilotAnswer is what a script of Copilot says.
type copilotAnswer struct {
	Permission string          `json:"permissionDecision"`
	Why        string          `json:"permissionDecisionReason"`
	Args       json.RawMessage `json:"modifiedArgs"`
	Result     *struct {
		Type string `json:"resultType"`
		Text string `json:"textResultForLlm"`
	} `json:"modifiedResult"`
	Context  string          `json:"additionalContext"`
	Decision string          `json:"decision"`
	Reason   string          `json:"reason"`
	Specific json.RawMessage `json:"hookSpecificOutput"`
}

func copilotSaid(h *Handler, out []byte) (Answer, error) {
	var s copilotAnswer
	if err := h.decode(out, false, &s); err != nil {
		return Answer{}, err
	}
	if isSet(s.Specific) {
		return Answer{}, errors.New("hookSpecificOutput is Claude Code's; here the fields stand at the top")
	}
	a := Answer{Lost: lost(out, "permissionDecision", "permissionDecisionReason", "modifiedArgs", "modifiedResult", "additionalContext", "decision", "reason")}
	a.context(s.Context)
	switch h.Moment {
	case Call:
		switch s.Permission {
		case "":
		case "deny":
			h.block(&a, s.Why, false)
		case "allow", "ask":
			a.Verdict, a.Reason = phases.Verdict(s.Permission), s.Why
		default:
			return Answer{}, fmt.Errorf("the permissionDecision %q is none of allow, deny and ask", s.Permission)
		}
		return a, a.rewrite(s.Args, a.Verdict != phases.VerdictDeny)
	case Stop:
		if s.Decision == "block" {
			h.block(&a, s.Reason, false)
		}
	case Result:
		if s.Result != nil {
			a.Result = &s.Result.Text
		}
	default: // context alone
	}
	return a, nil
}

// withoutProgress takes away the lines that are whole JSON objects of the type progress.
func withoutProgress(out []byte) []byte {
	var kept [][]byte
	for line := range bytes.Lines(out) {
		var p struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(line, &p) != nil || p.Type != "progress" {
			kept = append(kept, line)
		}
	}
	return bytes.Join(kept, nil)
}

// answerCursor: exit code 0 and JSON, or 2, which denies; all else fails.
func answerCursor(h *Handler, o *Output, out []byte, f *Facts) (a Answer, err error) {
	if len(out) > 0 && o.Code != 1 {
		a, err = cursorSaid(h, out)
	}
	switch {
	case o.Code == 2:
		if a.Verdict != phases.VerdictDeny {
			h.block(&a, string(o.Stderr), false)
		}
	case o.Code != 0:
		return Answer{}, h.failed(CodeExit, fmt.Sprintf("ended with exit code %d", o.Code), o)
	case err != nil && !h.event.silent:
		return Answer{}, h.invalid(o, err)
	}
	if h.Moment == Stop && h.loopLimit > 0 && f.Forced >= h.loopLimit {
		a.Verdict, a.Reason = "", ""
	}
	return a, nil
}

// cursorAnswer is what a script of Cursor says.
type cursorAnswer struct {
	Permission string          `json:"permission"`
	User       string          `json:"user_message"`
	Agent      string          `json:"agent_message"`
	Input      json.RawMessage `json:"updated_input"`
	Decision   string          `json:"decision"` // with Reason, what preToolUse took before permission
	Reason     string          `json:"reason"`
	Continue   *bool           `json:"continue"`
	Context    string          `json:"additional_context"`
	Output     json.RawMessage `json:"updated_mcp_tool_output"`
	Followup   string          `json:"followup_message"`
}

func cursorSaid(h *Handler, out []byte) (Answer, error) {
	var s cursorAnswer
	if err := h.decode(out, false, &s); err != nil {
		return Answer{}, err
	}
	a := Answer{Lost: lost(out, "permission", "user_message", "agent_message", "updated_input", "decision", "reason", "continue", "additional_context", "updated_mcp_tool_output", "followup_message")}
	a.context(s.Context)
	why := cmp.Or(s.Agent, s.Reason, s.User)
	switch h.Moment {
	case Call:
		switch d := cmp.Or(s.Permission, s.Decision); d {
		case "":
		case "deny", "block":
			h.block(&a, why, false)
		case "allow", "ask":
			a.Verdict, a.Reason = phases.Verdict(d), why
		default:
			return Answer{}, fmt.Errorf("the permission %q is none of allow, deny and ask", d)
		}
		return a, a.rewrite(s.Input, a.Verdict != phases.VerdictDeny)
	case Prompt:
		if s.Continue != nil && !*s.Continue {
			h.block(&a, s.User, false)
		}
	case Stop:
		if strings.TrimSpace(s.Followup) != "" {
			a.Verdict, a.Reason = phases.VerdictDeny, s.Followup
		}
	case Result:
		if isSet(s.Output) {
			a.Result = resultText(s.Output)
		}
	default:
		a.note(s.User)
	}
	return a, nil
}
