package manifest

import (
	"cmp"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
)

// New returns an empty record of the current schema, with lists that are empty
// and not nil.
func New() Manifest {
	m := Manifest{Head: Head{SchemaVersion: SchemaVersion, Profile: phases.ProfileFull}}
	m.Complete()
	return m
}

// Complete gives the record its form: lists that are nil become empty ones,
// also those inside rows, section_ids follow the sections, an unnamed profile is
// the full one, and the time is in UTC. Rows that need a change are copied first, so
// that lists shared with the runtime stay as they are. [Seal] calls it.
func (m *Manifest) Complete() {
	if m.Profile == "" {
		m.Profile = phases.ProfileFull
	}
	m.CreatedAt = m.CreatedAt.UTC()
	m.Sections = completeRows(m.Sections, func(s *Section) bool { return s.SourceRefs == nil },
		func(s *Section) { s.SourceRefs = []phases.SourceRef{} })
	m.SectionIDs = make([]string, len(m.Sections))
	for i := range m.Sections {
		m.SectionIDs[i] = m.Sections[i].SectionID
	}
	m.LeftOut = notNil(m.LeftOut)
	m.HookSources = notNil(m.HookSources)
	m.Runs = completeRows(m.Runs, func(r *phases.Run) bool { return r.Contributions == nil || r.Cut == nil },
		func(r *phases.Run) { r.Contributions, r.Cut = notNil(r.Contributions), notNil(r.Cut) })
	m.Plugins = notNil(m.Plugins)
	m.Policies = notNil(m.Policies)
	m.Tools = notNil(m.Tools)
	m.Budgets.Phases = notNil(m.Budgets.Phases)
	m.Files = notNil(m.Files)
	m.Diagnostics = notNil(m.Diagnostics)
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// completeRows fills the rows that lack something, in a copy if there are any.
func completeRows[T any](list []T, lacks func(*T) bool, fill func(*T)) []T {
	copied := false
	for i := range list {
		if !lacks(&list[i]) {
			continue
		}
		if !copied {
			list, copied = slices.Clone(list), true
		}
		fill(&list[i])
	}
	return notNil(list)
}

// Diagnose adds rows for diagnostics of the compiler or of a dispatch, as
// [phases.AudienceAudit] may see them. A slot is taken as the section only
// if it is the id of a section of this record, in the prompt or left out: so
// add those first.
func (m *Manifest) Diagnose(list []phases.Diagnostic) {
	for i := range list {
		d := list[i].For(phases.AudienceAudit)
		row := Diagnostic{
			Code: d.Code, Cause: d.Cause, Severity: cmp.Or(d.Severity, phases.SeverityInfo), Message: d.Message, HookSource: d.Subscription,
		}
		if m.knowsSection(d.Slot) {
			row.SectionID = d.Slot
		}
		m.Diagnostics = append(m.Diagnostics, row)
	}
}

func (m *Manifest) knowsSection(id string) bool {
	return id != "" && (holds(m.Sections, id) ||
		slices.ContainsFunc(m.LeftOut, func(l phases.LeftOut) bool { return l.ID == id }))
}
