package agenthooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// serverName is the name of the gateway's MCP server in the hosts' files.
const serverName = "grapnel"

// Server is how a host starts the gateway's MCP server, with the fields that any of the hosts has for it, in the order in
// which they are written.
type Server struct {
	Type    string            `json:"type,omitempty"     toml:"-"`
	Command string            `json:"command"            toml:"command"`
	Args    []string          `json:"args"               toml:"args"`
	Env     map[string]string `json:"env,omitempty"      toml:"-"`
	Pass    []string          `json:"env_vars,omitempty" toml:"env_vars"`
	Tools   []string          `json:"tools,omitempty"    toml:"-"`
}

// variables say where a gateway's notes, token and configuration are.
//
//nolint:gochecknoglobals // an immutable table
var variables = []string{"XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"}

// Server is the entry for the program grapnel with arguments. Env looks up a variable: some hosts start servers without
// the variables that say where the gateway is.
func (h *Host) Server(program string, args []string, env func(string) string) *Server {
	s := &Server{Command: program, Args: args}
	switch h.Name {
	case "codex":
		s.Pass = append(slices.Clone(variables), TokenVariable)
	case "copilot":
		s.Type, s.Tools, s.Env = "local", []string{"*"}, map[string]string{}
		for _, name := range append([]string{"HOME"}, variables...) {
			if value := env(name); value != "" {
				s.Env[name] = value
			}
		}
	case "claude-code", "cursor", "vscode":
		s.Type = "stdio"
	}
	return s
}

// ours reports whether an entry of the name carries our mark: it starts the program's MCP server.
func (s *Server) ours() bool {
	program := strings.TrimSuffix(s.Command[strings.LastIndexAny(s.Command, `/\`)+1:], ".exe")
	return program == "grapnel" && len(s.Args) > 0 && s.Args[0] == "mcp"
}

// servers is the object in which a file has its MCP servers; nil if there is none, or the file is not for them.
func (f *File) servers() *hujson.Object {
	if f.key == "" {
		return nil
	}
	return f.member(f.key)
}

// server is the entry of our name, as compact JSON, and whether it carries our mark.
func (f *File) server() (text json.RawMessage, ours bool) {
	servers := f.servers()
	if servers == nil {
		return nil, false
	}
	v := find(servers, serverName)
	if v == nil {
		return nil, false
	}
	var s Server
	text = standard(v)
	return text, json.Unmarshal(text, &s) == nil && s.ours()
}

func (f *File) hasServer(wanted *Server) bool {
	text, ours := f.server()
	if wanted == nil || f.key == "" {
		return !ours
	}
	want, err := encode(wanted)
	return err == nil && ours && bytes.Equal(text, want)
}

func (f *File) addServer(s *Server) error {
	if s == nil || f.key == "" {
		return nil
	}
	if text, _ := f.server(); text != nil {
		return fmt.Errorf("line %d: the MCP server %s is another program's; rename it there", f.line(find(f.servers(), serverName)), serverName)
	}
	text, err := encode(s)
	if err != nil {
		return err
	}
	value, err := hujson.Parse(text)
	if err != nil {
		return err
	}
	root := f.object()
	if find(root, f.key) == nil {
		f.add(root, "", f.key, hujson.Value{Value: &hujson.Object{}})
	}
	f.add(f.servers(), f.childIndent(root, ""), serverName, value)
	return nil
}

func (f *File) removeServer() (removed bool) {
	if _, ours := f.server(); !ours {
		return false
	}
	servers := f.servers()
	if removeNamed(servers, serverName); len(servers.Members) == 0 {
		removeNamed(f.object(), f.key)
	}
	return true
}

// removeNamed removes the member of a name.
func removeNamed(o *hujson.Object, name string) {
	if i := slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return nameOf(&m) == name }); i >= 0 {
		remove(o, i)
	}
}

// script is a file that is ours as a whole.
type script struct{ text, known []byte }

var errOther = errors.New("it is not what grapnel install wrote, or somebody has changed it since; move it away")

func (s *script) Has(w *Wanted) bool { return bytes.Equal(s.text, w.Script) }

func (s *script) Add(w *Wanted) error {
	if w.Script == nil {
		return nil
	}
	if len(s.text) > 0 {
		return errOther
	}
	s.text = w.Script
	return nil
}

func (s *script) Remove() bool {
	if len(s.text) == 0 || !bytes.Equal(s.text, s.known) {
		return false
	}
	s.text = nil
	return true
}

func (s *script) Bytes() []byte { return s.text }

// Document is a file that has something of ours, or will have: as text, whose formatting is kept.
type Document interface {
	// Has reports whether just what is wanted is in the file of ours.
	Has(w *Wanted) bool
	// Add puts in what is wanted. Nothing of ours is there.
	Add(w *Wanted) error
	// Remove takes out what is ours, and reports whether there was something.
	Remove() bool
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
	Server  *Server
	Script  []byte
}

// Place is a file of a host in which something of ours stands.
type Place struct {
	Path  string
	parse func([]byte) (Document, error)
}

// Parse reads the file; one that is empty, or not there, has nothing of ours.
func (p *Place) Parse(data []byte) (Document, error) { return p.parse(data) }

// Serves returns the command by which the host starts the gateway's MCP server, if it does so by the file.
func (p *Place) Serves(data []byte) (command []string) {
	d, err := p.parse(data)
	if err != nil {
		return nil
	}
	var s *Server
	switch d := d.(type) {
	case *File:
		if text, ours := d.server(); ours {
			_ = json.Unmarshal(text, &s) // it was read before
		}
	case *tables:
		if of, ours := d.server(); ours {
			s = of
		}
	case *script: // filled in by package bridge/plugin
		_, list, _ := bytes.Cut(data, []byte("string[] = "))
		_ = json.NewDecoder(bytes.NewReader(list)).Decode(&command) // there may be none
	}
	if s != nil {
		command = append([]string{s.Command}, s.Args...)
	}
	return command
}

// Places are the files of a scope: that of the hooks, and that of MCP servers if it is another one. Home, project and env
// are as for [Host.Path]. Known is the host's plugin, if it loads one, as it would be installed now.
func (h *Host) Places(s Scope, home, project string, env func(string) string, known []byte) []Place {
	json := func(hooks bool, key string) func([]byte) (Document, error) {
		return func(data []byte) (Document, error) { return h.parse(data, hooks, key) }
	}
	hooks := Place{h.Path(s, home, project, env), json(true, "")}
	if h.Script {
		hooks.parse = func(data []byte) (Document, error) { return &script{data, known}, nil }
	}
	if h.servers[s] == "" {
		return []Place{hooks}
	}
	servers := Place{h.place(h.servers[s], s, home, project, env), json(false, h.serversKey)}
	switch {
	case servers.Path == hooks.Path:
		return []Place{{hooks.Path, json(true, h.serversKey)}}
	case path.Ext(servers.Path) == ".toml":
		servers.parse = func(data []byte) (Document, error) { return parseTables(data) }
	}
	return []Place{hooks, servers}
}

// HasServers reports whether the host has a file for MCP servers in a scope, or takes one from its plugin.
func (h *Host) HasServers(s Scope) bool { return h.servers[s] != "" || h.Name == "opencode" }
