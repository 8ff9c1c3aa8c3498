package history

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// Input is a thread's past and what else the request holds.
type Input struct {
	Summary string   // replaces the entries before Entries; "" if nothing was compacted
	Entries []Entry  // completed since the summary, oldest first: as many as [Settings.MaxEntries]
	Fixed   []string // texts that are always sent: the system prompt and its messages
	Tools   []phases.Tool
	Turn    []Entry // the current turn so far, which is always sent
}

// Settings are a host's choices. All but ContextTokens are optional.
type Settings struct {
	ContextTokens int // of the model; must be positive
	ReserveTokens int // kept free for the response
	MaxEntries    int // of a window (200)
	EntryOverhead int // what an entry, a call, a result or a tool takes besides its text (4); -1 is none
	// CompactStart (8000) and CompactNow (9500) are thresholds for the whole past, in basis points of the budget.
	CompactStart, CompactNow int
	Scale                    Scale // of an [Estimator]; the zero value takes counts as they are
}

func (s Settings) withDefaults() Settings {
	s.MaxEntries = cmp.Or(s.MaxEntries, 200)
	s.EntryOverhead = max(cmp.Or(s.EntryOverhead, 4), 0)
	s.CompactStart = cmp.Or(s.CompactStart, 8_000)
	s.CompactNow = cmp.Or(s.CompactNow, 9_500)
	s.Scale.Factor = cmp.Or(s.Scale.Factor, 1)
	s.Scale.Safety, s.Scale.Unseen = max(s.Scale.Safety, 1), max(s.Scale.Unseen, s.Scale.Safety, 1)
	return s
}

func (s Settings) check() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(s.ContextTokens > 0, "context tokens: want more than 0, got %d", s.ContextTokens)
	check(s.ReserveTokens >= 0, "reserve tokens: want 0 or more, got %d", s.ReserveTokens)
	check(s.MaxEntries >= 0, "max entries: want more than 0, got %d", s.MaxEntries)
	check(s.Scale.Factor > 0, "scale: want a factor above 0, got %v", s.Scale.Factor)
	check(s.CompactStart >= 0 && s.CompactStart <= s.CompactNow, "compaction thresholds: want 0 to %d (now) for the start, got %d", s.CompactNow, s.CompactStart)
	return errors.Join(errs...)
}

// Compaction says whether the past should be compacted.
type Compaction string

// The advice.
const (
	CompactNone  Compaction = "none"  // the past fits
	CompactStart Compaction = "start" // begin a summary beside the turn
	CompactNow   Compaction = "now"   // something is omitted already, or will be by the next turn
)

// Window is what goes into a request. Its entries share memory with the input.
type Window struct {
	Summary string    `json:"summary,omitempty"`
	Entries []Entry   `json:"entries"` // in the order of the thread
	Dropped []Dropped `json:"dropped"` // what was omitted, by place in the input
	// Budget is the text budget of the past, in tokens; negative if Fixed alone exceeds the context.
	Budget int `json:"budget"`
	Fixed  int `json:"fixed"` // what is always sent: texts, tools and the current turn
	Used   int `json:"used"`  // what summary and entries take; more than Budget only if the summary alone is
	Total  int `json:"total"` // what summary and all entries that can be sent would take
	// BasisPoints is Total in 1/10,000 of Budget, at least 10,000 if that is not positive.
	BasisPoints int        `json:"basis_points"`
	Compaction  Compaction `json:"compaction"`
	Scale       Scale      `json:"scale"` // by which all tokens here are estimates
}

// Select chooses the entries to send by the rules of the package comment. An error is about the settings.
func Select(in Input, s Settings, count func(string) int) (Window, error) {
	s = s.withDefaults()
	if err := s.check(); err != nil {
		return Window{}, fmt.Errorf("history settings: %w", err)
	}
	m := meter{count: count, overhead: s.EntryOverhead, factor: s.Scale.Factor}
	r := repair(in.Entries)
	tokens := make([]int, len(r.entries))
	turn := m.turn(in.Turn)
	w := Window{Summary: in.Summary, Fixed: m.fixed(in) + turn, Used: m.scaled(m.text(in.Summary)), Scale: s.Scale}
	w.Budget = s.room(turn) - w.Fixed
	w.Total = w.Used
	for i := range r.entries {
		tokens[i] = m.scaled(m.entry(&r.entries[i].Entry))
		w.Total += tokens[i]
	}

	from, why := w.keep(r.entries, tokens, s.MaxEntries)
	w.Dropped = r.dropped
	for i := range r.entries[:from] {
		e := &r.entries[i]
		w.Dropped = append(w.Dropped, Dropped{Index: e.index, EntryID: e.ID, TurnID: e.TurnID, Reason: why, Tokens: tokens[i]})
	}
	slices.SortStableFunc(w.Dropped, func(a, b Dropped) int { return cmp.Compare(a.Index, b.Index) })
	w.Entries = make([]Entry, 0, len(r.entries)-from)
	for i := range r.entries[from:] {
		w.Entries = append(w.Entries, r.entries[from+i].Entry)
	}
	w.advise(s, from > 0)
	return w, nil
}

