package runtime

import (
	"sync"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// maxSessions bounds the sessions and threads that the engine remembers.
const maxSessions = 4096

// memory is what the engine remembers from turn to turn. Without a store it is
// bounded and gone when the process ends.
type memory struct {
	mu sync.Mutex
	// delivered holds the dedupe keys of reminders, by session.
	delivered recent[*deliveredKeys]
	// sections are those of the last manifest, by session and thread.
	sections recent[[]manifest.Section]
	// contexts are what session.start and session.resume brought, by session.
	contexts recent[[]phases.ContextEntry]
}

func newMemory() *memory {
	return &memory{
		delivered: recent[*deliveredKeys]{limit: maxSessions},
		sections:  recent[[]manifest.Section]{limit: maxSessions},
		contexts:  recent[[]phases.ContextEntry]{limit: maxSessions},
	}
}

// maxKeys bounds the dedupe keys of one session and epoch.
const maxKeys = 1024

type deliveredKeys struct {
	epoch int
	keys  recent[bool]
}

// undelivered returns the reminders that were not delivered yet in the session
// and epoch, and notes them, and a row for each of the others. Without a session
// there is no epoch to remember: only repetitions within the dispatch are left
// away, which the merge has done.
func (m *memory) undelivered(c phases.Context, reminders []phases.MergedReminder) ([]phases.MergedReminder, []phases.LeftOut) {
	if c.SessionID == "" || len(reminders) == 0 {
		return reminders, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.deliveredIn(c)
	kept := make([]phases.MergedReminder, 0, len(reminders))
	var before []phases.LeftOut
	for _, r := range reminders {
		if _, again := seen.keys.get(reminderKey(r)); again && r.DedupeKey != "" {
			before = append(before, phases.LeftOut{ID: r.Type, Owner: r.Owner, Reason: "duplicate", Chars: utf8.RuneCountInString(r.Text)})
			continue
		}
		if r.DedupeKey != "" {
			seen.keys.put(reminderKey(r), true)
		}
		kept = append(kept, r)
	}
	return kept, before
}

// takeBack forgets that reminders were delivered: their prompt was not sent.
func (m *memory) takeBack(c phases.Context, reminders []phases.MergedReminder) {
	if c.SessionID == "" || len(reminders) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.deliveredIn(c)
	for _, r := range reminders {
		seen.keys.drop(reminderKey(r))
	}
}

// reminderKey is the dedupe key under its owner: one plugin cannot silence
// another.
func reminderKey(r phases.MergedReminder) string { return r.Owner + "\x00" + r.DedupeKey }

// deliveredIn returns the keys of the context's session and epoch.
func (m *memory) deliveredIn(c phases.Context) *deliveredKeys {
	id := sessionOf(c)
	s, ok := m.delivered.get(id)
	if !ok || s.epoch != c.Epoch {
		s = &deliveredKeys{epoch: c.Epoch, keys: recent[bool]{limit: maxKeys}}
		m.delivered.put(id, s)
	}
	return s
}

// previousSections returns the sections of the last manifest of the context's
// session and thread; nil without a session.
func (m *memory) previousSections(c phases.Context) []manifest.Section {
	m.mu.Lock()
	defer m.mu.Unlock()
	sections, _ := m.sections.get(threadOf(c))
	return sections
}

// keepSections notes the sections of the latest manifest.
func (m *memory) keepSections(c phases.Context, sections []manifest.Section) {
	if c.SessionID == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sections.put(threadOf(c), sections)
}

// beginSession keeps the contexts that the begin of a session brought for its
// turns; endSession forgets them.
func (m *memory) beginSession(c phases.Context, contexts []phases.ContextEntry) {
	if c.SessionID == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contexts.put(sessionOf(c), contexts)
}

func (m *memory) endSession(c phases.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contexts.drop(sessionOf(c))
	m.delivered.drop(sessionOf(c))
}

// sessionContexts are the contexts with which a turn of the session begins.
func (m *memory) sessionContexts(c phases.Context) []phases.ContextEntry {
	m.mu.Lock()
	defer m.mu.Unlock()
	contexts, _ := m.contexts.get(sessionOf(c))
	return contexts
}

func sessionOf(c phases.Context) string { return c.WorkspaceID + "\x00" + c.SessionID }

func threadOf(c phases.Context) string {
	return sessionOf(c) + "\x00" + c.ThreadID
}
