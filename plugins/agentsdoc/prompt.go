package agentsdoc

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/lazy"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/settings"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/thread"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/internal/watch"
	"github.com/grapnelhq/grapnel/sdk"
)

// prompt is the handler of the hook "prompt". Within a session it repeats the block in every turn of an epoch;
// without one it looks again, uncached.
func (d *docs) prompt(ctx context.Context, call *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
	where := &call.Context
	if where.Dir == "" || d.withheld(where) {
		return nil, nil
	}
	if where.SessionID == "" {
		passing(ctx, call)
		return d.withoutSession(ctx, call)
	}
	s, err := d.open(ctx, call)
	if err != nil {
		return nil, err
	}
	defer s.leave()
	s.budget = call.Budget
	b, err := d.begin(ctx, call, s, s.budget)
	if s.follows {
		passing(ctx, call)
	}
	return b.reply(), err
}

// withoutSession answers a turn without a session. It remembers the block for the turn, so that tools do not bring
// its files again.
func (d *docs) withoutSession(ctx context.Context, call *sdk.Call) ([]phases.Contribution, error) {
	b, err := d.first(ctx, call, call.Budget)
	if err != nil {
		return nil, err
	}
	if key, ok := keyOf(&call.Context); ok {
		s := d.sessions.of(key)
		if err := s.enter(ctx); err != nil {
			return nil, err
		}
		defer s.leave()
		d.setBlock(s, &call.Context, b)
	}
	return b.reply(), nil
}

