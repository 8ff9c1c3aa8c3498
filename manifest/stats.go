package manifest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// Stats are what a list of records adds up to. Lists are never nil in JSON.
type Stats struct {
	// Records counts all of them, Prompts those whose prompt was sent, Blocked those of turns without one.
	Records int `json:"records"`
	Prompts int `json:"prompts"`
	Blocked int `json:"blocked"`
	// First and Last are when the first and the last were made; absent without any.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Owners are sorted by tokens, the most first, Sections too, Days by date (UTC).
	Owners   []OwnerStats   `json:"owners"`
	Sections []SectionStats `json:"sections"`
	Days     []DayStats     `json:"days"`
}

// OwnerStats are those of a plugin, "host" or "builtin".
type OwnerStats struct {
	Owner string `json:"owner"`
	// Tokens and Chars are what it wrote in all prompts; tokens of a section with several writers are shared out by length.
	Tokens int `json:"tokens"`
	Chars  int `json:"chars"`
	// Runs counts its hooks that ran, Failed those that failed, timed out or were unavailable, Denied those that denied.
	Runs   int `json:"runs"`
	Failed int `json:"failed"`
	Denied int `json:"denied"`
	// Cuts counts contributions that were cut, Omitted what was left out.
	Cuts    int `json:"cuts"`
	Omitted int `json:"omitted"`
	// Breaks counts the prompts in which it broke the provider's cache, TokensLost what had to be read again for that.
	Breaks     int `json:"breaks"`
	TokensLost int `json:"tokens_lost"`
}

// SectionStats are those of a section.
type SectionStats struct {
	SectionID string `json:"section_id"`
	// Prompts counts those that have it, Tokens and Chars are what it has in all of them.
	Prompts int `json:"prompts"`
	Tokens  int `json:"tokens"`
	Chars   int `json:"chars"`
	// Cuts counts prompts in which it was cut, Omitted those without it, Breaks those in which it broke the cache.
	Cuts    int `json:"cuts"`
	Omitted int `json:"omitted"`
	Breaks  int `json:"breaks"`
}

// DayStats are those of a day.
type DayStats struct {
	Day     string `json:"day"`
	Prompts int    `json:"prompts"`
	// Tokens are those of the prompts' sections and tools, Predicted what was expected from the provider's cache.
	Tokens    int `json:"tokens"`
	Predicted int `json:"predicted"`
	// Reported counts prompts with a report of the provider, for which the next three add up.
	Reported        int `json:"reported"`
	InputTokens     int `json:"input_tokens"`
	CacheReadTokens int `json:"cache_read_tokens"`
	OutputTokens    int `json:"output_tokens"`
	Cuts            int `json:"cuts"`
	Failed          int `json:"failed"`
	Breaks          int `json:"breaks"`
}

// Counter makes [Stats] of records, one after the other, in the order of appending. Its memory grows with owners, sections, days and
// threads, not with records.
type Counter struct {
	stats    Stats
	owners   map[string]*OwnerStats
	sections map[string]*SectionStats
	days     map[string]*DayStats
	// ledgers has how many runs of a thread's last turn are counted: records of later rounds repeat those of earlier ones.
	ledgers map[[2]string]ledger
}

type ledger struct {
	turn    string
	counted int
}

// NewCounter returns a counter without records.
func NewCounter() *Counter {
	return &Counter{
		owners: map[string]*OwnerStats{}, sections: map[string]*SectionStats{}, days: map[string]*DayStats{}, ledgers: map[[2]string]ledger{},
	}
}

// Stats returns what was added so far.
func (c *Counter) Stats() Stats {
	s := c.stats
	s.Owners, s.Sections, s.Days = values(c.owners), values(c.sections), values(c.days)
	slices.SortFunc(s.Owners, func(a, b OwnerStats) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.Owner, b.Owner))
	})
	slices.SortFunc(s.Sections, func(a, b SectionStats) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.SectionID, b.SectionID))
	})
	slices.SortFunc(s.Days, func(a, b DayStats) int { return cmp.Compare(a.Day, b.Day) })
	return s
}

