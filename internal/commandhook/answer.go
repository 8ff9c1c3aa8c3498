package commandhook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

// Output is what a script that has ended left: it was not killed, and started.
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

// Of is a hook of an event as its agent takes answers of it, whatever script it runs.
func Of(f Format, name string) *Handler {
	e, known := formats[f].events[name]
	if !known {
		e = formats[f].events[alike[name]]
	}
	return &Handler{Format: f, Event: name, Moment: e.moment, event: e}
}

// alike are events that no script of a file runs at, and whose answers have the rules of another.
//
//nolint:gochecknoglobals // an immutable table
var alike = map[string]string{"PreSkillShellCommand": "PreToolUse", "UserPromptExpansion": "UserPromptSubmit", "ConfigChange": "UserPromptSubmit"}

// Answer reads what a script said by the rules of its agent. An error is a *[Failure]: an exit code that says nothing, or
// output that the agent would not have taken. Where asHost is set, an agent's own rule for a program that is missing
// counts, if it is stricter than a failure.
func (h *Handler) Answer(o *Output, f *Facts, asHost bool) (Answer, error) {
	strict := asHost && h.Format == Gemini // which blocks on any exit code but 0 and 1
	switch {
	case o.Code == 126 && !strict:
		return Answer{}, h.failed(CodeNotExecutable, "is not executable", o)
	case o.Code == 127 && !strict:
		return Answer{}, h.failed(CodeNotFound, "was not found, or calls a program that was not", o)
	}
	reads := *h
	reads.asHost = asHost
	a, err := reads.answer(o, f)
	if err != nil {
		return Answer{}, err
	}
	if h.silent() {
		a = Answer{Note: a.Note, Lost: a.Lost}
	}
	return a, nil
}

// answer reads by the rules of the agent, which reads a text or one JSON object. An answer that stands in a text, where the
// agent does not see it, is a failure.
func (h *Handler) answer(o *Output, f *Facts) (a Answer, err error) {
	out := bytes.TrimSpace(o.Stdout)
	if h.asHost && h.Format != Codex { // programs in JavaScript trim it
		out = bytes.TrimSpace(bytes.TrimPrefix(out, []byte("\ufeff")))
	}
	switch h.Format {
	case Codex:
		a, err = answerCodex(h, o, out)
	case Gemini:
		out = geminiText(o, out)
		a, err = answerGemini(h, o, out, f)
	case Copilot:
		out = bytes.TrimSpace(withoutProgress(out))
		a, err = answerCopilot(h, o, out)
	case Cursor:
		if a, err = answerCursor(h, o, out, f); err != nil || !isObject(out) {
			return a, err
		}
	default:
		a, err = answerClaude(h, o, out)
	}
	if err != nil || o.Code != 0 {
		return a, err
	}
	if isJSON(h.Format, out) {
		err = h.misplaced(&a, out)
	} else {
		err = h.stray(out)
	}
	if err != nil && h.asHost {
		a.Ignored, err = err.Error(), nil
	} else if err != nil {
		err = h.invalid(o, err)
	}
	return a, err
}

// isJSON reports whether the agent reads an output as JSON.
func isJSON(f Format, out []byte) bool {
	return isObject(out) || bytes.HasPrefix(out, []byte("[")) && (f == Codex || f == Copilot)
}

// failed makes a failure with the end of what the script wrote to standard error, where programs say why.
func (h *Handler) failed(code, what string, o *Output) error {
	message := h.Title() + " " + what
	if said := lastLine(o.Stderr); said != "" {
		message += ": " + said
	}
	return &Failure{Code: code, Message: message}
}

func (h *Handler) exit(o *Output) error {
	return h.failed(CodeExit, fmt.Sprintf("ended with exit code %d and no JSON", o.Code), o)
}

func (h *Handler) invalid(o *Output, why error) error {
	return h.failed(CodeInvalid, "answered what its agent does not take: "+why.Error(), o)
}

// Title is how the hook is called in messages.
func (h *Handler) Title() string {
	return fmt.Sprintf("the %s hook %.120q", h.Event, strings.Join(append([]string{h.Command}, h.Args...), " "))
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	return last[:min(len(last), 500)]
}

