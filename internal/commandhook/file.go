package commandhook

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

	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// Handler is one command of a hooks file, as its agent would run it.
type Handler struct {
	// ID is a name for it that depends on the event and the script alone, so that it survives changes around it.
	ID      string `json:"id"`
	Format  Format `json:"-"`
	Event   string `json:"event"`
	Moment  Moment `json:"-"`
	Matcher string `json:"matcher,omitempty"`
	// If is a rule of Claude Code's permissions that a call must fit.
	If string `json:"if,omitempty"`
	// Command is for a shell, unless Args is not nil: then it is a program.
	Command string            `json:"command"`
	Args    []string          `json:"args,omitempty"`
	Dir     string            `json:"dir,omitempty"` // where it runs; empty for the session's directory
	Env     map[string]string `json:"env,omitempty"`
	Timeout time.Duration     `json:"-"`
	// Background says that the agent does not wait for it. It decides nothing then.
	Background bool `json:"background,omitempty"`
	// OnFailure is what the file itself says about failures: "block", "continue" or nothing.
	OnFailure string `json:"on_failure,omitempty"`
	// Project is the directory that the file belongs to; empty for a user's own.
	Project string `json:"project,omitempty"`

	match     matcher
	event     event
	plugin    string // the root of an agent's plugin
	loopLimit int    // of Cursor; 0 is none
	asHost    bool   // an answer is read by the agent's own rules, lenient ones too
}

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
	Handlers []Handler
	Skipped  []Skipped
}

// entry has the fields of handlers, and of groups of handlers, of all formats.
type entry struct {
	Hooks   []json.RawMessage `json:"hooks"`
	Matcher *string           `json:"matcher"`

	Type        string            `json:"type"`
	Name        string            `json:"name"`
	Command     string            `json:"command"`
	Bash        string            `json:"bash"`
	Exec        string            `json:"exec"`
	Args        []string          `json:"args"`
	Cwd         string            `json:"cwd"`
	Env         map[string]string `json:"env"`
	Timeout     *float64          `json:"timeout"`
	TimeoutSec  *float64          `json:"timeoutSec"`
	If          string            `json:"if"`
	Shell       string            `json:"shell"`
	OnFailure   string            `json:"onFailure"`
	Async       bool              `json:"async"`
	AsyncRewake bool              `json:"asyncRewake"`
	FailClosed  *bool             `json:"failClosed"`
	LoopLimit   json.RawMessage   `json:"loop_limit"`
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

// shape is where the names of [entry] stand in a file.
type shape struct {
	Hooks map[string][]struct {
		entry

		Hooks []entry `json:"hooks"`
	} `json:"hooks"`
}

// Read reads a hooks file. Path is its absolute path, home the user's home directory: which project the file belongs to,
// and so where its scripts run, follows from them. Nothing else is read.
func Read(f Format, path, home string, data []byte) (*File, error) {
	rules, ok := formats[f]
	if !ok {
		return nil, fmt.Errorf("the format %q is not one of %s", f, strings.Join(Formats(), ", "))
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
	r := reader{format: f, rules: rules, path: path, settings: &s, out: &File{}, ids: map[string]int{}}
	r.locate(home)
	for _, name := range slices.Sorted(maps.Keys(s.Hooks)) {
		if f == Gemini && slices.Contains([]string{"enabled", "disabled", "notifications"}, name) {
			continue // settings, not events
		}
		r.event(name, s.Hooks[name])
	}
	return r.out, nil
}

type reader struct {
	format   Format
	rules    format
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
		} else if r.format == Claude || r.format == Codex {
			r.plugin = above
		}
	}
	switch {
	case r.format == Cursor && r.project == "":
		r.dir = dir // a user's hooks run beside their file
	case r.format == Cursor || r.format == Copilot:
		r.dir = r.project
	}
}

func (r *reader) event(name string, raw json.RawMessage) {
	e, ok := r.rules.events[name]
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		r.skip(name, e, &entry{}, "its value is not a list of hooks")
		return
	}
	for _, raw := range list {
		var group entry
		if err := json.Unmarshal(raw, &group); err != nil {
			r.skip(name, e, &group, "the entry is not what the agent takes: "+err.Error())
			continue
		}
		members := group.Hooks
		if members == nil {
			members = []json.RawMessage{raw} // the entry is the hook itself
		}
		for _, raw := range members {
			var one entry
			err := json.Unmarshal(raw, &one)
			one.Matcher = group.Matcher
			switch {
			case !ok: // it is shown as far as it can be read
				r.skip(name, e, &one, cmp.Or(r.rules.without[name], noPhase))
			case err != nil:
				r.skip(name, e, &group, "the hook is not what the agent takes: "+err.Error())
			case group.Hooks == nil && r.rules.grouped:
				r.skip(name, e, &one, "the entry has no list \"hooks\", and the agent ignores it too")
			default:
				r.handler(name, e, &one)
			}
		}
	}
}

