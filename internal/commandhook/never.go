package commandhook

import (
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// moreTools are tools of an agent that belong to no class of Grapnel's.
//
//nolint:gochecknoglobals // an immutable table
var moreTools = map[Format][]string{
	Claude: {"Task", "Agent", "TodoWrite", "Skill", "LS", "NotebookRead", "BashOutput", "KillShell", "ExitPlanMode", "AskUserQuestion", "SlashCommand", "ToolSearch"},
	Gemini: {"list_directory", "read_many_files", "save_memory", "write_todos", "activate_skill"},
	Cursor: {"Task", "Delete", "List", "ReadLints", "Fetch"},
}

// values are what matchers of other moments are tested against, by their agent and here.
//
//nolint:gochecknoglobals // an immutable table
var values = map[Moment][]string{
	Session: {"startup", "resume", "clear", "compact", "fork"}, Compact: {"manual", "auto"}, Compacted: {"manual", "auto"}, TurnFailed: {"unknown"},
}

// Never says why the hook's matcher, a name in it, or its rule fits nothing that its agent has; it is empty if all may fit.
func (h *Handler) Never() (why []string) {
	onCommand := h.Format == Cursor && h.event.class == shell // any text may be one
	switch known, others := values[h.Moment]; {
	case h.If != "":
		tool, _, _ := strings.Cut(h.If, "(")
		if text := h.neverName(tool); text != "" {
			why = append(why, fmt.Sprintf("the rule %.120q: %s", h.If, text))
		}
		fallthrough
	case h.match.exact == nil && h.match.regexp == nil, onCommand:
		return why
	case h.Moment == Call || h.Moment == Result || h.Moment == Failed:
		return append(why, h.neverTool()...)
	case others && !slices.ContainsFunc(known, h.match.accepts):
		return []string{fmt.Sprintf("the matcher %.120q fits none of %s", h.Matcher, strings.Join(known, ", "))}
	case h.event.value != "" && !h.match.accepts(h.event.value):
		return []string{fmt.Sprintf("the matcher %.120q does not fit %s, which it is tested against", h.Matcher, h.event.value)}
	}
	return nil
}

// neverTool judges the names of a list, or an expression as a whole.
func (h *Handler) neverTool() (why []string) {
	names := h.match.exact
	if names == nil {
		if name := strings.TrimSuffix(strings.TrimPrefix(h.Matcher, "^"), "$"); h.bounded() && codexNames().MatchString(name) {
			names = strings.Split(name, "|")
		}
	}
	if names == nil {
		if text := h.neverExpression(); text != "" {
			return []string{fmt.Sprintf("the matcher %.120q: %s", h.Matcher, text)}
		}
		return nil
	}
	for _, name := range names {
		if text := h.neverName(name); text != "" {
			why = append(why, fmt.Sprintf("the matcher %.120q: %s", h.Matcher, text))
		}
	}
	if len(names) == 0 {
		why = append(why, fmt.Sprintf("the matcher %.120q names no tool", h.Matcher))
	}
	return why
}

// bounded reports whether an expression is for whole names.
func (h *Handler) bounded() bool {
	return h.Format == Copilot || strings.HasPrefix(h.Matcher, "^") && strings.HasSuffix(h.Matcher, "$") && !strings.Contains(h.Matcher, "|")
}

func (h *Handler) ownTools() []string {
	rules := formats[h.Format]
	own := slices.Concat(slices.Collect(maps.Values(rules.tools)), rules.more, moreTools[h.Format])
	if h.Format == Codex {
		own = append(own, "Write", "Edit") // its aliases
	}
	if h.Format == Copilot && h.pascal() {
		own = append(own, (&Handler{Format: Claude}).ownTools()...)
	}
	slices.Sort(own)
	return own
}

// neverName says why no tool has a name; empty if one may: agents get new tools.
func (h *Handler) neverName(name string) string {
	own := h.ownTools()
	if slices.Contains(own, name) {
		return ""
	}
	for _, tool := range own {
		if strings.EqualFold(tool, name) {
			return fmt.Sprintf("no tool is called %.80q; it is %s", name, tool)
		}
	}
	server, isMCP := strings.CutPrefix(name, "mcp__")
	switch {
	case isMCP && !strings.Contains(server, "__") && h.Format != Gemini && h.Format != Cursor:
		return fmt.Sprintf("%.80q names a server and no tool; all of its tools are %.80s__.*", name, name)
	case strings.TrimFunc(name, isNameRune) != "" || name == "":
		return fmt.Sprintf("no tool has such a name as %.80q", name)
	}
	return ""
}

// neverExpression says why no name fits an expression; empty if one may.
func (h *Handler) neverExpression() string {
	own := h.ownTools()
	if slices.ContainsFunc(own, h.match.accepts) {
		return ""
	}
	parsed, err := syntax.Parse(h.match.regexp.String(), syntax.Perl)
	if err != nil {
		return ""
	}
	tool, _, isRule := strings.Cut(h.Matcher, "(")
	isRule = isRule && slices.Contains(own, tool)
	switch {
	case isRule && h.Format == Claude:
		return `no tool has such a name; rules such as Bash(git *) go into "if"`
	case isRule || needsOther(parsed.Simplify()):
		return "no tool has such a name"
	}
	folded, err := regexp.Compile("(?i:" + h.match.regexp.String() + ")")
	if i := slices.IndexFunc(own, func(tool string) bool { return err == nil && folded.MatchString(tool) }); i >= 0 {
		return "it fits no tool as names are written; there is " + own[i]
	}
	return ""
}

// needsOther reports whether whatever fits an expression has a character that no tool's name has.
func needsOther(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpNoMatch:
		return true
	case syntax.OpLiteral:
		return slices.ContainsFunc(re.Rune, func(r rune) bool { return !isNameRune(r) })
	case syntax.OpCharClass:
		for r := rune('!'); r <= '~'; r++ {
			if isNameRune(r) && inClass(re.Rune, r) {
				return false
			}
		}
		return true
	case syntax.OpConcat:
		return slices.ContainsFunc(re.Sub, needsOther)
	case syntax.OpAlternate:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !needsOther(sub) })
	case syntax.OpCapture, syntax.OpPlus:
		return needsOther(re.Sub[0])
	default:
		return false
	}
}

func inClass(ranges []rune, r rune) bool {
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i] <= r && r <= ranges[i+1] {
			return true
		}
	}
	return false
}

// isNameRune reports whether names of tools have a character.
func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:/", r)
}
