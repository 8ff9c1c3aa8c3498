package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

// Script says what an event is for the scripts of the agent's users.
type Script struct {
	// Runs says that scripts run at the step of the event. Otherwise Why says why they do not ([NoPhase] if it is empty), and
	// Decides that one could have forbidden something.
	Runs    bool
	Why     string
	Decides bool
	// At is the step where it differs from the event's: for an event that is only one for scripts, or whose answers have the
	// rules of another.
	At Step
	// Class restricts the event to calls of one class of tools.
	Class Class
	// NoMatcher says that the agent ignores a matcher here; Value is what it tests one against if that is no tool.
	NoMatcher bool
	Value     string
	// Silent says that the agent drops what the script answers. OnlyDenies says that it refuses what is asked or rewritten.
	Silent, OnlyDenies bool
	// Timeout is how long the agent waits where the file does not say, if that is not as for other events.
	Timeout time.Duration
}

// The reasons for which scripts do not run at events of several agents.
const (
	NoPhase      = "Grapnel has no phase for this event"
	NoPermission = "Grapnel does not know when the agent would ask its user; judge the call at the event before it"
	NoSubagent   = "subagents have no phase of their own; their tool calls are judged like all others"
	NoModelCall  = "hooks do not see or change requests to the model; see turn.post_prompt_compile"
)

// ScriptStep returns the step at which scripts for an event run.
func (m *Meaning) ScriptStep() Step { return cmp.Or(m.Script.At, m.Step) }

// Class is what a tool does, whatever an agent calls it.
type Class string

// The classes.
const (
	Shell  Class = "shell"
	Read   Class = "read"
	Edit   Class = "edit"
	Write  Class = "write"
	Grep   Class = "grep"
	Glob   Class = "glob"
	Fetch  Class = "fetch"
	Search Class = "search"
	MCP    Class = "mcp"
)

// Scripts are the rules by which an agent runs its users' scripts.
type Scripts struct {
	// Format names the rules for users.
	Format string
	// Directories and Words are parts of paths and words of files that only this agent has.
	Directories, Words []string
	// Event returns the name that an event of a file has in [Agent.Events]; nil if it is the same.
	Event func(name string) string
	// Settings are names among the events of a file that are none.
	Settings []string
	// Grouped says that hooks stand in groups with a matcher; otherwise each has its own.
	Grouped bool
	// Plugins says that a file in hooks/ is one of an agent's plugin.
	Plugins bool
	// Timeout is how long the agent waits where a file does not say; Unit is what a number of a file counts.
	Timeout, Unit time.Duration

	// Tools are the names of the agent's tools. More are other tools of these classes, Others those of none.
	Tools  map[Class]string
	More   map[string]Class
	Others []string
	// EditAliases are names by which matchers know every tool that writes files.
	EditAliases []string
	// MCPName returns the name of a server's tool; nil for mcp__SERVER__TOOL.
	MCPName func(server, tool string) string
	// Matcher returns what a matcher accepts: exact names, or what fits an expression; if there is neither, everything. Nil is an
	// expression that may match anywhere.
	Matcher func(h *Hook) (exact []string, expression string)

	// Take takes what only this agent's files say of a hook; nil for nothing.
	Take func(h *Hook, e *Entry)
	// Dir returns where scripts run, by the project of the file, empty for a user's own, and the file's directory. Nil is the
	// session's directory.
	Dir func(project, beside string) string
	// Payload makes what a script reads on its standard input. Environ adds variables to its environment; nil for none.
	Payload func(h *Hook, f *Facts) map[string]any
	Environ func(h *Hook, f *Facts, vars map[string]string)
	// ExpandsEnv says that variables of a hook may name others.
	ExpandsEnv bool

	// Text returns what the agent reads of an output; nil for standard output. Answer reads it.
	Text   func(o *Output, out []byte) []byte
	Answer func(h *Hook, o *Output, out []byte, f *Facts) (Answer, error)
	// Lists says that the agent also reads a list as JSON. KeepsMark says that a byte order mark before JSON is a mistake.
	Lists, KeepsMark bool
	// BlocksOnExit says that any exit code but 0 and 1 blocks. CrashDenies says that a failed script denies a call.
	BlocksOnExit, CrashDenies bool
	// AfterCompaction says that a session begins again after a compaction.
	AfterCompaction bool
}

// Owns reports whether a tool's name is one of the agent's own.
func (s *Scripts) Owns(tool string) bool {
	_, more := s.More[tool]
	return more || slices.Contains(slices.Collect(maps.Values(s.Tools)), tool)
}

