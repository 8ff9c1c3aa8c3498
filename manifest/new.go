package manifest

import (
	"bytes"
	"cmp"
	_ "embed" // for the schema
	"encoding/json"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
)

// New returns an empty record of the current schema, with lists that are empty and not nil.
func New() Manifest {
	m := Manifest{Head: Head{SchemaVersion: SchemaVersion, Profile: phases.ProfileFull}}
	m.Complete()
	return m
}

// Complete gives the record its form: nil lists become empty ones, also those inside rows, section_ids follow the
// sections, the profile defaults to full, and the time is in UTC. Rows are copied before they are changed, because
// the runtime shares them. [Seal] calls it.
func (m *Manifest) Complete() {
	if m.Profile == "" {
		m.Profile = phases.ProfileFull
	}
	m.CreatedAt = m.CreatedAt.UTC()
	m.Kind = cmp.Or(m.Kind, KindPrompt)
	m.Sections = completeRows(m.Sections, func(s Section) bool { return s.SourceRefs == nil || s.ContentMap == nil },
		func(s *Section) { s.SourceRefs, s.ContentMap = notNil(s.SourceRefs), notNil(s.ContentMap) })
	m.SectionIDs = make([]string, len(m.Sections))
	for i := range m.Sections {
		m.SectionIDs[i] = m.Sections[i].SectionID
	}
	m.Omitted = notNil(m.Omitted)
	m.HookSources = notNil(m.HookSources)
	m.Runs = completeRows(m.Runs, func(r phases.Run) bool { return r.Contributions == nil || r.Cut == nil },
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
func completeRows[T any](list []T, lacks func(T) bool, fill func(*T)) []T {
	if slices.ContainsFunc(list, lacks) {
		list = mapped(list, fill)
	}
	return notNil(list)
}

// Diagnose adds rows for diagnostics of the compiler or of a dispatch, as [phases.AudienceAudit] may see them. A slot
// counts as a section only if the record names that section, in the prompt or omitted: add those first.
func (m *Manifest) Diagnose(list []phases.Diagnostic) {
	var named map[string]bool
	for i := range list {
		d := list[i].For(phases.AudienceAudit)
		row := Diagnostic{
			Code: cmp.Or(d.Code, string(d.Cause), string(phases.CauseInternal)), Cause: d.Cause, Severity: cmp.Or(d.Severity, phases.SeverityInfo), Message: d.Message, HookSource: d.Subscription,
		}
		if d.Slot != "" {
			if named == nil {
				named = m.named()
			}
			if named[d.Slot] {
				row.SectionID = d.Slot
			}
		}
		m.Diagnostics = append(m.Diagnostics, row)
	}
}

// named are the sections that the record names.
func (m *Manifest) named() map[string]bool {
	ids := make(map[string]bool, len(m.Sections)+len(m.Omitted))
	for i := range m.Sections {
		ids[m.Sections[i].SectionID] = true
	}
	for i := range m.Omitted {
		ids[m.Omitted[i].ID] = true
	}
	return ids
}

// schemaJSON is generated from the Go types and their doc comments; a test fails
// when it is stale and writes it with -update.
//
//go:embed schema.json
var schemaJSON []byte

// Schema returns the JSON Schema (draft 2020-12) of the record. The caller may keep and change the copy.
func Schema() json.RawMessage { return bytes.Clone(schemaJSON) }
