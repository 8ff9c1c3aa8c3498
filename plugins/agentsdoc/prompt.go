package agentsdoc

import (
	"context"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/sdk"
)

// The section and its frame.
const (
	sectionID    = "agents_md"
	sectionTitle = "AGENTS.md"

	preamble = "Below are the AGENTS.md files of the source tree that you work in, which apply to the working folder. " +
		"System, developer and explicit user messages take precedence over them."
	frameOpen  = preamble + "\n\n<AGENTS_MD>"
	frameClose = "</AGENTS_MD>"

	// hostMarker begins the line with which the host ends a text that it cut.
	hostMarker = "[truncated: kept "
)

// Message returns the whole as it is put before the model: the instruction
// text, which ends in a newline, in its frame. Without text there is none.
func Message(text string) string {
	if text == "" {
		return ""
	}
	return frameOpen + "\n" + text + frameClose
}

// TextRoom returns how many characters the instruction text may have where the
// whole may have limit. A limit of 0 does not bound, as in [phases.Room]; one
// that the frame does not fit into leaves no room.
func TextRoom(limit int) int {
	if limit == 0 {
		return math.MaxInt
	}
	return max(0, limit-utf8.RuneCountInString(frameOpen+"\n"+frameClose))
}

// prompter answers the hook under one configuration. It is safe for concurrent
// use.
type prompter struct {
	view     chain.FS
	settings Settings
	memory   memory
}

func newPrompter(view chain.FS, s Settings) *prompter {
	return &prompter{view: view, settings: s}
}

// answer is the handler of the hook.
func (p *prompter) answer(ctx context.Context, call *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
	where := call.Context
	if where.Dir == "" {
		return nil, nil
	}
	budget := chain.Budget{Bytes: p.settings.MaxBytes, Chars: TextRoom(call.Room.MaxChars)}
	key := memoryKey{where.WorkspaceID, where.SessionID, where.Epoch, where.Dir, budget.Chars}
	if where.SessionID != "" {
		if c, ok := p.memory.get(key); ok {
			return reply(c), nil
		}
	}
	c := contribution(p.settings.Options, p.view, where.Dir, budget)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // nobody waits for it any more
	}
	if where.SessionID != "" {
		c = p.memory.keep(key, c)
	}
	return reply(c), nil
}

// reply hands out a copy: what a handler returns belongs to the host.
func reply(c phases.Contribution) []phases.Contribution {
	if c == nil {
		return nil
	}
	return []phases.Contribution{phases.CloneContribution(c)}
}

// contribution finds and renders the files for a folder. It is nil if there is
// nothing to say, and a noop with diagnostics where only those are left.
func contribution(o chain.Options, view chain.FS, dir string, b chain.Budget) phases.Contribution {
	found := chain.Resolve(view, dir, o)
	r := render(found, b)
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

// render is chain.Render with room for what the host adds: it puts a backslash
// into each line that looks like its own marker, and chain knows that form only
// at the very beginning of a line.
func render(c chain.Chain, b chain.Budget) chain.Rendering {
	for room := b.Chars; ; {
		r := chain.Render(c, b)
		over := r.Chars + markerLookalikes(r.Text) - room
		if over <= 0 || r.Text == "" {
			return r
		}
		b.Chars -= over
	}
}

// markerLookalikes counts the lines that the host might take for forged markers.
// Counting too many costs a character each, and no more.
func markerLookalikes(text string) int { return strings.Count(text, hostMarker) }

// section is the contribution for a text.
func section(r chain.Rendering, common phases.Common) *phases.PromptSection {
	// The newline that ends the text is the one that the host puts before the
	// closing tag.
	s := &phases.PromptSection{
		Common: common, SectionID: sectionID, Title: sectionTitle, Stability: phases.StabilityDynamic,
		Content: strings.TrimSuffix(r.Text, "\n"), Frame: &phases.Frame{Open: frameOpen, Close: frameClose},
		SourceRefs: sourceRefs(r.Sources),
	}
	if r.Cut() {
		kept := r.Chars - 1
		// A marker line may be longer than what it stands for, and still
		// something was cut.
		s.Cut = &phases.SelfCut{Kept: kept, Original: max(r.FullChars-1, kept+1)}
	}
	return s
}

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
				Message: chain.PrintPath(d.Path) + ": " + d.Detail, SafeForUser: true,
			})
		}
	}
	return out
}