// Entry has the fields of hooks, and of groups of hooks, of all agents' files.
type Entry struct {
	Hooks   []json.RawMessage `json:"hooks"`
	Matcher string            `json:"matcher"`

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

// Matcher is a compiled matcher: everything, a list of exact names, or a regular expression.
type Matcher struct {
	Exact  []string
	Regexp *regexp.Regexp
}

// Accepts reports whether a value fits.
func (m Matcher) Accepts(value string) bool {
	switch {
	case m.Regexp != nil:
		return m.Regexp.MatchString(value)
	case m.Exact != nil:
		return slices.Contains(m.Exact, value)
	}
	return true
}

// Hook is one script of a hooks file, as its agent would run it.
type Hook struct {
	// ID is a name for it that depends on the event and the script alone, so that it survives changes around it.
	ID      string `json:"id"`
	Event   string `json:"event"`
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

	Agent *Agent  `json:"-"`
	Step  Step    `json:"-"`
	Rules Script  `json:"-"`
	Match Matcher `json:"-"`
	// Names are the rules whose names of tools its payloads have.
	Names *Scripts `json:"-"`
	// PluginRoot is the root of the agent's plugin that the file belongs to.
	PluginRoot string `json:"-"`
	// LoopLimit is how often it may make a turn go on; 0 is no limit.
	LoopLimit int `json:"-"`
	// AsHost says that an answer is read by the agent's own rules, lenient ones too.
	AsHost bool `json:"-"`
}

// Silent reports whether the agent drops whatever the hook answers.
func (h *Hook) Silent() bool { return h.Background || h.Rules.Silent }

// Forbids reports whether a script at a step can forbid something, or make a turn go on.
func (s Step) Forbids() bool { return s == StepToolCall || s == StepPrompt || s == StepStop }

// Title is how the hook is called in messages.
func (h *Hook) Title() string {
	return fmt.Sprintf("the %s hook %.120q", h.Event, strings.Join(append([]string{h.Command}, h.Args...), " "))
}

// Facts are what is known when a script runs. Which are set depends on the step.
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
	// Tool is the tool's name in Grapnel, Name its name for the script and Class what it does. Result is what it gave, or its
	// error.
	Tool, Name string
	Class      Class
	Arguments  json.RawMessage
	Paths      []string
	Result     string
}

// Input returns the arguments of a call as they are, or an empty object.
func (f *Facts) Input() any {
	if len(f.Arguments) == 0 {
		return map[string]any{}
	}
	return f.Arguments
}

// Command returns the argument command of a call.
func (f *Facts) Command() (command string) {
	_ = json.Unmarshal(jsonscan.Member(f.Arguments, "command"), &command) // arguments of another shape have none
	return command
}

// Trigger is the word of all agents for why a conversation is compacted.
func (f *Facts) Trigger() string {
	if f.Source == "manual" || f.Source == "user" {
		return "manual"
	}
	return "auto"
}

// Output is what a script that has ended left: it was started, and not killed.
type Output struct {
	Code           int
	Stdout, Stderr []byte
}

// Answer is what a script has said, whatever its agent's words are. The zero value has no opinion.
type Answer struct {
	// Verdict is deny, ask or allow, or empty. To deny a stop is to go on; the reason then is the next message.
	Verdict phases.Verdict
	Reason  string
	// Arguments are the rewritten arguments of a call, whole; nil if they stay. Result is the rewritten result of a tool.
	Arguments json.RawMessage
	Result    *string
	// Context is for the model, Note for the user.
	Context, Note []string
	// Lost names what the script has said and cannot be carried.
	Lost []string
	// Ignored says what the agent does not read of the output, where its own rule counts; else that is a failure.
	Ignored string
}

// Failure is a script that did not do its work. Code is a word for machines.
type Failure struct{ Code, Message string }

// Error implements error.
func (f *Failure) Error() string { return f.Message }

// The codes of failures.
const (
	CodeExit          = "exit_code"
	CodeNotFound      = "not_found"
	CodeNotExecutable = "not_executable"
	CodeInvalid       = "invalid_output"
)

// Failed makes a failure with the end of what the script wrote to standard error, where programs say why.
func (h *Hook) Failed(code, what string, o *Output) error {
	message := h.Title() + " " + what
	lines := strings.Split(strings.TrimSpace(string(o.Stderr)), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		message += ": " + last[:min(len(last), 500)]
	}
	return &Failure{Code: code, Message: message}
}