// open waits for the session of a call and brings it to the call's epoch. The caller must leave it. A call without
// session and turn gets a session of its own.
func (d *docs) open(ctx context.Context, call *sdk.Call) (*session, error) {
	where := &call.Context
	s := newSession(sessionKey{})
	if key, ok := keyOf(where); ok {
		s = d.sessions.of(key)
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	s.thread.Store(&where.ThreadID)
	// Behind an agent the model keeps what it was given, so that only a block that changed is sent.
	s.follows = where.Agent() != ""
	first := !s.read
	d.recall(ctx, call, s)
	if where.Epoch > s.epoch || first && where.Epoch < s.epoch { // a host that was started again counts from 0
		s.renew(where.Epoch)
	}
	return s, nil
}

// begin returns the block of the call's working directory in the session, which is made on first use in an epoch.
func (d *docs) begin(ctx context.Context, call *sdk.Call, s *session, budget phases.AnswerBudget) (*block, error) {
	dir := call.Context.Dir
	b := s.blocks[dir]
	known := b != nil && b.fits(budget) && (!s.follows || !d.stale(s))
	if known && dir == s.dir() {
		return b, nil
	}
	if !known { // else back in a known directory
		var err error
		if b, err = d.first(ctx, call, budget); err != nil {
			s.dirty.Store(true)
			return nil, err
		}
	}
	b = b.replacing(s.latest(), &d.options, budget)
	d.setBlock(s, &call.Context, b)
	d.persist(ctx, call, s)
	return b, nil
}

// setBlock puts a block in force in a session.
func (d *docs) setBlock(s *session, where *phases.Context, b *block) {
	switch {
	case s.nested == nil:
		n := lazy.Begin(s.epoch, b.found, b.rendering)
		s.nested = &n
	case s.latest() != b:
		s.move(b)
	}
	s.keep(where.Dir, b)
	d.observe(s, b.seen)
}

// first makes the block of the call's working directory, unless the call was abandoned.
func (d *docs) first(ctx context.Context, call *sdk.Call, budget phases.AnswerBudget) (*block, error) {
	where := &call.Context
	var b *block
	var err error
	if isSubtask(where) && d.settings.Subtasks == settings.SubtasksInherit {
		if b, err = d.inherited(ctx, call); err != nil {
			return nil, err
		}
	}
	if b == nil || !b.fits(budget) {
		b = newBlock(d.view, d.rules(where), where.Dir, budget)
		for _, note := range b.found.Diagnostics {
			if note.Code == chain.CodeBusy { // for a moment, so nothing is kept
				return nil, sdk.Fail(string(note.Code), sdk.PlainName(note.Path)+": "+note.Detail)
			}
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return b, nil
}

const (
	sectionID    = "agents_md"
	sectionTitle = "AGENTS.md"
)

// block is what the hook "prompt" contributes for a working directory, and what that came from.
type block struct {
	contribution phases.Contribution // nil if there is nothing to say
	chars        int                 // length of the whole in Unicode scalar values

	found     chain.Chain
	rendering chain.Rendering
	seen      watch.Seen // what was looked at, to detect changes
}

func newBlock(view chain.FS, o chain.Options, dir string, budget phases.AnswerBudget) *block {
	b := &block{}
	o = chain.FollowChars(o, budget.MaxChars)
	b.found, b.seen = look(view, dir, o)
	b.rendering = chain.RenderForHost(b.found, chain.Budget{Bytes: o.Budget.Total, Chars: chain.TextChars(budget.MaxChars, b.found.Frame())})
	b.chars = utf8.RuneCountInString(b.rendering.Message())
	b.contribution = contribution(&b.found, &b.rendering)
	return b
}

func (b *block) fits(budget phases.AnswerBudget) bool {
	return budget.MaxChars == 0 || b.chars <= budget.MaxChars
}

// reply hands out a copy: what a handler returns belongs to the host.
func (b *block) reply() []phases.Contribution {
	if b == nil || b.contribution == nil {
		return nil
	}
	return []phases.Contribution{phases.CloneContribution(b.contribution)}
}

// contribution is the section for a text, a noop if there are only diagnostics, or nil.
func contribution(found *chain.Chain, r *chain.Rendering) phases.Contribution {
	common := phases.Common{Diagnostics: diagnostics(slices.Concat(found.Diagnostics, r.Diagnostics))}
	if r.Text == "" && len(common.Diagnostics) > 0 {
		return &phases.Noop{Common: common}
	}
	if r.Text == "" {
		return nil
	}
	s := &phases.PromptSection{
		Common: common, SectionID: sectionID, Title: sectionTitle, Stability: phases.StabilityDynamic,
		SourceRefs: sourceRefs(r.Sources),
	}
	// In the system prompt a text has a frame, which the host protects. A message is given whole, as in the preset's tool.
	if s.Placement = placement(r.Placement); s.Placement != "" {
		s.Content = printable(r.Message())
	} else {
		s.Content = printable(r.Content)
		s.Frame = &r.Frame
	}
	if r.Cut() {
		kept := utf8.RuneCountInString(s.Content)
		// A marker line may be longer than what it replaces.
		s.Cut = &phases.SelfCut{Kept: kept, Original: max(kept-r.Chars+r.FullChars, kept+1)}
	}
	return s
}

// placement is empty for the system prompt.
func placement(p chain.Placement) phases.Placement {
	switch p {
	case chain.PlaceUserMessage:
		return phases.PlacementUserMessage
	case chain.PlaceSystemMessage:
		return phases.PlacementSystemMessage
	default:
		return ""
	}
}

// printable is a text without NUL, which no prompt can carry. The default preset has none; the others pass on what a
// file holds.
func printable(text string) string { return strings.ReplaceAll(text, "\x00", "\uFFFD") }

// sourceRefs names the files whose text is in the section, in its order, with the hash of the bytes that were read. Paths are printed as in the prompt: the wire
// refuses text that reorders itself.
func sourceRefs(sources []chain.Source) []phases.SourceRef {
	var refs []phases.SourceRef
	for i := range sources {
		s := &sources[i]
		if s.DeliveredBytes == 0 {
			continue
		}
		refs = append(refs, fileRef(s.Path, s.Display, s.SHA256))
		for _, in := range s.Imports {
			refs = append(refs, fileRef(in.Path, s.Display+" imports "+filepath.Base(in.Path), in.SHA256))
		}
	}
	return refs
}

func fileRef(path, label, sum string) phases.SourceRef {
	return phases.SourceRef{Kind: "file", ID: sdk.PlainName(path), Label: sdk.PlainName(label), Hash: "sha256:" + sum}
}

// diagnostics converts a chain's diagnostics. They never hold text of a file, so anyone may see them.
func diagnostics(list []chain.Diagnostic) []phases.Diagnostic {
	var out []phases.Diagnostic
	for _, d := range list {
		out = append(out, phases.Diagnostic{
			Code: string(d.Code), Severity: d.Severity,
			Message: cmp.Or(sdk.PlainName(d.Path), "options") + ": " + printable(d.Detail), SafeForUser: true,
		})
	}
	return out
}

// threadPrompt is the handler of the hook "thread_prompt". It asks again in each turn, also within a session.
func (d *docs) threadPrompt(ctx context.Context, call *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
	where := &call.Context
	if isSubtask(where) && d.settings.Subtasks != settings.SubtasksInherit {
		return nil, nil // a document is people's, not the operator's
	}
	answer, err := thread.Ask(ctx, call.Host, where)
	if err != nil {
		return nil, err
	}
	common := phases.Common{ContributionID: "prompt.agents_doc", Domain: "thread_agents_doc", Diagnostics: answer.Diagnostics} // as operators grant it
	if d.settings.Source == settings.SourceBoth {
		// With equal priorities of both hooks, the default, the document is the later fragment, which is cut first.
		common.Priority = -1
	}
	var r thread.Rendering
	if answer.Document != nil {
		r = thread.Render(answer.Document, call.Budget.MaxChars)
		common.Diagnostics = slices.Concat(common.Diagnostics, r.Diagnostics)
	}
	switch {
	case r.Content != "":
		frame := thread.Frame()
		return sdk.Reply(&phases.PromptSection{
			Common: common, SectionID: sectionID, Title: sectionTitle, Stability: phases.StabilityDynamic, Placement: placement(d.options.Placement),
			Content: r.Content, Frame: &frame, SourceRefs: []phases.SourceRef{answer.Document.Ref()}, Cut: r.Cut,
		})
	case len(common.Diagnostics) > 0:
		return sdk.Reply(&phases.Noop{Common: common})
	}
	return nil, nil
}
