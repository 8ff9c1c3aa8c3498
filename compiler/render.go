package compiler

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	stable  = phases.StabilityStable
	dynamic = phases.StabilityDynamic
)

// Render writes the prompt with what hooks contributed: sections that are merged and cut,
// in any order, and the turn's context set in rank order. It must be called once. An error
// is a section under an id that is taken or the compiler's own.
func (p *Prepared) Render(list []phases.MergedSection, contexts []phases.ContextEntry) (Output, error) {
	c := p.c
	if err := c.checkHooks(list); err != nil {
		return Output{}, err
	}
	c.out.Omitted, c.out.Diagnostics = []phases.Omitted{}, []phases.Diagnostic{}
	c.own[sections.DynamicContext].addContexts(contexts)
	placed := c.place(list, true)
	c.spans.spans = make([]manifest.Span, 0, 2*len(placed))
	for _, s := range placed {
		if reason := c.absence(s); reason != "" {
			c.omit(s, reason)
		} else if c.compose(s) {
			pieces := s.pieces()
			s.Fingerprint, s.Hash = c.sums(pieces[:]...)
			c.sections = append(c.sections, s)
		}
	}
	c.out.Omitted = append(c.out.Omitted, c.unoffered...)
	if c.noRequest != "" {
		c.out.Omitted = append(c.out.Omitted, phases.Omitted{ID: phases.RequestTools, Owner: phases.OwnerBuiltin, Reason: c.noRequest})
	}
	c.findUnstable()
	c.sort()
	c.write()
	c.fingerprints()
	c.rows()
	c.planCache()
	if c.in.KeepTexts {
		c.keepTexts()
	}
	return c.out, nil
}

// findUnstable compares the sections that were declared stable with those of the session's previous prompt. One that
// changed is reported and, with MoveUnstable, moved to the dynamic part, where the next prompt then finds it.
func (c *compilation) findUnstable() {
	if c.in.Previous == nil || !c.in.Previous.SameSession {
		return
	}
	previous := make(map[string]*manifest.OutlineSection, len(c.in.Previous.Sections))
	for i := range slices.Backward(c.in.Previous.Sections) { // the first of an id counts
		previous[c.in.Previous.Sections[i].SectionID] = &c.in.Previous.Sections[i]
	}
	sameKey := c.in.Previous.Key == manifest.MarkOf(manifest.KeyID(c.in.FingerprintKey))
	for _, s := range c.sections {
		before := previous[s.SectionID]
		if s.Stability != stable || before == nil {
			continue
		}
		changed := sameKey && before.Stability == stable && before.Hash != manifest.MarkOf(s.Hash)
		if changed {
			c.reportUnstable(s)
		}
		if c.in.MoveUnstable && (changed || before.Stability == dynamic) {
			s.Stability = dynamic
			s.pace = PaceTurn
		}
	}
}

func (c *compilation) reportUnstable(s *section) {
	what := "it stays in the stable part"
	if c.in.MoveUnstable {
		what = "it was moved to the dynamic part"
	}
	c.diagnose(s.SectionID, phases.SeverityWarning, codeUnstable,
		fmt.Sprintf("section %s is declared stable but changed within the session; %s", s.SectionID, what))
	if s.Owner != phases.OwnerBuiltin && s.Owner != phases.OwnerHost {
		c.out.Diagnostics[len(c.out.Diagnostics)-1].Plugin = s.Owner
	}
}

