package manifest

import (
	"cmp"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
)

// Outline is what [Compare] needs to know of a record. It is a twentieth of the record's size, so that a store can
// keep it beside the record (see [Outline.Append]), and breaks of a long thread can be found without reading records.
type Outline struct {
	Kind RecordKind
	// Sent says that the prompt was given to the host to be sent.
	Sent bool
	// OfAgent says that an agent compiles the request, and Observed that the record has that request.
	OfAgent, Observed                                    bool
	ManifestID, WorkspaceID, ThreadID, TurnID, SessionID string
	Seq                                                  uint64
	Round, Epoch                                         int
	CreatedAt                                            time.Time
	Provider, Model                                      string
	Profile                                              phases.Profile
	Mode                                                 phases.Mode
	// Build, CompilerVersion and Config, the mark of the configuration's hash, say what compiled the prompt.
	Build, CompilerVersion string
	Config                 Mark
	// Key says with which key hashes were made; 0 is none.
	Key Mark
	// ToolList is the mark of the offered tools, and ToolTokens about how many tokens their definitions have.
	ToolList   Mark
	ToolTokens int
	Rules      *CacheRules
	// PlanKey is the plan's key.
	PlanKey     Mark
	Breakpoints []Breakpoint
	Sections    []OutlineSection
	Tools       []outlineTool
	HostTools   []outlineTool
	History     *outlineHistory
	Plugins     []outlinePlugin
}

// Mark stands for a hash: equal ones have equal marks. The empty one is 0. It has 64 bits, which is enough to say what
// broke a cache, and proves nothing.
type Mark uint64

// MarkOf returns the mark of a hash: the XXH64 of its digits. To collide, somebody would need a text for chosen digits of SHA-256.
func MarkOf(sum string) Mark {
	if sum == "" {
		return 0
	}
	return Mark(digest.Sum64(sum))
}

// OutlineSection is one section of the prompt.
type OutlineSection struct {
	SectionID, Owner string
	Stability        phases.Stability
	Placement        phases.Placement
	Chars            int
	// Tokens is -1 without a tokenizer.
	Tokens int
	Hash   Mark
	// Spans say who wrote the text, in order, without separators; empty where nobody but the owner did.
	Spans []outlineSpan
}

// outlineSpan is a piece of a text that one owner wrote.
type outlineSpan struct {
	Owner, ContributionID string
	Chars                 int
	// Hash is the contribution's, which covers the text before any cut and the contribution's own priority.
	Hash Mark
	// Priority is the subscription's.
	Priority int
}

// outlineTool is a tool of a plugin or the host.
type outlineTool struct {
	Name, Owner, Bundle, HiddenDomain string
	Hash                              Mark
}

// outlineHistory is the conversation behind the prompt.
type outlineHistory struct {
	Entries, Cut, Summarized, Repaired int
	Hash                               Mark
	// Those of an observed request; Part and Owner are of the first part that the previous one did not have.
	Same, Cached          int
	Previous, Part, Owner string
}

// outlinePlugin is a declared plugin.
type outlinePlugin struct {
	Name, Version  string
	Program, Grant Mark
}

// Whole reports whether the record has all of a prompt that was sent: only such prompts are compared with each other.
func (o *Outline) Whole() bool { return o.Sent && !o.OfAgent }

// Outline returns the record's outline, which shares no lists with it.
func (m *Manifest) Outline() Outline {
	c := &m.Cache
	o := Outline{
		Kind: cmp.Or(m.Kind, KindPrompt), Sent: m.Sent(), OfAgent: c.OfAgent, Observed: m.Observed != "",
		ManifestID: m.ManifestID, WorkspaceID: m.WorkspaceID, ThreadID: m.ThreadID, TurnID: m.TurnID, SessionID: m.SessionID,
		Seq: m.Seq, Round: m.Round, Epoch: m.Epoch, CreatedAt: m.CreatedAt.UTC(), Provider: c.Provider, Model: c.Model,
		Profile: m.Profile, Mode: m.Mode, Build: m.Build, CompilerVersion: m.CompilerVersion, Config: MarkOf(m.ConfigHash),
		Key:      MarkOf(m.FingerprintKeyID),
		ToolList: MarkOf(m.HashTools), ToolTokens: c.ToolTokens, Rules: pointed(c.Rules),
		PlanKey: MarkOf(c.Plan.Key), Breakpoints: slices.Clone(c.Plan.Breakpoints), Sections: m.outlineSections(),
	}
	for _, t := range m.Tools {
		o.Tools = append(o.Tools, outlineTool{t.Name, t.Owner, t.BundleID, t.HiddenDomain, MarkOf(t.Hash)})
	}
	for _, t := range m.HostTools {
		o.HostTools = append(o.HostTools, outlineTool{Name: t.Name, Owner: cmp.Or(t.Owner, phases.OwnerHost), Hash: MarkOf(t.Hash)})
	}
	if h := m.History; h != nil {
		o.History = &outlineHistory{Entries: h.Entries, Cut: h.Cut, Summarized: h.Summarized, Repaired: h.Repaired, Hash: MarkOf(h.Hash), Previous: h.Previous, Same: h.Same, Cached: h.Cached}
		if len(h.Added) > 0 {
			o.History.Part, o.History.Owner = cmp.Or(h.Added[0].ID, h.Added[0].Kind), h.Added[0].Owner
		}
	}
	for i := range m.Plugins {
		p := &m.Plugins[i]
		o.Plugins = append(o.Plugins, outlinePlugin{p.Plugin, p.Version, MarkOf(p.SHA256), MarkOf(p.GrantHash)})
	}
	return o
}

func (m *Manifest) outlineSections() []OutlineSection {
	type place struct{ plugin, id string }
	sources := make(map[place]*phases.HookSource, len(m.HookSources))
	for i := range m.HookSources {
		h := &m.HookSources[i]
		sources[place{h.Plugin, h.ContributionID}] = h
	}
	var out []OutlineSection
	for i := range m.Sections {
		s := &m.Sections[i]
		row := OutlineSection{
			SectionID: s.SectionID, Owner: s.Owner, Stability: s.Stability, Placement: s.Placement,
			Chars: s.Chars, Tokens: -1, Hash: MarkOf(s.Hash),
		}
		if s.Tokens != nil {
			row.Tokens = *s.Tokens
		}
		for _, span := range s.ContentMap {
			if span.ContributionID == "" && (span.Owner == phases.OwnerBuiltin || span.Owner == s.Owner) {
				continue
			}
			piece := outlineSpan{Owner: span.Owner, ContributionID: span.ContributionID, Chars: span.Length}
			if h := sources[place{span.Owner, span.ContributionID}]; h != nil {
				piece.Hash, piece.Priority = MarkOf(h.ContributionHash), h.Priority
			}
			row.Spans = append(row.Spans, piece)
		}
		out = append(out, row)
	}
	return out
}
