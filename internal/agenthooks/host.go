package agenthooks

import (
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/bridge"
	"github.com/grapnelhq/grapnel/internal/commandhook"
)

// Scope says for whom hooks are configured.
type Scope string

// The scopes. Not every host has all of them.
const (
	User    Scope = "user"    // all projects of one person
	Project Scope = "project" // everybody who works on the project: the file is meant to be committed
	Local   Scope = "local"   // one person in one project
)

// Program is the client that agents start, without the suffix that it has on Windows.
const Program = "grapnel-hook"

// TokenVariable is the variable of the agent's environment that has the gateway's token, for hooks by HTTP.
const TokenVariable = "GRAPNEL_TOKEN" //nolint:gosec // a name, no token

// Host is how hooks of one agent are configured and run.
type Host struct {
	Name string
	// Shell runs a command that is one text; a first word with $ is a variable with /bin/sh as its default. A host
	// that starts the program itself, from command and args, has none of it in its entries.
	Shell []string
	// ProjectVariable is a variable that the host sets to the project's directory; empty for none.
	ProjectVariable string
	// Notes say what only a person can do after an installation.
	Notes []string

	// Script says that the host loads a plugin, a file of package bridge/plugin, instead of calling hooks.
	Script bool

	files map[Scope]string // relative to the home or project directory
	// servers are the files with MCP servers, and serversKey is their member there.
	servers    map[Scope]string
	serversKey string
	home       string // a variable that names the directory of the user's file
	// config is a file beside the user's that says which hooks are run; empty for none.
	config string
	entry  func(*Host, *Command, event) any
	// nested hosts have groups of handlers below an event, the others handlers.
	nested bool
	// versioned hosts refuse a file without a version.
	versioned bool
	// milliseconds is the unit of timeouts, which are seconds elsewhere.
	milliseconds bool
	// http has events that a server can be called for.
	http   bool
	noHTTP []string
	// narrow are events of some tools, where another event is called for all.
	narrow []string
	format commandhook.Format // whose rules it has for what hooks give
}

// event is an event of a host.
type event struct {
	name string
	step bridge.Step
}

