package scripts

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

var (
	separators  = lazyregexp.New(`&&|\|\||[;|&\n]`)
	assignments = lazyregexp.New(`^(\s*[A-Za-z_]\w*=\S*\s+)+`)
)

// newMatcher compiles a hook's matcher by the rules of its agent. An expression that only JavaScript knows is an error: a guess
// could leave a guard out.
func newMatcher(h *agent.Hook) (agent.Matcher, error) {
	if h.Rules.NoMatcher || h.Matcher == "" || h.Matcher == "*" {
		return agent.Matcher{}, nil
	}
	exact, expression := []string(nil), h.Matcher
	if h.Agent.Scripts.Matcher != nil {
		exact, expression = h.Agent.Scripts.Matcher(h)
	}
	if expression == "" {
		return agent.Matcher{Exact: exact}, nil
	}
	r, err := regexp.Compile(expression)
	if err != nil {
		return agent.Matcher{}, fmt.Errorf("its matcher is not an expression of the RE2 syntax, which has no lookaround and no backreferences: %w", err)
	}
	return agent.Matcher{Regexp: r}, nil
}

// Matches reports whether the agent would run the hook for what happens.
func Matches(h *agent.Hook, f *agent.Facts) bool {
	switch {
	case h.Step.OfTool():
		return matchesTool(h, f)
	case h.Step == agent.StepFailed:
		return h.Match.Accepts("unknown")
	case values[h.Step] != nil || h.Step == agent.StepSessionEnd:
		return h.Match.Accepts(f.Source)
	}
	return h.Rules.Value == "" || h.Match.Accepts(h.Rules.Value)
}

func matchesTool(h *agent.Hook, f *agent.Facts) bool {
	switch {
	case !has(h.Rules.Class, classOf(f.Tool)), !fitsRule(h, f):
		return false
	case onCommand(h):
		return h.Match.Accepts(f.Command())
	}
	name, also := toolName(h.Agent.Scripts, f.Tool)
	other, _ := toolName(h.Names, f.Tool)
	return slices.ContainsFunc(append(also, name, other), h.Match.Accepts)
}

// onCommand reports whether a matcher is tested against the command of a shell.
func onCommand(h *agent.Hook) bool { return h.Rules.Class == agent.Shell }

// has reports whether an event for a class of tools is for one of another. Edits are writes, too.
func has(c, other agent.Class) bool {
	return c == "" || c == other || c == agent.Edit && other == agent.Write
}

// fitsRule evaluates the field "if" of Claude Code: one rule, TOOL or TOOL(PATTERN). Where the agent runs a hook to be on
// the safe side, so does this; rules about what else a tool may have are taken for met.
func fitsRule(h *agent.Hook, f *agent.Facts) bool {
	if h.If == "" {
		return true
	}
	tool, pattern, _ := strings.Cut(strings.TrimSuffix(h.If, ")"), "(")
	name, also := toolName(h.Agent.Scripts, f.Tool)
	edits := tool == "Edit" && has(agent.Edit, classOf(f.Tool)) // a rule for Edit is one for all tools that edit files
	if !edits && !slices.Contains(append(also, name), tool) {
		return false
	}
	if pattern == "" || pattern == "*" {
		return true
	}
	switch classOf(tool) {
	case agent.Shell:
		return fitsCommand(pattern, f.Command())
	case agent.Read, agent.Write, agent.Edit:
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