func values[T any](m map[string]*T) []T {
	list := make([]T, 0, len(m))
	for v := range maps.Values(m) {
		list = append(list, *v)
	}
	return list
}

// at returns the row of a name, new if there is none.
func at[T any](m map[string]*T, name string, fresh T) *T {
	row, known := m[name]
	if !known {
		row = &fresh
		m[name] = row
	}
	return row
}

func (c *Counter) owner(name string) *OwnerStats { return at(c.owners, name, OwnerStats{Owner: name}) }

func (c *Counter) section(id string) *SectionStats {
	return at(c.sections, id, SectionStats{SectionID: id})
}

// Add adds a record, and what the provider reported for it, if anything. What the record says broke the cache counts.
func (c *Counter) Add(m *Manifest, u *Usage) {
	c.stats.Records++
	if c.stats.First.IsZero() || m.CreatedAt.Before(c.stats.First) {
		c.stats.First = m.CreatedAt
	}
	if m.CreatedAt.After(c.stats.Last) {
		c.stats.Last = m.CreatedAt
	}
	name := m.CreatedAt.UTC().Format(time.DateOnly)
	day := at(c.days, name, DayStats{Day: name})
	c.addRuns(m, day)
	switch o := m.Outline(); {
	case o.Sent:
		c.stats.Prompts++
		day.Prompts++
		c.addPrompt(m, day)
	case m.Kind == KindPrompt:
		c.stats.Blocked++
	}
	if u != nil {
		day.Reported++
		day.InputTokens += u.InputTokens
		day.CacheReadTokens += u.CacheReadTokens
		day.OutputTokens += u.OutputTokens
	}
}

// addRuns counts the runs that no record before had.
func (c *Counter) addRuns(m *Manifest, day *DayStats) {
	runs, thread := m.Runs, [2]string{m.WorkspaceID, m.ThreadID}
	if m.Kind == KindPrompt {
		if before := c.ledgers[thread]; m.TurnID != "" && before.turn == m.TurnID {
			runs = runs[min(before.counted, len(runs)):]
		}
		c.ledgers[thread] = ledger{m.TurnID, len(m.Runs)}
	}
	for i := range runs {
		r := &runs[i]
		o := c.owner(cmp.Or(r.Plugin, phases.OwnerHost)) // a tool that no plugin has
		switch r.State {
		case phases.StateFailed, phases.StateTimedOut, phases.StateUnavailable:
			o.Failed++
			day.Failed++
		case phases.StateFiltered, phases.StateDisabled:
			continue
		case phases.StateDenied:
			o.Denied++
		}
		o.Runs++
		o.Cuts += len(r.Cut)
		day.Cuts += len(r.Cut)
	}
}

func (c *Counter) addPrompt(m *Manifest, day *DayStats) {
	day.Tokens += m.Cache.ToolTokens
	if m.Cache.Predicted != nil {
		day.Predicted += *m.Cache.Predicted
	}
	for i := range m.Sections {
		s := &m.Sections[i]
		row, tokens := c.section(s.SectionID), 0
		if s.Tokens != nil {
			tokens = *s.Tokens
		}
		row.Prompts++
		row.Tokens += tokens
		row.Chars += s.Chars
		day.Tokens += tokens
		if s.Truncation != nil {
			row.Cuts++
		}
		c.share(s, tokens)
	}
	for i := range m.Omitted {
		c.section(m.Omitted[i].ID).Omitted++
		c.owner(m.Omitted[i].Owner).Omitted++
	}
	b := &m.Cache.Break
	if b.Cause == "" {
		return
	}
	day.Breaks++
	if b.BrokeAt != "" {
		c.section(b.BrokeAt).Breaks++
	}
	if b.Owner != "" {
		o := c.owner(b.Owner)
		o.Breaks++
		o.TokensLost += b.TokensLost
	}
}

// share divides a section's text and tokens among those who wrote it; the heading goes to its owner.
func (c *Counter) share(s *Section, tokens int) {
	left := tokens
	for _, span := range s.ContentMap {
		o, part := c.owner(span.Owner), tokens*span.Length/max(s.Chars, 1)
		o.Chars += span.Length
		o.Tokens += part
		left -= part
	}
	c.owner(s.Owner).Tokens += left
}
