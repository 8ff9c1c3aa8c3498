package claudecode

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/transcript"
)

// transcripts reads what Claude Code writes to its directory projects: a file for each session, and one for each of its
// subagents. It was written from files of 2.1.332. Older versions name no reason of a refusal but in its text.
func transcripts(a *agent.Agent) *agent.Transcripts {
	return &agent.Transcripts{
		Dirs: func(home string, env func(string) string) []string {
			if dir := env(a.Install.Home); dir != "" {
				return []string{filepath.Join(dir, "projects")}
			}
			return []string{filepath.Join(home, ".claude", "projects")}
		},
		Is: func(path string) bool { return strings.HasSuffix(path, ".jsonl") },
		Read: transcript.Lines(a, func(t *transcript.Teller) transcript.Reader {
			r := &reader{Teller: t, begun: map[[2]string]bool{}}
			return r.line
		}),
	}
}

type reader struct {
	*transcript.Teller

	begun  map[[2]string]bool // sessions and their subagents
	inTurn bool
	last   string // the assistant's last text
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

// line reads a line.
func (r *reader) line(line []byte) bool {
	switch kind := transcript.Member(line, `"type"`); string(kind) {
	case "user", "assistant", "system":
		var rec record
		if !transcript.Decode(line, &rec) {
			return false
		}
		return r.read(&rec)
	default:
		return slices.Contains(unimportant, string(kind))
	}
}

// unimportant are the types of lines that say nothing that a hook is told.
//
//nolint:gochecknoglobals // immutable
var unimportant = []string{
	"attachment", "summary", "api-request", "api-request-shape", "api-request-blob", "queue-operation", "last-prompt", "atis-latch", "tools-used", "cost-state",
	"mode", "progress", "file-history-snapshot", "file-history-delta", "ai-title", "custom-title", "agent-name", "agent-color", "agent-setting", "permission-mode",
	"pr-link", "tag", "worktree-state", "content-replacement", "speculation-accept", "saved_hook_context", "attribution-snapshot", "task-summary",
}

func (r *reader) read(rec *record) bool {
	if rec.Session == "" {
		return false
	}
	r.Now.SessionID, r.Now.AgentID, r.Now.Dir = rec.Session, rec.AgentID, rec.Dir
	r.Turn, r.Version, r.At = rec.PromptID, rec.Version, transcript.ParseTime(rec.Time)
	if rec.Message.Model != "" && rec.Message.Model != "<synthetic>" {
		r.Now.Model = rec.Message.Model
	}
	r.begin([2]string{rec.Session, rec.AgentID})
	switch {
	case rec.Subtype == "compact_boundary":
		r.Event("PostCompact", agent.Payload{Trigger: rec.Compact.Trigger})
	case rec.Type != "system" && len(rec.Message.Content) > 0:
		return r.message(rec)
	}
	return true
}

// begin tells that a session or a subagent begins, by the first line of it. Subagents of old versions are in the session's file.
func (r *reader) begin(who [2]string) {
	switch {
	case r.begun[who]:
		return
	case len(r.begun) == mostBegun:
		clear(r.begun)
	}
	r.begun[who] = true
	if who[1] != "" {
		r.Event("SubagentStart", agent.Payload{})
		return
	}
	r.Event("SessionStart", agent.Payload{Source: "startup"})
}

// mostBegun bounds the sessions and subagents of one file that are known to have begun.
const mostBegun = 1024

// message reads what the user, a tool or the assistant says.
func (r *reader) message(rec *record) bool {
	var text string
	if json.Unmarshal(rec.Message.Content, &text) == nil {
		if rec.Type == "user" {
			r.prompt(rec, text)
		}
		return true
	}
	var blocks []block
	if json.Unmarshal(rec.Message.Content, &blocks) != nil {
		return false
	}
	for i := range blocks {
		switch b := &blocks[i]; b.Type {
		case "tool_use", "mcp_tool_use":
			r.Call("PreToolUse", b.ID, b.Name, b.Input)
		case "tool_result":
			r.result(rec, b)
		case "text":
			text += b.Text
		default: // thinking, images, and calls that the provider makes
		}
	}
	switch {
	case text == "":
	case rec.Type == "user":
		r.prompt(rec, text)
	case rec.Message.Stop != "" && rec.Message.Stop != "tool_use" && (r.inTurn || rec.AgentID != ""):
		r.stop(text)
	default:
		r.last = text
	}
	return true
}

// stop ends the turn.
func (r *reader) stop(text string) {
	name := "Stop"
	if r.Now.AgentID != "" {
		name = "SubagentStop"
	}
	r.Event(name, agent.Payload{Last: transcript.Cut(text)})
	r.inTurn, r.last = false, ""
}

// notTyped begin texts in the user's place that nobody typed, or that are no prompt.
//
//nolint:gochecknoglobals // immutable
var notTyped = []string{
	"<command-", "<local-command-", "<bash-", "<system-reminder>", "<task-notification>", "<user-memory-input>", "<teammate-message", "Caveat: The messages below",
	interrupted,
}

const interrupted = "[Request interrupted by user"

// prompt reads a text in the user's place. Old versions do not mark the end of a turn: the next prompt does.
func (r *reader) prompt(rec *record, text string) {
	isTyped := !slices.ContainsFunc(notTyped, func(begin string) bool { return strings.HasPrefix(text, begin) })
	switch {
	case rec.Sidechain || rec.Meta || rec.Summary:
	case strings.HasPrefix(text, interrupted):
		r.inTurn = false
	case isTyped:
		if r.inTurn && r.last != "" {
			r.stop(r.last)
		}
		r.inTurn, r.last = true, ""
		r.Event("UserPromptSubmit", agent.Payload{Prompt: text})
	}
}

// refusals begin the texts with which versions before 2.1 say that a call was refused, and who did.
//
//nolint:gochecknoglobals // immutable
var refusals = [][2]string{
	{"The user doesn't want to", "user"}, {interrupted, "user"}, {"Permission to use ", "config"}, {"Claude requested permissions to ", "config"}, {"PreToolUse:", "hook"},
}

// result reads what came of a call.
func (r *reader) result(rec *record, b *block) {
	res := transcript.Result{Text: textOf(b.Content), Became: agent.Ran, Failed: b.IsError}
	switch {
	case rec.Denial == "interrupted" || rec.Denial == "cancelled":
		res.Became = agent.Failed
	case rec.Denial != "" || rec.Permission.Decision == "reject":
		res.Became, res.By = agent.Refused, rec.Permission.Source
		if res.By == "" {
			res.By = rec.Denial
		}
	case b.IsError:
		res.Became = agent.Failed
		for _, refusal := range refusals {
			if strings.HasPrefix(res.Text, refusal[0]) {
				res.Became, res.By = agent.Refused, refusal[1]
			}
		}
	case len(rec.Response) > 0 && r.Tool(b.CallID) == "Bash":
		res.Text = agent.StreamsText(rec.Response)
	case len(rec.Response) > 0:
		res.Text = agent.TextOf(rec.Response)
	}
	r.Result("PostToolUse", b.CallID, res)
}

// textOf is the text of a result's content: a text, or parts with texts.
func textOf(content json.RawMessage) string {
	var parts []block
	if json.Unmarshal(content, &parts) != nil {
		return agent.TextOf(content)
	}
	var texts []string
	for _, part := range parts {
		texts = append(texts, part.Text)
	}
	return strings.Join(texts, "\n")
}
