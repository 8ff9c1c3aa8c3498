package manifest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// Clone returns a copy that shares no memory with the record.
func (m *Manifest) Clone() Manifest {
	c := *m
	c.Sections = mapped(m.Sections, func(s *Section) {
		s.Tokens, s.Truncation = pointed(s.Tokens), pointed(s.Truncation)
		s.SourceRefs, s.ContentMap = slices.Clone(s.SourceRefs), slices.Clone(s.ContentMap)
	})
	c.SectionIDs = slices.Clone(m.SectionIDs)
	c.Omitted = slices.Clone(m.Omitted)
	c.HookSources = slices.Clone(m.HookSources)
	c.Runs = mapped(m.Runs, func(r *phases.Run) {
		r.Contributions, r.Cut = slices.Clone(r.Contributions), slices.Clone(r.Cut)
	})
	c.Audits = mapped(m.Audits, func(a *Audit) { a.Details = bytes.Clone(a.Details) })
	c.Plugins = mapped(m.Plugins, func(p *phases.PluginRow) {
		p.TierLacks, p.AbsentPaths = slices.Clone(p.TierLacks), slices.Clone(p.AbsentPaths)
	})
	c.Policies = mapped(m.Policies, func(p *phases.PolicyEntry) { p.Value = bytes.Clone(p.Value) })
	c.Tools = slices.Clone(m.Tools)
	c.HostTools, c.History, c.Reminders = slices.Clone(m.HostTools), pointed(m.History), slices.Clone(m.Reminders)
	if c.History != nil {
		c.History.Added = slices.Clone(c.History.Added)
	}
	c.Calls = mapped(m.Calls, func(c *Call) {
		c.DecidedBy, c.RewrittenBy, c.Facts = slices.Clone(c.DecidedBy), slices.Clone(c.RewrittenBy), slices.Clone(c.Facts)
		c.Input = pointed(c.Input)
	})
	c.Requests = mapped(m.Requests, func(r *Request) { r.Changes = slices.Clone(r.Changes) })
	c.HostEvents = mapped(m.HostEvents, func(e *HostEvent) { e.Facts = slices.Clone(e.Facts) })
	c.Erasure, c.Cache.Rules = pointed(m.Erasure), pointed(m.Cache.Rules)
	c.Budgets.Phases = slices.Clone(m.Budgets.Phases)
	c.Files = slices.Clone(m.Files)
	c.Diagnostics = slices.Clone(m.Diagnostics)
	c.Cache.Plan.Breakpoints = slices.Clone(m.Cache.Plan.Breakpoints)
	c.Cache.Predicted, c.Cache.Actual = pointed(m.Cache.Predicted), pointed(m.Cache.Actual)
	return c
}

