package bridge

import (
	"cmp"
	"encoding/json"
)

// The agents of VS Code (preview). Source of the contract: docs/agents/reference/hooks-reference.md of
// microsoft/vscode-docs at 024cb9b, and of microsoft/vscode platform/chat/common/hookCommandTypes.ts at 33be5f5,
// chat/vscode-node/chatHookService.ts and intents/node/toolCallingLoop.ts at 01808b5 of extensions/copilot/src. That source
// reads the decision of a subagent's stop where it reads that of a stop, unlike the reference. It takes no text with a
// prompt, and leaves a rewrite that is not of the tool's schema aside.

type vscodePayload struct {
	claudePayload

	// The common fields are in camelCase.
	CamelEvent   string `json:"hookEventName"`
	CamelSession string `json:"sessionId"`
}

//nolint:gochecknoglobals // an immutable table
var vscodeSteps = map[string]Step{
	"SessionStart": StepSessionStart, "UserPromptSubmit": StepPrompt, "PreToolUse": StepToolCall, "PostToolUse": StepToolResult,
	"Stop": StepStop, "SubagentStart": StepSubagent, "SubagentStop": StepStop, "PreCompact": StepOnlyCompact,
}

func decodeVSCode(payload []byte) (Event, error) {
	var p vscodePayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return Event{}, err
	}
	p.Event, p.SessionID = cmp.Or(p.Event, p.CamelEvent), cmp.Or(p.SessionID, p.CamelSession)
	return p.event(vscodeSteps[p.Event]), nil
}

type (
	vscodeAnswer struct {
		Continue *bool           `json:"continue,omitempty"`
		Stop     string          `json:"stopReason,omitempty"`
		Decision string          `json:"decision,omitempty"`
		Reason   string          `json:"reason,omitempty"`
		Specific *vscodeSpecific `json:"hookSpecificOutput,omitempty"`
	}
	vscodeSpecific struct {
		Event      string          `json:"hookEventName"`
		Permission string          `json:"permissionDecision,omitempty"`
		Why        string          `json:"permissionDecisionReason,omitempty"`
		Arguments  json.RawMessage `json:"updatedInput,omitempty"`
		Context    string          `json:"additionalContext,omitempty"`
		Decision   string          `json:"decision,omitempty"`
		Reason     string          `json:"reason,omitempty"`
	}
)

func encodeVSCode(e *Event, o *Outcome) any {
	said := vscodeSpecific{Event: e.Name}
	denied := o.Verdict != ""
	switch {
	case e.Step == StepPrompt && denied:
		return vscodeAnswer{Continue: new(bool), Stop: o.Reason}
	case e.Step == StepStop && denied:
		said.Decision, said.Reason = "block", o.Reason
	case e.Step == StepToolCall && denied:
		said.Permission, said.Why = string(o.Verdict), o.Reason
	case e.Step == StepToolCall:
		said.Arguments, said.Context = o.Arguments, o.Context
	case e.Step == StepToolResult && o.Result != nil: // all that is left is to tell the model
		return vscodeAnswer{Decision: "block", Reason: toRead(*o.Result)}
	case e.Step == StepToolResult, e.Step == StepSubagent:
		said.Context = o.Context
	}
	if said.Permission == "" && said.Arguments == nil && said.Context == "" && said.Decision == "" {
		return nil
	}
	return vscodeAnswer{Specific: &said}
}
