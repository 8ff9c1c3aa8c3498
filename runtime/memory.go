package runtime

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/recent"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// maxSessions bounds the sessions and threads that the engine remembers. A workspace
// that has many loses its own first.
const maxSessions = 4096

// memory is what the engine remembers from turn to turn. Without a store it is
// bounded and gone when the process ends.
type memory struct {
	mu sync.Mutex
	// delivered holds the dedupe keys of reminders, by session.
	delivered recent.Map[*deliveredKeys]
	// prompts are what is asked of the last ones, by thread.
	prompts recent.Map[*manifest.Manifest]
	// begun is what session.start and session.resume brought, by session.
	begun recent.Map[sessionBegin]
	// asked are the hidden domains that were asked for, by session.
	asked recent.Map[*askedDomains]
}

func newMemory() *memory {
	return &memory{
		delivered: recent.New[*deliveredKeys](maxSessions),
		prompts:   recent.New[*manifest.Manifest](maxSessions),
		begun:     recent.New[sessionBegin](maxSessions),
		asked:     recent.New[*askedDomains](maxSessions),
	}
}

// maxKeys bounds the dedupe keys of one session and epoch.
const maxKeys = 1024

type deliveredKeys struct {
	epoch int
	keys  recent.Map[bool]
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
		if _, again := seen.keys.Get(reminderKey(r)); again && r.DedupeKey != "" {
			before = append(before, phases.LeftOut{ID: r.ContributionID, Owner: pluginOf(r), Reason: "duplicate", Chars: utf8.RuneCountInString(r.Text)})
			continue
		}
		if r.DedupeKey != "" {
			seen.keys.Put("", reminderKey(r), true)
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
		seen.keys.Drop(reminderKey(r))
	}
}

// pluginOf is the plugin whose subscription owns a reminder.
func pluginOf(r phases.MergedReminder) string {
	plugin, _, _ := strings.Cut(r.Owner, ".")
	return plugin
}

// reminderKey is the dedupe key under its owner: one plugin cannot silence
// another.
func reminderKey(r phases.MergedReminder) string { return r.Owner + "\x00" + r.DedupeKey }

// deliveredIn returns the keys of the context's session and epoch.
func (m *memory) deliveredIn(c phases.Context) *deliveredKeys {
	id := sessionOf(c)
	s, ok := m.delivered.Get(id)
	if !ok || s.epoch != c.Epoch {
		s = &deliveredKeys{epoch: c.Epoch, keys: recent.New[bool](maxKeys)}
		m.delivered.Put(c.WorkspaceID, id, s)
	}
	return s
}

// previous returns what is asked of the last prompt of the context's thread; nil
// if this engine has compiled none.
func (m *memory) previous(c phases.Context) *manifest.Manifest {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, _ := m.prompts.Get(threadOf(c))
	return p
}

// keepPrompt notes the latest prompt of a thread. Without a thread and a session
// there is nothing that it could be the previous one of.
func (m *memory) keepPrompt(c phases.Context, p *manifest.Manifest) {
	if c.ThreadID == "" && c.SessionID == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prompts.Put(c.WorkspaceID, threadOf(c), p)
}

// sessionBegin is what the begin of a session brought for its turns: contexts,
// and the contributions that they are.
type sessionBegin struct {
	phase    phases.Phase
	contexts []phases.ContextEntry
	sources  []phases.HookSource
}

// beginSession keeps what the begin of a session brought for its turns;
// endSession forgets it.
func (m *memory) beginSession(c phases.Context, out *phases.Outcome) {
	if c.SessionID == "" {
		return
	}
	begun := sessionBegin{phase: out.Phase, contexts: out.Merged.Contexts}
	for _, source := range out.Sources {
		if source.ContributionKind == phases.KindPromptContext {
			begun.sources = append(begun.sources, source)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun.Put(c.WorkspaceID, sessionOf(c), begun)
}

func (m *memory) endSession(c phases.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun.Drop(sessionOf(c))
	m.delivered.Drop(sessionOf(c))
	m.asked.Drop(sessionOf(c))
}

// begunWith is what a turn of the session begins with; false if nothing is known of
// the session's beginning.
func (m *memory) begunWith(c phases.Context) (sessionBegin, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun.Get(sessionOf(c))
}

func sessionOf(c phases.Context) string { return sessionKey(c.WorkspaceID, c.SessionID) }

func sessionKey(workspace, session string) string { return workspace + "\x00" + session }

// threadOf is the thread within its workspace; for a host without threads, the
// session.
func threadOf(c phases.Context) string {
	if c.ThreadID == "" {
		return c.WorkspaceID + "\x00\x00" + c.SessionID
	}
	return c.WorkspaceID + "\x00" + c.ThreadID
}
