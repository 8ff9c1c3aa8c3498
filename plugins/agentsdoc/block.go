package agentsdoc

import (
	"cmp"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/watch"
)

// The section.
const (
	sectionID    = "agents_md"
	sectionTitle = "AGENTS.md"
)

// block is what is said of a working folder at the beginning: what the hook
// "prompt" contributes, and what that came from.
type block struct {
	// contribution is nil where there is nothing to say.
	contribution phases.Contribution
	// chars is the length of the whole in Unicode scalar values.
	chars int

	found     chain.Chain
	rendering chain.Rendering
	// seen is what was looked at, to find out whether it is still so.
	seen watch.Seen
}

// TextRoom returns how many characters the instruction text may have where the
// whole may have limit: the frame and the two newlines within it take the rest.
// A limit of 0 does not bound, as in [phases.Room]; one that the frame does not
// fit into leaves no room.
func TextRoom(limit int, f chain.Frame) int {
	if limit == 0 {
		return math.MaxInt
	}
	return max(0, limit-utf8.RuneCountInString(f.Open)-utf8.RuneCountInString(f.Close)-len("\n\n"))
}

// newBlock finds and renders the files for a folder.
func newBlock(view chain.FS, o chain.Options, dir string, room phases.Room) *block {
	trace := watch.NewTrace(view)
	b := &block{found: chain.Resolve(trace, dir, o)}
	b.seen = relevant(&b.found, trace.Seen())
	b.rendering = chain.RenderForHost(b.found, chain.Budget{Bytes: o.Budget.Total, Chars: TextRoom(room.MaxChars, b.found.Frame())})
	b.chars = utf8.RuneCountInString(b.rendering.Message())
	b.contribution = contribution(&b.found, &b.rendering)
	return b
}

// fits reports whether the block is within what the host takes.
func (b *block) fits(room phases.Room) bool { return room.MaxChars == 0 || b.chars <= room.MaxChars }

// reply hands out a copy: what a handler returns belongs to the host.
func (b *block) reply() []phases.Contribution {
	if b == nil || b.contribution == nil {
		return nil
	}
	return []phases.Contribution{phases.CloneContribution(b.contribution)}
}

// contribution is the section for a text; a noop with diagnostics where only
// those are left; nil if there is nothing to say.
func contribution(found *chain.Chain, r *chain.Rendering) phases.Contribution {
	common := phases.Common{Diagnostics: diagnostics(found.Diagnostics, r.Diagnostics)}
	switch {
	case r.Text != "":
		return section(r, common)
	case len(common.Diagnostics) > 0:
		return &phases.Noop{Common: common}
	default:
		return nil
	}
}

// section is the contribution for a text. In the system prompt it has a frame,
// which the host protects. A message is given whole: its tags are no secret of
// ours, and a text that holds them is passed on as the tool that the preset is
// named for passes it on.
func section(r *chain.Rendering, common phases.Common) *phases.PromptSection {
	s := &phases.PromptSection{
		Common: common, SectionID: sectionID, Title: sectionTitle, Stability: phases.StabilityDynamic,
		SourceRefs: sourceRefs(r.Sources),
	}
	if s.Placement = placement(r.Placement); s.Placement != "" {
		s.Content = printable(r.Message())
	} else {
		s.Content = printable(r.Content())
		s.Frame = &phases.Frame{Open: r.Frame.Open, Close: r.Frame.Close}
	}
	if r.Cut() {
		kept := utf8.RuneCountInString(s.Content)
		// A marker line may be longer than what it stands for, and still
		// something was cut.
		s.Cut = &phases.SelfCut{Kept: kept, Original: max(kept-r.Chars+r.FullChars, kept+1)}
	}
	return s
}

// placement is where a preset's texts go, as the host has it: empty for the system
// prompt.
func placement(p option.Placement) phases.Placement {
	switch p {
	case option.PlaceUserMessage:
		return phases.PlacementUserMessage
	case option.PlaceSystemMessage:
		return phases.PlacementSystemMessage
	default:
		return ""
	}
}

// printable is a text without NUL, which no prompt can carry. The default preset
// has none; the others pass on what a file holds.
func printable(text string) string { return strings.ReplaceAll(text, "\x00", "\uFFFD") }

// sourceRefs names the files whose text is in the section, in its order. Paths
// are printed as in the prompt: the wire takes no text that reorders itself.
func sourceRefs(sources []chain.Source) []phases.SourceRef {
	var refs []phases.SourceRef
	for i := range sources {
		if s := &sources[i]; s.DeliveredBytes > 0 {
			refs = append(refs, phases.SourceRef{Kind: "file", ID: chain.PrintPath(s.Path), Label: chain.PrintPath(s.Display)})
		}
	}
	return refs
}

// diagnostics are the chain's, as remarks on the contribution: they never hold
// text of a file, so anyone may see them.
func diagnostics(lists ...[]chain.Diagnostic) []phases.Diagnostic {
	var out []phases.Diagnostic
	for _, list := range lists {
		for _, d := range list {
			out = append(out, phases.Diagnostic{
				Code: string(d.Code), Severity: phases.Severity(d.Severity),
				Message: cmp.Or(chain.PrintPath(d.Path), "options") + ": " + printable(d.Detail), SafeForUser: true,
			})
		}
	}
	return out
}
