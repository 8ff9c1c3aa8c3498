package backtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
)

// Report is the result of a backtest.
type Report struct {
	Summary string    `json:"summary"           jsonschema:"what was judged and what would have been denied, in a sentence"`
	Config  string    `json:"config"`
	Offered []string  `json:"offered,omitempty" jsonschema:"sets of rules that come along: they judged, as the configuration in force judges no calls"`
	Against string    `json:"against,omitempty" jsonschema:"the configuration that it is compared with: then rows are what the two decide differently"`
	Since   time.Time `json:"since,omitzero"`
	Partial bool      `json:"partial"           jsonschema:"it was interrupted: what is here was judged before"`
	Read    Read      `json:"read"`
	// Calls and Prompts count verdicts.
	Calls   map[Verdict]int      `json:"calls"   jsonschema:"calls by verdict: allow, deny, ask, rewrite, fail"`
	Prompts map[Verdict]int      `json:"prompts" jsonschema:"prompts by verdict"`
	Denied  map[agent.Became]int `json:"denied"  jsonschema:"what became then of the calls that would be denied: ran, failed, refused, or nothing known"`
	// Results is how many results of calls were judged, and Rewritten how many would have been rewritten.
	Results     int          `json:"results"`
	Rewritten   int          `json:"rewritten"    jsonschema:"results that would have reached the model changed, such as without secrets"`
	Causes      []CauseCount `json:"causes"       jsonschema:"hooks and their reasons, the most frequent first"`
	Shapes      []ShapeCount `json:"shapes"       jsonschema:"the ten commonest shapes of the calls in rows"`
	Days        []Day        `json:"days"`
	NotRun      []NotRun     `json:"not_run"      jsonschema:"plugins that took no part, and why"`
	Dropped     int          `json:"dropped"      jsonschema:"calls of hooks that only observe, and background jobs: a dry run makes none"`
	Rows        []Row        `json:"rows"         jsonschema:"calls and prompts that would not have been allowed as they were, the newest first"`
	RowsOmitted int          `json:"rows_omitted" jsonschema:"rows that are counted, but not here"`
}

// Read is what was read, and what was not.
type Read struct {
	Files    int       `json:"files"`
	Sessions int       `json:"sessions"`
	Agents   []string  `json:"agents"   jsonschema:"agents with the number of their files, and the log with that of its threads"`
	Versions []string  `json:"versions" jsonschema:"agents and their versions, as transcripts say"`
	Unknown  int       `json:"unknown"  jsonschema:"lines that were not understood"`
	Problems []Problem `json:"problems" jsonschema:"files that could not be read, or not to their end"`
	Omitted  []string  `json:"omitted"  jsonschema:"what was not read, and why"`
	Before   int       `json:"before"   jsonschema:"files whose results are those of an earlier run"`
}

// CauseCount is a cause with its number of calls.
type CauseCount struct {
	Hook    string  `json:"hook"`
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why"`
	Calls   int     `json:"calls"`
}

// ShapeCount is a shape of calls with their number.
type ShapeCount struct {
	Shape string `json:"shape"`
	Calls int    `json:"calls"`
}

// Day is what was judged on one day, by the time of the transcripts in UTC.
type Day struct {
	Day    string `json:"day"`
	Judged int    `json:"judged"`
	Hits   int    `json:"hits"   jsonschema:"calls with a row"`
}

const mostShapes = 10

// Report turns a tally into a report; against is the other configuration, if there is one. The caller adds what it alone knows.
func (t *Tally) Report(f *Found, p *Progress, against string) *Report {
	r := &Report{
		Against: against,
		Partial: t.Partial, Calls: typed[Verdict](t.Counts[calls]), Prompts: typed[Verdict](t.Counts[prompts]), Denied: typed[agent.Became](t.Counts[denied]),
		Results: t.sum(results), Rewritten: t.sum(rewritten), RowsOmitted: t.sum(surplus),
		Causes: []CauseCount{}, Shapes: []ShapeCount{}, Days: []Day{}, NotRun: []NotRun{}, Rows: append([]Row{}, t.Rows...),
	}
	r.Read = Read{
		Files: t.sum(files), Sessions: len(t.Counts[sessions]), Agents: []string{}, Versions: append([]string{}, sorted(t.Counts[versions])...),
		Unknown: t.sum(unknown), Problems: append(append([]Problem{}, f.Unreadable...), t.Problems...), Omitted: f.omitted(t), Before: int(p.FromBefore.Load()),
	}
	for _, name := range sorted(t.Counts[files]) {
		one, many := nouns(name)
		r.Read.Agents = append(r.Read.Agents, fmt.Sprintf("%s (%s)", name, words.Count(t.Counts[files][name], one, many)))
	}
	for _, cause := range ranked(t.Counts[causes]) {
		c := strings.SplitN(cause, separator, 3)
		r.Causes = append(r.Causes, CauseCount{c[0], Verdict(c[1]), c[2], t.Counts[causes][cause]})
	}
	for _, s := range ranked(t.Counts[shapes]) {
		r.Shapes = append(r.Shapes, ShapeCount{s, t.Counts[shapes][s]})
	}
	r.Shapes = r.Shapes[:min(len(r.Shapes), mostShapes)]
	for _, day := range sorted(t.Counts[days]) {
		r.Days = append(r.Days, Day{day, t.Counts[days][day], t.Counts[hits][day]})
	}
	r.Summary = r.summary()
	return r
}

