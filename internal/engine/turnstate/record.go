package turnstate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// maxAudits bounds the audits of one record.
const maxAudits = 256

// codeAuditsNotKept: there were too many audits for one record.
const codeAuditsNotKept = "audits_not_kept"

// mark is how far a record reaches into the lists of a turn.
type mark struct{ runs, budgets, notes, audits, calls, requests, host, handed int }

// recorded is what the turn's records hold already.
type recorded struct {
	// kept are the marks of the last record that was kept, made those of the last one that was made.
	kept, made mark
	// sources and omitted are those of the last record that was made.
	sources []phases.HookSource
	omitted []phases.Omitted
	// any says that a record was kept.
	any bool
}

// Head fills in whose record it is.
func Head(h manifest.Head, c *phases.Context) manifest.Head {
	h.WorkspaceID, h.ThreadID, h.TurnID, h.SessionID, h.Epoch = c.WorkspaceID, c.ThreadID, c.TurnID, c.SessionID, c.Epoch
	h.AgentID, h.TaskID, h.Mode, h.Actor = c.AgentID, c.TaskID, c.Mode, c.Actor.Name()
	return h
}

// Origin returns what the records of a configuration begin with, and the hashes of what its plugins are granted, in
// order. No secret is in what is hashed.
func Origin(cfg *config.Config, h manifest.Head) (head manifest.Head, grants []string, err error) {
	public, err := cfg.Public()
	if err != nil {
		return h, nil, err
	}
	key := []byte(cfg.Manifest.FingerprintKey.Value)
	h.SchemaVersion, h.Kind, h.Profile, h.ConfigHash = manifest.SchemaVersion, manifest.KindPrompt, phases.ProfileFull, manifest.HashJSON(public, key)
	for i := range cfg.Plugins {
		grants = append(grants, manifest.HashJSON(cfg.Plugins[i].Grants, key))
	}
	return h, grants, nil
}

// AuditedRows are the rows of plugins without their own words.
func AuditedRows(rows []phases.PluginRow) []phases.PluginRow {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Message, rows[i].Detail = text.Sanitize(rows[i].Message, MaxNoteChars), ""
	}
	return rows
}

// AuditRows are the rows of a phase's audits.
func AuditRows(phase phases.Phase, list []merge.Owned[*phases.Audit], key []byte) []manifest.Audit {
	rows := make([]manifest.Audit, len(list))
	for i, a := range list {
		rows[i] = manifest.Audit{
			Phase: phase, Plugin: a.Hook.Plugin, PluginVersion: a.Hook.PluginVersion, SubscriptionID: a.Hook.Subscription,
			EventKind: text.Sanitize(a.Value.EventKind, MaxWordChars), ContributionHash: a.Hash,
		}
		rows[i].SetDetails(a.Value.Details, a.Value.SafeForUser, key)
	}
	return rows
}

// AddAudits adds the audits of a phase for the next record.
func (s *State) AddAudits(rows []manifest.Audit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.audits = append(s.audits, rows...)
	for i := range rows {
		s.ledger.bytes += 256 + len(rows[i].Details)
	}
}

// Record writes what the turn has gathered into the manifest of a prompt that has the compiler's rows: all runs, and
// the calls, requests and audits since the last kept record. ends says that the turn ends with it.
func (s *State) Record(m *manifest.Manifest, b config.TurnBudget, ends bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.TurnEnded = ends
	s.sources(m)
	s.placeContexts(m)
	m.Runs, m.RunsBefore = runRows(s.ledger.runs), s.recorded.kept.runs
	m.Policies = s.policies
	m.Budgets = s.budgetRows(m, b, 0)
	s.since(m)
	for i := range s.reminders {
		m.Reminders = append(m.Reminders, s.reminderRow(&s.reminders[i]))
	}
	m.Diagnose(s.notes.rows(0))
	m.Diagnose(s.ledger.notes())
}

// Events writes what came after the last kept record into a record of its own, with the rows of the plugins that had a
// part in it. ends says that the turn ends with it.
func (s *State) Events(m *manifest.Manifest, plugins []phases.PluginRow, b config.TurnBudget, ends bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.Kind, m.TurnEnded = manifest.KindEvents, ends
	m.Fingerprints = manifest.EmptyFingerprints(s.key)
	r := &s.recorded
	sources, omitted := r.sources, r.omitted
	s.sources(m)
	m.HookSources, m.Omitted = added(m.HookSources, sources), added(m.Omitted, omitted)
	m.Runs = runRows(s.ledger.runs[r.kept.runs:])
	m.Budgets = s.budgetRows(m, b, r.kept.budgets)
	for i := range plugins {
		if slices.ContainsFunc(m.Runs, func(run phases.Run) bool { return run.Plugin == plugins[i].Plugin }) {
			m.Plugins = append(m.Plugins, plugins[i])
		}
	}
	s.since(m)
	m.Diagnose(s.notes.rows(r.kept.notes))
	m.Diagnose(s.ledger.notes())
}

