package compiler

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Compile prepares a prompt and renders it with the sections and contexts of the input. It
// is a pure function and safe for concurrent use.
//
// An error is a mistake of the calling program: an unknown profile or order, duplicate ids
// of sections, a reserved or malformed id, or a custom section both before and after
// something. Texts never cause errors, but rows and diagnostics in the output.
func Compile(in Input) (Output, error) {
	p, err := Prepare(in)
	if err != nil {
		return Output{}, err
	}
	return p.Render(in.Sections, in.Contexts)
}

// Prepared is a prompt before hooks contribute to it: the host's texts are cut and the
// tools are settled. It renders once.
type Prepared struct {
	// Sections are the ids of the sections so far, in the order of the table.
	Sections []string
	// Offered are the tools of the request; see [Output.Offered].
	Offered []phases.MergedTool

	c *compilation
}

// Prepare does all that does not depend on the hooks of turn.pre_prompt_compile. Errors
// are those of [Compile], but for sections of hooks.
func Prepare(in Input) (*Prepared, error) {
	in.Profile = cmp.Or(in.Profile, phases.ProfileFull)
	in.Order = cmp.Or(in.Order, OrderReference)
	if err := check(&in); err != nil {
		return nil, err
	}
	l := in.Limits.withDefaults()
	c := &compilation{
		in:     &in,
		texts:  pool{each: l.SectionChars, left: l.TotalChars, eachCode: codeHostCut, totalCode: codeHostCut},
		files:  pool{each: l.FileChars, left: l.FilesChars, eachCode: codeFileCut, totalCode: codeFilesCut},
		hasher: digest.NewHasher(in.FingerprintKey),
	}
	c.out.Profile, c.out.Files = in.Profile, slices.Clone(in.Files)
	for i := range c.out.Files {
		c.out.Files[i].Chars = 0 // until its section is cut
	}
	if in.HooksOnly && !in.ToolCalling {
		c.omitTools()
	}
	c.makeOwn()
	p := &Prepared{Sections: []string{}, c: c}
	for _, s := range c.place(nil, false) {
		if c.absence(s) == "" && s.raw != "" {
			c.fit(s)
		}
		if c.absence(s) == "" && (s.body != "" || trim(s.final) != "") {
			p.Sections = append(p.Sections, s.SectionID)
		}
	}
	c.tools()
	p.Offered = c.out.Offered
	return p, nil
}

// compilation is the state between Prepare and the end of Render.
type compilation struct {
	in           *Input
	texts, files pool // the budgets
	hasher       *digest.Hasher
	// own are the sections that no hook fills, by id: the table's and the host's.
	own       map[string]*section
	unoffered []phases.Omitted // the tools that the host cannot offer
	noRequest string           // why request_tools is not offered although tools are hidden
	sections  []*section
	spans     contentMap
	rendered  []string // the texts of the sections with headings
	out       Output
}

// section is one section on its way through; the embedded row is filled step by step.
type section struct {
	manifest.Section
	row  *sections.Row
	pace Pace
	// final is text of hooks and our own; raw is still to be normalised, escaped and cut. A section may have both.
	final, raw string
	// parts are those of final, and contribution the only one; empty for text of the owner's.
	parts        []phases.TextPart
	contribution string
	note         string // our own sentence after raw
	pool         *pool  // the budget of raw; nil is the budget of host texts
	// body is what is kept of raw, and bodyCut how much that is.
	body     string
	bodyCut  phases.Truncation
	omitted  *phases.Omitted     // the row for a raw text that does not fit into its budget
	remarks  []phases.Diagnostic // about raw
	cuts     []phases.Truncation // of the parts of final, if there are several
	given    bool                // somebody brought it, maybe without text
	filtered bool                // a condition is not met: the text is not wanted
	text     string              // final, body and note
}

func check(in *Input) error {
	var errs []error
	if !slices.Contains([]phases.Profile{phases.ProfileFull, phases.ProfileMinimal, phases.ProfileNone}, in.Profile) {
		errs = append(errs, fmt.Errorf("profile %q is not full, minimal or none", in.Profile))
	}
	if in.Order != OrderReference && in.Order != OrderCache {
		errs = append(errs, fmt.Errorf("order %q is not reference or cache", in.Order))
	}
	if len(in.Custom) > maxCustom {
		return fmt.Errorf("compile: %d sections of the host; at most %d", len(in.Custom), maxCustom)
	}
	owners := make(map[string]string, len(in.Custom))
	for i := range in.Custom {
		s := &in.Custom[i]
		errs = append(errs, claim(owners, s.SectionID, "the host", sections.Lookup(s.SectionID) != nil), checkCustom(s))
	}
	return mistake(errs)
}

func (c *compilation) checkHooks(list []phases.MergedSection) error {
	var errs []error
	owners := make(map[string]string, len(list)+len(c.in.Custom))
	for i := range c.in.Custom {
		owners[c.in.Custom[i].SectionID] = "the host"
	}
	for i := range list {
		row := sections.Lookup(list[i].SectionID)
		errs = append(errs, claim(owners, list[i].SectionID, "plugin "+list[i].Owner, row != nil && !row.Hooks))
	}
	return mistake(errs)
}

func mistake(errs []error) error {
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	return nil
}

// claim gives an id to its one owner.
func claim(owners map[string]string, id, owner string, reserved bool) error {
	if !phases.ValidName(id) {
		return fmt.Errorf("section %q of %s: the id is not a name", id, owner)
	}
	if reserved {
		return fmt.Errorf("section %q of %s: the id is the compiler's own", id, owner)
	}
	if other, taken := owners[id]; taken {
		return fmt.Errorf("section %q of %s: the id is taken by %s", id, owner, other)
	}
	owners[id] = owner
	return nil
}

