package manifest

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// Stats are what a list of records adds up to. Lists are never nil in JSON.
type Stats struct {
	// Records counts all of them, Prompts those whose prompt was sent, Blocked those of turns without one.
	Records int `json:"records"`
	Prompts int `json:"prompts"`
	Blocked int `json:"blocked"`
	// ToolTokens are those of the tools offered with the prompts, which no owner or section has.
	ToolTokens int `json:"tool_tokens"`
	// First and Last are when the first and the last were made; absent without any.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Owners are sorted by tokens, the most first, Sections too, Days by date (UTC).
	Owners   []OwnerStats   `json:"owners"`
	Sections []SectionStats `json:"sections"`
	Days     []DayStats     `json:"days"`
}

// OwnerStats are those of a plugin, "host" or "builtin"; an empty owner stands for a cache that the provider dropped.
type OwnerStats struct {
	Owner string `json:"owner"`
	// Tokens and Chars are what it wrote in all prompts; tokens of a section with several writers are shared out by length.
	Tokens int `json:"tokens"`
	Chars  int `json:"chars"`
	// Runs counts the runs of its hooks and tools on record, each once: not answers from the cache, and of work in the
	// background only what has ended and brought something. Failed counts those that failed, timed out or were
	// unavailable, Denied those that denied.
	Runs   int `json:"runs"`
	Failed int `json:"failed"`
	Denied int `json:"denied"`
	// Cuts counts contributions that were cut, Omitted what was left out.
	Cuts    int `json:"cuts"`
	Omitted int `json:"omitted"`
	// Breaks counts the prompts in which it broke the provider's cache ([BlamedTurn.Broke]), TokensLost what had to be read
	// again for that.
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
	// Tokens are those of the prompts' sections and tools, ToolTokens those of the tools alone, Predicted what was expected from the provider's cache.
	Tokens     int `json:"tokens"`
	ToolTokens int `json:"tool_tokens"`
	Predicted  int `json:"predicted"`
	// Reported counts prompts with a report of the provider, for which the next three add up.
	Reported        int `json:"reported"`
	InputTokens     int `json:"input_tokens"`
	CacheReadTokens int `json:"cache_read_tokens"`
	OutputTokens    int `json:"output_tokens"`
	Cuts            int `json:"cuts"`
	Failed          int `json:"failed"`
	Breaks          int `json:"breaks"`
}

// Sums are what the records of one workspace and day add up to, so that they can be kept and corrected.
type Sums struct {
	Records  int                      `json:"records"`
	Blocked  int                      `json:"blocked"`
	Day      DayStats                 `json:"day"`
	Owners   map[string]*OwnerStats   `json:"owners"`
	Sections map[string]*SectionStats `json:"sections"`
}

// Add adds others so many times; -1 takes them away.
func (s *Sums) Add(o *Sums, times int) {
	s.Records, s.Blocked = s.Records+times*o.Records, s.Blocked+times*o.Blocked
	addNumbers(&s.Day, &o.Day, times)
	addRows(s.Owners, o.Owners, times, func(r *OwnerStats) OwnerStats { return OwnerStats{Owner: r.Owner} })
	addRows(s.Sections, o.Sections, times, func(r *SectionStats) SectionStats { return SectionStats{SectionID: r.SectionID} })
}

func addRows[T any](to, from map[string]*T, times int, empty func(*T) T) {
	for name, row := range from {
		addNumbers(at(to, name, empty(row)), row, times)
	}
}

// addNumbers adds the fields that are numbers.
func addNumbers[T any](to, from *T, times int) {
	a, b := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for i := range a.NumField() {
		if a.Field(i).CanInt() {
			a.Field(i).SetInt(a.Field(i).Int() + int64(times)*b.Field(i).Int())
		}
	}
}

// SumsOf names the workspace and the day (UTC) of some sums.
type SumsOf struct{ Workspace, Day string }

