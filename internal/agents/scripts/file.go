package scripts

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// Skipped is what a file declares and cannot be run here.
type Skipped struct {
	ID      string `json:"id"`
	Event   string `json:"event"`
	Matcher string `json:"matcher,omitempty"`
	What    string `json:"what"`
	Why     string `json:"why"`
	// Decides says that it could have forbidden something: somebody should know that it does not.
	Decides bool `json:"decides,omitempty"`
}

// File is what a hooks file declares.
type File struct {
	Hooks   []agent.Hook
	Skipped []Skipped
}

// settings is what is read of a file beside its hooks.
type settings struct {
	Hooks       map[string]json.RawMessage `json:"hooks"`
	DisableAll  bool                       `json:"disableAllHooks"`
	HooksConfig struct {                   // Gemini CLI
		Enabled  *bool    `json:"enabled"`
		Disabled []string `json:"disabled"`
	} `json:"hooksConfig"`
}

// shape is where the names of [agent.Entry] stand in a file.
type shape struct {
	Hooks map[string][]struct {
		agent.Entry

		Hooks []agent.Entry `json:"hooks"`
	} `json:"hooks"`
}

// Read reads a hooks file. Path is its absolute path, home the user's home directory: which project the file belongs to,
// and so where its scripts run, follows from them. Nothing else is read.
func Read(format, path, home string, data []byte) (*File, error) {
	i := slices.IndexFunc(owners(), func(a *agent.Agent) bool { return a.Scripts.Format == format })
	if i < 0 {
		return nil, fmt.Errorf("the format %q is not one of %s", format, strings.Join(Formats(), ", "))
	}
	var s settings
	plain, err := hujson.Standardize(bytes.TrimPrefix(bytes.Clone(data), []byte("\ufeff"))) // some agents allow comments
	if err == nil {
		err = jsonscan.DecodeForeign(plain, &s)
	}
	if err == nil {
		err = jsonscan.Exact(plain, shape{})
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not the JSON of a hooks file: %w", path, err)
	}
	r := reader{agent: owners()[i], path: path, settings: &s, out: &File{}, ids: map[string]int{}}
	r.locate(home)
	for _, name := range slices.Sorted(maps.Keys(s.Hooks)) {
		if !slices.Contains(r.agent.Scripts.Settings, name) {
			r.event(name, s.Hooks[name])
		}
	}
	return r.out, nil
}

type reader struct {
	agent    *agent.Agent
	path     string
	settings *settings
	out      *File
	ids      map[string]int

	project, plugin, dir string
}

// locate finds the project of a file, or the plugin of an agent, by where it lies.
func (r *reader) locate(home string) {
	dir := filepath.Dir(r.path)
	above := filepath.Dir(dir)
	switch filepath.Base(dir) {
	case ".claude", ".codex", ".gemini", ".cursor":
		if r.project = above; above == filepath.Clean(home) {
			r.project = ""
		}
	case "hooks", "copilot":
		if filepath.Base(above) == ".github" {
			r.project = filepath.Dir(above)
		} else if r.agent.Scripts.Plugins {
			r.plugin = above
		}
	}
	if r.agent.Scripts.Dir != nil {
		r.dir = r.agent.Scripts.Dir(r.project, dir)
	}
}

// meaning is what an event of a file is to its agent.
func meaning(a *agent.Agent, name string) agent.Meaning {
	if a.Scripts.Event != nil {
		name = a.Scripts.Event(name)
	}
	return a.Events[name]
}

func (r *reader) event(name string, raw json.RawMessage) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		r.skip(name, &agent.Entry{}, "its value is not a list of hooks")
		return
	}
	for _, raw := range list {
		var group agent.Entry
		if err := json.Unmarshal(raw, &group); err != nil {
			r.skip(name, &group, "the entry is not what the agent takes: "+err.Error())
			continue
		}
		members := group.Hooks
		if members == nil {
			members = []json.RawMessage{raw} // the entry is the hook itself
		}
		for _, raw := range members {
			var one agent.Entry
			err := json.Unmarshal(raw, &one)
			one.Matcher = group.Matcher
			switch rules := meaning(r.agent, name).Script; {
			case !rules.Runs: // it is shown as far as it can be read
				r.skip(name, &one, cmp.Or(rules.Why, agent.NoPhase))
			case err != nil:
				r.skip(name, &group, "the hook is not what the agent takes: "+err.Error())
			case group.Hooks == nil && r.agent.Scripts.Grouped:
				r.skip(name, &one, "the entry has no list \"hooks\", and the agent ignores it too")
			default:
				r.hook(name, &one)
			}
		}
	}
}

