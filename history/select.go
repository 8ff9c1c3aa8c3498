package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
)

// Input is a thread's past and what else the request holds.
type Input struct {
	// Summary stands for what was before Entries; "" if nothing was compacted.
	Summary string
	// Entries are the completed entries since the summary, oldest first. A host
	// loads as many as [Settings.MaxEntries].
	Entries []Entry
	// Fixed are texts that are sent whatever happens: the system prompt and its
	// messages.
	Fixed []string
	// Tools are the tools that the model is offered.
	Tools []phases.Tool
	// Turn is the current turn so far: the user's message, and calls with their
	// results. It is sent as it is.
	Turn []Entry
}

// Settings are a host's choices. All but ContextTokens may be left out.
type Settings struct {
	// ContextTokens is the model's context. It must be positive.
	ContextTokens int
	// ReserveTokens is kept free for the response.
	ReserveTokens int
	// MaxEntries (200) bounds the entries of a window.
	MaxEntries int
	// EntryOverhead (4) is what an entry, a call, a result or a tool takes
	// besides its text; -1 is none.
	EntryOverhead int
	// CompactStart (8000) and CompactNow (9500) are thresholds in basis points
	// of the budget, compared with what the whole past would take.
	CompactStart, CompactNow int
}

func (s Settings) withDefaults() Settings {
	s.MaxEntries = cmp.Or(s.MaxEntries, 200)
	s.EntryOverhead = max(cmp.Or(s.EntryOverhead, 4), 0)
	s.CompactStart = cmp.Or(s.CompactStart, 8_000)
	s.CompactNow = cmp.Or(s.CompactNow, 9_500)
	return s
}

// check wants the defaults filled in.
func (s Settings) check() error {
	var errs []error
	if s.ContextTokens <= 0 {
		errs = append(errs, fmt.Errorf("context tokens: want more than 0, got %d", s.ContextTokens))
	}
	if s.ReserveTokens < 0 {
		errs = append(errs, fmt.Errorf("reserve tokens: want 0 or more, got %d", s.ReserveTokens))
	}
	if s.MaxEntries < 0 {
		errs = append(errs, fmt.Errorf("max entries: want more than 0, got %d", s.MaxEntries))
	}
	if s.CompactStart < 0 || s.CompactStart > s.CompactNow {
		errs = append(errs, fmt.Errorf("compaction thresholds: want 0 to %d (now) for the start, got %d", s.CompactNow, s.CompactStart))
	}
	return errors.Join(errs...)
}

// Compaction says what to do about a past that grows.
type Compaction string

// What to do.
const (
	// CompactNone: there is room.
	CompactNone Compaction = "none"
	// CompactStart: begin a summary beside the turn.
	CompactStart Compaction = "start"
	// CompactNow: something is left out already, or will be by the next turn.
	CompactNow Compaction = "now"
)

// Window is what goes into a request. Its entries share memory with the input.
type Window struct {
	// Summary is the input's, always.
	Summary string `json:"summary,omitempty"`
	// Entries are in the order of the thread.
	Entries []Entry `json:"entries"`
	// Dropped is what was left out, by place in the input.
	Dropped []Dropped `json:"dropped"`
	// Budget is the room for the past, in tokens; below 0 if what is fixed takes
	// more than the context.
	Budget int `json:"budget"`
	// Fixed is what is sent whatever happens: texts, tools and the current turn.
	Fixed int `json:"fixed"`
	// Used is what summary and entries take. It is more than Budget only when the
	// summary alone is; then there are no entries.
	Used int `json:"used"`
	// Total is what summary and all entries would take, those that cannot be sent
	// left aside.
	Total int `json:"total"`
	// BasisPoints is Total in 1/10,000 of Budget; 10,000 at least if that is not
	// positive.
	BasisPoints int        `json:"basis_points"`
	Compaction  Compaction `json:"compaction"`
}

// Select chooses the entries to send; the package comment has the rules. It is
// a pure function, as far as count is one, and safe for concurrent use. An
// error means that the settings make no sense; no entries do.
func Select(in Input, s Settings, count func(string) int) (Window, error) {
	s = s.withDefaults()
	if err := s.check(); err != nil {
		return Window{}, fmt.Errorf("history settings: %w", err)
	}
	m := meter{count: count, overhead: s.EntryOverhead}
	r := repair(in.Entries)
	tokens := make([]int, len(r.entries))
	w := Window{Summary: in.Summary, Fixed: m.fixed(in), Used: m.text(in.Summary)}
	w.Budget = s.ContextTokens - s.ReserveTokens - w.Fixed
	w.Total = w.Used
	for i := range r.entries {
		tokens[i] = m.entry(&r.entries[i].Entry)
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

// keep takes units from the end while they fit. It returns the first entry that
// is in, and why the one before it is not.
func (w *Window) keep(entries []placed, tokens []int, most int) (from int, why Reason) {
	from = len(entries)
	need, low := 0, len(entries)
	firsts := turnStarts(entries)
	for i, entrie := range slices.Backward(entries) {
		need += tokens[i]
		low = min(low, entrie.tie, firsts[i])
		if low < i {
			continue // inside a unit
		}
		switch {
		case len(entries)-i > most:
			return from, ReasonEntries
		case w.Used+need > w.Budget:
			return from, ReasonBudget
		}
		from, low = i, len(entries)
		w.Used += need
		need = 0
	}
	return from, ""
}

// turnStarts returns for each entry the first one of its turn.
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
		if i > 0 && entries[i-1].TurnID == "" && !opens(&e.Entry) {
			firsts[i] = firsts[i-1]
		}
	}
	return firsts
}

// opens reports whether an entry without a turn's id begins a turn. A user's
// entry that only answers calls does not.
func opens(e *Entry) bool {
	return e.Role == RoleUser && (e.Text != "" || len(e.Results) == 0)
}

// advise compares the whole past with the budget.
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

// meter counts what things take.
type meter struct {
	count    func(string) int
	overhead int
}

func (m meter) fixed(in Input) int {
	n := 0
	for _, text := range in.Fixed {
		n += m.text(text)
	}
	for i := range in.Tools {
		t := &in.Tools[i]
		n += m.overhead + m.plain(t.Name) + m.plain(t.Description) + m.plain(string(t.InputSchema))
	}
	for i := range in.Turn {
		n += m.entry(&in.Turn[i])
	}
	return n
}

// entry counts text, calls and results. What Native holds besides them is left
// to the reserve: providers charge it by rules of their own.
func (m meter) entry(e *Entry) int {
	n := m.overhead + m.plain(e.Text)
	for _, c := range e.Calls {
		n += m.overhead + m.plain(c.Tool) + m.plain(string(c.Arguments))
	}
	for _, r := range e.Results {
		n += m.overhead + m.plain(r.Text)
	}
	return n
}

// text counts a message of its own, which takes nothing where it is empty.
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