// block does what exit code 2 does at a moment. Where a result can be replaced, replaces says so.
func (h *Handler) block(a *Answer, why string, replaces bool) {
	why = cmp.Or(strings.TrimSpace(why), h.Title()+" blocked this and gave no reason")
	switch {
	case h.Moment.Decides():
		a.Verdict, a.Reason = phases.VerdictDeny, why
	case h.Moment == Result && replaces:
		a.Result = &why
	case h.Moment == Result || h.Moment == Failed:
		a.Context = append(a.Context, why)
	default:
		a.Note = append(a.Note, why)
		if h.Moment == Compact {
			a.Lost = append(a.Lost, "a block")
		}
	}
}

// end does what continue: false does. Grapnel cannot end a session: the call or message is denied, and a turn that wants to
// end does.
func (h *Handler) end(a *Answer, why string) {
	switch h.Moment {
	case Call, Prompt:
		h.block(a, cmp.Or(why, h.Title()+" ended the session"), false)
		if h.Moment == Call {
			a.Lost = append(a.Lost, "continue")
		}
	case Stop:
		a.Verdict, a.Reason = "", ""
	default:
		a.Lost = append(a.Lost, "continue")
		a.note(why)
	}
}

func (a *Answer) note(text string) {
	if text != "" {
		a.Note = append(a.Note, text)
	}
}

func (a *Answer) context(text string) {
	if strings.TrimSpace(text) != "" {
		a.Context = append(a.Context, text)
	}
}

// decode decodes one JSON object, with unknown fields as an error if strict. The error says what is wrong. A name that is
// there twice, or in another case, is an error unless the agent's own rule counts: most agents take the last.
func (h *Handler) decode(text []byte, strict bool, into any) error {
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
	if h.asHost && !strict {
		return nil
	}
	return jsonscan.Exact(text, into)
}

// isObject reports whether a text is meant to be a JSON object.
func isObject(text []byte) bool { return bytes.HasPrefix(text, []byte("{")) }

// lost are the members of an object that no field of an answer takes.
func lost(raw json.RawMessage, carried ...string) []string {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(members)), func(name string) bool { return slices.Contains(carried, name) })
}

// resultText is a replacement of a tool's result as a text: both streams of a shell, a text, or the JSON.
func resultText(raw json.RawMessage) *string {
	var text string
	var streams struct {
		Stdout *string `json:"stdout"`
		Stderr string  `json:"stderr"`
	}
	switch {
	case json.Unmarshal(raw, &text) == nil:
	case json.Unmarshal(raw, &streams) == nil && streams.Stdout != nil:
		text = *streams.Stdout
		if text != "" && streams.Stderr != "" {
			text += "\n"
		}
		text += streams.Stderr
	default:
		text = string(raw)
	}
	return &text
}

// specific is hookSpecificOutput, as Claude Code and Codex have it.
type specific struct {
	Event      string          `json:"hookEventName"`
	Permission *string         `json:"permissionDecision"`
	Why        *string         `json:"permissionDecisionReason"`
	Input      json.RawMessage `json:"updatedInput"`
	Context    *string         `json:"additionalContext"`
	Output     json.RawMessage `json:"updatedToolOutput"`
	MCPOutput  json.RawMessage `json:"updatedMCPToolOutput"`
}

