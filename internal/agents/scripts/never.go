package scripts

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// values are what matchers of steps without a tool are tested against.
//
//nolint:gochecknoglobals // an immutable table
var values = map[agent.Step][]string{
	agent.StepSessionStart: {"startup", "resume", "clear", "compact", "fork"}, agent.StepFailed: {"unknown"},
	agent.StepCompact: {"manual", "auto"}, agent.StepOnlyCompact: {"manual", "auto"}, agent.StepCompacted: {"manual", "auto"},
}

// Never says why the hook's matcher, a name in it, or its rule fits nothing that its agent has; it is empty if all may fit.
func Never(h *agent.Hook) (why []string) {
	switch known, others := values[h.Step]; {
	case h.If != "":
		tool, _, _ := strings.Cut(h.If, "(")
		if text := neverName(h, tool); text != "" {
			why = append(why, fmt.Sprintf("the rule %.120q: %s", h.If, text))
		}
		fallthrough
	case h.Match.Exact == nil && h.Match.Regexp == nil, onCommand(h): // any text may be a command
		return why
	case h.Step.OfTool():
		return append(why, neverTool(h)...)
	case others && !slices.ContainsFunc(known, h.Match.Accepts):
		return []string{fmt.Sprintf("the matcher %.120q fits none of %s", h.Matcher, strings.Join(known, ", "))}
	case h.Rules.Value != "" && !h.Match.Accepts(h.Rules.Value):
		return []string{fmt.Sprintf("the matcher %.120q does not fit %s, which it is tested against", h.Matcher, h.Rules.Value)}
	}
	return nil
}

// neverTool judges the names of a list, or an expression as a whole.
func neverTool(h *agent.Hook) (why []string) {
	say := func(text string) {
		if text != "" {
			why = append(why, fmt.Sprintf("the matcher %.120q: %s", h.Matcher, text))
		}
	}
	switch names := h.Match.Exact; {
	case names == nil:
		say(neverExpression(h))
	case len(names) == 0:
		why = append(why, fmt.Sprintf("the matcher %.120q names no tool", h.Matcher))
	default:
		for _, name := range names {
			say(neverName(h, name))
		}
	}
	return why
}

// ownTools are the names of the agent's tools, and of those whose names the hook's payloads have.
func ownTools(h *agent.Hook) (own []string) {
	for _, s := range []*agent.Scripts{h.Agent.Scripts, h.Names} {
		own = append(slices.AppendSeq(slices.AppendSeq(own, maps.Values(s.Tools)), maps.Keys(s.More)), s.Others...)
	}
	slices.Sort(own)
	return own
}

// notInNames is what the name of a tool does not have.
var notInNames = lazyregexp.New(`[^\w.:/-]`)

// neverName says why no tool has a name; empty if one may: agents get new tools.
func neverName(h *agent.Hook, name string) string {
	own := ownTools(h)
	if slices.Contains(own, name) {
		return ""
	}
	if i := slices.IndexFunc(own, func(tool string) bool { return strings.EqualFold(tool, name) }); i >= 0 {
		return fmt.Sprintf("no tool is called %.80q; it is %s", name, own[i])
	}
	server, isMCP := strings.CutPrefix(name, "mcp__")
	switch {
	case isMCP && !strings.Contains(server, "__") && h.Agent.Scripts.MCPName == nil:
		return fmt.Sprintf("%.80q names a server and no tool; all of its tools are %.80s__.*", name, name)
	case notInNames().MatchString(name) || name == "":
		return fmt.Sprintf("no tool has such a name as %.80q", name)
	}
	return ""
}

// neverExpression says why no name fits an expression; empty if one may.
func neverExpression(h *agent.Hook) string {
	own := ownTools(h)
	if slices.ContainsFunc(own, h.Match.Accepts) {
		return ""
	}
	if tool, _, isRule := strings.Cut(h.Matcher, "("); isRule && slices.Contains(own, tool) {
		return `no tool has such a name; rules such as Bash(git *) go into "if"`
	}
	folded, err := regexp.Compile("(?i:" + h.Match.Regexp.String() + ")")
	if i := slices.IndexFunc(own, func(tool string) bool { return err == nil && folded.MatchString(tool) }); i >= 0 {
		return "it fits no tool as names are written; there is " + own[i]
	}
	return ""
}
