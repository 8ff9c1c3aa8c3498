// Package sessions caches what an engine remembers from turn to turn: delivered reminders, the last prompt of a
// thread, what the start of a session brought, and requested hidden tool domains. The cache is bounded and in memory.
//
// Stability: internal.
package sessions

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/recent"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	// maxSessions bounds the sessions and threads; each workspace evicts its own first.
	maxSessions = 4096
	// maxKeys bounds the dedupe keys of one session and epoch.
	maxKeys = 1024
	// maxDomains bounds the domains of one session and epoch.
	maxDomains = 256
	// maxPending bounds the reminders that a session leaves to its next turn.
	maxPending = 64
)

// Cache is safe for concurrent use.
type Cache struct {
	mu sync.Mutex
	// delivered holds the dedupe keys of reminders, domains the requested hidden domains, begun what the start
	// brought; all by session.
	delivered recent.Map[*epochSet]
	domains   recent.Map[*epochSet]
	begun     recent.Map[Start]
	// pending holds reminders that no prompt has delivered yet, by session.
	pending recent.Map[[]phases.MergedReminder]
	// prompts holds the last prompt by thread.
	prompts recent.Map[*manifest.Outline]
	// numbers has the number of what happened last to each session, of all that was counted.
	numbers recent.Map[uint64]
	counted uint64
}

type epochSet struct {
	epoch int
	names recent.Map[bool]
}

// New returns an empty cache.
func New() *Cache {
	return &Cache{
		delivered: recent.New[*epochSet](maxSessions), domains: recent.New[*epochSet](maxSessions),
		begun: recent.New[Start](maxSessions), pending: recent.New[[]phases.MergedReminder](maxSessions), prompts: recent.New[*manifest.Outline](maxSessions),
		numbers: recent.New[uint64](maxSessions),
	}
}