// said is the answer of Claude Code, Codex and Gemini CLI.
type said struct {
	Continue       *bool           `json:"continue"`
	StopReason     *string         `json:"stopReason"`
	SuppressOutput bool            `json:"suppressOutput"`
	SystemMessage  *string         `json:"systemMessage"`
	Decision       *string         `json:"decision"`
	Reason         *string         `json:"reason"`
	Specific       json.RawMessage `json:"hookSpecificOutput"`
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// answerClaude: standard output that begins with { is JSON, on every exit code. 2 blocks whatever it says. On others valid
// JSON alone counts. Plain text is context for a prompt and the start of a session. Unlike the agent, which takes it for
// text, this takes broken JSON for a failure.
func answerClaude(h *Handler, o *Output, out []byte) (a Answer, err error) {
	if isObject(out) {
		a, err = claudeSaid(h, out)
	}
	switch {
	case o.Code == 2 && a.Verdict == phases.VerdictDeny: // with its own reason
		return a, nil
	case o.Code == 2:
		h.block(&a, string(o.Stderr), false)
		return a, nil
	case err != nil && h.asText(out) && o.Code == 0:
		a = Answer{Ignored: err.Error()}
	case err != nil:
		return Answer{}, h.invalid(o, err)
	case isObject(out):
		return a, nil
	case o.Code != 0:
		return Answer{}, h.exit(o)
	}
	if h.Moment == Prompt || h.Moment == Session {
		a.context(string(out))
	}
	return a, nil
}

// asText reports whether an output that begins as JSON is a text by the agent's own rule, which counts.
func (h *Handler) asText(out []byte) bool { return h.asHost && !json.Valid(out) }

func claudeSaid(h *Handler, out []byte) (Answer, error) {
	var s said
	var sp specific
	if err := h.decode(out, false, &s); err != nil {
		return Answer{}, err
	}
	if isSet(s.Specific) {
		if err := h.decode(s.Specific, false, &sp); err != nil {
			return Answer{}, fmt.Errorf("hookSpecificOutput: %w", err)
		}
		if sp.Event != h.Event {
			return Answer{}, fmt.Errorf("hookSpecificOutput.hookEventName is %q", sp.Event)
		}
	}
	if d := text(s.Decision); d != "" && d != "block" && d != "approve" {
		return Answer{}, fmt.Errorf("the decision %q is neither block nor approve", d)
	}
	a := Answer{Lost: append(
		lost(out, "continue", "stopReason", "suppressOutput", "systemMessage", "decision", "reason", "hookSpecificOutput"),
		lost(s.Specific, "hookEventName", "permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext", "updatedToolOutput", "updatedMCPToolOutput")...)}
	a.note(text(s.SystemMessage))
	a.context(text(sp.Context))
	if err := claudeDecision(h, &a, &s, &sp); err != nil {
		return Answer{}, err
	}
	if s.Continue != nil && !*s.Continue {
		h.end(&a, cmp.Or(text(s.StopReason), text(s.Reason)))
	}
	return a, nil
}

// claudeDecision takes the fields that decide and rewrite.
func claudeDecision(h *Handler, a *Answer, s *said, sp *specific) error {
	switch h.Moment {
	case Call:
		word := text(sp.Permission)
		if word == "" { // the older words
			word = map[string]string{"block": "deny", "approve": "allow"}[text(s.Decision)]
			sp.Why = cmp.Or(sp.Why, s.Reason)
		}
		switch word {
		case "":
		case "deny":
			h.block(a, text(sp.Why), false)
		case "ask", "allow":
			a.Verdict, a.Reason = phases.Verdict(word), text(sp.Why)
		case "defer":
			a.Verdict, a.Reason = phases.VerdictAsk, "the call was put off by "+h.Title()
			a.Lost = append(a.Lost, "permissionDecision defer")
			return nil
		default:
			return fmt.Errorf("the permissionDecision %q is none of allow, deny, ask and defer", word)
		}
		return a.rewrite(sp.Input, a.Verdict != phases.VerdictDeny)
	case Stop:
		if text(s.Decision) == "block" {
			h.block(a, text(s.Reason), false)
		} else if len(a.Context) > 0 { // the conversation goes on with it
			a.Verdict, a.Reason, a.Context = phases.VerdictDeny, strings.Join(a.Context, "\n\n"), nil
		}
	case Result:
		if raw := cmp.Or(string(sp.Output), string(sp.MCPOutput)); isSet(json.RawMessage(raw)) {
			a.Result = resultText(json.RawMessage(raw))
		}
		fallthrough
	default:
		if text(s.Decision) == "block" {
			h.block(a, text(s.Reason), false)
		}
	}
	return nil
}

// rewrite takes rewritten arguments, if the call can go on.
func (a *Answer) rewrite(raw json.RawMessage, goesOn bool) error {
	if !isSet(raw) {
		return nil
	}
	if !isObject(bytes.TrimSpace(raw)) {
		return errors.New("the rewritten arguments are not an object")
	}
	if goesOn {
		a.Arguments = raw
	}
	return nil
}
