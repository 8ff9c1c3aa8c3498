// Package install knows how agents are told to call grapnel-hook: in which files their hooks are configured, what an entry of
// ours looks like there, and what an agent makes of what a hook said.
//
// It is pure: a [Document] is parsed from bytes, changed and written back to bytes, and [Host.Read] judges what a run has given.
// Reading, writing and running is the command line's. What differs between agents is in their own packages, in the fields of
// [agent.Install].
//
// An entry is ours by the program that it calls, grapnel-hook, or by the gateway's address and the name of the token's
// variable. Nothing else is changed: order, formatting, comments and unknown keys of a file stay.
package install

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/pluginfile"
)

// Host is an agent whose hooks can be installed.
type Host struct{ *agent.Agent }

// Lookup finds a host by its name; nil if there is none.
func Lookup(name string) *Host {
	if a := agents.Lookup(name); a != nil {
		return &Host{a}
	}
	return nil
}

// Path is the file for a scope: below the user's home directory, or below the project's. Env looks up a variable: some
// hosts have one for the directory of the user's files.
func (h *Host) Path(s agent.Scope, home, project string, env func(string) string) string {
	return h.place(h.Install.Files[s], s, home, project, env)
}

func (h *Host) place(file string, s agent.Scope, home, project string, env func(string) string) string {
	if s != agent.User {
		return path.Join(project, file)
	}
	if h.Install.Home != "" && env(h.Install.Home) != "" {
		if _, below, ok := strings.Cut(file, "/"); ok {
			file = below
		}
		home = env(h.Install.Home)
	}
	return path.Join(home, file)
}

