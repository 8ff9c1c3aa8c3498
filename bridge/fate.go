package bridge

// Fate is what becomes of an event of a host.
type Fate struct {
	// Steps are what the event means here; empty if it is omitted, for the reason Why.
	Steps []Step
	Why   string
}

// Fates returns what becomes of the events of a host, by the names in the host's own contract; empty for an unknown host.
func Fates(name string) map[string]Fate {
	fates := map[string]Fate{}
	own, renamed := contractNames[name]
	for event, step := range hosts[name].steps {
		if !renamed {
			fates[event] = Fate{Steps: []Step{step}}
		}
	}
	for event, ours := range own {
		fate := Fate{}
		for _, name := range ours {
			fate.Steps = append(fate.Steps, ownSteps[name])
		}
		fates[event] = fate
	}
	for event, why := range omitted[name] {
		fates[event] = Fate{Why: why}
	}
	return fates
}

// contractNames are the events that plugin files send, by the hooks of the host that they send them from.
//
//nolint:gochecknoglobals // an immutable table
var contractNames = map[string]map[string][]string{
	"opencode": {
		"chat.message": {"UserPromptSubmit"}, "experimental.chat.system.transform": {"UserPromptSubmit"},
		"tool.execute.before": {"PreToolUse"}, "tool.execute.after": {"PostToolUse"}, "experimental.text.complete": {"Stop"},
		"experimental.session.compacting": {"PreCompact"}, "event": {"SessionStart", "Usage", "Stop", "StopFailure", "PostCompact", "SessionEnd"},
	},
	"amp": {
		"session.start": {"SessionStart"}, "agent.start": {"UserPromptSubmit"}, "tool.call": {"PreToolUse"}, "tool.result": {"PostToolUse"},
		"agent.end": {"Stop", "StopFailure", "Interrupt"},
	},
}

const (
	noDecision = "it only tells a person something"
	noRequests = "requests to the model are the host's; no phase judges or changes them"
	noTeams    = "lists of tasks and teams have no phase; the calls of a team are judged like all others"
	noAsking   = "no phase decides what a person answers a server"
	judgedAt   = "the same is an event of all tools: "
)

// omitted are the events without a step, and why.
//
//nolint:gochecknoglobals // an immutable table
var omitted = map[string]map[string]string{
	"claude-code": {
		"PostToolBatch": judgedAt + "PostToolUse", "Notification": noDecision, "MessageDisplay": noDecision,
		"Setup":        "it prepares a checkout before there is a session",
		"TeammateIdle": noTeams, "TaskCreated": noTeams, "TaskCompleted": noTeams, "Elicitation": noAsking, "ElicitationResult": noAsking,
		"WorktreeCreate": "whoever answers it makes the worktree; its calls are judged like all others", "WorktreeRemove": "nothing is decided any more",
		"CwdChanged": "each call names its directory", "DirectoryAdded": "each call names its files", "FileChanged": "calls that change files are judged before",
	},
	"codex":  {"PreModelRequest": noRequests},
	"gemini": {"Notification": noDecision, "BeforeModel": noRequests, "BeforeToolSelection": noRequests},
	"copilot": {
		"UserPromptSubmit": "Copilot drops the answer; userPromptTransformed is the same prompt", "Notification": noDecision,
		"SubagentStart":  "its payload names neither the event nor the subagent, whose calls are judged like all others",
		"SubagentStop":   "the payload does not say which subagent; its calls are judged like all others",
		"PreMcpToolCall": judgedAt + "PreToolUse. It sets the _meta of a request, and is there for programs with the SDK alone",
	},
	"cursor": {
		"afterShellExecution": judgedAt + "postToolUse", "afterMCPExecution": judgedAt + "postToolUse", "afterFileEdit": judgedAt + "postToolUse",
		"beforeTabFileRead": "completions while a person types are no turn", "afterTabFileEdit": "completions while a person types are no turn",
		"afterAgentThought": noDecision, "workspaceOpen": "it comes before there is a session",
	},
	"opencode": {
		"dispose": "nothing is open", "config": "it decides nothing; the plugin file registers the MCP server there", "tool": "plugins' tools come over that MCP server", "tool.definition": noRequests,
		"auth": "keys are the person's", "provider": "providers are the person's", "experimental.provider.small_model": "providers are the person's",
		"chat.params": noRequests, "chat.headers": noRequests, "experimental.chat.messages.transform": noRequests,
		"permission.ask":         "tool.execute.before has judged the same call",
		"command.execute.before": "the shell lines of the command have run before it; what it brings is judged as the prompt",
		"shell.env":              "it sets variables, and decides nothing", "experimental.compaction.autocontinue": "no phase decides it",
	},
	"amp": {"changes.prompt": "the prompt behind the button is judged when the person sends it"},
}
