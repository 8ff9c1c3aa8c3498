package codex

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/transcript"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// transcripts reads what Codex CLI has in its directory sessions: a rollout for each session, and one for each of its subagents. It
// was written from files of 0.171.0, and from what hooks were told in the same runs. Rollouts that Codex has compressed (.jsonl.zst)
// are not read.
func transcripts(a *agent.Agent) *agent.Transcripts {
	return &agent.Transcripts{
		Dirs: transcript.Below(a.Install.Home, ".codex", "sessions", "archived_sessions"),
		Is: func(name string) bool {
			return strings.HasPrefix(path.Base(name), "rollout-") && path.Ext(name) == ".jsonl"
		},
		Read: transcript.Lines(a, func(t *transcript.Teller, _ string) transcript.Reader { return (&reader{Teller: t}).line }),
	}
}

// reader reads a file. prompted is the prompt of the turn, which some versions write twice.
type reader struct {
	*transcript.Teller

	prompted string
}

// record is a line that may have a session, a prompt, a call, its result or the end of a turn.
type record struct {
	Time    string `json:"timestamp"`
	Payload struct {
		ID        string          `json:"id"`
		Session   string          `json:"session_id"`
		Parent    string          `json:"parent_thread_id"`
		Version   string          `json:"cli_version"`
		Dir       string          `json:"cwd"`
		Model     string          `json:"model"`
		TurnID    string          `json:"turn_id"`
		Message   string          `json:"message"`
		Last      string          `json:"last_agent_message"`
		CallID    string          `json:"call_id"`
		Namespace string          `json:"namespace"`
		Name      string          `json:"name"`
		Arguments string          `json:"arguments"`
		Input     string          `json:"input"`
		Output    json.RawMessage `json:"output"`
		Item      struct {
			ID      string          `json:"id"`
			Status  string          `json:"status"`
			Text    string          `json:"aggregated_output"`
			Content json.RawMessage `json:"content"`
			Result  json.RawMessage `json:"result"`
		} `json:"item"`
	} `json:"payload"`
}

//nolint:gochecknoglobals // immutable
var (
	// unimportant are the types of lines that no hook is told of; of some, the type of their payload and the type of the item in it.
	unimportant = strings.Fields(`dynamic_tools_updated id_allocation inter_agent_communication inter_agent_communication_metadata realtime_item security_risk_score
		token_usage_record world_state
		event_msg/agent_message event_msg/agent_reasoning event_msg/agent_reasoning_raw_content event_msg/agent_reasoning_section_break event_msg/context_compacted
		event_msg/entered_review_mode event_msg/error event_msg/exec_command_end event_msg/exited_review_mode event_msg/image_generation_end event_msg/item_started
		event_msg/mcp_tool_call_end event_msg/patch_apply_end event_msg/plan_update event_msg/sub_agent_activity event_msg/thread_goal_updated
		event_msg/thread_name_updated event_msg/thread_rolled_back event_msg/thread_settings_applied event_msg/token_count event_msg/turn_aborted event_msg/turn_diff
		event_msg/undo_completed event_msg/view_image_tool_call event_msg/warning event_msg/web_search_end
		event_msg/item_completed/AgentMessage event_msg/item_completed/CollabAgentToolCall event_msg/item_completed/ContextCompaction
		event_msg/item_completed/FileChange event_msg/item_completed/ImageGeneration event_msg/item_completed/ImageView event_msg/item_completed/Plan
		event_msg/item_completed/Reasoning event_msg/item_completed/WebSearch
		response_item/agent_message response_item/compaction response_item/compaction_summary response_item/context_compaction response_item/ghost_snapshot
		response_item/image_generation_call response_item/message response_item/other response_item/reasoning response_item/tool_search_call
		response_item/tool_search_output response_item/web_search_call`)
	// refusals are in the outputs of calls that were refused.
	refusals = [][2]string{{"blocked by PreToolUse hook: ", "hook"}, {"rejected by user", "user"}, {"denied by sandbox", "sandbox"}}

	exitCode = lazyregexp.New(`(?m)^(?:Process exited with code|Exit code:) (\d+)$`)
)

func (r *reader) line(line []byte) bool {
	kind := transcript.Member(line, `"type"`)
	for _, in := range []string{`"payload":{"type":"`, `"item":{"type":"`} {
		if _, rest, ok := bytes.Cut(line, []byte(in)); ok {
			sub, _, _ := bytes.Cut(rest, []byte(`"`))
			kind += "/" + string(sub)
		}
	}
	if slices.Contains(unimportant, kind) {
		return true
	}
	var rec record
	if !transcript.Decode(line, &rec) {
		return false
	}
	r.At, r.Turn = transcript.ParseTime(rec.Time), cmp.Or(rec.Payload.TurnID, r.Turn)
	return r.read(kind, &rec)
}

