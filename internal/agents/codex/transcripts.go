package codex

import (
	"cmp"
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

func (r *reader) line(line transcript.Value) bool {
	kind := line.At("type").String()
	if sub := line.At("payload", "type"); sub != nil {
		kind += "/" + sub.String()
	}
	if kind == "event_msg/item_completed" {
		kind += "/" + line.At("payload", "item", "type").String()
	}
	if line == nil || slices.Contains(unimportant, kind) {
		return true
	}
	p := line.At("payload")
	r.Clock(line.At("timestamp"))
	r.Turn = cmp.Or(p.At("turn_id").String(), r.Turn)
	switch kind {
	case "session_meta":
		r.begin(p)
	case "turn_context":
		r.Now.Dir, r.Now.Model = p.At("cwd").String(), p.At("model").String()
	case "compacted":
		r.Event("PostCompact", agent.Payload{})
	case "event_msg/task_started":
		r.prompted = ""
	case "event_msg/user_message":
		r.prompt(p.At("message").String())
	case "event_msg/item_completed/UserMessage":
		r.prompt(p.At("item", "content").Texts())
	case "event_msg/item_completed/CommandExecution":
		r.completed(p.At("item"), p.At("item", "aggregated_output").String())
	case "event_msg/item_completed/McpToolCall":
		r.completed(p.At("item"), string(p.At("item", "result")))
	case "event_msg/task_complete":
		r.Stop("Stop", p.At("last_agent_message").String())
	case "response_item/function_call", "response_item/custom_tool_call":
		r.call(p)
	case "response_item/function_call_output", "response_item/custom_tool_call_output":
		r.output(p.At("call_id").String(), cmp.Or(p.At("output").Texts(), p.At("output", "content").String()))
	default:
		return false
	}
	return true
}

// begin reads whose file it is. Further such lines are of the session that this one is a fork of.
func (r *reader) begin(p transcript.Value) {
	if r.Now.SessionID != "" {
		return
	}
	id, parent := p.At("id").String(), p.At("parent_thread_id").String()
	r.Now.SessionID, r.Now.Dir, r.Version = id, p.At("cwd").String(), p.At("cli_version").String()
	if parent != "" {
		r.Now.SessionID, r.Now.AgentID = cmp.Or(p.At("session_id").String(), parent), id
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
func (r *reader) call(p transcript.Value) {
	name, namespace, input := p.At("name").String(), p.At("namespace").String(), p.At("arguments").String()
	args := transcript.Value(input)
	tool, command := namespace+name, ""
	switch {
	case tool == "write_stdin": // no hook is told of it
		return
	case tool == "exec_command" || tool == "shell_command":
		command = cmp.Or(args.At("cmd").String(), args.At("command").String())
	case tool == "shell" || tool == "container.exec": // of old versions: bash -lc COMMAND
		if words := args.At("command").List(); len(words) > 0 {
			command = words[len(words)-1].String()
		}
	case tool == "apply_patch":
		command = p.At("input").String()
	case strings.HasPrefix(namespace, "mcp__"):
		tool = namespace + "__" + name
	case name == "spawn_agent":
		tool = name
	}
	if command != "" {
		args = transcript.Value(agent.Marshal(map[string]string{"command": command}))
		if tool != "apply_patch" {
			tool = "Bash"
		}
	} else if input == "" {
		args = p.At("input") // a text
	}
	r.Call("PreToolUse", p.At("call_id").String(), tool, args)
}

// completed reads what came of a call as hooks are told, which is more exact than what the model gets behind it.
func (r *reader) completed(item transcript.Value, text string) {
	became := map[string]agent.Became{"completed": agent.Ran, "failed": agent.Failed}[item.At("status").String()]
	if id := item.At("id").String(); r.Tool(id) != "" && became != "" {
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