func checkCustom(s *CustomSection) error {
	switch {
	case s.Before != "" && s.After != "":
		return fmt.Errorf("section %q of the host: it stands both before %q and after %q", s.SectionID, s.Before, s.After)
	case !slices.Contains([]phases.Stability{"", stable, dynamic}, s.Stability):
		return fmt.Errorf("section %q of the host: stability %q is unknown", s.SectionID, s.Stability)
	case !slices.Contains([]phases.Placement{"", phases.PlacementSystem, phases.PlacementSystemMessage, phases.PlacementUserMessage}, s.Placement):
		return fmt.Errorf("section %q of the host: placement %q is unknown", s.SectionID, s.Placement)
	case s.Pace != "" && speed(s.Pace) < 0:
		return fmt.Errorf("section %q of the host: pace %q is unknown", s.SectionID, s.Pace)
	}
	return nil
}

// makeOwn makes the sections that no hook brings.
func (c *compilation) makeOwn() {
	c.own = make(map[string]*section, len(sections.All())+len(c.in.Custom))
	for i := range sections.All() {
		if r := &sections.All()[i]; !r.Hooks {
			s := newSection(r)
			c.source(s)
			c.own[r.ID] = s
		}
	}
	for i := range c.in.Custom {
		s := &c.in.Custom[i]
		row := sections.Row{ID: s.SectionID, Title: heading(s.Title, s.SectionID), Stability: cmp.Or(s.Stability, dynamic), Profile: phases.ProfileMinimal, Pace: string(s.Pace)}
		own := newSection(&row)
		own.Owner, own.Placement = phases.OwnerHost, placement(s.Placement)
		own.raw, own.given = s.Text, true
		own.SourceRefs = s.SourceRefs
		c.own[s.SectionID] = own
	}
}

func newSection(r *sections.Row) *section {
	return &section{
		Section: manifest.Section{SectionID: r.ID, Title: r.Title, Stability: r.Stability, Placement: phases.PlacementSystem, Owner: phases.OwnerBuiltin},
		row:     r, pace: Pace(r.Pace),
	}
}

// fromHook converts a merged section. A row of the table keeps its title and stability.
func fromHook(r *sections.Row, m *phases.MergedSection) *section {
	s := newSection(r)
	s.SectionID, s.Owner = m.SectionID, valid(m.Owner)
	if r.IsGroup() {
		s.Title = heading(m.Title, m.SectionID)
	}
	s.Placement = placement(m.Placement)
	s.final, s.given, s.OriginalChars, s.SourceRefs = m.Content, true, m.OriginalChars, m.SourceRefs
	if s.parts = m.Parts; len(m.Sources) == 1 {
		s.contribution = m.Sources[0].ContributionID
	}
	if m.Truncation != nil {
		s.Truncation = new(*m.Truncation)
	}
	return s
}

func placement(p phases.Placement) phases.Placement {
	if p == phases.PlacementSystemMessage || p == phases.PlacementUserMessage {
		return p
	}
	return phases.PlacementSystem
}

// absence is the reason why a section is not in the prompt, whatever its text; empty if there is none.
func (c *compilation) absence(s *section) string {
	order := []phases.Profile{phases.ProfileNone, phases.ProfileMinimal, phases.ProfileFull}
	switch {
	case slices.Index(order, c.in.Profile) < slices.Index(order, s.row.Profile):
		return ReasonProfile
	case s.filtered:
		return ReasonFiltered
	case c.in.HooksOnly && c.own[s.SectionID] == s && s.SectionID != sections.DynamicContext:
		return ReasonHostCannot
	}
	return ""
}

// place lists the sections that were brought, in the order of the table. final means that all hooks have contributed.
func (c *compilation) place(hooks []phases.MergedSection, final bool) []*section {
	list := make([]place, 0, len(sections.All())+len(hooks)+len(c.in.Custom))
	rows := byRow(hooks)
	for i := range sections.All() {
		r := &sections.All()[i]
		pace := Pace(r.Pace)
		for _, m := range rows[r.ID] {
			if c.in.HooksOnly { // its host has one place for all
				m.Placement = phases.PlacementSystem
			}
			list = append(list, place{id: m.SectionID, section: fromHook(r, m), pace: pace})
		}
		if r.IsGroup() || len(rows[r.ID]) == 0 {
			list = append(list, place{id: r.ID, section: c.own[r.ID], pace: pace})
		}
	}
	list = c.insertCustom(list, final)
	out := make([]*section, 0, len(list))
	for i := range list {
		if s := list[i].section; s != nil && (s.given || s.raw != "" || s.final != "") {
			out = append(out, s)
		}
	}
	return out
}

// byRow sorts sections of hooks by priority, plugin and id, and groups them by their row.
func byRow(list []phases.MergedSection) map[string][]*phases.MergedSection {
	sorted := slices.SortedFunc(slices.Values(list), func(a, b phases.MergedSection) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), strings.Compare(a.Owner, b.Owner), strings.Compare(a.SectionID, b.SectionID))
	})
	rows := map[string][]*phases.MergedSection{}
	for i := range sorted {
		m := &sorted[i]
		id := sections.GroupDynamic
		if sections.Lookup(m.SectionID) != nil {
			id = m.SectionID
		} else if m.Stability == stable {
			id = sections.GroupStable
		}
		rows[id] = append(rows[id], m)
	}
	return rows
}