// room is how many estimated tokens a request may have, of which turn are the current turn's.
func (s Settings) room(turn int) int {
	unseen := float64(turn) * (s.Scale.Unseen - s.Scale.Safety)
	return int(math.Floor((float64(s.ContextTokens-s.ReserveTokens) - unseen) / s.Scale.Safety))
}

// keep takes units from the end while they fit. It returns the first entry that is kept, and why the one before is not.
func (w *Window) keep(entries []placed, tokens []int, most int) (from int, why Reason) {
	from = len(entries)
	need, low := 0, len(entries)
	firsts := turnStarts(entries)
	for i, e := range slices.Backward(entries) {
		need += tokens[i]
		low = min(low, e.tie, firsts[i])
		if low < i {
			continue // inside a unit
		}
		switch {
		case len(entries)-i > most:
			return from, reasonEntries
		case w.Used+need > w.Budget:
			return from, reasonBudget
		}
		from, low = i, len(entries)
		w.Used += need
		need = 0
	}
	return from, ""
}

// turnStarts returns for each entry the index of the first one of its turn.
func turnStarts(entries []placed) []int {
	firsts := make([]int, len(entries))
	byID := map[string]int{}
	for i := range entries {
		e := &entries[i]
		firsts[i] = i
		if e.TurnID != "" {
			if first, ok := byID[e.TurnID]; ok {
				firsts[i] = first
			}
			byID[e.TurnID] = firsts[i]
			continue
		}
		// A user's entry that does more than answer calls begins a turn.
		opens := e.Role == RoleUser && (e.Text != "" || len(e.Results) == 0)
		if i > 0 && entries[i-1].TurnID == "" && !opens {
			firsts[i] = firsts[i-1]
		}
	}
	return firsts
}

func (w *Window) advise(s Settings, cut bool) {
	if w.Budget > 0 {
		w.BasisPoints = int(int64(w.Total) * 10_000 / int64(w.Budget))
	} else {
		w.BasisPoints = 10_000 + w.Total
	}
	switch {
	case cut || w.BasisPoints >= s.CompactNow:
		w.Compaction = CompactNow
	case w.BasisPoints >= s.CompactStart:
		w.Compaction = CompactStart
	default:
		w.Compaction = CompactNone
	}
}

type meter struct {
	count    func(string) int
	overhead int
	factor   float64
}

func (m meter) scaled(tokens int) int { return int(math.Ceil(float64(tokens) * m.factor)) }

func (m meter) fixed(in Input) int {
	n := 0
	for _, text := range in.Fixed {
		n += m.text(text)
	}
	for _, t := range in.Tools {
		n += m.overhead + m.plain(t.Name) + m.plain(t.Description) + m.plain(string(t.InputSchema))
	}
	return m.scaled(n)
}

func (m meter) turn(entries []Entry) int {
	n := 0
	for i := range entries {
		n += m.entry(&entries[i])
	}
	return m.scaled(n)
}

// entry counts text, calls and results. Providers charge Native by rules of their own, which the reserve covers.
func (m meter) entry(e *Entry) int {
	n := m.overhead + m.plain(e.Text)
	for _, c := range e.Calls {
		n += m.overhead + m.plain(c.Tool) + m.plain(string(c.Arguments))
	}
	for _, r := range e.Results {
		n += m.overhead + m.plain(r.Text)
	}
	for i := range e.Media {
		n += m.overhead + m.media(&e.Media[i])
	}
	return n
}

func (m meter) media(v *Media) int {
	switch {
	case v.Tokens > 0:
		return v.Tokens
	case v.Image():
		return 1600
	case strings.HasPrefix(v.Type, "text/"):
		return m.plain(string(v.Data))
	default:
		return 3000 + len(v.Data)/16
	}
}

// text counts a message of its own; an empty one takes nothing.
func (m meter) text(s string) int {
	if s == "" {
		return 0
	}
	return m.overhead + m.plain(s)
}

func (m meter) plain(s string) int {
	if s == "" {
		return 0
	}
	return m.count(s)
}
