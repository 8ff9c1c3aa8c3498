package install

import (
	"encoding/json"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/scripts"
	"github.com/grapnelhq/grapnel/phases"
)

// Run is what a hook has given.
type Run struct {
	// ExitCode is that of the program. Of a call by HTTP it is 0, and Stdout the body, if the status was 2xx.
	ExitCode       int
	Stdout, Stderr string
	// Failed says why there is no exit code and no answer: the program could not be started, or took too long.
	Failed string
}

// Effect is what a host does with what a hook has given.
type Effect string

// The effects.
const (
	GoesOn   Effect = "goes_on"  // as without a hook
	Blocked  Effect = "blocked"  // the call, prompt or end of the turn
	Asks     Effect = "asks"     // a person is asked
	Rewrites Effect = "rewrites" // arguments or a result
	Context  Effect = "context"  // text reaches the model
	Failed   Effect = "failed"   // the hook counts as failed, and the host goes on without it
)

// Effects are all effects.
func Effects() []Effect { return []Effect{GoesOn, Blocked, Asks, Rewrites, Context, Failed} }

// Reading is an effect, and the words that come with it.
type Reading struct {
	Effect Effect
	Text   string
}

// Answered reports whether the gateway has answered, and not the rule that holds when it does not.
func (r *Run) Answered() bool {
	return r.Failed == "" && r.ExitCode == 0 && !strings.HasPrefix(r.Stderr, agent.Program+": ")
}

// Read says what the host does when a definition of its own has given this, by the rules that package scripts has of
// the agents. What that takes for a failure on purpose, an agent may take for nothing: either way it goes on.
func (h *Host) Read(d *Definition, r *Run) Reading {
	got := h.read(d.Event, r)
	closed := h.Scripts.CrashDenies && h.Events[d.Event].Step == agent.StepToolCall
	if got.Effect == Failed && (closed || d.OnFailure == "block" || d.FailClosed) {
		got.Effect = Blocked
	}
	return got
}

func (h *Host) read(event string, r *Run) Reading {
	if r.Failed != "" {
		return Reading{Failed, r.Failed}
	}
	out := &agent.Output{Code: r.ExitCode, Stdout: []byte(r.Stdout), Stderr: []byte(r.Stderr)}
	a, err := scripts.Answer(scripts.Of(h.Agent, event), out, &agent.Facts{})
	switch {
	case err != nil:
		return Reading{Failed, err.Error()}
	case a.Ignored != "":
		return Reading{Failed, a.Ignored}
	case a.Verdict == phases.VerdictDeny:
		return Reading{Blocked, a.Reason}
	case h.Events[event].Script.OnlyDenies && (a.Verdict == phases.VerdictAsk || a.Arguments != nil):
		return Reading{Blocked, a.Reason}
	case a.Verdict == phases.VerdictAsk:
		return Reading{Asks, a.Reason}
	case a.Arguments != nil:
		return Reading{Rewrites, string(a.Arguments)}
	case a.Result != nil:
		return Reading{Rewrites, *a.Result}
	case len(a.Context) > 0:
		return Reading{Context, strings.Join(a.Context, "\n\n")}
	}
	return Reading{GoesOn, strings.Join(a.Note, "\n")}
}

// Synthetic is the payload of an event that did not happen, and the order in which they make a session: 0 for an event
// that cannot be made up. It has the fields of all hosts' shapes.
func (h *Host) Synthetic(name, session, dir string) (payload json.RawMessage, order int) {
	call := map[string]any{"command": "cat .env"} // nobody runs it
	fields := map[string]any{
		"hook_event_name": name, "session_id": session, "sessionId": session, "conversation_id": session, "cwd": dir, "workspace_roots": []string{dir},
		"transcript_path": nil, "model": "none", "permission_mode": "default", "source": "startup", "reason": "other", "stop_hook_active": false,
		"prompt_id": session, "turn_id": session, "generation_id": session,
	}
	step := h.Events[name].Step
	switch step {
	case agent.StepSessionStart, agent.StepStop, agent.StepSessionEnd, agent.StepFile, agent.StepNote:
	case agent.StepConfig:
		fields["source"] = "skills"
	case agent.StepPrompt:
		fields["prompt"] = "This is a check of the hooks: nobody has to answer it."
		fields["transformedPrompt"] = fields["prompt"]
	case agent.StepToolResult, agent.StepToolFailed:
		fields["tool_response"] = map[string]any{"stdout": "", "stderr": "", "interrupted": false, "isImage": false}
		fields["toolResult"] = map[string]any{"resultType": "success", "textResultForLlm": ""}
		fallthrough
	case agent.StepToolCall, agent.StepPermission:
		fields["tool_name"], fields["tool_input"], fields["tool_use_id"] = "Bash", call, session
		fields["toolName"], fields["toolArgs"] = "bash", call
		fields["command_name"], fields["command_args"], fields["invoked_by"], fields["expansion_type"] = "hook-check", "", "other", "slash_command"
	default:
		return nil, 0
	}
	return agent.Marshal(fields), 1 + step.Rank()
}
