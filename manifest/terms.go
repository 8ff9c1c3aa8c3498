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

// TermKind says what a term is about: section, owner, plugin, tool, hash, model, provider, actor, agent, diagnostic, verdict,
// cause, kind, workspace, thread, turn or session.
type TermKind string

// The kinds of terms.
const (
	termSection    TermKind = "section"    // the id of a section of the prompt, or of one that was left out
	termOwner      TermKind = "owner"      // who wrote a part of the prompt
	termPlugin     TermKind = "plugin"     // a plugin's name, or NAME@VERSION
	termTool       TermKind = "tool"       // the name of a tool that was offered or called
	termHash       TermKind = "hash"       // any hash or fingerprint of the record
	termModel      TermKind = "model"      // the model that the prompt was compiled for
	termProvider   TermKind = "provider"   // the provider of that model
	termActor      TermKind = "actor"      // who the turn was made for
	termAgent      TermKind = "agent"      // the host's id of the agent
	termDiagnostic TermKind = "diagnostic" // the code of a diagnostic, the cause of a failed run, or the reason of a decision
	termVerdict    TermKind = "verdict"    // what a hook decided
	termCause      TermKind = "cause"      // what broke the prefix that the provider keeps
	termKindOf     TermKind = "kind"       // the kind of the record
	termWorkspace  TermKind = "workspace"  // the workspace
	termThread     TermKind = "thread"     // the thread
	termTurn       TermKind = "turn"       // the turn
	termSession    TermKind = "session"    // the session
)

// Terms returns what the record can be found by: sorted, each once, without empty values.
func (m *Manifest) Terms() []Term {
	t := terms{}
	t.add(termKindOf, string(m.Kind))
	t.add(termWorkspace, m.WorkspaceID)
	t.add(termThread, m.ThreadID)
	t.add(termTurn, m.TurnID)
	t.add(termSession, m.SessionID)
	t.add(termActor, m.Actor)
	t.add(termAgent, m.AgentID)
	t.add(termModel, m.Cache.Model)
	t.add(termProvider, m.Cache.Provider)
	t.add(termCause, string(m.Cache.Cause))
	t.add(termHash, m.FingerprintFull, m.FingerprintStable, m.FingerprintDynamic, m.FingerprintDynamicWithoutExtraSystem, m.FingerprintTools,
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
		t.add(termHash, s.Fingerprint, s.Hash)
		for _, span := range s.ContentMap {
			t.add(termOwner, span.Owner)
		}
	}
	for i := range m.Omitted {
		t.add(termSection, m.Omitted[i].ID)
		t.add(termOwner, m.Omitted[i].Owner)
	}
	for i := range m.HookSources {
		t.add(termHash, m.HookSources[i].ContributionHash)
	}
	for i := range m.Tools {
		t.add(termTool, m.Tools[i].Name)
		t.add(termHash, m.Tools[i].Hash)
	}
	for i := range m.HostTools {
		t.add(termTool, m.HostTools[i].Name)
		t.add(termHash, m.HostTools[i].Hash)
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
			t.add(termHash, p.SHA256)
		}
		t.add(termHash, p.GrantHash)
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
		t.add(termHash, c.Came, c.Went)
		for j := range c.DecidedBy {
			t.add(termDiagnostic, c.DecidedBy[j].ReasonCode)
			t.add(termVerdict, string(c.DecidedBy[j].Verdict))
		}
	}
	for i := range m.Reminders {
		t.add(termOwner, m.Reminders[i].Owner)
		t.add(termHash, m.Reminders[i].Fingerprint, m.Reminders[i].Hash)
	}
	for i := range m.Audits {
		t.add(termHash, m.Audits[i].ContributionHash, m.Audits[i].DetailsHash)
	}
	if m.History != nil {
		t.add(termHash, m.History.Hash)
	}
}