func (r *reader) read(kind string, rec *record) bool {
	switch p := &rec.Payload; kind {
	case "session_meta":
		r.begin(rec)
	case "turn_context":
		r.Now.Dir, r.Now.Model = p.Dir, p.Model
	case "compacted":
		r.Event("PostCompact", agent.Payload{})
	case "event_msg/task_started":
		r.prompted = ""
	case "event_msg/user_message":
		r.prompt(p.Message)
	case "event_msg/item_completed/UserMessage":
		r.prompt(transcript.Texts(p.Item.Content))
	case "event_msg/item_completed/CommandExecution":
		r.completed(rec, p.Item.Text)
	case "event_msg/item_completed/McpToolCall":
		r.completed(rec, agent.TextOf(p.Item.Result))
	case "event_msg/task_complete":
		r.Stop("Stop", p.Last)
	case "response_item/function_call", "response_item/custom_tool_call":
		r.call(rec)
	case "response_item/function_call_output", "response_item/custom_tool_call_output":
		r.output(p.CallID, transcript.Texts(p.Output))
	default:
		return false
	}
	return true
}

// begin reads whose file it is. Further such lines are of the session that this one is a fork of.
func (r *reader) begin(rec *record) {
	p := &rec.Payload
	if r.Now.SessionID != "" {
		return
	}
	r.Now.SessionID, r.Now.Dir, r.Version = p.ID, p.Dir, p.Version
	if p.Parent != "" {
		r.Now.SessionID, r.Now.AgentID = cmp.Or(p.Session, p.Parent), p.ID
	}
	r.Begin()
}

// prompt reads what the user, or for a subagent its parent, says: hooks are told of both.
func (r *reader) prompt(text string) {
	if text != r.prompted {
		r.Event("UserPromptSubmit", agent.Payload{Prompt: text})
	}
	r.prompted = text
}

// call reads a call, of which hooks are told with other names and arguments.
func (r *reader) call(rec *record) {
	p := &rec.Payload
	var args struct {
		Cmd     string          `json:"cmd"`
		Command json.RawMessage `json:"command"`
	}
	_ = json.Unmarshal([]byte(p.Arguments), &args) // others have neither
	tool, arguments := p.Namespace+p.Name, json.RawMessage(p.Arguments)
	command := func(name, text string) { tool, arguments = name, agent.Marshal(map[string]string{"command": text}) }
	switch {
	case tool == "write_stdin": // no hook is told of it
		return
	case tool == "exec_command":
		command("Bash", args.Cmd)
	case tool == "shell_command":
		command("Bash", agent.TextOf(args.Command))
	case tool == "shell" || tool == "container.exec": // of old versions: bash -lc TEXT
		var words []string
		_ = json.Unmarshal(args.Command, &words) // without words there is no command
		command("Bash", strings.Join(words[min(len(words)/3*2, len(words)):], " "))
	case tool == "apply_patch":
		command(tool, p.Input)
	case strings.HasPrefix(p.Namespace, "mcp__"):
		tool = p.Namespace + "__" + p.Name
	case p.Name == "spawn_agent":
		tool = p.Name
	}
	if !json.Valid(arguments) {
		arguments = agent.Marshal(p.Arguments + p.Input)
	}
	r.Call("PreToolUse", p.CallID, tool, arguments)
}

// completed reads what came of a call as hooks are told, which is more exact than what the model gets behind it.
func (r *reader) completed(rec *record, text string) {
	became := map[string]agent.Became{"completed": agent.Ran, "failed": agent.Failed}[rec.Payload.Item.Status]
	if id := rec.Payload.Item.ID; r.Tool(id) != "" && became != "" {
		r.Result("PostToolUse", id, transcript.Result{Text: text, Became: became})
	}
}

// output reads what the model gets of a call, unless that was read before.
func (r *reader) output(id, output string) {
	if r.Tool(id) == "" {
		return
	}
	res := transcript.Result{Text: output, Became: agent.Ran}
	head, text, ok := strings.Cut(output, "Output:\n")
	if code := exitCode().FindStringSubmatch(head); code != nil && code[1] != "0" {
		res.Became = agent.Failed
	}
	if !res.Refusal(refusals) && ok {
		res.Text = text
	}
	r.Result("PostToolUse", id, res)
}