// sort brings the sections into the order in which they reach the model.
func (c *compilation) sort() {
	slices.SortStableFunc(c.sections, func(a, b *section) int {
		if d := cmp.Compare(part(&a.Section), part(&b.Section)); d != 0 || part(&a.Section) != partDynamic || c.in.Order != OrderCache {
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

func part(s *manifest.Section) int {
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

func speed(p Pace) int { return slices.Index([]Pace{PaceSession, PaceTurn, PaceCall}, p) }

// rows finishes the manifest's rows.
func (c *compilation) rows() {
	c.out.Sections = make([]manifest.Section, len(c.sections))
	for i, s := range c.sections {
		s.Position = i
		if c.in.CountTokens != nil {
			s.Tokens, s.Tokenizer = new(c.in.CountTokens(c.rendered[i])), cmp.Or(c.in.Tokenizer, unnamed)
		}
		s.SourceRefs = append([]phases.SourceRef{}, s.SourceRefs...)
		for j, r := range s.SourceRefs {
			s.SourceRefs[j] = phases.SourceRef{Kind: valid(r.Kind), ID: valid(r.ID), Label: valid(r.Label), Hash: valid(r.Hash)}
		}
		c.out.Sections[i] = s.Section
	}
}

// keepTexts outputs the rendered sections, each once.
func (c *compilation) keepTexts() {
	seen := make(map[string]bool, len(c.sections))
	for i, s := range c.sections {
		if !seen[s.Hash] {
			seen[s.Hash] = true
			c.out.Texts = append(c.out.Texts, manifest.Text{Hash: s.Hash, Text: c.rendered[i]})
		}
	}
}

const unnamed = "unnamed" // a tokenizer without a name

const (
	headingMark = "## "
	between     = join + Boundary + join // stands between the parts
)

// write writes the prompt. The full text is written once; parts and sections are substrings of it.
func (c *compilation) write() {
	a := newAssembly()
	size := 0
	for _, s := range c.sections {
		size += s.size() + len(join)
	}
	a.text.Grow(size + len(between))
	from := make([]int, len(c.sections))
	for i, s := range c.sections {
		from[i] = a.add(&s.Section, s.pieces())
	}
	c.out.Prompt = a.prompt()
	c.rendered = make([]string, len(c.sections))
	for i, s := range c.sections {
		if c.rendered[i] = s.text; part(&s.Section) <= partDynamic {
			c.rendered[i] = c.out.Prompt.FullText[from[i] : from[i]+s.size()]
		}
	}
	c.out.Prompt.Parts = c.rendered
}

// assembly puts a prompt together from sections in order.
type assembly struct {
	out  Prompt
	text strings.Builder
	last int // the part of the last section
	// join separates two sections, and between the two parts.
	join, between string
	// dynamicFrom is where the dynamic part begins; -1 if there is none.
	dynamicFrom int
}

func newAssembly() *assembly {
	return &assembly{out: Prompt{SystemMessages: []Message{}, UserMessages: []Message{}, Parts: []string{}}, join: join, between: between, dynamicFrom: -1}
}

// add adds a section and returns where it begins in the full text.
func (a *assembly) add(s *manifest.Section, pieces [4]string) int {
	before := a.last
	switch a.last = part(s); a.last {
	case partSystemMessages:
		a.out.SystemMessages = append(a.out.SystemMessages, Message{SectionID: s.SectionID, Role: "system", Text: pieces[0]})
		return 0
	case partUserMessages:
		a.out.UserMessages = append(a.out.UserMessages, Message{SectionID: s.SectionID, Role: "user", Text: pieces[0]})
		return 0
	}
	if a.text.Len() > 0 && before == partStable && a.last == partDynamic {
		a.text.WriteString(a.between)
	} else if a.text.Len() > 0 {
		a.text.WriteString(a.join)
	}
	if a.last == partDynamic && a.dynamicFrom < 0 {
		a.dynamicFrom = a.text.Len()
	}
	from := a.text.Len()
	for _, piece := range pieces {
		a.text.WriteString(piece)
	}
	return from
}

// prompt returns the prompt, its full text split into the parts.
func (a *assembly) prompt() Prompt {
	p := &a.out
	p.FullText = a.text.String()
	switch {
	case a.dynamicFrom < 0:
		p.StableText = p.FullText
	case a.dynamicFrom == 0:
		p.DynamicText = p.FullText
	default:
		p.StableText, p.DynamicText, p.Boundary = p.FullText[:a.dynamicFrom-len(a.between)], p.FullText[a.dynamicFrom:], strings.TrimSpace(a.between)
	}
	return *p
}

// pieces are the parts of a rendered section. A message has no heading.
func (s *section) pieces() [4]string {
	if part(&s.Section) > partDynamic {
		return [4]string{s.text}
	}
	return [4]string{headingMark, s.Title, join, s.text}
}

func (s *section) size() int {
	n := 0
	for _, piece := range s.pieces() {
		n += len(piece)
	}
	return n
}

// sums returns the fingerprint and the hash of all pieces together.
func (c *compilation) sums(pieces ...string) (fingerprint, hash string) {
	c.hasher.Reset()
	return c.further(pieces...)
}

// further is sums of the pieces before and these.
func (c *compilation) further(pieces ...string) (fingerprint, hash string) {
	for _, piece := range pieces {
		c.hasher.WriteString(piece)
	}
	return c.hasher.Sums()
}

func (c *compilation) fingerprints() {
	f, p := &c.out.Fingerprints, &c.out.Prompt
	f.FingerprintKeyID = manifest.KeyID(c.in.FingerprintKey)
	f.FingerprintStable, f.HashStable = c.sums(p.StableText)
	f.FingerprintFull, f.HashFull = c.further(strings.TrimPrefix(p.FullText, p.StableText))
	var pieces []string
	size, facts, inside := 0, false, false
	for _, s := range c.sections {
		if part(&s.Section) != partDynamic {
			continue
		}
		if s.SectionID == sections.ExtraSystem {
			facts = true
			continue
		}
		if inside = facts; len(pieces) > 0 {
			pieces = append(pieces, join)
			size += len(join)
		}
		all := s.pieces()
		pieces = append(pieces, all[:]...)
		size += s.size()
	}
	f.FingerprintDynamicWithoutExtraSystem, f.HashDynamicWithoutExtraSystem = c.sums(pieces...)
	if inside { // other sections stand behind extra_system
		f.FingerprintDynamic, f.HashDynamic = c.sums(p.DynamicText)
	} else {
		f.FingerprintDynamic, f.HashDynamic = c.further(p.DynamicText[size:])
	}
}

var errOrder = errors.New("it stands behind one that comes later in a prompt")

// Rebuild puts a prompt together again from its manifest and the texts of the sections, which text finds by
// hash (see [Output.Texts]). It has no cache plan. Compare [manifest.Hash] of its parts with the
// manifest to know that it is the one that was compiled, or observed. An error is one of text, or says that the sections are
// not in the order of a prompt.
func Rebuild(m *manifest.Manifest, text func(hash string) (string, error)) (Prompt, error) {
	a := newAssembly()
	if m.Observed != "" {
		a.join, a.between = "", ""
	}
	for i := range m.Sections {
		s := &m.Sections[i]
		rendered, err := text(s.Hash)
		if part(s) < a.last {
			err = errOrder
		}
		if err != nil {
			return Prompt{}, fmt.Errorf("rebuild: section %s: %w", s.SectionID, err)
		}
		a.add(s, [4]string{rendered})
		a.out.Parts = append(a.out.Parts, rendered)
	}
	return a.prompt(), nil
}
