package manifest

import (
	"cmp"
	"slices"
	"strings"
)

// Term is something that a record can be found by.
type Term struct {
	Kind  TermKind `json:"kind"`
	Value string   `json:"value"`
}

// TermKind says what a term is about: section (the id of one in the prompt, or of one that was left out), owner (who wrote
// a part of the prompt), plugin (a name, or NAME@VERSION), tool (one that was offered or called), hash (any hash or
// fingerprint), model and provider (what the prompt was compiled for), actor (who the turn was made for), agent (the
// host's id of it), diagnostic (its code, the cause of a failed run, or the reason of a decision), verdict (of a hook),
// cause (what broke the provider's cache), kind (the record's), or one of workspace, thread, turn and session.
type TermKind string

// The kinds of terms.
const (
	termSection    TermKind = "section"
	termOwner      TermKind = "owner"
	termPlugin     TermKind = "plugin"
	termTool       TermKind = "tool"
	TermHash       TermKind = "hash"
	termModel      TermKind = "model"
	termProvider   TermKind = "provider"
	termActor      TermKind = "actor"
	termAgent      TermKind = "agent"
	termDiagnostic TermKind = "diagnostic"
	termVerdict    TermKind = "verdict"
	termCause      TermKind = "cause"
	termKindOf     TermKind = "kind"
	TermWorkspace  TermKind = "workspace"
	TermThread     TermKind = "thread"
	TermTurn       TermKind = "turn"
	termSession    TermKind = "session"
)

// Terms returns what the record can be found by: sorted, each once, without empty values.
func (m *Manifest) Terms() []Term {
	t := terms{}
	t.add(termKindOf, string(m.Kind))
	t.add(TermWorkspace, m.WorkspaceID)
	t.add(TermThread, m.ThreadID)
	t.add(TermTurn, m.TurnID)
	t.add(termSession, m.SessionID)
	t.add(termActor, m.Actor)
	t.add(termAgent, m.AgentID)
	t.add(termModel, m.Cache.Model)
	t.add(termProvider, m.Cache.Provider)
	t.add(termCause, string(m.Cache.Cause))
	t.add(TermHash, m.FingerprintFull, m.FingerprintStable, m.FingerprintDynamic, m.FingerprintDynamicWithoutExtraSystem, m.FingerprintTools,
		m.HashFull, m.HashStable, m.HashDynamic, m.HashDynamicWithoutExtraSystem, m.HashTools,
		m.FingerprintKeyID, m.ContentHash, m.Prev, m.Hash, m.ConfigHash)
	t.addSections(m)
	t.addWork(m)
	slices.SortFunc(t.list, func(a, b Term) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Value, b.Value)) })
	return slices.Compact(t.list)
}

type terms struct{ list []Term }

func (t *terms) add(kind TermKind, values ...string) {
	for _, v := range values {
		if v != "" {
			t.list = append(t.list, Term{kind, v})
		}
	}
}

func (t *terms) addSections(m *Manifest) {
	for i := range m.Sections {
		s := &m.Sections[i]
		t.add(termSection, s.SectionID)
		t.add(termOwner, s.Owner)
		t.add(TermHash, s.Fingerprint, s.Hash)
		for _, span := range s.ContentMap {
			t.add(termOwner, span.Owner)
		}
	}
	for i := range m.Omitted {
		t.add(termSection, m.Omitted[i].ID)
		t.add(termOwner, m.Omitted[i].Owner)
	}
	for i := range m.HookSources {
		t.add(TermHash, m.HookSources[i].ContributionHash)
	}
	for i := range m.Tools {
		t.add(termTool, m.Tools[i].Name)
		t.add(TermHash, m.Tools[i].Hash)
	}
	for i := range m.HostTools {
		t.add(termTool, m.HostTools[i].Name)
		t.add(TermHash, m.HostTools[i].Hash)
		t.add(termOwner, m.HostTools[i].Owner)
	}
}

func (t *terms) addWork(m *Manifest) {
	for i := range m.Plugins {
		p := &m.Plugins[i]
		t.add(termPlugin, p.Plugin)
		if p.Version != "" {
			t.add(termPlugin, p.Plugin+"@"+p.Version)
		}
		if strings.Trim(p.SHA256, "0123456789abcdef") == "" {
			t.add(TermHash, p.SHA256)
		}
		t.add(TermHash, p.GrantHash)
	}
	for i := range m.Runs {
		t.add(termDiagnostic, m.Runs[i].Code)
		t.add(termVerdict, string(m.Runs[i].Verdict))
	}
	for i := range m.Diagnostics {
		t.add(termDiagnostic, m.Diagnostics[i].Code)
	}
	for i := range m.Calls {
		c := &m.Calls[i]
		t.add(termTool, c.Tool)
		t.add(termVerdict, string(c.Verdict))
		t.add(TermHash, c.Came, c.Went, c.FactsHash)
		t.add(TermHash, c.TextHashes()...)
		for j := range c.DecidedBy {
			t.add(termDiagnostic, c.DecidedBy[j].ReasonCode)
			t.add(termVerdict, string(c.DecidedBy[j].Verdict))
		}
	}
	for i := range m.Reminders {
		t.add(termOwner, m.Reminders[i].Owner)
		t.add(TermHash, m.Reminders[i].Fingerprint, m.Reminders[i].Hash)
	}
	for i := range m.Audits {
		t.add(TermHash, m.Audits[i].ContributionHash, m.Audits[i].DetailsHash)
	}
	if m.History != nil {
		t.add(TermHash, m.History.Hash)
		for i := range m.History.Added {
			t.add(termOwner, m.History.Added[i].Owner)
			t.add(TermHash, m.History.Added[i].Hash)
		}
	}
}
