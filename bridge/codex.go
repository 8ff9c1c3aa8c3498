package bridge

import (
	"github.com/grapnelhq/grapnel/phases"
)

// Codex CLI 0.171.0. Source of the contract: the JSON schemas in the released program (app-server generate-json-schema),
// developers.openai.com/codex/hooks, and runs of the program (make hosts). An answer with a field that a schema lacks, with
// the decision ask, with an allow without updatedInput or the other way round is a failed hook there, and the tool runs as
// it was called.

type codexPayload struct {
	claudePayload

	TurnID string `json:"turn_id"`
	Status string `json:"status"`
	Usage  *struct {
		Input      int `json:"input_tokens"`
		Cached     int `json:"cached_input_tokens"`
		CacheWrite int `json:"cache_write_input_tokens"`
		Output     int `json:"output_tokens"`
	} `json:"token_usage"`
}

//nolint:gochecknoglobals // an immutable table
var codexSteps = map[string]Step{
	"SessionStart": StepSessionStart, "UserPromptSubmit": StepPrompt, "PreToolUse": StepToolCall, "PermissionRequest": StepPermission,
	"PostToolUse": StepToolResult, "PostModelRequest": StepUsage, "Stop": StepStop, "Interrupt": StepInterrupted,
	"PreCompact": StepCompact, "PostCompact": StepCompacted, "SessionEnd": StepSessionEnd, "SubagentStart": StepSubagent, "SubagentStop": StepStop,
}

func decodeCodex(p *codexPayload) (Event, error) {
	e := p.event(codexSteps[p.Event])
	e.TurnID = p.TurnID
	if u := p.Usage; u != nil && e.Step == StepUsage {
		e.Usage = phases.Usage{InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.Cached, CacheWriteTokens: u.CacheWrite}
	}
	return e, nil
}

// encodeCodex writes answers of Claude Code's shape.
func encodeCodex(e *Event, o *Outcome) any {
	said := &claudeSpecific{Event: e.Name, Context: o.Context}
	switch e.Step {
	case StepPrompt, StepStop:
		if o.Verdict != "" {
			return claudeAnswer{Decision: "block", Reason: o.Reason}
		}
		if e.Step == StepStop {
			return nil // its schema has no text for the model
		}
	case StepToolCall:
		switch {
		case o.Verdict == phases.VerdictAsk:
			return claudeAnswer{Specific: &claudeSpecific{Event: e.Name, Permission: "deny", Why: cannotAsk + o.Reason}}
		case o.Verdict != "":
			return claudeAnswer{Specific: &claudeSpecific{Event: e.Name, Permission: "deny", Why: o.Reason}}
		case o.Arguments != nil:
			said.Permission, said.Arguments = "allow", o.Arguments
		}
	case StepPermission:
		return denyPermission(e, o)
	case StepToolResult:
		if o.Result != nil {
			return claudeAnswer{Decision: "block", Reason: *o.Result} // which replaces the result
		}
	case StepSubagent:
	default:
		return nil
	}
	return claudeAnswer{Specific: said}.orNothing()
}
