package claudecode

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/transcript"
)

// transcripts reads what Claude Code has in its directory projects: a file for each session, and one for each of its subagents. It
// was written from files of 2.1.332.
func transcripts(a *agent.Agent) *agent.Transcripts {
	return &agent.Transcripts{
		Dirs: transcript.Below(a.Install.Home, ".claude", "projects"), Is: func(path string) bool { return strings.HasSuffix(path, ".jsonl") },
		Read: transcript.Lines(a, func(t *transcript.Teller, _ string) transcript.Reader { return (&reader{Teller: t}).line }),
	}
}

// reader reads a file.
type reader struct {
	*transcript.Teller

	inTurn bool
}

//nolint:gochecknoglobals // immutable
var (
	// unimportant are the types of lines that no hook is told of.
	unimportant = strings.Fields(`agent-color agent-name agent-setting ai-title api-request api-request-blob api-request-shape atis-latch attachment
		attribution-snapshot content-replacement cost-state custom-title file-history-delta file-history-snapshot last-prompt mode permission-mode pr-link
		progress queue-operation speculation-accept summary tag task-summary tools-used worktree-state`)
	// notTyped begin texts in the user's place that are not prompts.
	notTyped = []string{
		"<bash-", "<command-", "<local-command-", "<system-reminder>", "<task-notification>", "<teammate-message", "<user-memory-input>", "Caveat: The messages below",
		"[Request interrupted by user", "This session is being continued from a previous conversation",
	}
	// refusals are in the results of versions that name no other reason.
	refusals = [][2]string{
		{"The user doesn't want to", "user"}, {"[Request interrupted by user", "user"}, {"Permission to use ", "config"}, {"requested permissions to ", "config"}, {"PreToolUse:", "hook"},
	}
)

func (r *reader) line(line transcript.Value) bool {
	kind := line.At("type").String()
	if kind != "user" && kind != "assistant" && kind != "system" {
		return line == nil || slices.Contains(unimportant, kind)
	}
	r.Now.SessionID, r.Now.AgentID, r.Now.Dir = line.At("sessionId").String(), line.At("agentId").String(), line.At("cwd").String()
	r.Turn, r.Version = line.At("promptId").String(), line.At("version").String()
	if model := line.At("message", "model").String(); model != "<synthetic>" {
		r.Now.Model = cmp.Or(model, r.Now.Model)
	}
	if r.Clock(line.At("timestamp")); r.Now.SessionID == "" {
		return false
	}
	if r.Begin(); line.At("subtype").String() == "compact_boundary" {
		r.Event("PostCompact", agent.Payload{Trigger: line.At("compactMetadata", "trigger").String()})
	}
	r.message(line, kind == "user")
	return true
}

// message reads what the user, a tool or the assistant says.
func (r *reader) message(line transcript.Value, isUser bool) {
	content := line.At("message", "content")
	for _, b := range content.List() {
		switch b.At("type").String() {
		case "tool_use":
			r.Call("PreToolUse", b.At("id").String(), b.At("name").String(), b.At("input"))
		case "tool_result":
			r.result(line, b)
		default: // texts, thinking, pictures, and calls that the provider makes
		}
	}
	stop, text := line.At("message", "stop_reason").String(), content.Texts()
	switch {
	case text == "":
	case isUser:
		r.prompt(line, text)
	case stop != "" && stop != "tool_use" && (r.inTurn || r.Now.AgentID != ""):
		r.Stop("Stop", text)
		r.inTurn, r.Last = false, ""
	default:
		r.Last = text
	}
}

// prompt reads a text in the user's place. Old versions do not say why the model stops: a turn ends before the next prompt.
func (r *reader) prompt(line transcript.Value, text string) {
	if line.At("isSidechain").Is() || line.At("isMeta").Is() || line.At("isCompactSummary").Is() ||
		slices.ContainsFunc(notTyped, func(begin string) bool { return strings.HasPrefix(text, begin) }) {
		return
	}
	if r.inTurn {
		r.End("Stop")
	}
	r.inTurn, r.Last = true, ""
	r.Event("UserPromptSubmit", agent.Payload{Prompt: text})
}

// result reads what came of a call.
func (r *reader) result(line, b transcript.Value) {
	id, isError, denial, response := b.At("tool_use_id").String(), b.At("is_error").Is(), line.At("toolDenialKind").String(), line.At("toolUseResult")
	decision := line.At("permissionDecision")
	name, res := "PostToolUse", transcript.Result{Became: agent.Ran}
	if isError {
		name, res.Became = "PostToolUseFailure", agent.Failed
	}
	refused := denial != "" || decision.At("decision").String() == "reject"
	switch {
	case refused || isError || response == nil:
		res.Text = b.At("content").Texts()
	case r.Tool(id) == "Bash":
		res.Text = agent.StreamsText(json.RawMessage(response))
	default:
		res.Text = agent.TextOf(json.RawMessage(response))
	}
	switch {
	case denial == "interrupted" || denial == "cancelled":
	case refused:
		res.Became, res.By = agent.Refused, cmp.Or(decision.At("source").String(), denial)
	case isError:
		res.Refusal(refusals)
	}
	r.Result(name, id, res)
}