// Undelivered returns the reminders that were not delivered yet in the session and epoch, remembers them, and returns
// a row for each of the others. Without a session all are returned.
func (s *Cache) Undelivered(c phases.Context, reminders []phases.MergedReminder) ([]phases.MergedReminder, []phases.Omitted) {
	if c.SessionID == "" || len(reminders) == 0 {
		return reminders, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.deliveredIn(c)
	kept := make([]phases.MergedReminder, 0, len(reminders))
	var before []phases.Omitted
	for _, r := range reminders {
		if _, again := seen.names.Get(reminderKey(r)); again && r.DedupeKey != "" {
			plugin, _, _ := strings.Cut(r.Owner, ".")
			before = append(before, phases.Omitted{ID: r.ContributionID, Owner: plugin, Reason: "duplicate", Chars: utf8.RuneCountInString(r.Text)})
			continue
		}
		if r.DedupeKey != "" {
			seen.names.Put("", reminderKey(r), true)
		}
		kept = append(kept, r)
	}
	return kept, before
}

// Leave keeps reminders that no prompt has delivered for the session's next turn. It returns those that it does not
// keep: all without a session, and the newest ones beyond [maxPending].
func (s *Cache) Leave(c phases.Context, reminders []phases.MergedReminder) (lost []phases.MergedReminder) {
	if c.SessionID == "" || len(reminders) == 0 {
		return reminders
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting, _ := s.pending.Get(sessionOf(c))
	all := append(slices.Clip(waiting), reminders...)
	n := min(len(all), maxPending)
	s.pending.Put(c.WorkspaceID, sessionOf(c), all[:n:n])
	return all[n:]
}

// TakePending returns the reminders that were left to the session's next turn, each once.
func (s *Cache) TakePending(c phases.Context) []phases.MergedReminder {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting, _ := s.pending.Get(sessionOf(c))
	s.pending.Drop(sessionOf(c))
	return waiting
}

// reminderKey is the dedupe key under its owner: one plugin cannot silence another.
func reminderKey(r phases.MergedReminder) string { return r.Owner + "\x00" + r.DedupeKey }

func (s *Cache) deliveredIn(c phases.Context) *epochSet {
	set, ok := s.delivered.Get(sessionOf(c))
	if !ok || set.epoch != c.Epoch {
		set = &epochSet{epoch: c.Epoch, names: recent.New[bool](maxKeys)}
		s.delivered.Put(c.WorkspaceID, sessionOf(c), set)
	}
	return set
}

// Previous returns the last prompt of the context's thread, one that is a part of an agent's request or a whole one; nil if
// this engine has compiled none.
func (s *Cache) Previous(c phases.Context, ofAgent bool) *manifest.Outline {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, _ := s.prompts.Get(promptsOf(c, ofAgent))
	return p
}

// KeepPrompt remembers the latest prompt of a thread or session.
func (s *Cache) KeepPrompt(c phases.Context, p *manifest.Outline) {
	if c.ThreadID == "" && c.SessionID == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts.Put(c.WorkspaceID, promptsOf(c, p.OfAgent), p)
}

// Start is what the start of a session brought for its turns.
type Start struct {
	Phase    phases.Phase
	Contexts []phases.ContextEntry
	Sources  []phases.HookSource
}

// Begin remembers what the start of a session brought: its contexts, and its reminders for the first prompt.
// It returns the reminders that it does not keep, as [Cache.Leave] does.
func (s *Cache) Begin(c phases.Context, out *phases.Outcome) (lost []phases.MergedReminder) {
	if c.SessionID == "" {
		return out.Merged.Reminders
	}
	begun := Start{Phase: out.Phase, Contexts: out.Merged.Contexts}
	for _, source := range out.Sources {
		if source.ContributionKind == phases.KindPromptContext {
			begun.Sources = append(begun.Sources, source)
		}
	}
	s.mu.Lock()
	s.begun.Put(c.WorkspaceID, sessionOf(c), begun)
	s.count(c)
	s.mu.Unlock()
	return s.Leave(c, out.Merged.Reminders)
}

// Started returns what the start of the context's session brought; false if unknown.
func (s *Cache) Started(c phases.Context) (Start, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun.Get(sessionOf(c))
}

// End forgets a session. It returns the reminders that were left to its next turn.
func (s *Cache) End(c phases.Context) (lost []phases.MergedReminder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(c)
	s.begun.Drop(sessionOf(c))
	s.delivered.Drop(sessionOf(c))
	s.domains.Drop(sessionOf(c))
	lost, _ = s.pending.Get(sessionOf(c))
	s.pending.Drop(sessionOf(c))
	return lost
}

func (s *Cache) count(c phases.Context) {
	s.counted++
	s.numbers.Put(c.WorkspaceID, sessionOf(c), s.counted)
}

// Number tells what is answered in a session from what was answered before it began, was resumed or ended.
func (s *Cache) Number(c phases.Context) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := s.numbers.Get(sessionOf(c))
	return n
}

// Ask remembers hidden domains that were loaded, for the following turns of the session and epoch. A turn of an older
// epoch asks for itself only.
func (s *Cache) Ask(c phases.Context, domains []string) {
	if c.SessionID == "" || len(domains) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	set, ok := s.domains.Get(sessionOf(c))
	switch {
	case ok && set.epoch > c.Epoch:
		return
	case !ok || set.epoch < c.Epoch:
		set = &epochSet{epoch: c.Epoch, names: recent.New[bool](maxDomains)}
		s.domains.Put(c.WorkspaceID, sessionOf(c), set)
	}
	for _, domain := range domains {
		set.names.Put("", domain, true)
	}
}

// Asked returns the domains requested in the context's session and epoch.
func (s *Cache) Asked(c phases.Context) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	set, ok := s.domains.Get(sessionOf(c))
	if !ok || set.epoch != c.Epoch {
		return nil
	}
	return slices.Clone(set.names.Keys(""))
}

func sessionOf(c phases.Context) string { return c.WorkspaceID + "\x00" + c.SessionID }

func promptsOf(c phases.Context, ofAgent bool) string {
	if ofAgent {
		return threadOf(c) + "\x00"
	}
	return threadOf(c)
}

// threadOf is the thread within its workspace, or the session of a host without threads.
func threadOf(c phases.Context) string {
	if c.ThreadID == "" {
		return c.WorkspaceID + "\x00\x00" + c.SessionID
	}
	return c.WorkspaceID + "\x00" + c.ThreadID
}