// Counter makes [Sums] of records, those of a thread in the order of appending. Its memory grows with workspaces, days,
// owners, sections and threads, not with records.
type Counter struct {
	// Sums are what was added so far.
	Sums    map[SumsOf]*Sums
	threads map[[2]string]*Entry
}

// NewCounter returns a counter without records.
func NewCounter() *Counter {
	return &Counter{Sums: map[SumsOf]*Sums{}, threads: map[[2]string]*Entry{}}
}

// Merge adds others' sums so many times.
func (c *Counter) Merge(others map[SumsOf]*Sums, times int) {
	for of, sums := range others {
		c.at(of).Add(sums, times)
	}
}

func (c *Counter) at(of SumsOf) *Sums {
	return at(c.Sums, of, Sums{Day: DayStats{Day: of.Day}, Owners: map[string]*OwnerStats{}, Sections: map[string]*SectionStats{}})
}

func (c *Counter) day(workspace string, at time.Time) *Sums {
	return c.at(SumsOf{workspace, at.UTC().Format(time.DateOnly)})
}

// Stats returns what the sums add up to, without First and Last.
func (c *Counter) Stats() Stats {
	all, days := Sums{Owners: map[string]*OwnerStats{}, Sections: map[string]*SectionStats{}}, map[string]*DayStats{}
	for of, sums := range c.Sums {
		all.Add(sums, 1)
		addNumbers(at(days, of.Day, DayStats{Day: of.Day}), &sums.Day, 1)
	}
	s := Stats{Records: all.Records, Prompts: all.Day.Prompts, Blocked: all.Blocked, ToolTokens: all.Day.ToolTokens}
	s.Owners = values(all.Owners, func(o *OwnerStats) bool { return *o != OwnerStats{Owner: o.Owner} })
	s.Sections = values(all.Sections, func(s *SectionStats) bool { return *s != SectionStats{SectionID: s.SectionID} })
	s.Days = values(days, func(*DayStats) bool { return true })
	slices.SortFunc(s.Owners, func(a, b OwnerStats) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.Owner, b.Owner))
	})
	slices.SortFunc(s.Sections, func(a, b SectionStats) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.SectionID, b.SectionID))
	})
	slices.SortFunc(s.Days, func(a, b DayStats) int { return cmp.Compare(a.Day, b.Day) })
	return s
}

func values[T any](m map[string]*T, want func(*T) bool) []T {
	list := make([]T, 0, len(m))
	for v := range maps.Values(m) {
		if want(v) {
			list = append(list, *v)
		}
	}
	return list
}

// at returns the row of a key, new if there is none.
func at[K comparable, T any](m map[K]*T, key K, fresh T) *T {
	row, known := m[key]
	if !known {
		row = &fresh
		m[key] = row
	}
	return row
}

func (s *Sums) owner(name string) *OwnerStats { return at(s.Owners, name, OwnerStats{Owner: name}) }

func (s *Sums) section(id string) *SectionStats {
	return at(s.Sections, id, SectionStats{SectionID: id})
}

// Follow makes a whole prompt the last one of its thread and counts nothing. It returns the one before.
func (c *Counter) Follow(e *Entry) (before *Entry) {
	if !e.Outline.Whole() {
		return nil
	}
	thread := [2]string{e.Outline.WorkspaceID, e.Outline.ThreadID}
	before, c.threads[thread] = c.threads[thread], e
	return before
}

// AddRecord adds what a record says by itself.
func (c *Counter) AddRecord(m *Manifest) {
	s := c.day(m.WorkspaceID, m.CreatedAt)
	s.Records++
	s.addRuns(m.Runs[min(max(m.RunsBefore, 0), len(m.Runs)):]) // nobody has validated it
	for i := range m.Omitted {
		s.owner(m.Omitted[i].Owner).Omitted++
	}
	switch {
	case m.Sent():
		s.addPrompt(m)
	case m.Kind == KindPrompt:
		s.Blocked++
	}
}