// Undelivered reports what plugins passed on to their own hooks, such as memories, and no section names a source of.
func (s *State) Undelivered(list []manifest.Section, omitted []phases.Omitted) (notes []phases.Diagnostic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := map[string]bool{}
	for i := range list {
		for _, r := range list[i].SourceRefs {
			shown[r.Kind+" "+r.ID] = true
		}
	}
	for i := range s.contexts {
		c := &s.contexts[i]
		if c.Render || len(c.SourceRefs) == 0 || slices.ContainsFunc(c.SourceRefs, func(r phases.SourceRef) bool { return shown[r.Kind+" "+r.ID] }) {
			continue
		}
		plugin, _, _ := strings.Cut(c.Owner, ".") // a plugin's name has no dot
		why := "no hook of " + plugin + " writes it into a section"
		for j := range s.ledger.runs {
			if run := &s.ledger.runs[j]; run.Plugin == plugin && run.Phase == phases.PrePromptCompile {
				why = fmt.Sprintf("%s wrote no section with it (%s)", run.Subscription, cmp.Or(run.Code, string(run.State)))
			}
		}
		for _, o := range omitted {
			if o.Owner == plugin && sections.Lookup(o.ID) != nil {
				why = fmt.Sprintf("%s was omitted (%s)", o.ID, o.Reason)
			}
		}
		notes = append(notes, phases.Diagnostic{
			Code: phases.CodeNotDelivered, Severity: phases.SeverityWarning, SafeForUser: true, Plugin: plugin, Subscription: c.Owner, Message: "recalled, not delivered: " + why,
		})
	}
	return notes
}

// since writes the calls, requests, events of the host, audits and handed reminders since the last kept record. The caller holds the lock, here and below.
func (s *State) since(m *manifest.Manifest) {
	r := &s.recorded
	m.Calls = slices.Clone(s.calls[r.kept.calls:])
	m.Requests = slices.Clone(s.requests[r.kept.requests:])
	m.HostEvents = slices.Clone(s.host[r.kept.host:])
	m.Reminders = slices.Clone(s.handed[r.kept.handed:])
	m.Audits = slices.Clone(s.audits[r.kept.audits:])
	if over := len(m.Audits) - maxAudits; over > 0 {
		m.Audits = m.Audits[:maxAudits]
		m.Diagnose([]phases.Diagnostic{{
			Code: codeAuditsNotKept, Severity: phases.SeverityError, SafeForUser: true,
			Message: fmt.Sprintf("%d audit events were not kept: a record has at most %d", over, maxAudits),
		}})
	}
	r.made = s.mark()
}

// Kept notes that the record that was made last was kept.
func (s *State) Kept() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := s.recorded.kept.calls; i < s.recorded.made.calls; i++ {
		for _, t := range s.arguments[i] {
			s.textBytes -= len(t.Text)
		}
		s.arguments[i] = nil
	}
	handed := s.handed[s.recorded.made.handed:] // since the record was made
	for hash, text := range s.reminderTexts {
		if !slices.ContainsFunc(handed, func(r manifest.Reminder) bool { return r.Hash == hash }) {
			s.textBytes -= len(text)
			delete(s.reminderTexts, hash)
		}
	}
	s.recorded.kept, s.recorded.any = s.recorded.made, true
}

// OnlyLooks says that the host makes nothing of the turn: it needs a record only if something was not allowed, rewritten,
// failed or was audited.
func (s *State) OnlyLooks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onlyLooks = true
}

// Unrecorded reports whether there is something that no kept record holds: runs, notes, calls, requests or audits, and
// the end of a turn that has records.
func (s *State) Unrecorded(ends bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.recorded.kept
	if s.onlyLooks && kept == (mark{}) {
		return len(s.audits) > 0 || slices.ContainsFunc(s.calls, func(c manifest.Call) bool {
			return (c.Verdict != phases.VerdictAllow || len(c.RewrittenBy) > 0) && (c.Input == nil || c.Phase != phases.PrePolicy)
		}) ||
			slices.ContainsFunc(s.ledger.runs, func(r phases.Run) bool {
				return !slices.Contains([]phases.RunState{phases.StateSucceeded, phases.StateCached, phases.StateFiltered, phases.StateDisabled, phases.StateQueued}, r.State)
			})
	}
	kept.budgets = len(s.ledger.budgets)
	return s.mark() != kept || ends && s.recorded.any
}