func pointed[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// content returns the record without what [ContentHash] ignores.
func content(m *Manifest) Manifest {
	c := *m
	c.Head = Head{SchemaVersion: m.SchemaVersion, Kind: m.Kind, CompilerVersion: m.CompilerVersion, Profile: m.Profile, Observed: m.Observed}
	c.Integrity = Integrity{}
	c.Cache, c.Requests, c.HostEvents = Cache{}, nil, nil
	if h := m.History; h != nil && len(h.Added) > 0 {
		own := *h
		own.Previous, own.Added = "", mapped(h.Added, func(p *MessagePart) { p.ID = "" })
		c.History = &own
	}
	c.Runs = mapped(m.Runs, contentOfRun)
	c.HookSources = mapped(m.HookSources, func(h *phases.HookSource) { h.CachedFrom = "" })
	c.Plugins = mapped(m.Plugins, contentOfPlugin)
	c.Calls = mapped(m.Calls, func(c *Call) { c.CallID, c.Input = "", nil })
	c.Budgets.Turn.UsedMS, c.Budgets.Turn.UsedChars = 0, 0
	c.Budgets.Phases = mapped(m.Budgets.Phases, func(b *PhaseBudget) { b.UsedMS, b.UsedChars = 0, 0 })
	c.Diagnostics = mapped(m.Diagnostics, func(d *Diagnostic) { d.Message = "" })
	return c
}

func contentOfRun(r *phases.Run) {
	if r.State == phases.StateCached {
		r.State = phases.StateSucceeded
	}
	r.Generation, r.Incarnation, r.Attempts = 0, 0, 0
	r.QueueMS, r.DurationMS = 0, 0
	r.BytesIn, r.BytesOut = 0, 0
	r.Usage = phases.Usage{}
	r.CachedFrom = ""
}

// contentOfPlugin forgets how a plugin's process was started and what surrounds it.
func contentOfPlugin(p *phases.PluginRow) {
	p.Generation, p.Restarts, p.Recycled, p.Message = 0, 0, 0, ""
	p.TierLacks, p.AbsentPaths = nil, nil
}

func mapped[T any](list []T, change func(*T)) []T {
	list = slices.Clone(list)
	for i := range list {
		change(&list[i])
	}
	return list
}

// HashLabels returns a copy of the record in which text written by people and plugins is replaced by its
// [Hash] under the key: titles of sections, labels of sources, ids of sources that are files or addresses,
// paths of files and of absent grants, messages of diagnostics, details of plugins, policy values other than numbers,
// booleans and null, details of audits, what hosts said of themselves, names of images and documents, and reasons of omissions that are not plain words.
//
// Ids, names, codes, counts, empty texts and hashes stay as they are.
// Without a key, short texts can be guessed. A sealed record must be sealed again.
func HashLabels(m Manifest, key []byte) Manifest {
	h := labelHasher{key}
	m.Sections = mapped(m.Sections, func(s *Section) {
		h.replace(&s.Title)
		s.SourceRefs = mapped(s.SourceRefs, h.source)
	})
	m.Omitted = mapped(m.Omitted, func(l *phases.Omitted) {
		if !isWord(l.Reason) {
			h.replace(&l.Reason)
		}
	})
	m.Plugins = mapped(m.Plugins, func(p *phases.PluginRow) {
		h.replace(&p.Message)
		p.AbsentPaths = mapped(p.AbsentPaths, h.replace)
	})
	m.Audits = mapped(m.Audits, func(a *Audit) { a.HashDetails(key) })
	m.Requests = mapped(m.Requests, func(r *Request) { r.Changes = mapped(r.Changes, h.change) })
	m.HostEvents = mapped(m.HostEvents, func(e *HostEvent) {
		h.replace(&e.Refused)
		e.Facts = mapped(e.Facts, func(f *HostFact) { h.replace(&f.Value) })
	})
	if m.History != nil && len(m.History.Added) > 0 {
		m.History = pointed(m.History)
		m.History.Added = mapped(m.History.Added, func(p *MessagePart) {
			if strings.Contains(p.ID, "/") { // a file's
				h.replace(&p.ID)
			}
		})
	}
	m.Policies = mapped(m.Policies, func(p *phases.PolicyEntry) { h.value(&p.Value) })
	m.Files = mapped(m.Files, func(f *File) { h.replace(&f.Path) })
	m.Diagnostics = mapped(m.Diagnostics, func(d *Diagnostic) { h.replace(&d.Message) })
	return m
}

type labelHasher struct{ key []byte }

func (h labelHasher) replace(s *string) {
	if *s != "" && !isHash(*s) {
		*s = Hash(*s, h.key)
	}
}

func (h labelHasher) source(r *phases.SourceRef) {
	h.replace(&r.Label)
	h.replace(&r.Hash) // a short text can be guessed from it
	if slices.Contains([]string{"file", "url"}, r.Kind) {
		h.replace(&r.ID)
	}
}

func (h labelHasher) change(c *RequestChange) {
	if c.Kind == RequestMedia {
		h.replace(&c.ID)
	}
}

// value replaces JSON that can hold text by a hash.
func (h labelHasher) value(raw *json.RawMessage) {
	v := strings.TrimSpace(string(*raw))
	switch {
	case v == "" || !strings.ContainsRune(`"[{`, rune(v[0])):
		return
	case v[0] == '"' && isHash(strings.Trim(v, `"`)):
		return
	}
	*raw = json.RawMessage(strconv.Quote(Hash(v, h.key))) // plain ASCII: Go's quotes are JSON's
}

func isWord(s string) bool {
	return len(s) <= 40 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == ""
}
