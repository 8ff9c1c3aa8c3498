package runtime

import (
	"sync"

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
}

func newMemory() *memory {
	return &memory{delivered: recent[*deliveredKeys]{limit: maxSessions}, sections: recent[[]manifest.Section]{limit: maxSessions}}
}

type deliveredKeys struct {
	epoch int
	keys  map[string]bool
}

// undelivered returns the reminders that were not delivered yet in the session
// and epoch, and notes them. Without a session there is no epoch to remember:
// only repetitions within the dispatch are left away, which the merge has done.
func (m *memory) undelivered(c phases.Context, reminders []phases.MergedReminder) []phases.MergedReminder {
	if c.SessionID == "" || len(reminders) == 0 {
		return reminders
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.deliveredIn(c)
	kept := make([]phases.MergedReminder, 0, len(reminders))
	for _, r := range reminders {
		key := r.Owner + "\x00" + r.DedupeKey
		if r.DedupeKey != "" && seen.keys[key] {
			continue
		}
		if r.DedupeKey != "" {
			seen.keys[key] = true
		}
		kept = append(kept, r)
	}
	return kept
}

// deliveredIn returns the keys of the context's session and epoch.
func (m *memory) deliveredIn(c phases.Context) *deliveredKeys {
	id := c.WorkspaceID + "\x00" + c.SessionID
	s, ok := m.delivered.get(id)
	if !ok || s.epoch != c.Epoch {
		s = &deliveredKeys{epoch: c.Epoch, keys: map[string]bool{}}
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

func threadOf(c phases.Context) string {
	return c.WorkspaceID + "\x00" + c.SessionID + "\x00" + c.ThreadID
}