// hook takes a hook, or says why it cannot be run.
func (r *reader) hook(name string, one *agent.Entry) {
	m := meaning(r.agent, name)
	h := agent.Hook{
		Agent: r.agent, Names: r.agent.Scripts, Event: name, Step: m.ScriptStep(), Rules: m.Script, Command: one.Command, Dir: r.dir, Env: one.Env,
		Background: one.Async || one.AsyncRewake, OnFailure: one.OnFailure, Project: r.project, PluginRoot: r.plugin,
		Matcher: one.Matcher, Timeout: cmp.Or(m.Script.Timeout, r.agent.Scripts.Timeout),
	}
	if said := cmp.Or(one.Timeout, one.TimeoutSec); said != nil && *said > 0 {
		h.Timeout = min(time.Duration(*said*float64(r.agent.Scripts.Unit)), 24*time.Hour)
	}
	if r.agent.Scripts.Take != nil {
		r.agent.Scripts.Take(&h, one)
	}
	why := r.refuse(&h, one)
	if why == "" {
		var err error
		if h.Match, err = newMatcher(&h); err != nil {
			why = err.Error()
		}
	}
	if why != "" {
		r.skip(name, one, why)
		return
	}
	h.ID = r.id(name, h.Command+" "+strings.Join(h.Args, " "))
	r.out.Hooks = append(r.out.Hooks, h)
}

// refuse says why a handler cannot be run here.
func (r *reader) refuse(h *agent.Hook, one *agent.Entry) string {
	kind := cmp.Or(one.Type, "command")
	switch {
	case r.settings.DisableAll:
		return "disableAllHooks is set: the agent does not run it either"
	case r.settings.HooksConfig.Enabled != nil && !*r.settings.HooksConfig.Enabled:
		return "hooksConfig.enabled is false: the agent does not run it either"
	case slices.Contains(r.settings.HooksConfig.Disabled, cmp.Or(one.Name, one.Command)):
		return "hooksConfig.disabled names it: the agent does not run it either"
	case one.Type == "" && r.agent.Scripts.Grouped:
		return "it has no type, and the agent ignores it too"
	case kind == "http":
		return "the agent posts to a server; only commands are run here"
	case kind != "command":
		return fmt.Sprintf("hooks of the type %q need the agent itself; only commands are run here", kind)
	case one.Shell == "powershell":
		return "it needs PowerShell"
	case strings.TrimSpace(h.Command) == "":
		return "there is no command for this system"
	case strings.Contains(h.Command+strings.Join(h.Args, ""), "${user_config."):
		return "it needs the user's settings of the agent's plugin (user_config)"
	}
	return ""
}

func (r *reader) skip(name string, one *agent.Entry, why string) {
	what, m := cmp.Or(one.Command, one.Bash, one.Exec, one.Type, "entry"), meaning(r.agent, name)
	s := Skipped{
		ID: r.id(name, what), Event: name, Matcher: one.Matcher, What: what, Why: why,
		Decides: m.Script.Decides || m.Script.Runs && m.ScriptStep().Forbids() && !m.Script.Silent,
	}
	if strings.HasSuffix(why, "either") || strings.HasSuffix(why, "too") {
		s.Decides = false // nothing is lost
	}
	r.out.Skipped = append(r.out.Skipped, s)
}

// id makes a name of an event and a command: pre_tool_use-guard.
func (r *reader) id(name, command string) string {
	id := agent.Snake(name) + "-" + scriptName(command)
	if r.ids[id]++; r.ids[id] > 1 {
		id = fmt.Sprintf("%s-%d", id, r.ids[id])
	}
	return id
}

// scriptName is what a person would call a command: the name of its script, without directories and extension.
func scriptName(command string) string {
	name := ""
	for _, word := range strings.FieldsFunc(command, func(c rune) bool { return strings.ContainsRune(" \t\n\"';|&()<>", c) }) {
		base := strings.TrimSuffix(filepath.Base(word), filepath.Ext(word))
		switch {
		case strings.HasPrefix(word, "-"), strings.Contains(word, "=") && name == "":
			continue
		case strings.Contains(word, "/") && !isInterpreter(base), filepath.Ext(word) != "" && !strings.HasPrefix(word, "."):
			return word2id(base)
		case name == "" && !isInterpreter(word):
			name = base
		}
	}
	return word2id(name)
}

func isInterpreter(word string) bool {
	return slices.Contains([]string{
		"bash", "sh", "zsh", "env", "exec", "python", "python3", "node", "bun", "bunx", "deno", "npx", "uv", "uvx", "run", "ruby", "php", "perl", "pwsh",
		"cd", "null", "dev", "if", "then", "else", "fi", "test", "true",
	}, strings.TrimLeft(word, "[ "))
}

// notInID is what an id may not hold.
var notInID = lazyregexp.New(`[^A-Za-z0-9_-]+`)

// word2id keeps what an id may hold.
func word2id(word string) string {
	id := strings.ToLower(notInID().ReplaceAllString(word, ""))
	return cmp.Or(strings.Trim(id[:min(len(id), 40)], "-_"), "command")
}
