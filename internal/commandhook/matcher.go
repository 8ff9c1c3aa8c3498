package commandhook

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/lazyregexp"
)

var (
	// What the agents take for a list of names, and not for an expression.
	claudeNames = lazyregexp.New(`^[\w ,|-]*$`)
	codexNames  = lazyregexp.New(`^[\w|]*$`)

	separators  = lazyregexp.New(`&&|\|\||[;|&\n]`)
	variable    = lazyregexp.New(`\$\{?[A-Za-z_]\w*\}?`)
	assignments = lazyregexp.New(`^(\s*[A-Za-z_]\w*=\S*\s+)+`)
	notInID     = lazyregexp.New(`[^A-Za-z0-9_-]+`)
)

// matcher is a compiled matcher: everything, a list of exact names, or a regular expression.
type matcher struct {
	exact  []string
	regexp *regexp.Regexp
}

func (m matcher) accepts(value string) bool {
	switch {
	case m.regexp != nil:
		return m.regexp.MatchString(value)
	case m.exact != nil:
		return slices.Contains(m.exact, value)
	}
	return true
}

// newMatcher compiles a handler's matcher by the rules of its agent. An expression that only JavaScript knows is an error:
// a guess could leave a guard out.
func newMatcher(h *Handler) (matcher, error) {
	text := h.Matcher
	if h.event.noMatcher || text == "" || text == "*" {
		return matcher{}, nil
	}
	pattern := text
	switch h.Format {
	case Claude:
		if claudeNames().MatchString(text) {
			return matcher{exact: strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" ,|", c) })}, nil
		}
	case Codex:
		if codexNames().MatchString(text) {
			return matcher{exact: strings.Split(text, "|")}, nil
		}
	case Gemini:
		if text = strings.TrimSpace(text); h.Moment != Call && h.Moment != Result {
			return matcher{exact: []string{text}}, nil
		}
		if _, err := regexp.Compile(text); err != nil && !javaScriptOnly(text) {
			return matcher{exact: []string{text}}, nil // as it does itself
		}
	case Copilot:
		if text == "**" && h.pascal() {
			return matcher{}, nil
		}
		pattern = "^(?:" + text + ")$"
	case Cursor: // a regular expression that may match anywhere
	}
	r, err := regexp.Compile(pattern)
	if err != nil {
		return matcher{}, fmt.Errorf("its matcher is not an expression of the RE2 syntax, which has no lookaround and no backreferences: %w", err)
	}
	return matcher{regexp: r}, nil
}

func javaScriptOnly(text string) bool { return strings.Contains(text, "(?") }

// pascal reports whether a Copilot hook is one in the shape of VS Code.
func (h *Handler) pascal() bool { return h.Event[0] >= 'A' && h.Event[0] <= 'Z' }

// Matches reports whether the agent would run the hook for what happens.
func (h *Handler) Matches(f *Facts) bool {
	switch h.Moment {
	case Call, Result, Failed:
		return h.matchesTool(f)
	case Session, Compact, Compacted, SessionEnd:
		return h.event.noMatcher || h.match.accepts(f.Source)
	case TurnFailed:
		return h.match.accepts("unknown")
	default:
		return h.event.noMatcher || h.event.value == "" || h.match.accepts(h.event.value)
	}
}

func (h *Handler) matchesTool(f *Facts) bool {
	if !h.event.class.has(classOf(f.Tool)) {
		return false
	}
	if !h.fitsRule(f) {
		return false
	}
	if h.Format == Cursor && h.event.class == shell {
		return h.match.accepts(commandOf(f.Arguments))
	}
	if h.event.noMatcher {
		return true
	}
	name, also := h.Format.toolName(f.Tool)
	if h.Format == Copilot && h.pascal() {
		claude, _ := Claude.toolName(f.Tool)
		also = append(also, claude)
	}
	return slices.ContainsFunc(append(also, name), h.match.accepts)
}

// has reports whether an event for a class of tools is for one of another. Edits are writes, too.
func (c class) has(other class) bool {
	return c == "" || c == other || c == edit && other == write
}

func commandOf(arguments json.RawMessage) string {
	var command string
	_ = json.Unmarshal(jsonscan.Member(arguments, "command"), &command) // arguments of another shape have none
	return command
}

// fitsRule evaluates the field "if" of Claude Code: one rule, TOOL or TOOL(PATTERN). Where the agent runs a hook to be on
// the safe side, so does this; rules about what else a tool may have are taken for met.
func (h *Handler) fitsRule(f *Facts) bool {
	if h.If == "" {
		return true
	}
	tool, pattern, _ := strings.Cut(strings.TrimSuffix(h.If, ")"), "(")
	name, also := Claude.toolName(f.Tool)
	edits := tool == "Edit" && edit.has(classOf(f.Tool)) // a rule for Edit is one for all tools that edit files
	if !edits && !slices.Contains(append(also, name), tool) {
		return false
	}
	if pattern == "" || pattern == "*" {
		return true
	}
	switch classOf(tool) {
	case shell:
		return fitsCommand(pattern, commandOf(f.Arguments))
	case read, write, edit:
		return slices.ContainsFunc(f.Paths, func(path string) bool { return fitsPath(pattern, path, f.Dir) }) || len(f.Paths) == 0
	default:
		return true
	}
}

// fitsCommand checks a pattern of a shell command against each of the commands in a line. What a substitution would run is
// not known: it fits.
func fitsCommand(pattern, line string) bool {
	if strings.ContainsAny(line, "`") || strings.Contains(line, "$(") {
		return true
	}
	if prefix, ok := strings.CutSuffix(pattern, ":*"); ok {
		pattern = prefix + "*"
	}
	want := wildcards(pattern, `(?s:.*)`)
	bare := strings.TrimSuffix(pattern, " *") // "git *" is "git", too
	for _, one := range append(separators().Split(line, -1), line) {
		one = strings.TrimSpace(assignments().ReplaceAllString(one, ""))
		if want.MatchString(one) || one == bare {
			return true
		}
	}
	return false
}

// fitsPath checks a pattern of files: ** is any directories, * anything within one.
func fitsPath(pattern, path, dir string) bool {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsAbs(path) && filepath.IsLocal(rel) {
		path = rel
	}
	if !strings.Contains(pattern, "/") {
		path = filepath.Base(path)
	}
	pattern = strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "/")
	return wildcards(pattern, `[^/]*`).MatchString(strings.TrimPrefix(path, "/"))
}

// wildcards compiles a pattern whose only signs are ** and *.
func wildcards(pattern, star string) *regexp.Regexp {
	text := regexp.QuoteMeta(pattern)
	text = strings.ReplaceAll(text, `\*\*/`, "\x00")
	text = strings.ReplaceAll(text, `\*\*`, "\x01")
	text = strings.ReplaceAll(text, `\*`, star)
	text = strings.ReplaceAll(text, "\x01", `(?s:.*)`)
	return regexp.MustCompile("^" + strings.ReplaceAll(text, "\x00", `(?:.*/)?`) + "$")
}