func (s *State) mark() mark {
	return mark{len(s.ledger.runs), len(s.ledger.budgets), len(s.notes.list), len(s.audits), len(s.calls), len(s.requests), len(s.host), len(s.handed)}
}

// sources writes where contributions went, and what was omitted before the compiler.
func (s *State) sources(m *manifest.Manifest) {
	var before []phases.Omitted
	m.HookSources = nil
	for i := range s.brought {
		m.HookSources = append(m.HookSources, s.brought[i].sources...)
		before = append(before, s.brought[i].omitted...)
	}
	m.Omitted = append(before, m.Omitted...)
	s.recorded.sources, s.recorded.omitted = slices.Clone(m.HookSources), slices.Clone(before)
}

// added returns the rows that were not there before.
func added[T comparable](rows, before []T) []T {
	known := make(map[T]bool, len(before))
	for _, row := range before {
		known[row] = true
	}
	return slices.DeleteFunc(rows, func(row T) bool { return known[row] })
}

func runRows(runs []phases.Run) []phases.Run {
	runs = slices.Clone(runs)
	for i := range runs {
		runs[i].PluginCode = text.Sanitize(runs[i].PluginCode, MaxWordChars)
		runs[i].ReasonCode = text.Sanitize(runs[i].ReasonCode, MaxWordChars)
	}
	return runs
}

func (s *State) reminderRow(r *phases.MergedReminder) manifest.Reminder {
	row := manifest.Reminder{
		Type: r.Type, Owner: r.Owner, ContributionID: r.ContributionID, Fingerprint: manifest.Fingerprint(r.Text, s.key), Hash: manifest.Hash(r.Text, s.key),
		Chars: text.Chars(r.Text),
	}
	if s.KeepTexts && s.reminderTexts[row.Hash] == "" && s.textBytes+len(r.Text) <= maxTextBytes {
		s.textBytes += len(r.Text)
		if s.reminderTexts == nil {
			s.reminderTexts = map[string]string{}
		}
		s.reminderTexts[row.Hash] = r.Text
	}
	return row
}

// placeContexts names the section of rendered contexts in their sources, which merging
// cannot know.
func (s *State) placeContexts(m *manifest.Manifest) {
	if !slices.ContainsFunc(m.Sections, func(row manifest.Section) bool { return row.SectionID == sections.DynamicContext }) {
		return
	}
	for i := range m.HookSources {
		h := &m.HookSources[i]
		if h.ContributionKind == phases.KindPromptContext && slices.ContainsFunc(s.contexts, func(c phases.ContextEntry) bool {
			return c.Render && c.Owner == h.SubscriptionID && c.ContributionID == h.ContributionID
		}) {
			h.SectionID = sections.DynamicContext
		}
	}
}

// budgetRows are the turn's budget and those of its dispatches from the given one on. Used is the text that is in the
// prompt: of several dispatches of a phase, the last one brought it.
func (s *State) budgetRows(m *manifest.Manifest, b config.TurnBudget, from int) manifest.Budgets {
	granted := cmp.Or(b.Time.D(), config.DefaultTurnTime)
	rows := manifest.Budgets{
		Turn:   manifest.Budget{GrantedMS: Millis(granted), UsedMS: Millis(granted - s.budget.time), GrantedChars: s.budget.chars},
		Phases: slices.Clone(s.ledger.budgets[from:]),
	}
	used := map[phases.Phase]int{}
	for i := range m.Sections {
		row := &m.Sections[i]
		ofPlugin := row.Owner != phases.OwnerBuiltin && row.Owner != phases.OwnerHost
		if ofPlugin {
			rows.Turn.UsedChars += row.Chars
		}
		var phase phases.Phase // whose text a marker follows
		for _, span := range row.ContentMap {
			if at := slices.IndexFunc(m.HookSources, func(h phases.HookSource) bool {
				return span.ContributionID != "" && h.Plugin == span.Owner && h.ContributionID == span.ContributionID && h.SectionID == row.SectionID
			}); at >= 0 {
				phase = m.HookSources[at].Phase
				used[phase] += span.Length
			} else if ofPlugin {
				used[phase] += span.Length
			}
		}
	}
	for i := range slices.Backward(rows.Phases) {
		p := &rows.Phases[i]
		p.UsedChars = used[p.Phase]
		delete(used, p.Phase)
	}
	return rows
}
