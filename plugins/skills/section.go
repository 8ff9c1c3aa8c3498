package skills

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/skillset"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

const (
	sectionID    = "skills_runtime"
	sectionTitle = "Skills Runtime"

	introRead = "Skills are instructions for particular kinds of work. When a task fits one of the descriptions below, " +
		"call the tool " + toolName + " with that slug, exactly as it is written here, before you begin, and follow what it returns. " +
		"A description does not stand in for a skill's text."
	introNoTool = "Skills are instructions for particular kinds of work. In this turn there is no tool to read them with: " +
		"only those whose full text stands below can be followed."
)

// answer is the handler of the hook "section".
func (s *skills) answer(ctx context.Context, call *sdk.Call, in *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
	set := s.library.set(&call.Context)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // nobody waits for it any more
	}
	// If the names of the tools are withheld, it suffices that the model can call any.
	callable := in.ToolCalling && (slices.Contains(in.AvailableTools, toolName) || slices.Contains(call.Withheld, "available_tools"))
	c := composer{set: set, budget: s.config.MaxChars, callable: callable}
	if call.Budget.MaxChars > 0 {
		c.budget = min(c.budget, call.Budget.MaxChars)
	}
	c.list()
	if c.fits {
		c.bodies(s.trails.match(&call.Context, set), s.config.MaxActiveBodies)
	}
	return c.out, nil
}

// composer makes the fragments of one section, so small that the host never has to cut them.
type composer struct {
	set      *skillset.Set
	callable bool
	budget   int
	fits     bool
	out      []phases.Contribution
}

// list adds the list and all diagnostics. Nothing that a session does changes it.
func (c *composer) list() {
	common := phases.Common{ContributionID: "list", Diagnostics: diagnostics(c.set.Diagnostics)}
	var text string
	var cut *phases.SelfCut
	if len(c.set.Skills) > 0 {
		if text, cut = c.fitted(); text == "" {
			common.Diagnostics = append(common.Diagnostics, phases.Diagnostic{
				Code: "budget_too_small", Severity: phases.SeverityWarning, SafeForUser: true,
				Message: fmt.Sprintf("a list of %d skills does not fit into %d characters", len(c.set.Skills), c.budget),
			})
		}
	}
	switch {
	case text != "":
		c.fits = true
		c.budget -= size(text)
		section := &phases.PromptSection{Common: common, Content: text, Cut: cut}
		for i := range c.set.Skills {
			section.SourceRefs = append(section.SourceRefs, sourceRef(&c.set.Skills[i]))
		}
		c.add(section)
	case len(common.Diagnostics) > 0:
		c.out = append(c.out, &phases.Noop{Common: common})
	}
}

// fitted is the list with as much of each description as fits or, if not even the slugs fit, as many of them as do.
func (c *composer) fitted() (string, *phases.SelfCut) {
	full := size(c.render(math.MaxInt, len(c.set.Skills)))
	for _, limit := range []int{math.MaxInt, 512, 256, 128, 64, 0} { // of each description
		text := c.render(limit, len(c.set.Skills))
		if n := size(text); n <= c.budget {
			return text, selfCut(full, n)
		}
	}
	for n := len(c.set.Skills) - 1; n > 0; n-- {
		if text := c.render(0, n); size(text) <= c.budget {
			return text, selfCut(full, size(text))
		}
	}
	return "", nil
}

// selfCut reports what was cut. The line that says so may be longer than what it stands for.
func selfCut(full, kept int) *phases.SelfCut {
	if kept == full {
		return nil
	}
	return &phases.SelfCut{Original: max(full, kept+1), Kept: kept}
}

func (c *composer) render(limit, n int) string {
	var b strings.Builder
	intro := introNoTool
	if c.callable {
		intro = introRead
	}
	b.WriteString(intro + "\n")
	for i := range c.set.Skills[:n] {
		s := &c.set.Skills[i]
		b.WriteString("\n- " + s.Slug)
		if limit > 0 {
			description, _ := sdk.CutLine(s.Description, limit)
			b.WriteString(": " + escape(description))
		}
	}
	if more := len(c.set.Skills) - n; more > 0 {
		fmt.Fprintf(&b, "\n\n%d more skills are not listed: the text budget is used up.", more)
	}
	return b.String()
}

// bodies adds the full texts of the first matching skills, whole or not at all, and names the others.
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
	if size(text) <= c.budget {
		c.add(&phases.PromptSection{Common: phases.Common{ContributionID: "hint"}, Content: text})
	}
}

func (c *composer) add(p *phases.PromptSection) {
	p.SectionID, p.Title, p.Stability = sectionID, sectionTitle, phases.StabilityDynamic
	c.out = append(c.out, p)
}

func (c *composer) body(s *skillset.Skill) bool {
	text := escape(s.Body)
	open := "The full text of the skill " + s.Slug + ", because its paths match what you work on. Paths in it are relative to " +
		sdk.PlainName(path.Dir(s.Label)) + ".\n\n<SKILL>"
	frame := phases.Frame{Open: open, Close: "</SKILL>"}
	need := sdk.SectionSize(frame, text)
	if need > c.budget {
		return false
	}
	c.budget -= need
	c.add(&phases.PromptSection{
		Common: phases.Common{ContributionID: "body/" + s.Slug}, Content: text, Frame: &frame, SourceRefs: []phases.SourceRef{sourceRef(s)},
	})
	return true
}

func size(text string) int { return sdk.SectionSize(phases.Frame{}, text) }

// escape escapes the tag of a full text's frame. The host does so in the frame's own body; a text in the list has no
// frame.
func escape(text string) string {
	escaped, _ := sdk.Escaper{Tags: []string{"SKILL"}}.Escape(text)
	return escaped
}

// sourceRef names the file of a skill. The wire refuses text that reorders itself, so paths are printed as in the
// prompt.
func sourceRef(s *skillset.Skill) phases.SourceRef {
	label := sdk.PlainName(s.Label)
	return phases.SourceRef{Kind: "file", ID: sdk.PlainName(s.Dir) + "/" + path.Base(label), Label: label}
}

// diagnostics never hold text of a file, so anyone may see them.
func diagnostics(list []skillset.Diagnostic) []phases.Diagnostic {
	var out []phases.Diagnostic
	for _, d := range list {
		place := sdk.PlainName(d.Path)
		if d.Line > 0 {
			place += fmt.Sprint(":", d.Line)
		}
		out = append(out, phases.Diagnostic{Code: string(d.Code), Severity: d.Severity, Message: place + ": " + d.Detail, SafeForUser: true})
	}
	return out
}
