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

// TermKind says what a term is about.
type TermKind string

// The kinds of terms.
const (
	TermSection    TermKind = "section"    // the id of a section of the prompt, or of one that was left out
	TermOwner      TermKind = "owner"      // who wrote a part of the prompt
	TermPlugin     TermKind = "plugin"     // a plugin's name, or NAME@VERSION
	TermTool       TermKind = "tool"       // the name of a tool that was offered or called
	TermHash       TermKind = "hash"       // any hash or fingerprint of the record
	TermModel      TermKind = "model"      // the model that the prompt was compiled for
	TermProvider   TermKind = "provider"   // the provider of that model
	TermActor      TermKind = "actor"      // who the turn was made for
	TermAgent      TermKind = "agent"      // the host's id of the agent
	TermDiagnostic TermKind = "diagnostic" // the code of a diagnostic, the cause of a failed run, or the reason of a decision
	TermVerdict    TermKind = "verdict"    // what a hook decided
	TermCause      TermKind = "cause"      // what broke the prefix that the provider keeps
	TermKindOf     TermKind = "kind"       // the kind of the record
	TermWorkspace  TermKind = "workspace"  // the workspace
	TermThread     TermKind = "thread"     // the thread
	TermTurn       TermKind = "turn"       // the turn
	TermSession    TermKind = "session"    // the session
)

// Terms returns what the record can be found by: sorted, each once, without empty values.
func (m *Manifest) Terms() []Term {
	t := terms{}
	t.add(TermKindOf, string(m.Kind))
	t.add(TermWorkspace, m.WorkspaceID)
	t.add(TermThread, m.ThreadID)
	t.add(TermTurn, m.TurnID)
	t.add(TermSession, m.SessionID)
	t.add(TermActor, m.Actor)
	t.add(TermAgent, m.AgentID)
	t.add(TermModel, m.Cache.Model)
	t.add(TermProvider, m.Cache.Provider)
	t.add(TermCause, string(m.Cache.Cause))
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
		t.add(TermSection, s.SectionID)
		t.add(TermOwner, s.Owner)
		t.add(TermHash, s.Fingerprint, s.Hash)
		for _, span := range s.ContentMap {
			t.add(TermOwner, span.Owner)
		}
	}
	for i := range m.Omitted {
		t.add(TermSection, m.Omitted[i].ID)
		t.add(TermOwner, m.Omitted[i].Owner)
	}
	for i := range m.HookSources {
		t.add(TermHash, m.HookSources[i].ContributionHash)
	}
	for i := range m.Tools {
		t.add(TermTool, m.Tools[i].Name)
		t.add(TermHash, m.Tools[i].Hash)
	}
	for i := range m.HostTools {
		t.add(TermTool, m.HostTools[i].Name)
		t.add(TermHash, m.HostTools[i].Hash)
	}
}

func (t *terms) addWork(m *Manifest) {
	for i := range m.Plugins {
		p := &m.Plugins[i]
		t.add(TermPlugin, p.Plugin)
		if p.Version != "" {
			t.add(TermPlugin, p.Plugin+"@"+p.Version)
		}
		if strings.Trim(p.SHA256, "0123456789abcdef") == "" {
			t.add(TermHash, p.SHA256)
		}
		t.add(TermHash, p.GrantHash)
	}
	for i := range m.Runs {
		t.add(TermDiagnostic, m.Runs[i].Code)
		t.add(TermVerdict, string(m.Runs[i].Verdict))
	}
	for i := range m.Diagnostics {
		t.add(TermDiagnostic, m.Diagnostics[i].Code)
	}
	for i := range m.Calls {
		c := &m.Calls[i]
		t.add(TermTool, c.Tool)
		t.add(TermVerdict, string(c.Verdict))
		t.add(TermHash, c.Came, c.Went)
		for j := range c.DecidedBy {
			t.add(TermDiagnostic, c.DecidedBy[j].ReasonCode)
			t.add(TermVerdict, string(c.DecidedBy[j].Verdict))
		}
	}
	for i := range m.Reminders {
		t.add(TermOwner, m.Reminders[i].Owner)
		t.add(TermHash, m.Reminders[i].Fingerprint, m.Reminders[i].Hash)
	}
	for i := range m.Audits {
		t.add(TermHash, m.Audits[i].ContributionHash, m.Audits[i].DetailsHash)
	}
	if m.History != nil {
		t.add(TermHash, m.History.Hash)
	}
}