// FailedExit is the failure of an exit code that says nothing.
func (h *Hook) FailedExit(o *Output) error {
	return h.Failed(CodeExit, fmt.Sprintf("ended with exit code %d and no JSON", o.Code), o)
}

// Invalid is the failure of an answer that the agent does not take.
func (h *Hook) Invalid(o *Output, why error) error {
	return h.Failed(CodeInvalid, "answered what its agent does not take: "+why.Error(), o)
}

// Block does what exit code 2 does at a step. Where a result can be replaced, replaces says so.
func (h *Hook) Block(a *Answer, why string, replaces bool) {
	why = cmp.Or(strings.TrimSpace(why), h.Title()+" blocked this and gave no reason")
	switch {
	case h.Step.Forbids():
		a.Verdict, a.Reason = phases.VerdictDeny, why
	case h.Step == StepToolResult && replaces:
		a.Result = &why
	case h.Step == StepToolResult || h.Step == StepToolFailed:
		a.Context = append(a.Context, why)
	default:
		a.Note = append(a.Note, why)
		if h.Step == StepCompact || h.Step == StepOnlyCompact {
			a.Lost = append(a.Lost, "a block")
		}
	}
}

// End does what continue: false does. Grapnel cannot end a session: the call or message is denied, and a turn that wants to
// end does.
func (h *Hook) End(a *Answer, said *ClaudeAnswer) {
	if said.Continue == nil || *said.Continue {
		return
	}
	why := cmp.Or(said.StopReason, said.Reason)
	switch h.Step {
	case StepToolCall, StepPrompt:
		h.Block(a, cmp.Or(why, h.Title()+" ended the session"), false)
		if h.Step == StepToolCall {
			a.Lost = append(a.Lost, "continue")
		}
	case StepStop:
		a.Verdict, a.Reason = "", ""
	default:
		a.Lost = append(a.Lost, "continue")
		a.AddNote(why)
	}
}

// Decide takes a word about a call: allow, deny or ask.
func (h *Hook) Decide(a *Answer, word, why string) error {
	switch word {
	case "":
	case "deny":
		h.Block(a, why, false)
	case "ask", "allow":
		a.Verdict, a.Reason = phases.Verdict(word), why
	default:
		return fmt.Errorf("the decision %q is none of allow, deny and ask", word)
	}
	return nil
}

// Rewrite takes rewritten arguments, unless the call is denied.
func (a *Answer) Rewrite(raw json.RawMessage) error {
	switch {
	case !IsSet(raw):
	case !IsObject(bytes.TrimSpace(raw)):
		return errors.New("the rewritten arguments are not an object")
	case a.Verdict != phases.VerdictDeny:
		a.Arguments = raw
	}
	return nil
}

// Replace takes a replacement of a tool's result.
func (a *Answer) Replace(raw json.RawMessage) {
	if IsSet(raw) {
		a.Result = new(StreamsText(raw))
	}
}

// AddNote adds a note, unless it is empty.
func (a *Answer) AddNote(text string) {
	if text != "" {
		a.Note = append(a.Note, text)
	}
}

// AddContext adds a text for the model, unless it is blank.
func (a *Answer) AddContext(text string) {
	if strings.TrimSpace(text) != "" {
		a.Context = append(a.Context, text)
	}
}

// Decode decodes one JSON object, with unknown fields as an error if strict. A name that is there twice, or in another case,
// is an error unless the agent's own rule counts: most agents take the last.
func (h *Hook) Decode(text []byte, strict bool, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	if strict {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("there is more behind the JSON object")
	}
	if h.AsHost && !strict {
		return nil
	}
	return jsonscan.Exact(text, into)
}

// DecodeSaid decodes an answer and its member hookSpecificOutput, in the agent's own type.
func (h *Hook) DecodeSaid(out []byte, strict bool, said *ClaudeAnswer, specific any) error {
	if err := h.Decode(out, strict, said); err != nil {
		return err
	}
	if IsSet(said.Specific) {
		if err := h.Decode(said.Specific, strict, specific); err != nil {
			return fmt.Errorf("hookSpecificOutput: %w", err)
		}
	}
	return nil
}

// Others are the members of an object that are none of those that are known.
func Others(raw json.RawMessage, known ...string) []string {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(members)), func(name string) bool { return slices.Contains(known, name) })
}

// IsSet reports whether a member is there and not null.
func IsSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// IsObject reports whether a text is meant to be a JSON object.
func IsObject(text []byte) bool { return bytes.HasPrefix(text, []byte("{")) }

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
