package backtest

import (
	"cmp"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// Verdict is what a configuration would have done.
type Verdict string

// The verdicts. Fail is a denial because a hook failed.
const (
	Allow   Verdict = "allow"
	Deny    Verdict = "deny"
	Ask     Verdict = "ask"
	Rewrite Verdict = "rewrite"
	Fail    Verdict = "fail"
)

// denies reports whether the call would not have been made.
func (v Verdict) denies() bool { return v == Deny || v == Fail }

// Decision is who decided, and why.
type Decision struct {
	Hook   string `json:"hook"   jsonschema:"the subscription, or the plugin that rewrote; empty if no hook could be asked"`
	Reason string `json:"reason"`
	Code   string `json:"code"   jsonschema:"the hook's own word for the reason, or why it failed"`
}

// Row is a call that would not have been allowed as it was, or a prompt, which has no tool.
type Row struct {
	Agent   string       `json:"agent"`
	Session string       `json:"session"`
	Dir     string       `json:"dir"`
	Time    time.Time    `json:"time"`
	Tool    string       `json:"tool"`
	Call    string       `json:"call"          jsonschema:"the call in one line; secrets are hidden, here and below"`
	Shape   string       `json:"shape"         jsonschema:"the call without its numbers, directories and texts"`
	Verdict Verdict      `json:"verdict"       jsonschema:"allow, deny, ask, rewrite or fail (denied because a hook failed)"`
	Was     Verdict      `json:"was,omitempty" jsonschema:"the verdict of the other configuration"`
	By      []Decision   `json:"by"`
	Prompt  string       `json:"prompt"        jsonschema:"the prompt of the turn"`
	Became  agent.Became `json:"became"        jsonschema:"what became of the call then: ran, failed, refused, or empty if the transcript does not say"`
	Refused string       `json:"refused"       jsonschema:"the agent's word for who refused it"`
}

// Bounds of texts in rows, in characters. Only as much of a text is read as may be needed for that.
const (
	mostCall   = 300
	mostPrompt = 200
	mostReason = 200
	mostShape  = 60
	mostRead   = 4 << 10
	mostArgs   = 1 << 20
)

// hide returns a text in one line, with secrets replaced.
func (r *run) hide(s string, most int) string {
	s = clip(s, mostRead)
	for _, f := range slices.Backward(r.scanner.Find(s)) {
		s = s[:f.Start] + "[hidden: " + f.Pattern + "]" + s[f.End:]
	}
	return text.Sanitize(strings.Join(strings.Fields(s), " "), most)
}

// clip cuts a text to a number of bytes, between characters.
func clip(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "") }

// describe returns a call in one line, and its shape. A prompt is its text.
func (r *run) describe(c *agent.Call, prompt string) (line, shape string) {
	if c.Tool == "" {
		return r.hide(prompt, mostCall), "(prompt)"
	}
	var args map[string]json.RawMessage
	if len(c.Arguments) <= mostArgs {
		_ = json.Unmarshal(c.Arguments, &args) // what is not an object has no names
	}
	tool := clip(c.Tool, mostShape)
	if command := argument(args, "command", "cmd", "script"); command != "" {
		line = r.hide(command, mostCall)
		first, _, _ := strings.Cut(strings.TrimSpace(command), "\n")
		return tool + ": " + line, tool + ": " + general(r.hide(first, mostCall))
	}
	line = tool + " " + r.hide(string(c.Arguments), mostCall)
	if file := argument(args, "file_path", "filePath", "path", "absolute_path", "notebook_path", "target_file"); file != "" {
		return line, tool + ": " + general(r.hide(path.Base(file), mostCall))
	}
	if u, err := url.Parse(argument(args, "url", "uri")); err == nil && u.Host != "" {
		return line, tool + ": " + clip(u.Hostname(), mostShape)
	}
	return line, tool
}

// argument returns the first argument of the given names that is a text, or the last text of a list.
func argument(args map[string]json.RawMessage, names ...string) string {
	for _, name := range names {
		var one string
		var list []string
		if json.Unmarshal(args[name], &one) == nil && one != "" {
			return one
		}
		if json.Unmarshal(args[name], &list) == nil && len(list) > 0 {
			if list[0] = path.Base(list[0]); len(list) == 3 && strings.HasSuffix(list[0], "sh") {
				return list[2]
			}
			return strings.Join(list, " ")
		}
	}
	return ""
}

var (
	quotedText  = lazyregexp.New(`"[^"]*"|'[^']*'`)
	directories = lazyregexp.New(`(?:[\w.~@-]*/)+`) // of an address the path, as [scheme] stands for ://
	numbers     = lazyregexp.New(`:?(?:\b[0-9a-f]{7,}\b|\b\d+\b)`)
)

const scheme = "\x00"

// general is a text without what differs between texts that say the same: quotations, directories and numbers.
func general(s string) string {
	s = quotedText().ReplaceAllString(s, "'…'")
	s = strings.ReplaceAll(directories().ReplaceAllString(strings.ReplaceAll(s, "://", scheme), ""), scheme, "://")
	s = numbers().ReplaceAllStringFunc(s, func(n string) string {
		if n[0] == ':' { // a line of rules, or a port
			return n
		}
		return "N"
	})
	return cmp.Or(text.Sanitize(s, mostShape), "…")
}

// sentence is the first sentence of a reason, or what stands before its colon, without what is in brackets at its end.
func sentence(s string) string {
	if before, _, cut := strings.Cut(s, " ("); cut && strings.HasSuffix(s, ")") {
		s = before
	}
	for _, end := range []string{": ", ". ", "; "} {
		if before, _, cut := strings.Cut(s, end); cut && len(before) > len("denied") {
			s = before
		}
	}
	return s
}
