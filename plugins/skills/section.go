package skills

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/lenient"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/skills/skillset"
	"github.com/grapnelhq/grapnel/sdk"
)

// The section and the texts around its parts.
const (
	sectionID    = "skills_runtime"
	sectionTitle = "Skills Runtime"

	introRead = "Skills are instructions for particular kinds of work. When a task fits one of the descriptions below, " +
		"call the tool " + toolName + " with that slug, exactly as it is written here, before you begin, and follow what it returns. " +
		"A description does not stand in for a skill's text."
	introNoTool = "Skills are instructions for particular kinds of work. In this turn there is no tool to read them with: " +
		"only those whose full text stands below can be followed."

	frameClose = "</SKILL>"
)

// The host's own marks, which it escapes with one character each.
const (
	hostBoundary = "<!-- grapnel:dynamic -->"
	hostMarker   = "[ truncated : kept"
)

// descriptionCaps are the lengths to which all descriptions are shortened, one
// after the other, until the list fits.
func descriptionCaps() []int { return []int{math.MaxInt, 512, 256, 128, 64, 0} }

// answer is the handler of the hook "section".
func (s *skills) answer(ctx context.Context, call *sdk.Call, in *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
	set := s.library.set(&call.Context)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // nobody waits for it any more
	}
	c := composer{set: set, room: s.settings.MaxChars, callable: callable(call, in)}
	if call.Room.MaxChars > 0 {
		c.room = min(c.room, call.Room.MaxChars)
	}
	c.list()
	if c.fits {
		c.bodies(s.trails.match(&call.Context, set), s.settings.MaxActiveBodies)
	}
	return c.out, nil
}

// callable reports whether the model can call read_skill. Where the names of the
// tools are withheld, that they can be called at all has to do.
func callable(call *sdk.Call, in *phases.PrePromptCompileInput) bool {
	return in.ToolCalling && (slices.Contains(in.AvailableTools, toolName) || slices.Contains(call.Withheld, "available_tools"))
}

// composer makes the fragments of one section: the list, the full texts, and the
// names of those that had no place. The host joins them and never has to cut.
type composer struct {
	set      *skillset.Set
	callable bool
	// room is what is left of the characters.
	room int
	fits bool
	out  []phases.Contribution
}

// list adds the list, and all diagnostics. Nothing that a session does changes it.
func (c *composer) list() {
	common := phases.Common{ContributionID: "list", Diagnostics: diagnostics(c.set.Diagnostics)}
	var text string
	var cut *phases.SelfCut
	if len(c.set.Skills) > 0 {
		if text, cut = c.fitted(); text == "" {
			common.Diagnostics = append(common.Diagnostics, phases.Diagnostic{
				Code: "no_room", Severity: phases.SeverityWarning, SafeForUser: true,
				Message: fmt.Sprintf("%d skills, and no room for a list of them in %d characters", len(c.set.Skills), c.room),
			})
		}
	}
	switch {
	case text != "":
		c.fits = true
		c.room -= size(text)
		section := &phases.PromptSection{
			Common: common, SectionID: sectionID, Title: sectionTitle, Stability: phases.StabilityDynamic, Content: text, Cut: cut,
		}
		for i := range c.set.Skills {
			section.SourceRefs = append(section.SourceRefs, sourceRef(&c.set.Skills[i]))
		}
		c.out = append(c.out, section)
	case len(common.Diagnostics) > 0:
		c.out = append(c.out, &phases.Noop{Common: common})
	}
}

// fitted is the list with as much of each description as there is room for, and,
// where not even the slugs have room, as many of them as do.
func (c *composer) fitted() (string, *phases.SelfCut) {
	full := size(c.render(math.MaxInt, len(c.set.Skills)))
	for _, limit := range descriptionCaps() {
		text := c.render(limit, len(c.set.Skills))
		if n := size(text); n <= c.room {
			return text, selfCut(full, n)
		}
	}
	for n := len(c.set.Skills) - 1; n > 0; n-- {
		if text := c.render(0, n); size(text) <= c.room {
			return text, selfCut(full, size(text))
		}
	}
	return "", nil
}

