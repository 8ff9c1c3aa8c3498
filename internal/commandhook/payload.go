package commandhook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Facts are what is known when a hook runs. Which are set depends on the moment.
type Facts struct {
	Session, Turn, Agent, CallID string
	// Dir is the session's working directory. Transcript is a file that a script may read as the conversation's.
	Dir, Transcript string
	Model           string
	Now             time.Time
	// Source is the word for why a session begins or ends, or a conversation is compacted.
	Source string
	// Prompt is the user's message, Text the model's last one, an error or a summary.
	Prompt, Text string
	// Forced is how often hooks have made the turn go on.
	Forced int
	// Tool is the tool's name in Grapnel. Result is what it gave, or its error.
	Tool      string
	Arguments json.RawMessage
	Paths     []string
	Result    string
}

type object = map[string]any

// Payload is what the script reads on its standard input: one JSON object with the fields of its agent. What Grapnel does
// not know is absent where the contract allows it.
func (h *Handler) Payload(f *Facts) ([]byte, error) {
	var p object
	switch h.Format {
	case Codex:
		p = h.codex(f)
	case Gemini:
		p = h.gemini(f)
	case Copilot:
		p = h.copilotObject(f)
	case Cursor:
		p = h.cursorObject(f)
	default:
		p = h.claude(f)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(p)
	return out.Bytes(), err
}

// claude has the fields of BaseHookInput and of the event's own type.
func (h *Handler) claude(f *Facts) object {
	p := object{"session_id": f.Session, "transcript_path": f.Transcript, "cwd": f.Dir, "hook_event_name": h.Event}
	some(p, "prompt_id", f.Turn)
	some(p, "agent_id", f.Agent)
	if h.Moment != Session && h.Moment != SessionEnd {
		p["permission_mode"] = "default"
	}
	switch h.Moment {
	case Session:
		p["source"] = f.Source
		some(p, "model", f.Model)
	case Prompt:
		p["prompt"] = f.Prompt
	case Call, Result, Failed:
		name, _ := h.Format.toolName(f.Tool)
		p["tool_name"], p["tool_input"], p["tool_use_id"] = name, value(f.Arguments), f.CallID
		switch h.Moment {
		case Result:
			p["tool_response"] = claudeResponse(f)
		case Failed:
			p["error"] = f.Result
		default: // no tool has run
		}
	case Stop:
		p["stop_hook_active"], p["last_assistant_message"] = f.Forced > 0, f.Text
	case TurnFailed:
		p["error"], p["error_details"] = "unknown", f.Text
	case Compact:
		p["trigger"], p["custom_instructions"] = trigger(f.Source), nil
	case Compacted:
		p["trigger"], p["compact_summary"] = trigger(f.Source), f.Text
	case SessionEnd:
		p["reason"] = cmp.Or(f.Source, "other")
	default: // it has no more
	}
	return p
}

// claudeResponse has the shape that Bash gives; what other tools give is a text, or their JSON.
func claudeResponse(f *Facts) any {
	if json.Valid([]byte(f.Result)) && strings.HasPrefix(strings.TrimSpace(f.Result), "{") {
		return json.RawMessage(f.Result)
	}
	if classOf(f.Tool) == shell {
		return object{"stdout": f.Result, "stderr": "", "interrupted": false, "isImage": false}
	}
	return f.Result
}

// codex has the fields of its *CommandInput types. They differ from Claude Code's in few.
func (h *Handler) codex(f *Facts) object {
	p := h.claude(f)
	delete(p, "prompt_id")
	delete(p, "error")
	p["transcript_path"], p["model"], p["turn_id"] = nil, f.Model, f.Turn
	if h.Moment == Session {
		p["permission_mode"] = "default"
		delete(p, "turn_id")
	}
	return p
}

// gemini has the fields of docs/hooks/reference.md, which have the names of Claude Code's.
func (h *Handler) gemini(f *Facts) object {
	p := h.claude(f)
	for _, name := range []string{"prompt_id", "agent_id", "permission_mode", "model", "tool_use_id", "last_assistant_message", "custom_instructions"} {
		delete(p, name)
	}
	p["timestamp"] = f.Now.UTC().Format("2006-01-02T15:04:05.000Z")
	switch h.Moment {
	case Stop:
		p["prompt"], p["prompt_response"] = f.Prompt, f.Text
	case Result:
		p["tool_response"] = object{"llmContent": f.Result, "returnDisplay": f.Result}
	default: // it has no more
	}
	return p
}

// copilotObject has the fields of the hooks reference: in camel case, or in snake case where the event is in Pascal case.
func (h *Handler) copilotObject(f *Facts) object {
	p := object{"sessionId": f.Session, "timestamp": f.Now.UnixMilli(), "cwd": f.Dir}
	names, args := h.Format, "toolArgs"
	if h.pascal() {
		p["timestamp"], p["hookEventName"] = f.Now.UTC().Format(time.RFC3339Nano), h.Event
		names, args = Claude, "toolInput"
	}
	switch h.Moment {
	case Session:
		p["source"] = f.Source
	case Prompt:
		p["prompt"] = f.Prompt
	case Call, Result, Failed:
		p["toolName"], _ = names.toolName(f.Tool)
		if p[args] = value(f.Arguments); h.Moment == Result {
			p["toolResult"] = h.cased(object{"resultType": "success", "textResultForLlm": f.Result})
		} else if h.Moment == Failed {
			p["error"] = f.Result
		}
	case Stop:
		p["transcriptPath"], p["stopReason"], p["stop_hook_active"] = f.Transcript, "end_turn", f.Forced > 0
	case TurnFailed:
		p["error"], p["errorContext"], p["recoverable"] = object{"message": f.Text, "name": "Error"}, "model_call", false
	case Compact:
		p["transcriptPath"], p["trigger"], p["customInstructions"] = f.Transcript, trigger(f.Source), ""
	case SessionEnd:
		p["reason"] = cmp.Or(f.Source, "complete")
	default: // it has no more
	}
	return h.cased(p)
}

// cased is an object of Copilot with the names in the case of the event.
func (h *Handler) cased(p object) object {
	if !h.pascal() {
		return p
	}
	out := object{}
	for name, v := range p {
		out[Snake(name)] = v
	}
	return out
}

// cursorVersion is what scripts that look at it are told: the first version whose contract this is.
const cursorVersion = "2.4.0"

// cursorObject has the fields of cursor.com/docs/hooks.
func (h *Handler) cursorObject(f *Facts) object {
	p := object{
		"conversation_id": f.Session, "generation_id": f.Turn, "model": f.Model, "hook_event_name": h.Event, "cursor_version": cursorVersion,
		"workspace_roots": []string{cmp.Or(h.Project, f.Dir)}, "user_email": nil, "transcript_path": nil,
	}
	switch h.Moment {
	case Session:
		p["session_id"], p["is_background_agent"], p["composer_mode"] = f.Session, false, "agent"
	case Prompt:
		p["prompt"], p["attachments"] = f.Prompt, []any{}
	case Call, Result, Failed:
		h.cursorTool(p, f)
	case Stop:
		p["status"], p["loop_count"] = "completed", f.Forced
	case Spoken:
		p["text"] = f.Text
	case Compact:
		p["trigger"] = trigger(f.Source)
	case SessionEnd:
		p["session_id"], p["reason"], p["is_background_agent"] = f.Session, cmp.Or(f.Source, "completed"), false
	default: // it has no more
	}
	return p
}

func (h *Handler) cursorTool(p object, f *Facts) {
	name, _ := h.Format.toolName(f.Tool)
	switch h.event.class {
	case shell:
		p["command"], p["cwd"], p["sandbox"] = commandOf(f.Arguments), f.Dir, false
		if h.Moment == Result {
			p["output"] = f.Result
		}
	case mcp:
		p["tool_name"], p["tool_input"] = strings.TrimPrefix(name, "MCP:"), string(f.Arguments) // a text, there
		if h.Moment == Result {
			p["result_json"] = f.Result
		}
	case edit:
		p["file_path"], p["edits"] = absolute(f), edits(f.Arguments)
	default:
		p["tool_name"], p["tool_input"], p["tool_use_id"], p["cwd"] = name, value(f.Arguments), f.CallID, f.Dir
		switch h.Moment {
		case Result:
			p["tool_output"] = f.Result
		case Failed:
			p["error_message"], p["failure_type"], p["is_interrupt"] = f.Result, "error", false
		default: // it has not run
		}
	}
}

// absolute is the first file that a call is about.
func absolute(f *Facts) string {
	if len(f.Paths) == 0 {
		return ""
	}
	if filepath.IsAbs(f.Paths[0]) {
		return f.Paths[0]
	}
	return filepath.Join(f.Dir, f.Paths[0])
}

// edits are the replacements that a call makes, as far as its arguments have them; a file that is written whole has one.
func edits(arguments json.RawMessage) []object {
	type replacement struct {
		Old string `json:"old_string"`
		New string `json:"new_string"`
	}
	var args struct {
		replacement

		Content string        `json:"content"`
		Edits   []replacement `json:"edits"`
	}
	_ = json.Unmarshal(arguments, &args) // arguments of another shape have none
	if args.Edits == nil {
		args.Edits = []replacement{{args.Old, cmp.Or(args.New, args.Content)}}
	}
	var out []object
	for _, e := range args.Edits {
		out = append(out, object{"old_string": e.Old, "new_string": e.New})
	}
	return out
}

// Environ is what the agent sets in a script's environment, with the variables of the handler. lookup finds variables for
// those that name others.
func (h *Handler) Environ(f *Facts, lookup func(string) string) []string {
	project := cmp.Or(h.Project, f.Dir)
	vars := map[string]string{}
	switch h.Format {
	case Claude:
		vars["CLAUDE_PROJECT_DIR"] = project
	case Codex: // it sets none but for plugins
	case Gemini:
		vars["GEMINI_PROJECT_DIR"], vars["GEMINI_CWD"], vars["CLAUDE_PROJECT_DIR"] = f.Dir, f.Dir, f.Dir
		vars["GEMINI_SESSION_ID"] = f.Session
	case Copilot: // it sets none of its own on the user's machine
	case Cursor:
		vars["CURSOR_PROJECT_DIR"], vars["CLAUDE_PROJECT_DIR"], vars["CURSOR_VERSION"] = project, project, cursorVersion
	}
	if h.plugin != "" {
		vars["CLAUDE_PLUGIN_ROOT"] = h.plugin
		if h.Format == Codex {
			vars["PLUGIN_ROOT"] = h.plugin
		}
	}
	for name, v := range h.Env {
		if h.Format == Copilot {
			v = expand(v, lookup)
		}
		vars[name] = v
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, name+"="+vars[name])
	}
	return out
}

