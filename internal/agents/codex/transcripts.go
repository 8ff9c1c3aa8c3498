package codex

import (
	"bytes"
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/transcript"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// transcripts reads what Codex CLI writes to its directory sessions: a rollout for each session, and one for each of its
// subagents. It was written from files of 0.171.0, and what its hooks were told in the same runs. Rollouts that Codex has
// compressed (.jsonl.zst) are not read.
func transcripts(a *agent.Agent) *agent.Transcripts {
	return &agent.Transcripts{
		Dirs: func(home string, env func(string) string) []string {
			dir := env(a.Install.Home)
			if dir == "" {
				dir = filepath.Join(home, ".codex")
			}
			return []string{filepath.Join(dir, "sessions"), filepath.Join(dir, "archived_sessions")}
		},
		Is: func(name string) bool {
			return strings.HasPrefix(path.Base(name), "rollout-") && strings.HasSuffix(name, ".jsonl")
		},
		Read: transcript.Lines(a, func(t *transcript.Teller) transcript.Reader {
			r := &reader{Teller: t}
			return r.line
		}),
	}
}

type reader struct {
	*transcript.Teller

	prompted string // the prompt of the turn: some versions write it twice
}

// item is a line that may have a session, a prompt, a call, its result or the end of a turn.
type item struct {
	Time    string `json:"timestamp"`
	Type    string `json:"type"`
	Payload struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		Session   string `json:"session_id"`
		Parent    string `json:"parent_thread_id"`
		Version   string `json:"cli_version"`
		Dir       string `json:"cwd"`
		Model     string `json:"model"`
		TurnID    string `json:"turn_id"`
		Message   string `json:"message"`
		Last      string `json:"last_agent_message"`
		CallID    string `json:"call_id"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
		Input     string `json:"input"`
		Action    struct {
			Command []string `json:"command"`
		} `json:"action"`
		Output json.RawMessage `json:"output"`
		Item   struct {
			Type    string `json:"type"`
			ID      string `json:"id"`
			Status  string `json:"status"`
			Text    string `json:"aggregated_output"`
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
			Result json.RawMessage `json:"result"`
		} `json:"item"`
	} `json:"payload"`
}

// unimportant are the types of lines, and of their payloads, that say nothing that a hook is told.
//
//nolint:gochecknoglobals // immutable
var unimportant = []string{
	"world_state", "token_usage_record", "security_risk_score", "realtime_item", "id_allocation", "dynamic_tools_updated", "inter_agent_communication",
	"inter_agent_communication_metadata", "compaction_metadata",
	"event_msg token_count", "event_msg thread_settings_applied", "event_msg agent_message", "event_msg agent_reasoning", "event_msg agent_reasoning_raw_content",
	"event_msg agent_reasoning_section_break", "event_msg context_compacted", "event_msg entered_review_mode", "event_msg exited_review_mode", "event_msg turn_diff",
	"event_msg thread_rolled_back", "event_msg thread_name_updated", "event_msg thread_goal_updated", "event_msg undo_completed", "event_msg error", "event_msg warning",
	"event_msg item_started", "event_msg web_search_end", "event_msg image_generation_end", "event_msg view_image_tool_call", "event_msg mcp_tool_call_end",
	"event_msg exec_command_end", "event_msg patch_apply_end", "event_msg plan_update", "event_msg turn_aborted", "event_msg sub_agent_activity",
	"response_item message", "response_item reasoning", "response_item web_search_call", "response_item image_generation_call", "response_item ghost_snapshot",
	"response_item compaction", "response_item compaction_summary", "response_item context_compaction", "response_item tool_search_call", "response_item tool_search_output",
	"response_item agent_message", "response_item other",
	"event_msg item_completed AgentMessage", "event_msg item_completed Reasoning", "event_msg item_completed Plan", "event_msg item_completed WebSearch",
	"event_msg item_completed ImageView", "event_msg item_completed ImageGeneration", "event_msg item_completed ContextCompaction",
}

// line reads a line. Its payload begins with its type, if it has one, and so does an item in that.
func (r *reader) line(line []byte) bool {
	kind := string(transcript.Member(line, `"type"`))
	for _, in := range []string{`"payload":{"type":"`, `"item":{"type":"`} {
		if _, rest, ok := bytes.Cut(line, []byte(in)); ok {
			sub, _, _ := bytes.Cut(rest, []byte(`"`))
			kind += " " + string(sub)
		}
	}
	if slices.Contains(unimportant, kind) {
		return true
	}
	var it item
	if !transcript.Decode(line, &it) {
		return false
	}
	if r.At = transcript.ParseTime(it.Time); it.Payload.TurnID != "" {
		r.Turn = it.Payload.TurnID
	}
	return r.read(&it)
}

func (r *reader) read(it *item) bool {
	p := &it.Payload
	switch it.Type + " " + p.Type {
	case "session_meta ":
		r.begin(it)
	case "turn_context ":
		r.Now.Dir, r.Now.Model = p.Dir, p.Model
	case "compacted ":
		r.Event("PostCompact", agent.Payload{})
	case "event_msg task_started":
		r.prompted = ""
	case "event_msg user_message":
		r.prompt(p.Message)
	case "event_msg item_completed":
		r.completed(it)
	case "event_msg task_complete":
		r.stop(p.Last)
	case "response_item function_call", "response_item custom_tool_call", "response_item local_shell_call":
		r.call(it)
	case "response_item function_call_output", "response_item custom_tool_call_output":
		r.output(p.CallID, p.Output)
	default:
		return false
	}
	return true
}

