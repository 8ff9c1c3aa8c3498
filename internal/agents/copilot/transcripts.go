package copilot

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/claudecode"
	"github.com/grapnelhq/grapnel/internal/agents/transcript"
)

// transcripts reads what Copilot CLI has in its directory session-state: a file for each session, which has its subagents. It was
// written from files of 1.0.102, run with a provider of the person's own, and dist/generated/session-events.d.ts of
// @github/copilot-sdk 1.0.14.
func transcripts(a *agent.Agent) *agent.Transcripts {
	return &agent.Transcripts{
		Dirs: transcript.Below(a.Install.Home, ".copilot", "session-state"), Is: func(name string) bool { return path.Base(name) == "events.jsonl" },
		Read: transcript.Lines(a, func(t *transcript.Teller, _ string) transcript.Reader {
			return (&reader{Teller: t, names: names(), decided: map[string]string{}}).line
		}),
	}
}

// reader reads a file. decided says who decided on a call, and last is the assistant's last text.
type reader struct {
	*transcript.Teller

	names, decided map[string]string
	last           string
}

// mostDecided bounds the calls that were decided on and have no result.
const mostDecided = 1024

// names are those of Claude Code's tools, under which hooks are told of the agent's own.
func names() map[string]string {
	named := map[string]string{"task": "Agent", "ask_user": "AskUserQuestion", "update_todo": "TodoWrite"}
	for class, own := range scripts().Tools {
		named[own] = claudecode.Scripts().Tools[class]
	}
	return named
}

// record is an event.
type record struct {
	Type    string `json:"type"`
	AgentID string `json:"agentId"`
	Time    string `json:"timestamp"`
	Data    struct {
		Session string `json:"sessionId"`
		Version string `json:"copilotVersion"`
		Model   string `json:"selectedModel"`
		Context struct {
			Dir string `json:"cwd"`
		} `json:"context"`
		Content   json.RawMessage `json:"content"`
		Source    string          `json:"source"`
		Calls     []any           `json:"toolRequests"`
		ID        string          `json:"toolCallId"`
		Tool      string          `json:"toolName"`
		Arguments json.RawMessage `json:"arguments"`
		Success   bool            `json:"success"`
		Result    json.RawMessage `json:"result"`
		Decided   string          `json:"decisionSource"`
		Trigger   string          `json:"trigger"`
		Shell     struct {
			Exit int `json:"exitCode"`
		} `json:"shellExecution"`
		Error struct {
			Message string `json:"message"`
			Code    string `json:"code"`
		} `json:"error"`
	} `json:"data"`
}

//nolint:gochecknoglobals // immutable
var (
	important = strings.Fields(`session.start session.resume session.context_changed session.compaction_start user.message assistant.message assistant.turn_end
		tool.execution_start tool.execution_complete permission.completed subagent.started subagent.completed subagent.failed`)
	// unimportant begin the types of events that no hook is told of.
	unimportant = strings.Fields(`abort assistant. commands. elicitation. external_tool. hook. mcp. mcp_app. model. pending_messages. permission. sampling. session.
		skill. subagent. system. tool. tool_search. user_input.`)
	refusals = [][2]string{{"Denied by preToolUse hook", "hook"}, {"following rules", "rules"}}
)

func (r *reader) line(line []byte) bool {
	kind := transcript.Member(line, `"type"`)
	if !slices.Contains(important, kind) {
		return line == nil || kind != "" && slices.ContainsFunc(unimportant, func(begin string) bool { return strings.HasPrefix(kind, begin) })
	}
	var rec record
	if !transcript.Decode(line, &rec) {
		return false
	}
	d := &rec.Data
	r.At, r.Now.AgentID, r.Version = transcript.ParseTime(rec.Time), rec.AgentID, cmp.Or(d.Version, r.Version)
	r.Now.Dir, r.Now.Model = cmp.Or(d.Context.Dir, r.Now.Dir), cmp.Or(d.Model, r.Now.Model)
	r.read(&rec)
	return true
}

func (r *reader) read(rec *record) {
	switch d := &rec.Data; rec.Type {
	case "session.start":
		r.Now.SessionID = d.Session
		r.Begin()
	case "session.resume":
		r.Event("SessionStart", agent.Payload{Source: "resume"})
	case "session.compaction_start":
		r.Event("PreCompact", agent.Payload{Trigger: d.Trigger})
	case "user.message":
		if rec.AgentID == "" && d.Source == "" {
			r.Event(transformed, agent.Payload{Prompt: agent.TextOf(d.Content)})
		}
	case "assistant.message":
		if r.last = ""; len(d.Calls) == 0 {
			r.last = agent.TextOf(d.Content)
		}
	case "assistant.turn_end": // of one answer of the model
		if r.last != "" && rec.AgentID == "" {
			r.Stop("Stop", r.last)
		}
		r.last = ""
	case "permission.completed":
		if len(r.decided) == mostDecided {
			clear(r.decided)
		}
		r.decided[d.ID] = d.Decided
	case "tool.execution_start":
		r.Call("PreToolUse", d.ID, cmp.Or(r.names[d.Tool], d.Tool), d.Arguments)
	case "tool.execution_complete":
		r.result(rec)
	case "subagent.started":
		r.Begin()
	case "subagent.completed", "subagent.failed":
		r.Stop("Stop", "")
	}
}

// result reads what came of a call.
func (r *reader) result(rec *record) {
	d := &rec.Data
	var result struct {
		Content string `json:"content"`
	}
	_ = json.Unmarshal(d.Result, &result) // a call that failed has none
	name, res := "PostToolUse", transcript.Result{Text: cmp.Or(result.Content, d.Error.Message), Became: agent.Ran}
	if !d.Success || d.Shell.Exit != 0 {
		res.Became = agent.Failed
	}
	if !d.Success {
		name = "PostToolUseFailure"
	}
	if d.Error.Code == "denied" {
		res.Refusal(refusals)
		res.Became, res.By = agent.Refused, cmp.Or(r.decided[d.ID], res.By)
	}
	delete(r.decided, d.ID)
	r.Result(name, d.ID, res)
}