// WantedEvents are the host's events that somebody needs, in the order of a session: those whose phases are subscribed to, but
// for events of one tool where the host has one of all tools: the same call would be judged twice.
func (h *Host) WantedEvents(subscribed func(phase string) bool) (names []string) {
	for name, m := range h.Events {
		needed := m.Step.Phases()
		if agents.Carries(h.Agent, name) {
			needed = append(needed, agent.StepPrompt.Phases()...)
		}
		for _, p := range needed {
			if !m.Narrow && !m.OfMod && subscribed(string(p)) {
				names = append(names, name)
				break
			}
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(h.rank(a), h.rank(b)), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return names
}

func (h *Host) rank(event string) int { return h.Events[event].Step.Rank() }

// Timeout is how long the host waits for a definition of its own, or a minute where the file does not say.
func (h *Host) Timeout(d *Definition) time.Duration {
	unit := time.Second
	if h.Install.Milliseconds {
		unit = time.Millisecond
	}
	return cmp.Or(time.Duration(d.Wait*float64(unit)), time.Minute)
}

// Entry is an entry to be installed.
type Entry struct {
	Event string
	value []byte
}

// Entries are the entries for events of the host.
func (h *Host) Entries(c *agent.Command, events []string) []Entry {
	list := make([]Entry, len(events))
	for i, name := range events {
		var value any = h.Install.Entry(c, h.Agent, name)
		if h.Install.Nested {
			value = struct {
				Hooks []any `json:"hooks"`
			}{[]any{value}}
		}
		list[i] = Entry{name, agent.Marshal(value)}
	}
	return list
}

// firstWord is the first word of a shell's command. A quote without an end goes to the end.
func firstWord(line string) string {
	var word strings.Builder
	quoted, escaped := rune(0), false
	for _, r := range strings.TrimLeft(line, " \t") {
		switch {
		case escaped:
			if quoted == '"' && !strings.ContainsRune("$`\"\\\n", r) { // other backslashes stay between double quotes
				word.WriteByte('\\')
			}
			if r != '\n' { // the line goes on
				word.WriteRune(r)
			}
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

// isProgram reports whether a path is that of a program of ours.
func isProgram(path, name string) bool {
	return strings.TrimSuffix(path[strings.LastIndexAny(path, `/\`)+1:], ".exe") == name
}

// isOurs reports whether a hook carries our mark.
func isOurs(h *agent.Handler) bool {
	program := h.Command
	if h.Args == nil {
		program = firstWord(cmp.Or(h.Command, h.Bash))
	}
	_, host, _ := strings.Cut(h.URL, agent.HookPath)
	return isProgram(program, agent.Program) || host != "" && slices.Contains(h.Variables, agent.TokenVariable)
}

// serverName is the name of the gateway's MCP server in the hosts' files.
const serverName = "grapnel"

// Server is the entry for the program grapnel with arguments. Env looks up a variable.
func (h *Host) Server(program string, args []string, env func(string) string) *agent.Server {
	s := &agent.Server{Command: program, Args: args}
	if h.Install.Server != nil {
		h.Install.Server(s, env)
	}
	return s
}

// isOurServer reports whether an entry of the name carries our mark: it starts the program's MCP server.
func isOurServer(s *agent.Server) bool {
	return isProgram(s.Command, "grapnel") && len(s.Args) > 0 && s.Args[0] == "mcp"
}

// Document is a file that has something of ours, or will have: as text, whose formatting is kept.
type Document interface {
	// Has reports whether just what is wanted is in the file of ours.
	Has(w *Wanted) bool
	// Add puts in what is wanted. Nothing of ours is there.
	Add(w *Wanted) error
	// Remove takes out what is ours, and reports whether there was something.
	Remove() bool
	// Serves returns the command by which the host starts the gateway's MCP server, if the file says so.
	Serves() []string
	// Bytes is the file.
	Bytes() []byte
}

var (
	_ Document = (*File)(nil)
	_ Document = (*tables)(nil)
	_ Document = (*script)(nil)
)

// Wanted is what a host is to have of ours. A document takes of it what it is for.
type Wanted struct {
	Entries []Entry
	Server  *agent.Server
	// Files are ours as a whole: those of the host's mod by their names, or its plugin, which has none.
	Files map[string][]byte
}

// Place is a file of a host in which something of ours stands.
type Place struct {
	Path string
	// Parse reads the file; one that is empty, or not there, has nothing of ours.
	Parse func([]byte) (Document, error)
	// Whole says that the file is ours as a whole.
	Whole bool
}

// Places are the files of a scope: that of the hooks, and that of MCP servers if it is another one. Home, project and env
// are as for [Host.Path].
func (h *Host) Places(s agent.Scope, home, project string, env func(string) string) []Place {
	json := func(hooks bool, key string) func([]byte) (Document, error) {
		return func(data []byte) (Document, error) { return h.parse(data, hooks, key) }
	}
	whole := func(name string, known []byte) func([]byte) (Document, error) {
		return func(data []byte) (Document, error) { return &script{data, known, name}, nil }
	}
	hooks := Place{h.Path(s, home, project, env), json(true, ""), h.Plugin != ""}
	if h.Plugin != "" {
		hooks.Parse = whole("", pluginfile.File(h.Agent, ""))
	}
	if h.Install.Servers[s] == "" {
		return []Place{hooks}
	}
	servers := Place{h.place(h.Install.Servers[s], s, home, project, env), json(false, h.Install.ServersKey), false}
	switch {
	case servers.Path == hooks.Path:
		return []Place{{hooks.Path, json(true, h.Install.ServersKey), false}}
	case path.Ext(servers.Path) == ".toml":
		servers.Parse = func(data []byte) (Document, error) { return parseTables(data) }
	}
	places := []Place{hooks, servers}
	if h.Install.Mod != nil && s == agent.User {
		for _, name := range slices.Sorted(maps.Keys(h.Install.Mod(&agent.Command{}, h.Agent))) {
			places = append(places, Place{h.place(path.Join(h.Install.ModDir, name), s, home, project, env), whole(name, nil), true})
		}
	}
	return places
}

// HasServers reports whether the host has a file for MCP servers in a scope, or takes one from its plugin.
func (h *Host) HasServers(s agent.Scope) bool {
	return h.Install.Servers[s] != "" || pluginfile.TakesServer(h.Agent)
}

// script is a file that is ours as a whole.
type script struct {
	text, known []byte
	name        string // in a mod
}

var errOther = errors.New("it is not what grapnel install wrote, or somebody has changed it since; move it away")

func (s *script) Has(w *Wanted) bool { return bytes.Equal(s.text, w.Files[s.name]) }

func (s *script) Add(w *Wanted) error {
	if w.Files[s.name] == nil {
		return nil
	}
	if len(s.text) > 0 {
		return errOther
	}
	s.text = w.Files[s.name]
	return nil
}

func (s *script) Remove() bool {
	if len(s.text) == 0 || !bytes.Equal(s.text, s.known) {
		return false
	}
	s.text = nil
	return true
}

func (s *script) Serves() []string {
	if bytes.Contains(s.text, []byte("$.tool.register(")) { // a mod brings the tools itself
		return []string{"grapnel"}
	}
	return pluginfile.Server(string(s.text))
}

func (s *script) Bytes() []byte { return s.text }

// Skips says why the host does not run a definition of the file at a path, as far as the file and the user's configuration
// ([Host.ConfigPath]) tell; empty if they say nothing against it.
func (f *File) Skips(d *Definition, file string, config []byte) string {
	if f.Flag("disableAllHooks") {
		return "disableAllHooks is true in the file: take it out"
	}
	if f.host.Install.Skips == nil {
		return ""
	}
	var c map[string]any
	if _, err := toml.Decode(string(config), &c); err != nil {
		return fmt.Sprintf("%s cannot be read: %v", f.host.Install.ConfigFile, err)
	}
	return f.host.Install.Skips(fmt.Sprintf("%s:%s:%d:%d", file, agent.Snake(d.Event), d.Group, d.Index), c)
}

// ConfigPath is the user's configuration of a host that says there which hooks it runs; empty if there is none.
func (h *Host) ConfigPath(home string, env func(string) string) string {
	if h.Install.ConfigFile == "" {
		return ""
	}
	return path.Join(path.Dir(h.Path(agent.User, home, "", env)), h.Install.ConfigFile)
}

// Parse reads a file with hooks; one that is empty, or not there, has none. The error of one that cannot be read has the line
// and column.
func (h *Host) Parse(data []byte) (*File, error) { return h.parse(data, true, "") }
