package copilot

import (
	"cmp"
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

// reader reads a file. decided says who decided on a call.
type reader struct {
	*transcript.Teller

	names, decided map[string]string
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

//nolint:gochecknoglobals // immutable
var (
	important = strings.Fields(`session.start session.resume session.context_changed session.compaction_start user.message assistant.message assistant.turn_end
		tool.execution_start tool.execution_complete permission.completed subagent.started subagent.completed subagent.failed`)
	// unimportant begin the types of events that no hook is told of.
	unimportant = strings.Fields(`abort assistant. commands. elicitation. external_tool. hook. mcp. mcp_app. model. pending_messages. permission. sampling. session.
		skill. subagent. system. tool. tool_search. user_input.`)
	refusals = [][2]string{{"Denied by preToolUse hook", "hook"}, {"following rules", "rules"}}
)

func (r *reader) line(line transcript.Value) bool {
	kind, d := line.At("type").String(), line.At("data")
	if !slices.Contains(important, kind) {
		return line == nil || slices.ContainsFunc(unimportant, func(begin string) bool { return strings.HasPrefix(kind, begin) })
	}
	r.Clock(line.At("timestamp"))
	r.Now.AgentID, r.Version = line.At("agentId").String(), cmp.Or(d.At("copilotVersion").String(), r.Version)
	r.Now.Dir, r.Now.Model = cmp.Or(d.At("context", "cwd").String(), r.Now.Dir), cmp.Or(d.At("selectedModel").String(), r.Now.Model)
	r.read(kind, d)
	return true
}

// read reads the data of an event.
func (r *reader) read(kind string, d transcript.Value) {
	switch id := d.At("toolCallId").String(); kind {
	case "session.start":
		r.Now.SessionID = d.At("sessionId").String()
		r.Begin()
	case "session.resume":
		r.Event("SessionStart", agent.Payload{Source: "resume"})
	case "session.compaction_start":
		r.Event("PreCompact", agent.Payload{Trigger: d.At("trigger").String()})
	case "user.message":
		if r.Now.AgentID == "" && d.At("source") == nil { // by the user
			r.Event(transformed, agent.Payload{Prompt: d.At("content").String()})
		}
	case "assistant.message":
		if r.Last = ""; len(d.At("toolRequests").List()) == 0 {
			r.Last = d.At("content").String()
		}
	case "assistant.turn_end": // of one answer of the model
		if r.Now.AgentID == "" {
			r.End("Stop")
		}
		r.Last = ""
	case "permission.completed":
		if len(r.decided) == mostDecided {
			clear(r.decided)
		}
		if r.Tool(id) != "" {
			r.decided[id] = d.At("decisionSource").String()
		}
	case "tool.execution_start":
		tool := d.At("toolName").String()
		r.Call("PreToolUse", id, cmp.Or(r.names[tool], tool), d.At("arguments"))
	case "tool.execution_complete":
		r.result(id, d)
	case "subagent.started":
		r.Begin()
	case "subagent.completed", "subagent.failed":
		r.Stop("Stop", "")
	}
}

// result reads what came of a call.
func (r *reader) result(id string, d transcript.Value) {
	name, res := "PostToolUse", transcript.Result{Text: d.At("result", "content").String(), Became: agent.Ran}
	if d.At("shellExecution", "exitCode").Int() != 0 {
		res.Became = agent.Failed
	}
	if !d.At("success").Is() {
		name, res.Became, res.Text = "PostToolUseFailure", agent.Failed, d.At("error", "message").String()
	}
	if d.At("error", "code").String() == "denied" {
		res.Refusal(refusals)
		res.Became, res.By = agent.Refused, cmp.Or(r.decided[id], res.By)
	}
	delete(r.decided, id)
	r.Result(name, id, res)
}
