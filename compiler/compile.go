package compiler

import (
	"cmp"
	"slices"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Compile makes a prompt of sections. It is a pure function and safe for
// concurrent use.
//
// An error means that the input makes no sense, which is a mistake of the
// program that calls: an unknown profile or order, two sections with one id, a
// hook's section under an id that is the compiler's own, a custom section whose
// id is no name or that stands both before and after something. No text, however odd
// or long, is an error; what becomes of it is in the output's rows and
// diagnostics.
func Compile(in Input) (Output, error) {
	in.Profile = cmp.Or(in.Profile, phases.ProfileFull)
	in.Order = cmp.Or(in.Order, OrderReference)
	if err := check(&in); err != nil {
		return Output{}, err
	}
	l := in.Limits.withDefaults()
	c := &compilation{
		in:     &in,
		texts:  pool{each: l.SectionChars, left: l.TotalChars, eachCode: CodeHostCut, totalCode: CodeHostCut},
		files:  pool{each: l.FileChars, left: l.FilesChars, eachCode: CodeFileCut, totalCode: CodeFilesCut},
		hasher: digest.NewHasher(in.FingerprintKey),
	}
	c.run()
	return c.out, nil
}

// compilation is the state of one Compile.
type compilation struct {
	in *Input
	// texts and files are the budgets of what is cut here.
	texts, files pool
	hasher       *digest.Hasher
	// sections are those that are still in; first in the table's order.
	sections []*section
	// rendered are the texts of the sections, headings included, once they are
	// part of the prompt.
	rendered []string
	out      Output
}

// section is one section on its way through. The embedded row is filled step
// by step.
type section struct {
	manifest.Section
	least phases.Profile
	pace  Pace
	// final is text that needs no cut: that of hooks, and our own. raw is text
	// that is still to be normalised, escaped and cut. A section may have both.
	final, raw string
	// note is our own sentence behind raw.
	note string
	// file is the file of the runtime home that raw is the text of, if any.
	file string
	// pool is the budget that raw is cut by; nil means that of host texts.
	pool *pool
	// cuts describe the parts that final was made of, where there are several.
	cuts []phases.Truncation
	// given says that somebody brought it, even if it has no text.
	given bool
	// filtered says that a condition is not met: the text is there but not
	// wanted.
	filtered bool
	// text is what comes of final, raw and note.
	text string
}

// run is the order of work.
func (c *compilation) run() {
	c.gather()
	c.listFiles()
	c.choose()
	c.out.Profile = c.in.Profile
	for _, s := range c.sections {
		s.Fingerprint = c.fingerprint(s)
	}
	c.findUnstable()
	c.sort()
	c.render()
	c.fingerprints()
	c.rows()
	c.tools()
	c.planCache()
	if c.in.KeepTexts {
		c.keepTexts()
	}
	c.finish()
}

// gather lists the sections that are there, in the table's order.
func (c *compilation) gather() {
	list := c.place()
	c.sections = make([]*section, 0, len(list))
	for _, p := range list {
		if s := p.section; s != nil && (s.given || s.raw != "" || s.final != "") {
			c.sections = append(c.sections, s)
		}
	}
}

// choose leaves out what the profile, a condition, blankness or a budget keeps
// away, and makes the text of the others.
func (c *compilation) choose() {
	c.sections = slices.DeleteFunc(c.sections, func(s *section) bool {
		switch {
		case !keeps(c.in.Profile, s.least):
			c.leaveOut(s, ReasonProfile)
		case s.filtered:
			c.leaveOut(s, ReasonFiltered)
		default:
			return !c.compose(s)
		}
		return true
	})
}

// sort brings the sections into the order in which they reach the model.
func (c *compilation) sort() {
	slices.SortStableFunc(c.sections, func(a, b *section) int {
		if d := cmp.Compare(part(a), part(b)); d != 0 || part(a) != partDynamic || c.in.Order != OrderCache {
			return d
		}
		return cmp.Compare(speed(a.pace), speed(b.pace))
	})
}

// The parts of a prompt, in order.
const (
	partStable = iota
	partDynamic
	partSystemMessages
	partUserMessages
)

func part(s *section) int { return partOf(&s.Section) }

// partOf returns the part that a section stands in.
func partOf(s *manifest.Section) int {
	switch {
	case s.Placement == phases.PlacementSystemMessage:
		return partSystemMessages
	case s.Placement == phases.PlacementUserMessage:
		return partUserMessages
	case s.Stability == stable:
		return partStable
	default:
		return partDynamic
	}
}

func speed(p Pace) int {
	return slices.Index([]Pace{PaceSession, PaceTurn, PaceCall}, p)
}

// rows finishes the manifest's rows.
func (c *compilation) rows() {
	c.out.Sections = make([]manifest.Section, len(c.sections))
	var counts []int
	if c.in.CountTokens != nil {
		counts = make([]int, len(c.sections))
	}
	for i, s := range c.sections {
		s.Position = i
		if counts != nil {
			counts[i] = c.in.CountTokens(c.rendered[i])
			s.Tokens, s.Tokenizer = &counts[i], cmp.Or(c.in.Tokenizer, "unnamed")
		}
		s.SourceRefs = cleanRefs(s.SourceRefs)
		c.out.Sections[i] = s.Section
	}
}

// keepTexts hands out what was rendered.
func (c *compilation) keepTexts() {
	seen := make(map[string]bool, len(c.sections))
	for i, s := range c.sections {
		if !seen[s.Fingerprint] {
			seen[s.Fingerprint] = true
			c.out.Texts = append(c.out.Texts, manifest.Text{Fingerprint: s.Fingerprint, Text: c.rendered[i]})
		}
	}
}

// finish makes lists of what nothing was put in.
func (c *compilation) finish() {
	if c.out.LeftOut == nil {
		c.out.LeftOut = []phases.LeftOut{}
	}
	if c.out.Diagnostics == nil {
		c.out.Diagnostics = []phases.Diagnostic{}
	}
}

// cleanRefs copies references, so that any text in them can be recorded.
func cleanRefs(refs []phases.SourceRef) []phases.SourceRef {
	out := make([]phases.SourceRef, len(refs))
	for i, r := range refs {
		out[i] = phases.SourceRef{Kind: valid(r.Kind), ID: valid(r.ID), Label: valid(r.Label)}
	}
	return out
}