// handler takes a handler, or says why it cannot be run.
func (r *reader) handler(name string, e event, one *entry) {
	h := Handler{
		Format: r.format, Event: name, Moment: e.moment, If: one.If, Command: one.Command, Dir: r.dir, Env: one.Env,
		Background: one.Async || one.AsyncRewake, OnFailure: one.OnFailure, Project: r.project, event: e, plugin: r.plugin,
	}
	if one.Matcher != nil {
		h.Matcher = *one.Matcher
	}
	if r.format == Claude && one.Args != nil {
		h.Args = one.Args
	}
	if r.format == Copilot {
		r.copilot(&h, one)
	}
	if r.format == Cursor {
		r.cursor(&h, one)
	}
	h.Timeout = r.timeout(name, one)
	if why := r.refuse(&h, one); why != "" {
		r.skip(name, e, one, why)
		return
	}
	m, err := newMatcher(&h)
	if err != nil {
		r.skip(name, e, one, err.Error())
		return
	}
	h.match = m
	h.ID = r.id(name, h.Command+" "+strings.Join(h.Args, " "))
	r.out.Handlers = append(r.out.Handlers, h)
}

func (r *reader) copilot(h *Handler, one *entry) {
	if h.Command = cmp.Or(one.Bash, one.Command); one.Exec != "" {
		h.Command, h.Args = one.Exec, append([]string{}, one.Args...)
	}
	switch {
	case filepath.IsAbs(one.Cwd):
		h.Dir = one.Cwd
	case one.Cwd != "":
		h.Dir = filepath.Join(r.dir, one.Cwd)
	}
}

func (r *reader) cursor(h *Handler, one *entry) {
	if one.FailClosed != nil {
		if h.OnFailure = "continue"; *one.FailClosed {
			h.OnFailure = "block"
		}
	}
	h.loopLimit = 5 // its default
	if one.LoopLimit != nil && json.Unmarshal(one.LoopLimit, &h.loopLimit) == nil && string(one.LoopLimit) == "null" {
		h.loopLimit = 0
	}
}

func (r *reader) timeout(name string, one *entry) time.Duration {
	said := one.TimeoutSec
	if said == nil || r.format != Copilot {
		said = cmp.Or(one.Timeout, said)
	}
	if said != nil && *said > 0 {
		return min(time.Duration(*said*float64(r.rules.unit)), 24*time.Hour)
	}
	if r.format == Claude && name == "UserPromptSubmit" {
		return 30 * time.Second
	}
	return r.rules.timeout
}

// refuse says why a handler cannot be run here.
func (r *reader) refuse(h *Handler, one *entry) string {
	kind := cmp.Or(one.Type, "command")
	switch {
	case r.settings.DisableAll:
		return "disableAllHooks is set: the agent does not run it either"
	case r.settings.HooksConfig.Enabled != nil && !*r.settings.HooksConfig.Enabled:
		return "hooksConfig.enabled is false: the agent does not run it either"
	case slices.Contains(r.settings.HooksConfig.Disabled, cmp.Or(one.Name, one.Command)):
		return "hooksConfig.disabled names it: the agent does not run it either"
	case one.Type == "" && r.rules.grouped:
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

func (r *reader) skip(name string, e event, one *entry, why string) {
	what := cmp.Or(one.Command, one.Bash, one.Exec, one.Type, "entry")
	s := Skipped{ID: r.id(name, what), Event: name, What: what, Why: why, Decides: e.moment.Decides() && !e.silent || decidesElsewhere(name)}
	if one.Matcher != nil {
		s.Matcher = *one.Matcher
	}
	if strings.HasSuffix(why, "either") || strings.HasSuffix(why, "too") {
		s.Decides = false // nothing is lost
	}
	r.out.Skipped = append(r.out.Skipped, s)
}

// decidesElsewhere reports whether a hook of an event without a moment may forbid something in its agent.
func decidesElsewhere(name string) bool {
	return slices.Contains([]string{
		"PermissionRequest", "permissionRequest", "SubagentStop", "subagentStop", "subagentStart", "BeforeModel", "AfterModel", "BeforeToolSelection",
		"beforeReadFile", "beforeTabFileRead", "PostToolBatch", "UserPromptExpansion", "ConfigChange", "TaskCreated", "TaskCompleted", "PreModelSwitch",
		"PreSkillShellCommand", "Elicitation", "ElicitationResult", "WorktreeCreate",
	}, name)
}

// id makes a name of an event and a command: pre_tool_use-guard.
func (r *reader) id(name, command string) string {
	id := Snake(name) + "-" + scriptName(command)
	if r.ids[id]++; r.ids[id] > 1 {
		id = fmt.Sprintf("%s-%d", id, r.ids[id])
	}
	return id
}

// Snake is the name of an event in snake case: PreToolUse is pre_tool_use, beforeMCPExecution is before_mcp_execution.
func Snake(name string) string {
	var snake strings.Builder
	for i, c := range name {
		upper := func(i int) bool { return i < len(name) && name[i] >= 'A' && name[i] <= 'Z' }
		if upper(i) && i > 0 && (!upper(i-1) || i+1 < len(name) && !upper(i+1)) {
			snake.WriteByte('_')
		}
		snake.WriteString(strings.ToLower(string(c)))
	}
	return snake.String()
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

// word2id keeps what an id may hold.
func word2id(word string) string {
	id := strings.ToLower(notInID().ReplaceAllString(word, ""))
	return cmp.Or(strings.Trim(id[:min(len(id), 40)], "-_"), "command")
}