// Argv is the program to start and its arguments. A shell command is passed as it stands in the file: nothing of a payload
// is ever put into it. find reports whether a program is there, shellVar is the user's $SHELL.
func (h *Handler) Argv(f *Facts, shellVar string, find func(string) bool) []string {
	if h.Args != nil {
		argv := append([]string{h.Command}, h.Args...)
		places := strings.NewReplacer("${CLAUDE_PROJECT_DIR}", cmp.Or(h.Project, f.Dir), "${CLAUDE_PLUGIN_ROOT}", h.plugin)
		if h.Format == Claude {
			for i := range argv {
				argv[i] = places.Replace(argv[i])
			}
		}
		return argv
	}
	if h.Format == Codex {
		return []string{cmp.Or(shellVar, "/bin/sh"), "-lc", h.Command}
	}
	if find("bash") {
		return []string{"bash", "-c", h.Command}
	}
	return []string{"sh", "-c", h.Command}
}

// expand replaces $NAME and ${NAME}.
func expand(text string, lookup func(string) string) string {
	return variable().ReplaceAllStringFunc(text, func(found string) string { return lookup(strings.Trim(found, "${}")) })
}

func some(p object, name, v string) {
	if v != "" {
		p[name] = v
	}
}

// value is JSON as it is, or an empty object.
func value(raw json.RawMessage) any {
	if len(raw) == 0 {
		return object{}
	}
	return raw
}

// trigger is the word of all agents for why a conversation is compacted.
func trigger(source string) string {
	if source == "manual" || source == "user" {
		return "manual"
	}
	return "auto"
}
