package bridge

import "cmp"

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

func decodeVSCode(p *vscodePayload) (Event, error) {
	p.Event, p.SessionID = cmp.Or(p.Event, p.CamelEvent), cmp.Or(p.SessionID, p.CamelSession)
	return p.event(vscodeSteps[p.Event]), nil
}

// encodeVSCode writes answers of Claude Code's shape.
func encodeVSCode(e *Event, o *Outcome) any {
	said := &claudeSpecific{Event: e.Name}
	denied := o.Verdict != ""
	switch {
	case e.Step == StepPrompt && denied:
		return claudeAnswer{Continue: new(bool), Stop: o.Reason}
	case e.Step == StepStop && denied:
		said.Decision, said.Reason = "block", o.Reason
	case e.Step == StepToolCall && denied:
		said.Permission, said.Why = string(o.Verdict), o.Reason
	case e.Step == StepToolCall:
		said.Arguments, said.Context = o.Arguments, o.Context
	case e.Step == StepToolResult && o.Result != nil: // all that is left is to tell the model
		return claudeAnswer{Decision: "block", Reason: toRead(*o.Result)}
	case e.Step == StepToolResult, e.Step == StepSubagent:
		said.Context = o.Context
	}
	return claudeAnswer{Specific: said}.orNothing()
}
