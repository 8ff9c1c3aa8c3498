package bridge

import (
	"encoding/json"
	"errors"

	"github.com/grapnelhq/grapnel/phases"
)

// Copilot CLI 1.0.102 and the cloud agent. Source of the contract: content/copilot/reference/hooks-reference.md of
// github/docs at 05da5bc, and types.d.ts of @github/copilot-sdk 1.0.14. Events are written in PascalCase: the payloads of
// the others do not name their event, but for userPromptTransformed, the one that can give the model a text with a prompt.

type copilotPayload struct {
	claudePayload

	Session     string  `json:"sessionId"`
	Transformed *string `json:"transformedPrompt"`
	Result      struct {
		Text string `json:"text_result_for_llm"`
	} `json:"tool_result"`
	Error       json.RawMessage `json:"error"` // a text of a tool's, an object of ErrorOccurred
	During      string          `json:"error_context"`
	Recoverable bool            `json:"recoverable"`
}

const copilotPrompt = "userPromptTransformed"

//nolint:gochecknoglobals // an immutable table
var copilotSteps = map[string]Step{
	"SessionStart": StepSessionStart, copilotPrompt: StepPrompt, "PreToolUse": StepToolCall, "PermissionRequest": StepPermission,
	"PostToolUse": StepToolResult, "PostToolUseFailure": StepToolResult, "Stop": StepStop, "ErrorOccurred": StepFailed,
	"PreCompact": StepOnlyCompact, "SessionEnd": StepSessionEnd,
}

func decodeCopilot(p *copilotPayload) (Event, error) {
	if p.Event == "" && p.Transformed != nil {
		p.Event, p.SessionID = copilotPrompt, p.Session
	}
	if p.Event == "" {
		return Event{}, errors.New("it names no event: write the hook's event in PascalCase, as PreToolUse")
	}
	e := p.event(copilotSteps[p.Event])
	switch {
	case p.Event == copilotPrompt && p.Transformed == nil:
		return Event{}, errors.New("it has no transformedPrompt")
	case p.Event == copilotPrompt:
		e.Sent = *p.Transformed
	case p.Event == "PostToolUse":
		e.Result = p.Result.Text
	case p.Event == "PostToolUseFailure":
		e.Result, e.IsError = textOf(p.Error), true
	case e.Step == StepFailed && (p.During != "model_call" || p.Recoverable):
		e.Step = StepNone
	case e.Step == StepFailed:
		e.Text = messageOf(p.Error)
	}
	return e, nil
}

// messageOf is the message of an error object.
func messageOf(v json.RawMessage) string {
	var failed struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(v, &failed) != nil {
		return textOf(v)
	}
	return failed.Message
}

type (
	copilotAnswer struct {
		Permission string          `json:"permissionDecision,omitempty"`
		Why        string          `json:"permissionDecisionReason,omitempty"`
		Arguments  json.RawMessage `json:"modifiedArgs,omitempty"`
		Result     *copilotResult  `json:"modifiedResult,omitempty"`
		Context    string          `json:"additionalContext,omitempty"`
		Prompt     string          `json:"modifiedTransformedPrompt,omitempty"`
		Behavior   string          `json:"behavior,omitempty"`
		Message    string          `json:"message,omitempty"`
		Decision   string          `json:"decision,omitempty"`
		Reason     string          `json:"reason,omitempty"`
	}
	copilotResult struct {
		Type string `json:"resultType"`
		Text string `json:"textResultForLlm"`
	}
)

func encodeCopilot(e *Event, o *Outcome) any {
	denied := o.Verdict != ""
	switch {
	case e.Step == StepToolCall && denied:
		return copilotAnswer{Permission: string(o.Verdict), Why: o.Reason}
	case e.Step == StepToolCall && o.Arguments != nil:
		return copilotAnswer{Arguments: o.Arguments}
	case e.Step == StepPermission && o.Verdict == phases.VerdictDeny:
		return copilotAnswer{Behavior: "deny", Message: o.Reason}
	case e.Step == StepStop && denied:
		return copilotAnswer{Decision: "block", Reason: o.Reason}
	case e.Step == StepPrompt && denied: // it cannot be blocked, but the model need not get it
		return copilotAnswer{Prompt: "The user's message was withheld by a hook: " + o.Reason + "\nTell the user so, and do nothing else."}
	case e.Step == StepPrompt && o.Context != "":
		return copilotAnswer{Prompt: e.Sent + "\n\n" + o.Context}
	case e.Step != StepToolResult:
		return nil
	case o.Result != nil && e.IsError:
		return copilotAnswer{Context: toRead(*o.Result)}
	case o.Result != nil:
		return copilotAnswer{Result: &copilotResult{"success", *o.Result}}
	case o.Context != "":
		return copilotAnswer{Context: o.Context}
	}
	return nil
}