// typed returns counts by names of a type.
func typed[K ~string](counts map[string]int) map[K]int {
	of := make(map[K]int, len(counts))
	for name, n := range counts {
		of[K(name)] = n
	}
	return of
}

func sorted(counts map[string]int) []string { return slices.Sorted(maps.Keys(counts)) }

// nouns are the words for files, or for threads of the log.
func nouns(source string) (one, many string) {
	if source == Log {
		return "thread", "threads"
	}
	return "file", "files"
}

// omitted says what was not read.
func (f *Found) omitted(t *Tally) []string {
	list, source := []string{}, ""
	if len(f.Files) > 0 {
		source = f.Files[0].Source
	}
	one, many := nouns(source)
	for _, o := range []struct {
		n              int
		one, many, why string
	}{
		{f.Old, one, many, "older than the period"},
		{t.sum(elsewhere), one, many, "of other directories"},
		{f.Unsampled, one, many, "not in the sample"},
		{f.Irregular, one, many, "links, pipes or devices"},
		{f.Surplus, one, many, fmt.Sprintf("beyond the first %d", mostFiles)},
		{t.sum(notKept), "call", "calls", "recorded without manifest.keep_inputs: calls"},
		{t.sum(omitted), "input", "inputs", "too large for the record, or withheld"},
		{t.sum(erased), "input", "inputs", "erased since"},
	} {
		if o.n > 0 {
			list = append(list, words.Count(o.n, o.one, o.many)+" "+o.why)
		}
	}
	return list
}

// Judged returns how many calls were judged.
func (r *Report) Judged() int { return sum(r.Calls) }

// Hits reports whether a call or prompt has one of the verdicts; of those that are decided differently, in a comparison.
func (r *Report) Hits(verdicts ...Verdict) bool {
	if r.Against != "" {
		return slices.ContainsFunc(r.Rows, func(row Row) bool { return slices.Contains(verdicts, row.Verdict) })
	}
	return slices.ContainsFunc(verdicts, func(v Verdict) bool { return r.Calls[v]+r.Prompts[v] > 0 })
}

func (r *Report) summary() string {
	of := fmt.Sprintf("of %s in %s, ", words.Count(r.Judged(), "call", "calls"), words.Count(r.Read.Sessions, "session", "sessions"))
	if r.Against != "" {
		return of + r.differences()
	}
	denied := r.Calls[Deny] + r.Calls[Fail]
	parts := []string{of + "none would have been denied"}
	if denied > 0 {
		parts[0] = fmt.Sprintf("%s%s would have been denied: %s", of, text.Thousands(denied), r.byHooks())
	}
	for _, more := range []struct {
		n         int
		one, many string
	}{
		{r.Calls[Ask], "call would have been asked about", "calls would have been asked about"},
		{r.Calls[Rewrite], "call would have been rewritten", "calls would have been rewritten"},
		{r.Rewritten, "result would have been rewritten", "results would have been rewritten"},
		{r.Prompts[Deny] + r.Prompts[Fail], "prompt would have been denied", "prompts would have been denied"},
	} {
		if more.n > 0 {
			parts = append(parts, words.Count(more.n, more.one, more.many))
		}
	}
	return strings.Join(parts, "; ")
}

// differences counts what two configurations decide differently.
func (r *Report) differences() string {
	changes := map[string]int{}
	for i := range r.Rows {
		changes[fmt.Sprintf("%s became %s", r.Rows[i].Was, r.Rows[i].Verdict)]++
	}
	if len(changes) == 0 {
		return "all would have been decided alike"
	}
	var parts []string
	for _, c := range ranked(changes) {
		parts = append(parts, text.Thousands(changes[c])+" × "+c)
	}
	return fmt.Sprintf("%s would have been decided differently: %s", text.Thousands(len(r.Rows)+r.RowsOmitted), strings.Join(parts, ", "))
}

// byHooks counts denials by hooks, each with its most frequent reason.
func (r *Report) byHooks() string {
	counts, first := map[string]int{}, map[string]CauseCount{}
	for _, c := range r.Causes {
		if c.Verdict.denies() {
			if counts[c.Hook] == 0 {
				first[c.Hook] = c
			}
			counts[c.Hook] += c.Calls
		}
	}
	var parts []string
	for _, hook := range ranked(counts) {
		c := first[hook]
		why := words.If(c.Calls > 1 || counts[hook] > c.Calls, text.Thousands(c.Calls)+" × ") + c.Why
		if counts[hook] > c.Calls {
			why += ", …"
		}
		parts = append(parts, fmt.Sprintf("%s by %s (%s)", text.Thousands(counts[hook]), cmp.Or(hook, "grapnel"), why))
	}
	return strings.Join(parts, ", ")
}

// Hint says what became of the denied calls, where that suggests false alarms.
func (r *Report) Hint() string {
	denied := r.Calls[Deny] + r.Calls[Fail]
	if ran := r.Denied[agent.Ran]; ran > 0 {
		return fmt.Sprintf("%s of %s ran then without a refusal: see whether they are false alarms", text.Thousands(ran), text.Thousands(denied))
	}
	return ""
}
