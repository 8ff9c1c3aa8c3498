package backtest

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
)

// Tally is what was found in files. Tallies are added up, and kept as JSON.
type Tally struct {
	Calls    map[Verdict]int      `json:"calls"`
	Prompts  map[Verdict]int      `json:"prompts"`
	Denied   map[agent.Became]int `json:"denied"` // what became of the denied calls
	Hooks    map[Cause]int        `json:"hooks"`
	Shapes   map[string]int       `json:"shapes"`
	Days     map[string]*Day      `json:"days"`
	Sessions map[string]int       `json:"sessions"`
	Versions map[string]int       `json:"versions"`
	Files    map[string]int       `json:"files"` // by agents
	Problems []Problem            `json:"problems"`
	Rows     []Row                `json:"rows"`

	Results     int `json:"results"`
	Redacted    int `json:"redacted"`
	Unknown     int `json:"unknown"`
	Elsewhere   int `json:"elsewhere"`
	RowsOmitted int `json:"rows_omitted"`

	// First is the time of the first event in the period, and Cut says that there were earlier ones.
	First   time.Time `json:"first"`
	Cut     bool      `json:"cut"`
	Partial bool      `json:"-"`

	since time.Time // the period that it was made for, where it was kept
}

// Cause is why calls were decided about.
type Cause struct {
	Hook    string
	Verdict Verdict
	Why     string
}

// MarshalText makes a cause the key of a JSON object.
func (c Cause) MarshalText() ([]byte, error) {
	return []byte(c.Hook + "\x00" + string(c.Verdict) + "\x00" + c.Why), nil
}

// UnmarshalText is the inverse of MarshalText.
func (c *Cause) UnmarshalText(text []byte) error {
	parts := strings.SplitN(string(text), "\x00", 3)
	if len(parts) != 3 {
		return errors.New("a cause has three parts")
	}
	*c = Cause{parts[0], Verdict(parts[1]), parts[2]}
	return nil
}

// Day is what was judged on one day, by the time of the transcripts in UTC.
type Day struct {
	Day    string `json:"day"`
	Judged int    `json:"judged"`
	Hits   int    `json:"hits"   jsonschema:"calls with a row"`
}

// Bounds of what is kept; the rest is counted.
const (
	mostRows   = 10_000
	mostKinds  = 1000
	mostDays   = 10_000
	mostUnique = 100_000
)

func newTally() *Tally {
	return &Tally{
		Calls: map[Verdict]int{}, Prompts: map[Verdict]int{}, Denied: map[agent.Became]int{}, Hooks: map[Cause]int{}, Shapes: map[string]int{},
		Days: map[string]*Day{}, Sessions: map[string]int{}, Versions: map[string]int{}, Files: map[string]int{},
	}
}

// row counts a row, and keeps it if there is room.
func (t *Tally) row(r Row) bool {
	if r.Tool != "" {
		t.day(r.Time).Hits++
		more(t.Shapes, r.Shape, 1, mostKinds, "others")
	}
	for i := range r.By {
		why := general(sentence(cmp.Or(r.By[i].Reason, r.By[i].Code)))
		more(t.Hooks, Cause{r.By[i].Hook, r.Verdict, why}, 1, mostKinds, Cause{Verdict: r.Verdict, Why: "others"})
	}
	if len(t.Rows) == mostRows {
		t.RowsOmitted++
		return false
	}
	t.Rows = append(t.Rows, r)
	return true
}

// became says what became of a row's call.
func (t *Tally) became(r *Row, became agent.Became, by string) {
	r.Became, r.Refused = became, clip(by, 40)
	if r.Verdict.denies() {
		t.Denied[became]++
	}
}

func (t *Tally) day(at time.Time) *Day {
	name := at.UTC().Format(time.DateOnly)
	if at.IsZero() || t.Days[name] == nil && len(t.Days) == mostDays {
		name = "unknown"
	}
	if t.Days[name] == nil {
		t.Days[name] = &Day{Day: name}
	}
	return t.Days[name]
}

func (t *Tally) problem(path string, err error) {
	if len(t.Problems) < mostProblems {
		t.Problems = append(t.Problems, Problem{path, clip(err.Error(), 300)})
	}
}

// add adds another tally.
func (t *Tally) add(o *Tally) {
	addAll(t.Calls, o.Calls, mostUnique, "")
	addAll(t.Prompts, o.Prompts, mostUnique, "")
	addAll(t.Denied, o.Denied, mostUnique, "")
	addAll(t.Shapes, o.Shapes, mostKinds, "others")
	addAll(t.Hooks, o.Hooks, mostKinds, Cause{Why: "others"})
	addAll(t.Sessions, o.Sessions, mostUnique, "others")
	addAll(t.Versions, o.Versions, mostKinds, "others")
	addAll(t.Files, o.Files, mostUnique, "")
	for name, d := range o.Days {
		if t.Days[name] == nil {
			t.Days[name] = &Day{Day: name}
		}
		t.Days[name].Judged += d.Judged
		t.Days[name].Hits += d.Hits
	}
	t.Results, t.Redacted, t.Unknown = t.Results+o.Results, t.Redacted+o.Redacted, t.Unknown+o.Unknown
	t.Elsewhere, t.RowsOmitted = t.Elsewhere+o.Elsewhere, t.RowsOmitted+o.RowsOmitted
	t.Problems = append(t.Problems, o.Problems[:min(len(o.Problems), max(0, mostProblems-len(t.Problems)))]...)
	if t.Rows = append(t.Rows, o.Rows...); len(t.Rows) > 2*mostRows {
		t.bound()
	}
}

// bound keeps the newest rows.
func (t *Tally) bound() {
	slices.SortStableFunc(t.Rows, func(a, b Row) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Session, b.Session))
	})
	if extra := len(t.Rows) - mostRows; extra > 0 {
		t.Rows = slices.Delete(t.Rows, mostRows, len(t.Rows))
		t.RowsOmitted += extra
	}
}

// more adds to a count, or to that of the others if there are too many.
func more[K comparable](counts map[K]int, key K, n, most int, others K) {
	if _, known := counts[key]; !known && len(counts) >= most {
		key = others
	}
	counts[key] += n
}

func addAll[K comparable](to, from map[K]int, most int, others K) {
	for key, n := range from {
		more(to, key, n, most, others)
	}
}

func sum[K comparable](counts map[K]int) (all int) {
	for _, n := range counts {
		all += n
	}
	return all
}

// ranked returns keys by their counts, the largest first.
func ranked[K comparable](counts map[K]int, compare func(a, b K) int) []K {
	return slices.SortedFunc(maps.Keys(counts), func(a, b K) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), compare(a, b)) })
}