//nolint:gochecknoglobals // an immutable table
var hosts = []*Host{
	{
		// Sources: code.claude.com/docs/en/hooks and settings.json of @anthropic-ai/claude-agent-sdk 0.3.332; for servers
		// code.claude.com/docs/en/mcp#mcp-installation-scopes, and /mcp-quickstart for CLAUDE_CONFIG_DIR.
		Name: "claude-code", home: "CLAUDE_CONFIG_DIR", Shell: []string{"/bin/sh", "-c"}, ProjectVariable: "CLAUDE_PROJECT_DIR",
		files:   map[Scope]string{User: ".claude/settings.json", Project: ".claude/settings.json", Local: ".claude/settings.local.json"},
		servers: map[Scope]string{User: ".claude.json", Project: ".mcp.json"}, serversKey: "mcpServers",
		entry: claudeEntry, nested: true, http: true, noHTTP: []string{"SessionStart", "Setup"}, format: commandhook.Claude,
		Notes: []string{"start Claude Code again: running sessions keep the hooks that they began with"},
	},
	{
		// Sources: developers.openai.com/codex/hooks, and codex-rs/hooks of github.com/openai/codex; for servers RawMcpServerConfig
		// in codex-rs/core/config.schema.json there. Servers get the variables of env_vars besides HOME, PATH and a few.
		Name: "codex", home: "CODEX_HOME", config: "config.toml", Shell: []string{"$SHELL", "-lc"},
		files:   map[Scope]string{User: ".codex/hooks.json", Project: ".codex/hooks.json"},
		servers: map[Scope]string{User: ".codex/config.toml", Project: ".codex/config.toml"},
		entry:   shellEntry, nested: true, format: commandhook.Codex,
		Notes: []string{
			"open /hooks in Codex and trust each of these definitions: until then, and after each change of them, Codex skips them without a word",
			"run: codex features disable unified_exec_tty. Otherwise the model can write more commands to one that reads its terminal, which no hook sees",
		},
	},
	{
		// Sources: content/copilot/reference/hooks-reference.md of github.com/github/docs, and for servers
		// content/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers.md. Servers get PATH and what env says.
		Name: "copilot", home: "COPILOT_HOME", Shell: []string{"bash", "-c"},
		files:   map[Scope]string{User: ".copilot/hooks/grapnel.json", Project: ".github/hooks/grapnel.json"},
		servers: map[Scope]string{User: ".copilot/mcp-config.json", Project: ".github/mcp.json"}, serversKey: "mcpServers",
		entry: copilotEntry, versioned: true, format: commandhook.Copilot,
		Notes: []string{"Copilot CLI also runs the hooks in .claude/settings.json: install one of both in a project, or every call is judged twice"},
	},
	{
		// Sources: docs/hooks/reference.md and schemas/settings.schema.json (MCPServerConfig) of github.com/google-gemini/gemini-cli.
		Name: "gemini", Shell: []string{"bash", "-c"}, ProjectVariable: "GEMINI_PROJECT_DIR",
		files:   map[Scope]string{User: ".gemini/settings.json", Project: ".gemini/settings.json"},
		servers: map[Scope]string{User: ".gemini/settings.json", Project: ".gemini/settings.json"}, serversKey: "mcpServers",
		entry: shellEntry, nested: true, milliseconds: true, format: commandhook.Gemini,
		Notes: []string{"start Gemini CLI again; of a project it asks whether you trust the hooks"},
	},
	{
		// Sources: cursor.com/docs/hooks and cursor.com/docs/mcp.
		Name: "cursor", Shell: []string{"/bin/sh", "-c"},
		files:   map[Scope]string{User: ".cursor/hooks.json", Project: ".cursor/hooks.json"},
		servers: map[Scope]string{User: ".cursor/mcp.json", Project: ".cursor/mcp.json"}, serversKey: "mcpServers",
		entry: cursorEntry, versioned: true, format: commandhook.Cursor, narrow: []string{"beforeMCPExecution", "beforeReadFile", "beforeShellExecution"},
		Notes: []string{"Cursor may also run the hooks of Claude Code (its setting for third-party hooks): use one of both"},
	},
	{
		// Sources: docs/agents/reference/hooks-reference.md of github.com/microsoft/vscode-docs, and for servers mcp-configuration.md
		// beside it.
		Name: "vscode", Shell: []string{"/bin/sh", "-c"},
		files:   map[Scope]string{Project: ".github/hooks/grapnel-vscode.json"},
		servers: map[Scope]string{Project: ".vscode/mcp.json"}, serversKey: "servers",
		entry: flatEntry, format: commandhook.Claude,
		Notes: []string{"Copilot CLI reads the same directory: install one of both in a project, or every call is judged twice"},
	},
	{
		// Source: opencode.ai/docs/plugins ("Discover").
		Name: "opencode", Script: true, home: "XDG_CONFIG_HOME",
		files: map[Scope]string{User: ".config/opencode/plugins/grapnel.ts", Project: ".opencode/plugins/grapnel.ts"},
		Notes: []string{"start opencode again"},
	},
	{
		// Source: amp plugins show-docs of @ampcode/cli 0.0.1790142911.
		Name: "amp", Script: true,
		files: map[Scope]string{User: ".config/amp/plugins/grapnel.ts", Project: ".amp/plugins/grapnel.ts"},
		Notes: []string{"run \"plugins: reload\" in Amp's command palette, or start Amp again"},
	},
}

// Hosts are the hosts whose hooks can be installed.
func Hosts() []string {
	var names []string
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	return names
}