// begin reads what the file is of. Further such lines are of the session that this one is a fork of.
func (r *reader) begin(it *item) {
	p := &it.Payload
	if r.Now.SessionID != "" {
		return
	}
	r.Now.SessionID, r.Now.Dir, r.Version = p.ID, p.Dir, p.Version
	if p.Parent == "" {
		r.Event("SessionStart", agent.Payload{Source: "startup"})
		return
	}
	r.Now.SessionID, r.Now.AgentID = p.Session, p.ID
	if p.Session == "" {
		r.Now.SessionID = p.Parent
	}
	r.Event("SubagentStart", agent.Payload{})
}

func (r *reader) prompt(text string) {
	if text != r.prompted {
		r.Event("UserPromptSubmit", agent.Payload{Prompt: text})
	}
	r.prompted = text
}

func (r *reader) stop(text string) {
	name := "Stop"
	if r.Now.AgentID != "" {
		name = "SubagentStop"
	}
	r.Event(name, agent.Payload{Last: transcript.Cut(text)})
}

// noHook are the tools that no hook is told of.
//
//nolint:gochecknoglobals // immutable
var noHook = []string{"write_stdin"}

// call reads a call, which hooks are told of with other names and arguments.
func (r *reader) call(it *item) {
	p := &it.Payload
	var a struct {
		Cmd     string          `json:"cmd"`
		Command json.RawMessage `json:"command"`
	}
	_ = json.Unmarshal([]byte(p.Arguments), &a) // anything else has neither
	tool, command := p.Namespace+p.Name, ""
	switch {
	case p.Type == "local_shell_call":
		command = joined(p.Action.Command)
	case tool == "exec_command":
		command = a.Cmd
	case tool == "shell_command" || tool == "shell" || tool == "container.exec":
		var words []string
		if json.Unmarshal(a.Command, &words) == nil {
			command = joined(words)
		} else {
			command = agent.TextOf(a.Command)
		}
	case tool == "apply_patch":
		command = p.Input
	case slices.Contains(noHook, tool):
		return
	case strings.HasPrefix(p.Namespace, "mcp__"):
		tool = p.Namespace + "__" + p.Name
	case p.Name == "spawn_agent":
		tool = p.Name
	}
	arguments := json.RawMessage(p.Arguments)
	if command != "" {
		arguments = agent.Marshal(map[string]string{"command": command})
		if tool != "apply_patch" {
			tool = "Bash"
		}
	} else if !json.Valid(arguments) {
		arguments = agent.Marshal(p.Arguments + p.Input)
	}
	r.Call("PreToolUse", p.CallID, tool, arguments)
}

// joined returns the words of a command as a line of a shell.
func joined(words []string) string {
	quoted := slices.Clone(words)
	for i, word := range words {
		if !plain().MatchString(word) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

var (
	plain = lazyregexp.New(`^[\w@%+=:,./-]+$`)
	exit  = lazyregexp.New(`(?:Process exited with code|Exit code:) (\d+)`)
)

// completed reads an item: a prompt, or what came of a call, which is more exact than what the model got.
func (r *reader) completed(it *item) {
	i := &it.Payload.Item
	if i.Type == "UserMessage" {
		var texts []string
		for _, part := range i.Content {
			texts = append(texts, part.Text)
		}
		r.prompt(strings.Join(texts, "\n"))
		return
	}
	if !r.IsOpen(i.ID) {
		return
	}
	res := transcript.Result{Text: i.Text, Became: agent.Ran}
	switch {
	case i.Status == "declined":
		return // the output says why
	case i.Type == "McpToolCall":
		res.Text = string(i.Result)
	case i.Type != "CommandExecution":
		return
	}
	if i.Status == "failed" {
		res.Became = agent.Failed
	}
	r.Result("PostToolUse", i.ID, res)
}

// refusals are texts of outputs of calls that were refused, and who did.
//
//nolint:gochecknoglobals // immutable
var refusals = [][2]string{
	{" blocked by PreToolUse hook: ", "hook"}, {"rejected by user", "user"}, {"denied by sandbox", "sandbox"}, {"rejected by policy", "policy"},
}

// output reads what the model got of a call.
func (r *reader) output(id string, output json.RawMessage) {
	if !r.IsOpen(id) {
		return // its item was read, or no hook is told of it
	}
	res := transcript.Result{Text: textOf(output), Became: agent.Ran}
	head, text, ok := strings.Cut(res.Text, "Output:\n")
	if code := exit().FindStringSubmatch(head); code != nil && code[1] != "0" {
		res.Became = agent.Failed
	}
	for _, refusal := range refusals {
		if strings.Contains(head[:min(len(head), 200)], refusal[0]) {
			res.Became, res.By, ok = agent.Refused, refusal[1], false
		}
	}
	if ok {
		res.Text = text
	}
	r.Result("PostToolUse", id, res)
}

// textOf is the text of an output: a text, an object with one, or parts.
func textOf(output json.RawMessage) string {
	var parts []struct {
		Text string `json:"text"`
	}
	var object struct {
		Content string `json:"content"`
	}
	switch {
	case json.Unmarshal(output, &parts) == nil:
		var texts []string
		for _, part := range parts {
			texts = append(texts, part.Text)
		}
		return strings.Join(texts, "\n")
	case json.Unmarshal(output, &object) == nil && object.Content != "":
		return object.Content
	}
	return agent.TextOf(output)
}
