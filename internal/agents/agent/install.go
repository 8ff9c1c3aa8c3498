package agent

import (
	"slices"
	"strings"
	"time"
)

// Scope says for whom hooks are configured.
type Scope string

// The scopes. Not every agent has all of them.
const (
	User    Scope = "user"    // all projects of one person
	Project Scope = "project" // everybody who works on the project: the file is meant to be committed
	Local   Scope = "local"   // one person in one project
)

const (
	// Program is the client that agents start, without the suffix that it has on Windows.
	Program = "grapnel-hook"
	// TokenVariable is the variable of the agent's environment that has the gateway's token, for hooks by HTTP.
	TokenVariable = "GRAPNEL_TOKEN" //nolint:gosec // a name, no token
	// HookPath begins the path of the gateway's address for hooks; the agent's name follows.
	HookPath = "/hook/"
)

// Install says how hooks and MCP servers of an agent are configured.
type Install struct {
	// Files have the hooks, or are the agent's plugin, below the home or project directory. Servers have the MCP servers, in
	// the member ServersKey.
	Files, Servers map[Scope]string
	ServersKey     string
	// Server completes the entry of the gateway's MCP server; nil if it needs nothing. Env looks up a variable.
	Server func(s *Server, env func(string) string)
	// Home is a variable that names the directory of the user's files.
	Home string
	// Skips says why the agent does not run a hook at a place of the file, by the user's file ConfigFile beside it, which is TOML.
	ConfigFile string
	Skips      func(at string, config map[string]any) string
	// Shell runs a command that is one text; a first word with $ is a variable with /bin/sh as its default.
	Shell []string
	// ProjectVariable is a variable that the agent sets to the project's directory; empty for none.
	ProjectVariable string
	// Notes say what only a person can do after an installation.
	Notes []string
	// Entry makes the hook for an event. Nested agents have groups of hooks below an event, the others hooks.
	Entry  func(c *Command, a *Agent, event string) Handler
	Nested bool
	// Versioned says that a file without a version is refused.
	Versioned bool
	// Milliseconds is the unit of timeouts, which are seconds elsewhere.
	Milliseconds bool
	// HTTP says that a server can be called for events.
	HTTP bool
	// Mod makes the files of our plugin inside the agent, which is in the user's directory ModDir; nil for none. It has its name
	// ModSeat in the list ModSeats of the user's file of hooks: who stands first there has the last word.
	Mod                       func(c *Command, a *Agent) map[string][]byte
	ModDir, ModSeats, ModSeat string
}

// ByHTTP reports whether the agent can call a server for an event.
func (a *Agent) ByHTTP(event string) bool { return a.Install.HTTP && !a.Events[event].NoHTTP }

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

// Args are the arguments of the program for an event.
func (c *Command) Args(a *Agent, event string) []string {
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
	case !a.Events[event].Step.Decides():
		args = append(args, "--on-failure", "allow")
	case c.OnFailure != "":
		args = append(args, "--on-failure", c.OnFailure)
	}
	return append(args, a.Name, event)
}

// Blocks reports whether an event that nobody judged is blocked.
func (c *Command) Blocks(a *Agent, event string) bool {
	return a.Events[event].Step.Decides() && c.OnFailure != "allow"
}

// Line is the command for a shell.
func (c *Command) Line(a *Agent, event string) string {
	words := append([]string{c.Program}, c.Args(a, event)...)
	for i, w := range words {
		words[i] = Quote(w)
	}
	return strings.Join(words, " ")
}

// Quote makes a text one word of a POSIX shell, and of fish.
func Quote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%+=:,./_-", r)
	}
	if text != "" && strings.TrimFunc(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, `'`, `'\''`) + "'"
}

// Handler is one hook of ours, with the fields that any of the agents has for it, in the order in which they are written.
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

// ShellEntry is an [Install.Entry] with a command for a shell.
func ShellEntry(c *Command, a *Agent, event string) Handler {
	return Handler{Type: "command", Command: c.Line(a, event)}
}

// Server is how an agent starts the gateway's MCP server, with the fields that any of the agents has for it, in the order in
// which they are written.
type Server struct {
	Type    string            `json:"type,omitempty"     toml:"-"`
	Command string            `json:"command"            toml:"command"`
	Args    []string          `json:"args"               toml:"args"`
	Env     map[string]string `json:"env,omitempty"      toml:"-"`
	Pass    []string          `json:"env_vars,omitempty" toml:"env_vars"`
	Tools   []string          `json:"tools,omitempty"    toml:"-"`
}

// Variables say where a gateway's notes, token and configuration are. Some agents start servers without them.
func Variables() []string { return []string{"XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"} }

// StdioServer is an [Install.Server] of agents that want the type.
func StdioServer(s *Server, _ func(string) string) { s.Type = "stdio" }

// Scopes are the scopes that the agent has, from the widest.
func (a *Agent) Scopes() []Scope {
	return slices.DeleteFunc([]Scope{User, Project, Local}, func(s Scope) bool { return a.Install.Files[s] == "" })
}