// Lookup finds a host by its name; nil if there is none.
func Lookup(name string) *Host {
	for _, h := range hosts {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// Scopes are the scopes that the host has, from the widest.
func (h *Host) Scopes() []Scope {
	return slices.DeleteFunc([]Scope{User, Project, Local}, func(s Scope) bool { return h.files[s] == "" })
}

// Path is the file for a scope: below the user's home directory, or below the project's. Env looks up a variable: some
// hosts have one for the directory of the user's files.
func (h *Host) Path(s Scope, home, project string, env func(string) string) string {
	return h.place(h.files[s], s, home, project, env)
}

func (h *Host) place(file string, s Scope, home, project string, env func(string) string) string {
	if s != User {
		return path.Join(project, file)
	}
	if dir := env(h.home); h.home != "" && dir != "" {
		if _, below, ok := strings.Cut(file, "/"); ok {
			file = below
		}
		return path.Join(dir, file)
	}
	return path.Join(home, file)
}

// HTTP reports whether the host can call a server for an event.
func (h *Host) HTTP(name string) bool { return h.http && !slices.Contains(h.noHTTP, name) }

// Events are the host's events that somebody needs, in the order of a session: those whose phases are subscribed to, but
// for events of one tool where the host has one of all tools: the same call would be judged twice.
func (h *Host) Events(subscribed func(phase string) bool) []string {
	steps := bridge.Steps(h.Name)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(steps)), func(name string) bool {
		if slices.Contains(h.narrow, name) {
			return true
		}
		needed := steps[name].Phases()
		if bridge.Carries(h.Name, name) {
			needed = append(needed, bridge.StepPrompt.Phases()...)
		}
		for _, p := range needed {
			if subscribed(string(p)) {
				return false
			}
		}
		return true
	})
	slices.SortStableFunc(names, func(a, b string) int { // of one step, the event of all tools has the shortest name
		return cmp.Or(cmp.Compare(rank(steps[a]), rank(steps[b])), cmp.Compare(len(a), len(b)))
	})
	return names
}

func rank(s bridge.Step) int {
	return slices.Index([]bridge.Step{
		bridge.StepSessionStart, bridge.StepResume, bridge.StepPrompt, bridge.StepSubagent, bridge.StepToolCall, bridge.StepPermission, bridge.StepToolResult,
		bridge.StepUsage, bridge.StepText, bridge.StepCompact, bridge.StepOnlyCompact, bridge.StepCompacted, bridge.StepStop, bridge.StepFailed, bridge.StepInterrupted,
		bridge.StepFile, bridge.StepNote, bridge.StepConfig, bridge.StepSessionEnd,
	}, s)
}

// Command is how entries call Grapnel.
type Command struct {
	// Program is the absolute path of grapnel-hook.
	Program string
	// Socket and Config are given to it where they are not its defaults.
	Socket, Config string
	// NoStart keeps it from starting a gateway.
	NoStart bool
	// OnFailure is block or allow; empty blocks events that decide.
	OnFailure string
	// Timeout bounds an event where the phases of the configuration may take longer than grapnel-hook waits by itself.
	Timeout time.Duration
	// URL is the gateway's address, for the events that it can be called for; empty for none.
	URL string
}

func (c *Command) args(h *Host, e event) []string {
	var args []string
	if c.Socket != "" {
		args = append(args, "--socket", c.Socket)
	}
	if c.Config != "" {
		args = append(args, "--config", c.Config)
	}
	if c.NoStart {
		args = append(args, "--no-start")
	}
	if c.Timeout > 0 {
		args = append(args, "--timeout", c.Timeout.String())
	}
	switch {
	case c.OnFailure != "" && e.step.Decides():
		args = append(args, "--on-failure", c.OnFailure)
	case !e.step.Decides():
		args = append(args, "--on-failure", "allow")
	}
	return append(args, h.Name, e.name)
}

