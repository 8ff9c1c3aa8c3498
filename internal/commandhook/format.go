package commandhook

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Format names an agent whose rules hold for a hooks file.
type Format string

// The formats.
const (
	Claude  Format = "claude"
	Codex   Format = "codex"
	Gemini  Format = "gemini"
	Copilot Format = "copilot"
	Cursor  Format = "cursor"
)

// Formats are the names of all formats, sorted.
func Formats() []string {
	var names []string
	for _, f := range slices.Sorted(maps.Keys(formats)) {
		names = append(names, string(f))
	}
	return names
}

// Moment is when a hook runs, whatever its agent calls that.
type Moment string

// The moments.
const (
	Session     Moment = "session"   // a session begins or is resumed, or its history was compacted
	Prompt      Moment = "prompt"    // the user has sent a message
	Call        Moment = "call"      // a tool is about to be called
	Result      Moment = "result"    // a tool has succeeded
	Failed      Moment = "failed"    // a tool has failed
	Stop        Moment = "stop"      // the model has finished
	TurnFailed  Moment = "turn_fail" // the provider has failed
	Interrupted Moment = "interrupt"
	Spoken      Moment = "spoken" // the turn is over; the hook sees the model's last text
	Compact     Moment = "compact"
	Compacted   Moment = "compacted"
	SessionEnd  Moment = "session_end"
)

// Decides reports whether a hook of that moment can forbid something, or make a turn go on.
func (m Moment) Decides() bool { return m == Call || m == Prompt || m == Stop }

// event is a row of a format: what an event of the agent is.
type event struct {
	moment Moment
	// class restricts the event to calls of one class of tools.
	class class
	// noMatcher says that the agent ignores a matcher here; value is what else it tests one against.
	noMatcher bool
	value     string
	// silent says that the agent drops what the hook answers.
	silent bool
}

// format is what differs between agents.
type format struct {
	events map[string]event
	// without are events that Grapnel cannot stand in for, and why; for all others it is noPhase.
	without map[string]string
	// grouped says that handlers stand in groups with a matcher, else each has its own.
	grouped bool
	timeout time.Duration
	// unit is what a bare number of a timeout counts.
	unit  time.Duration
	tools map[class]string
	more  []string // other tools of its own in these classes
}

const (
	noPhase      = "Grapnel has no phase for this event"
	noPermission = "Grapnel does not know when the agent would ask its user; judge the call at the event before it"
	noSubagent   = "subagents have no phase of their own; their tool calls are judged like all others"
	noSkillLine  = "the shell lines of skills are calls of the shell here, which scripts for PreToolUse judge"
	noModelCall  = "hooks do not see or change requests to the model; see turn.post_prompt_compile"
)

//nolint:gochecknoglobals // immutable tables
var formats = map[Format]format{
	Claude: {
		events: map[string]event{
			"SessionStart": {moment: Session}, "UserPromptSubmit": {moment: Prompt, noMatcher: true}, "PreToolUse": {moment: Call},
			"PostToolUse": {moment: Result}, "PostToolUseFailure": {moment: Failed}, "Stop": {moment: Stop, noMatcher: true},
			"StopFailure": {moment: TurnFailed, silent: true}, "PreCompact": {moment: Compact}, "PostCompact": {moment: Compacted, silent: true},
			"SessionEnd": {moment: SessionEnd, silent: true},
		},
		without: map[string]string{
			"PermissionRequest": noPermission, "SubagentStart": noSubagent, "SubagentStop": noSubagent, "PreSkillShellCommand": noSkillLine,
		},
		grouped: true, timeout: 600 * time.Second, unit: time.Second,
		tools: map[class]string{
			shell: "Bash", read: "Read", write: "Write", edit: "Edit", grep: "Grep", glob: "Glob", fetch: "WebFetch", search: "WebSearch",
		},
		more: []string{"MultiEdit", "NotebookEdit", "PowerShell"},
	},
	Codex: {
		events: map[string]event{
			"SessionStart": {moment: Session}, "UserPromptSubmit": {moment: Prompt, noMatcher: true}, "PreToolUse": {moment: Call},
			"PostToolUse": {moment: Result}, "Stop": {moment: Stop, noMatcher: true}, "Interrupt": {moment: Interrupted, noMatcher: true, silent: true},
			"PreCompact": {moment: Compact}, "PostCompact": {moment: Compacted, silent: true}, "SessionEnd": {moment: SessionEnd, noMatcher: true, silent: true},
		},
		without: map[string]string{
			"PermissionRequest": noPermission, "SubagentStart": noSubagent, "SubagentStop": noSubagent,
			"PreModelRequest": noModelCall, "PostModelRequest": noModelCall,
		},
		grouped: true, timeout: 600 * time.Second, unit: time.Second,
		tools: map[class]string{shell: "Bash", write: "apply_patch", edit: "apply_patch"},
	},
	Gemini: {
		events: map[string]event{
			"SessionStart": {moment: Session}, "BeforeAgent": {moment: Prompt, noMatcher: true}, "BeforeTool": {moment: Call},
			"AfterTool": {moment: Result}, "AfterAgent": {moment: Stop, noMatcher: true}, "PreCompress": {moment: Compact, silent: true},
			"SessionEnd": {moment: SessionEnd, silent: true},
		},
		without: map[string]string{"BeforeModel": noModelCall, "AfterModel": noModelCall, "BeforeToolSelection": noModelCall},
		grouped: true, timeout: 60 * time.Second, unit: time.Millisecond,
		tools: map[class]string{
			shell: "run_shell_command", read: "read_file", write: "write_file", edit: "replace", grep: "grep_search", glob: "glob",
			fetch: "web_fetch", search: "google_web_search",
		},
	},
	Copilot: {
		events: copilotEvents(),
		without: map[string]string{
			"permissionRequest": noPermission, "PermissionRequest": noPermission,
			"subagentStart": noSubagent, "subagentStop": noSubagent, "SubagentStart": noSubagent, "SubagentStop": noSubagent,
			"userPromptTransformed": "Grapnel does not rewrite what a user has written",
		},
		timeout: 30 * time.Second, unit: time.Second,
		tools: map[class]string{
			shell: "bash", read: "view", write: "create", edit: "edit", grep: "grep", glob: "glob", fetch: "web_fetch", search: "web_search",
		},
		more: []string{"powershell", "str_replace_editor", "apply_patch", "rg"},
	},
	Cursor: {
		events: map[string]event{
			"sessionStart": {moment: Session, noMatcher: true}, "beforeSubmitPrompt": {moment: Prompt, value: "UserPromptSubmit"},
			"preToolUse": {moment: Call}, "beforeShellExecution": {moment: Call, class: shell}, "beforeMCPExecution": {moment: Call, class: mcp},
			"postToolUse": {moment: Result}, "afterShellExecution": {moment: Result, class: shell, silent: true},
			"afterMCPExecution": {moment: Result, class: mcp, silent: true}, "afterFileEdit": {moment: Result, class: edit, silent: true},
			"postToolUseFailure": {moment: Failed, silent: true}, "stop": {moment: Stop, value: "Stop"},
			"afterAgentResponse": {moment: Spoken, value: "AgentResponse", silent: true}, "preCompact": {moment: Compact, noMatcher: true},
			"sessionEnd": {moment: SessionEnd, noMatcher: true, silent: true},
		},
		without: map[string]string{
			"subagentStart": noSubagent, "subagentStop": noSubagent,
			"beforeReadFile": "the content of a file is not known before it is read, and the script would judge an empty one; use preToolUse",
		},
		timeout: 60 * time.Second, unit: time.Second,
		tools: map[class]string{shell: "Shell", read: "Read", write: "Write", edit: "Write", grep: "Grep"},
	},
}

