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

// reader reads a file. last is the assistant's last text in a turn.
type reader struct {
	*transcript.Teller

	inTurn bool
	last   string
}

// record is a line that may have a prompt, calls, results or the end of a turn.
type record struct {
	Type       string `json:"type"`
	Subtype    string `json:"subtype"`
	Session    string `json:"sessionId"`
	AgentID    string `json:"agentId"`
	Dir        string `json:"cwd"`
	Version    string `json:"version"`
	Time       string `json:"timestamp"`
	PromptID   string `json:"promptId"`
	Sidechain  bool   `json:"isSidechain"`
	Meta       bool   `json:"isMeta"`
	Summary    bool   `json:"isCompactSummary"`
	Denial     string `json:"toolDenialKind"`
	Permission struct {
		Decision string `json:"decision"`
		Source   string `json:"source"`
	} `json:"permissionDecision"`
	Compact struct {
		Trigger string `json:"trigger"`
	} `json:"compactMetadata"`
	Message struct {
		Model   string          `json:"model"`
		Stop    string          `json:"stop_reason"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	Response json.RawMessage `json:"toolUseResult"`
}

// block is a part of a message.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	CallID  string          `json:"tool_use_id"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
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
		"[Request interrupted by user",
	}
	// refusals are in the results of versions that name no other reason.
	refusals = [][2]string{
		{"The user doesn't want to", "user"}, {"[Request interrupted by user", "user"}, {"Permission to use ", "config"}, {"requested permissions to ", "config"}, {"PreToolUse:", "hook"},
	}
)

func (r *reader) line(line []byte) bool {
	kind := transcript.Member(line, `"type"`)
	if kind != "user" && kind != "assistant" && kind != "system" {
		return slices.Contains(unimportant, kind)
	}
	var rec record
	if !transcript.Decode(line, &rec) || rec.Session == "" {
		return false
	}
	r.Now.SessionID, r.Now.AgentID, r.Now.Dir = rec.Session, rec.AgentID, rec.Dir
	r.Turn, r.Version, r.At = rec.PromptID, rec.Version, transcript.ParseTime(rec.Time)
	if rec.Message.Model != "<synthetic>" {
		r.Now.Model = cmp.Or(rec.Message.Model, r.Now.Model)
	}
	if r.Begin(); rec.Subtype == "compact_boundary" {
		r.Event("PostCompact", agent.Payload{Trigger: rec.Compact.Trigger})
	}
	return kind == "system" || r.message(&rec)
}

// message reads what the user, a tool or the assistant says.
func (r *reader) message(rec *record) bool {
	var text string
	var blocks []block
	if json.Unmarshal(rec.Message.Content, &text) != nil && json.Unmarshal(rec.Message.Content, &blocks) != nil {
		return false
	}
	for i := range blocks {
		switch b := &blocks[i]; b.Type {
		case "tool_use":
			r.Call("PreToolUse", b.ID, b.Name, b.Input)
		case "tool_result":
			r.result(rec, b)
		case "text":
			text += b.Text
		default: // thinking, pictures, and calls that the provider makes
		}
	}
	switch stop := rec.Message.Stop; {
	case text == "":
	case rec.Type == "user":
		r.prompt(rec, text)
	case stop != "" && stop != "tool_use" && (r.inTurn || rec.AgentID != ""):
		r.Stop("Stop", text)
		r.inTurn, r.last = false, ""
	default:
		r.last = text
	}
	return true
}

// prompt reads a text in the user's place. Old versions do not say why the model stops: a turn ends before the next prompt.
func (r *reader) prompt(rec *record, text string) {
	if rec.Sidechain || rec.Meta || rec.Summary || slices.ContainsFunc(notTyped, func(begin string) bool { return strings.HasPrefix(text, begin) }) {
		return
	}
	if r.inTurn && r.last != "" {
		r.Stop("Stop", r.last)
	}
	r.inTurn, r.last = true, ""
	r.Event("UserPromptSubmit", agent.Payload{Prompt: text})
}

// result reads what came of a call.
func (r *reader) result(rec *record, b *block) {
	name, res := "PostToolUse", transcript.Result{Text: transcript.Texts(b.Content), Became: agent.Ran}
	if b.IsError {
		name, res.Became = "PostToolUseFailure", agent.Failed
	}
	switch {
	case rec.Denial == "interrupted" || rec.Denial == "cancelled":
	case rec.Denial != "" || rec.Permission.Decision == "reject":
		res.Became, res.By = agent.Refused, cmp.Or(rec.Permission.Source, rec.Denial)
	case b.IsError:
		res.Refusal(refusals)
	case len(rec.Response) > 0 && r.Tool(b.CallID) == "Bash":
		res.Text = agent.StreamsText(rec.Response)
	case len(rec.Response) > 0:
		res.Text = agent.TextOf(rec.Response)
	}
	r.Result(name, b.CallID, res)
}