// blocks reports whether an event that nobody judged is blocked.
func (c *Command) blocks(e event) bool { return e.step.Decides() && c.OnFailure != "allow" }

// Handler is one hook, with the fields that any of the hosts has for it, in the order in which they are written.
type Handler struct {
	Type       string            `json:"type,omitempty"`
	Command    string            `json:"command,omitempty"`
	Args       []string          `json:"args,omitempty"`
	Bash       string            `json:"bash,omitempty"`
	URL        string            `json:"url,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Variables  []string          `json:"allowedEnvVars,omitempty"`
	OnFailure  string            `json:"onFailure,omitempty"`
	FailClosed bool              `json:"failClosed,omitempty"`
}

type group struct {
	Hooks []Handler `json:"hooks"`
}

func claudeEntry(h *Host, c *Command, e event) any {
	made := Handler{Type: "command", Command: c.Program, Args: c.args(h, e)}
	if c.URL != "" && h.HTTP(e.name) {
		made = Handler{
			Type: "http", URL: strings.TrimSuffix(c.URL, "/") + hookPath + h.Name, Variables: []string{TokenVariable},
			Headers: map[string]string{"Authorization": "Bearer $" + TokenVariable},
		}
	}
	if c.blocks(e) {
		made.OnFailure = "block" // also when the program is gone, or takes too long
	}
	return group{[]Handler{made}}
}

func shellEntry(h *Host, c *Command, e event) any {
	return group{[]Handler{{Type: "command", Command: c.line(h, e)}}}
}

func flatEntry(h *Host, c *Command, e event) any {
	return Handler{Type: "command", Command: c.line(h, e)}
}

func copilotEntry(h *Host, c *Command, e event) any {
	return Handler{Type: "command", Bash: c.line(h, e)}
}

func cursorEntry(h *Host, c *Command, e event) any {
	return Handler{Command: c.line(h, e), FailClosed: c.blocks(e)}
}

const hookPath = "/hook/"

// line is the command for a shell.
func (c *Command) line(h *Host, e event) string {
	words := append([]string{c.Program}, c.args(h, e)...)
	for i, w := range words {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}

// quote makes a text one word of a POSIX shell, and of fish.
func quote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%+=:,./_-", r)
	}
	if text != "" && strings.TrimFunc(text, plain) == "" {
		return text
	}
	return "'" + strings.NewReplacer(`'`, `'\''`).Replace(text) + "'"
}

// firstWord is the first word of a shell's command.
func firstWord(line string) string {
	var word strings.Builder
	quoted := rune(0)
	escaped := false
	for _, r := range strings.TrimLeft(line, " \t") {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quoted != '\'':
			escaped = true
		case r == quoted:
			quoted = 0
		case quoted == 0 && (r == '\'' || r == '"'):
			quoted = r
		case quoted == 0 && strings.ContainsRune(" \t\n;&|<>()", r):
			return word.String()
		default:
			word.WriteRune(r)
		}
	}
	return word.String()
}

// ours reports whether a hook carries our mark.
func (m *Handler) ours() bool {
	program := m.Command
	if m.Args == nil {
		program = firstWord(cmp.Or(m.Command, m.Bash))
	}
	program = program[strings.LastIndexAny(program, `/\`)+1:]
	_, host, _ := strings.Cut(m.URL, hookPath)
	return strings.TrimSuffix(program, ".exe") == Program || host != "" && slices.Contains(m.Variables, TokenVariable)
}

// Entry is an entry to be installed.
type Entry struct {
	Event string
	value json.RawMessage
}

// Entries are the entries for events of the host.
func (h *Host) Entries(c *Command, events []string) ([]Entry, error) {
	steps := bridge.Steps(h.Name)
	list := make([]Entry, len(events))
	for i, name := range events {
		value, err := encode(h.entry(h, c, event{name, steps[name]}))
		if err != nil {
			return nil, err
		}
		list[i] = Entry{name, value}
	}
	return list, nil
}