// selfCut reports what the plugin left away, nil for nothing. The line that says
// so may be longer than what it stands for.
func selfCut(full, kept int) *phases.SelfCut {
	if kept == full {
		return nil
	}
	return &phases.SelfCut{Original: max(full, kept+1), Kept: kept}
}

// render is the list of the first n skills with shortened descriptions.
func (c *composer) render(limit, n int) string {
	var b strings.Builder
	if b.WriteString(introNoTool); c.callable {
		b.Reset()
		b.WriteString(introRead)
	}
	b.WriteByte('\n')
	for i := range c.set.Skills[:n] {
		s := &c.set.Skills[i]
		b.WriteString("\n- " + s.Slug)
		if limit > 0 {
			b.WriteString(": " + escape(shorten(s.Description, limit)))
		}
	}
	if more := len(c.set.Skills) - n; more > 0 {
		fmt.Fprintf(&b, "\n\n%d more skills are not listed, for want of room.", more)
	}
	return b.String()
}

// shorten keeps at most limit characters, up to the end of a word if there is
// one in the second half.
func shorten(s string, limit int) string {
	if len(s) <= limit || utf8.RuneCountInString(s) <= limit {
		return s
	}
	head := string([]rune(s)[:limit-1])
	if i := strings.LastIndexByte(head, ' '); i >= len(head)/2 {
		head = head[:i]
	}
	return strings.TrimRight(head, " ") + "…"
}

// bodies adds the full texts of the first skills that match, whole or not at all,
// and names the others.
func (c *composer) bodies(slugs []string, most int) {
	var rest []string
	for _, slug := range slugs {
		s := c.set.Find(slug)
		if s == nil || s.Body == "" {
			continue
		}
		if most == 0 || !c.body(s) {
			rest = append(rest, slug)
			continue
		}
		most--
	}
	if len(rest) == 0 || !c.callable {
		return
	}
	text := "These skills are about what you work on, too; read them with " + toolName + " before you go on: " + strings.Join(rest, ", ")
	if size(text) <= c.room {
		c.out = append(c.out, &phases.PromptSection{
			Common: phases.Common{ContributionID: "hint"}, SectionID: sectionID, Title: sectionTitle,
			Stability: phases.StabilityDynamic, Content: text,
		})
	}
}

// body adds one full text, if there is room for it.
func (c *composer) body(s *skillset.Skill) bool {
	text := escape(s.Body)
	open := "The full text of the skill " + s.Slug + ", because its paths match what you work on. Paths in it are relative to " +
		skillset.PrintPath(path.Dir(s.Label)) + ".\n\n<SKILL>"
	need := size(text) + size(open) + size(frameClose) + 2
	if need > c.room {
		return false
	}
	c.room -= need
	c.out = append(c.out, &phases.PromptSection{
		Common: phases.Common{ContributionID: "body/" + s.Slug}, SectionID: sectionID, Title: sectionTitle,
		Stability: phases.StabilityDynamic, Content: text, Frame: &phases.Frame{Open: open, Close: frameClose},
		SourceRefs: []phases.SourceRef{sourceRef(s)},
	})
	return true
}

// size is the length of a text as the host will count it: it escapes its own
// marks. Counting too many costs a character each, and no more.
func size(text string) int {
	return utf8.RuneCountInString(text) + strings.Count(text, hostBoundary) + lenient.Lines(text, hostMarker)
}

// sourceRef names the file that a text comes from. The wire takes no text that
// reorders itself, so paths are printed as in the prompt.
func sourceRef(s *skillset.Skill) phases.SourceRef {
	label := skillset.PrintPath(s.Label)
	return phases.SourceRef{Kind: "file", ID: skillset.PrintPath(s.Dir) + "/" + path.Base(label), Label: label}
}

// diagnostics are the set's, as remarks on the contribution: they never hold text
// of a file, so anyone may see them.
func diagnostics(list []skillset.Diagnostic) []phases.Diagnostic {
	var out []phases.Diagnostic
	for _, d := range list {
		out = append(out, phases.Diagnostic{
			Code: string(d.Code), Severity: phases.Severity(d.Severity), Message: skillset.PrintPath(d.Path) + ": " + d.Detail, SafeForUser: true,
		})
	}
	return out
}