// copilotEvents are those in camel case, and those in the shape of VS Code, in Pascal case.
func copilotEvents() map[string]event {
	events := map[string]event{
		"sessionStart": {moment: Session, noMatcher: true}, "userPromptSubmitted": {moment: Prompt, noMatcher: true, silent: true},
		"preToolUse": {moment: Call}, "postToolUse": {moment: Result}, "postToolUseFailure": {moment: Failed, noMatcher: true},
		"agentStop": {moment: Stop, noMatcher: true}, "errorOccurred": {moment: TurnFailed, noMatcher: true, silent: true},
		"preCompact": {moment: Compact, silent: true}, "sessionEnd": {moment: SessionEnd, noMatcher: true, silent: true},
	}
	for camel, e := range maps.Clone(events) {
		pascal := strings.ToUpper(camel[:1]) + camel[1:]
		switch camel {
		case "userPromptSubmitted":
			pascal = "UserPromptSubmit"
		case "agentStop":
			pascal = "Stop"
		}
		events[pascal] = e
	}
	return events
}

// class is what a tool does, whatever an agent calls it.
type class string

const (
	shell  class = "shell"
	read   class = "read"
	write  class = "write"
	edit   class = "edit"
	grep   class = "grep"
	glob   class = "glob"
	fetch  class = "fetch"
	search class = "search"
	mcp    class = "mcp"
)

// classOf finds out what a tool does by its name, as any of the agents has it.
func classOf(tool string) class {
	switch tool {
	case "powershell", "PowerShell", "shell":
		return shell
	case "MultiEdit", "NotebookEdit", "str_replace_editor":
		return edit
	case "rg":
		return grep
	}
	if strings.HasPrefix(tool, "mcp__") {
		return mcp
	}
	for _, f := range []Format{Claude, Codex, Gemini, Copilot, Cursor} {
		for _, c := range []class{shell, read, edit, write, grep, glob, fetch, search} {
			if formats[f].tools[c] == tool {
				return c
			}
		}
	}
	return ""
}

// toolName is what an agent calls a tool, and the other names that its matchers know it by. The tool's own name is one:
// a guard rather runs once too often.
func (f Format) toolName(tool string) (name string, also []string) {
	c := classOf(tool)
	if _, own := formats[f].tools[c]; !own || formats[f].owns(tool) {
		name = tool
	} else {
		name = formats[f].tools[c]
	}
	if server, rest, ok := strings.Cut(strings.TrimPrefix(tool, "mcp__"), "__"); ok && c == mcp {
		switch f {
		case Gemini:
			name = "mcp_" + server + "_" + rest
		case Cursor:
			name = "MCP:" + rest
		default: // as it is
		}
	}
	if name != tool {
		also = append(also, tool)
	}
	if f == Codex && (c == write || c == edit) {
		also = append(also, "apply_patch", "Write", "Edit") // its own aliases
	} else if tool == "apply_patch" { // it writes files, too
		also = append(also, formats[f].tools[write], formats[f].tools[edit])
	}
	return name, also
}

// owns reports whether a name is one of the agent's own.
func (f format) owns(tool string) bool {
	return slices.Contains(f.more, tool) || slices.Contains(slices.Collect(maps.Values(f.tools)), tool)
}
