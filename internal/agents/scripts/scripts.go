// Package scripts knows how agents run the command hooks of their users: which hooks a file of theirs declares ([Read]), which
// calls a hook is for ([Matches]), what a script reads on its standard input ([Payload]) and in its environment ([Environ]), and
// what its exit code and output mean ([Answer]). It runs nothing: plugins/commandhooks does.
//
// Package bridge goes the other way: there an agent calls Grapnel, here Grapnel stands in for an agent. The rules of each agent
// are in its own package, in the fields of [agent.Scripts].
//
// Stability: internal.
package scripts

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// owners are the agents whose files can be read, each format once.
func owners() []*agent.Agent {
	seen := map[string]bool{}
	return slices.DeleteFunc(agents.All(), func(a *agent.Agent) bool {
		if a.Scripts == nil || seen[a.Scripts.Format] {
			return true
		}
		seen[a.Scripts.Format] = true
		return false
	})
}

// Formats are the names of all formats, sorted.
func Formats() (names []string) {
	for _, a := range owners() {
		names = append(names, a.Scripts.Format)
	}
	return names
}

// Guess finds out which format a file has, by its place and by what only one agent writes.
func Guess(path string, data []byte) string {
	in := filepath.ToSlash(path)
	for _, a := range owners() {
		if slices.ContainsFunc(a.Scripts.Directories, func(dir string) bool { return strings.Contains(in, "/"+dir+"/") }) {
			return a.Scripts.Format
		}
	}
	for _, a := range owners() {
		if slices.ContainsFunc(a.Scripts.Words, func(word string) bool { return bytes.Contains(data, []byte(strconv.Quote(word))) }) {
			return a.Scripts.Format
		}
	}
	return "claude"
}

// classOf finds out what a tool does by its name, as any of the agents has it.
func classOf(tool string) agent.Class {
	switch {
	case tool == "shell":
		return agent.Shell
	case strings.HasPrefix(tool, "mcp__"):
		return agent.MCP
	}
	for _, a := range owners() {
		if c, ok := a.Scripts.More[tool]; ok {
			return c
		}
		for _, c := range []agent.Class{agent.Shell, agent.Read, agent.Edit, agent.Write, agent.Grep, agent.Glob, agent.Fetch, agent.Search} {
			if a.Scripts.Tools[c] == tool && tool != "" {
				return c
			}
		}
	}
	return ""
}

// toolName is what an agent calls a tool, and the other names that its matchers know it by. The tool's own name is one: a
// guard rather runs once too often.
func toolName(s *agent.Scripts, tool string) (name string, also []string) {
	c := classOf(tool)
	if name = s.Tools[c]; name == "" || s.Owns(tool) {
		name = tool
	}
	if server, rest, ok := strings.Cut(strings.TrimPrefix(tool, "mcp__"), "__"); ok && c == agent.MCP && s.MCPName != nil {
		name = s.MCPName(server, rest)
	}
	if name != tool {
		also = append(also, tool)
	}
	if s.EditAliases != nil && (c == agent.Write || c == agent.Edit) {
		also = append(also, s.EditAliases...)
	} else if tool == "apply_patch" { // it writes files, too
		also = append(also, s.Tools[agent.Write], s.Tools[agent.Edit])
	}
	return name, also
}

// Payload is what the script reads on its standard input: one JSON object with the fields of its agent. What Grapnel does not
// know is absent where the contract allows it.
func Payload(h *agent.Hook, f *agent.Facts) ([]byte, error) {
	facts := *f
	facts.Class = classOf(f.Tool)
	facts.Name, _ = toolName(h.Names, f.Tool)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(h.Agent.Scripts.Payload(h, &facts))
	return out.Bytes(), err
}

// variable is one in a text.
var variable = lazyregexp.New(`\$\{?[A-Za-z_]\w*\}?`)

// Environ is what the agent sets in a script's environment, with the variables of the hook. lookup finds variables for those
// that name others.
func Environ(h *agent.Hook, f *agent.Facts, lookup func(string) string) (out []string) {
	vars := map[string]string{}
	if h.PluginRoot != "" {
		vars["CLAUDE_PLUGIN_ROOT"] = h.PluginRoot
	}
	if h.Agent.Scripts.Environ != nil {
		h.Agent.Scripts.Environ(h, f, vars)
	}
	for name, v := range h.Env {
		if h.Agent.Scripts.ExpandsEnv {
			v = variable().ReplaceAllStringFunc(v, func(found string) string { return lookup(strings.Trim(found, "${}")) })
		}
		vars[name] = v
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, name+"="+vars[name])
	}
	return out
}

// Argv is the program to start and its arguments. A shell command is passed as it stands in the file: nothing of a payload
// is ever put into it. find reports whether a program is there, shellVar is the user's $SHELL.
func Argv(h *agent.Hook, f *agent.Facts, shellVar string, find func(string) bool) []string {
	shell := h.Agent.Install.Shell
	switch {
	case h.Args != nil:
		argv := append([]string{h.Command}, h.Args...)
		places := strings.NewReplacer("${CLAUDE_PROJECT_DIR}", cmp.Or(h.Project, f.Dir), "${CLAUDE_PLUGIN_ROOT}", h.PluginRoot)
		for i := range argv {
			argv[i] = places.Replace(argv[i])
		}
		return argv
	case shell[0] == "$SHELL":
		return []string{cmp.Or(shellVar, "/bin/sh"), shell[1], h.Command}
	case find("bash"):
		return []string{"bash", "-c", h.Command}
	}
	return []string{"sh", "-c", h.Command}
}