// AddEntry adds what the provider reported for a record, and what its prompt broke of the cache as [Blame] says it.
func (c *Counter) AddEntry(e *Entry) {
	o := &e.Outline
	s := c.day(o.WorkspaceID, o.CreatedAt)
	if u := e.Usage; u != nil {
		s.Day.Reported++
		s.Day.InputTokens += u.InputTokens
		s.Day.CacheReadTokens += u.CacheReadTokens
		s.Day.OutputTokens += u.OutputTokens
	}
	if !o.Sent {
		return
	}
	b := blame(c.Follow(e), e)
	if !b.Broke() {
		return
	}
	s.Day.Breaks++
	if b.BrokeAt != "" {
		s.section(b.BrokeAt).Breaks++
	}
	owner := s.owner(b.Owner)
	owner.Breaks++
	owner.TokensLost += b.TokensLost
}

func (s *Sums) addRuns(runs []phases.Run) {
	for i := range runs {
		r := &runs[i]
		o := s.owner(cmp.Or(r.Plugin, phases.OwnerHost)) // a tool that no plugin has
		switch r.State {
		case phases.StateFailed, phases.StateTimedOut, phases.StateUnavailable:
			o.Failed++
			s.Day.Failed++
		case phases.StateFiltered, phases.StateDisabled, phases.StateCached, phases.StateQueued:
			continue
		case phases.StateCancelled:
			if r.Attempts == 0 { // the turn ended before
				continue
			}
		case phases.StateDenied:
			o.Denied++
		}
		o.Runs++
		o.Cuts += len(r.Cut)
		s.Day.Cuts += len(r.Cut)
	}
}

func (s *Sums) addPrompt(m *Manifest) {
	s.Day.Prompts++
	s.Day.Tokens += m.Cache.ToolTokens
	if m.Observed == "" { // others have owners
		s.Day.ToolTokens += m.Cache.ToolTokens
	}
	if m.Cache.Predicted != nil {
		s.Day.Predicted += *m.Cache.Predicted
	}
	for i := range m.Sections {
		section := &m.Sections[i]
		row, tokens := s.section(section.SectionID), 0
		if section.Tokens != nil {
			tokens = *section.Tokens
		}
		row.Prompts++
		row.Tokens += tokens
		row.Chars += section.Chars
		s.Day.Tokens += tokens
		if section.Truncation != nil {
			row.Cuts++
		}
		s.share(section, tokens)
	}
	s.addRequest(m)
	for i := range m.Omitted {
		o := &m.Omitted[i]
		// Contributions have a "#"; tools have no text, and other reasons than sections without any.
		tool := o.ID == phases.RequestTools || o.Chars == 0 && (o.Reason == hostCannot || o.Reason == string(phases.CauseConflict))
		if !tool && !strings.Contains(o.ID, "#") {
			s.section(o.ID).Omitted++
		}
	}
}

// addRequest adds what an observed request has besides sections: the tokens of tools are shared out by length.
func (s *Sums) addRequest(m *Manifest) {
	whole := 0
	for i := range m.HostTools {
		whole += m.HostTools[i].Chars
	}
	for i := range m.HostTools {
		if t := &m.HostTools[i]; t.Owner != "" {
			o := s.owner(t.Owner)
			o.Chars += t.Chars
			o.Tokens += m.Cache.ToolTokens * t.Chars / max(whole, 1)
		}
	}
	if m.History != nil {
		for i := range m.History.Added {
			s.owner(m.History.Added[i].Owner).Chars += m.History.Added[i].Chars
		}
	}
}

const hostCannot = "host_cannot" // why a tool is omitted; the compiler's word

// share divides a section's text and tokens among those who wrote it; the heading goes to its owner.
func (s *Sums) share(section *Section, tokens int) {
	left := tokens
	for _, span := range section.ContentMap {
		o, part := s.owner(span.Owner), tokens*span.Length/max(section.Chars, 1)
		o.Chars += span.Length
		o.Tokens += part
		left -= part
	}
	s.owner(section.Owner).Tokens += left
}
