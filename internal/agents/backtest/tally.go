package backtest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
)

// Tally is what was found in files. Tallies are added up, and kept as JSON.
type Tally struct {
	// Counts have numbers by names. A kind that is one number has it under the empty name.
	Counts   map[kind]map[string]int `json:"counts"`
	Problems []Problem               `json:"problems"`
	Rows     []Row                   `json:"rows"`
	// First is the time of the first event in the period, and Cut says that there were earlier ones.
	First   time.Time `json:"first"`
	Cut     bool      `json:"cut"`
	Partial bool      `json:"-"`
	// Where it is kept, Size and ModTime are those of the file, and Since is the period.
	Size    int64     `json:"size"`
	ModTime time.Time `json:"mod_time"`
	Since   time.Time `json:"since"`
}

// kind is a kind of things that are counted.
type kind string

const (
	calls    kind = "calls"   // by verdicts, as prompts are
	prompts  kind = "prompts" //
	denied   kind = "denied"  // calls, by what became of them
	causes   kind = "causes"  // of rows: the hook, the verdict and the reason, with separators
	shapes   kind = "shapes"  // of calls with a row
	days     kind = "days"    // the calls of each, in UTC, by the time of the transcripts, and hits those with a row
	hits     kind = "hits"
	sessions kind = "sessions"
	versions kind = "versions"
	files    kind = "files" // by agents

	results   kind = "results"
	rewritten kind = "rewritten" // results
	unknown   kind = "unknown"   // lines
	elsewhere kind = "elsewhere" // files of other directories
	surplus   kind = "surplus"   // rows
	notKept   kind = "not_kept"  // and the next two: what the log lacks
	omitted   kind = "omitted"
	erased    kind = "erased"
)

// Bounds of what is kept; the rest is counted.
const (
	mostRows  = 10_000
	mostNames = 100_000
)

// separator stands between the parts of a cause.
const separator = "\x00"

// noDay is the day of calls without a time.
const noDay = "unknown"

func newTally() *Tally { return &Tally{Counts: map[kind]map[string]int{}} }

// count adds to the number of a name, or to that of all others if there are too many names.
func (t *Tally) count(k kind, name string, n int) {
	if t.Counts[k] == nil {
		t.Counts[k] = map[string]int{}
	}
	if _, known := t.Counts[k][name]; !known && len(t.Counts[k]) >= mostNames {
		switch name = "others"; k {
		case days, hits:
			name = noDay
		case causes:
			name = separator + separator + name
		default: // it has one part
		}
	}
	t.Counts[k][name] += n
}

// sum is how many things of a kind there are.
func (t *Tally) sum(k kind) int { return sum(t.Counts[k]) }

// row counts a row, and keeps it if there is room.
func (t *Tally) row(r Row) bool {
	if r.Tool != "" {
		t.count(hits, day(r.Time), 1)
		t.count(shapes, r.Shape, 1)
	}
	for i := range r.By {
		why := general(sentence(cmp.Or(r.By[i].Reason, r.By[i].Code)))
		t.count(causes, strings.Join([]string{r.By[i].Hook, string(r.Verdict), why}, separator), 1)
	}
	if len(t.Rows) == mostRows {
		t.count(surplus, "", 1)
		return false
	}
	t.Rows = append(t.Rows, r)
	return true
}

// became says what became of a row's call.
func (t *Tally) became(r *Row, became agent.Became, by string) {
	r.Became, r.Refused = became, clip(by, 40)
	if r.Verdict.denies() {
		t.count(denied, string(became), 1)
	}
}

func day(at time.Time) string {
	if at.IsZero() {
		return noDay
	}
	return at.UTC().Format(time.DateOnly)
}

func (t *Tally) problem(path string, err error) {
	if len(t.Problems) < mostProblems {
		t.Problems = append(t.Problems, Problem{path, clip(err.Error(), 300)})
	}
}

// add adds another tally.
func (t *Tally) add(o *Tally) {
	for k, names := range o.Counts {
		for name, n := range names {
			t.count(k, name, n)
		}
	}
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
		t.count(surplus, "", extra)
	}
}

func sum[K comparable](counts map[K]int) (all int) {
	for _, n := range counts {
		all += n
	}
	return all
}

// ranked returns names by their counts, the largest first.
func ranked(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
}
