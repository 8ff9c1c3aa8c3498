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

const mostShapes = 10

// Report turns a tally into a report; against is the other configuration, if there is one. The caller adds what it alone knows.
func (t *Tally) Report(f *Found, p *Progress, against string) *Report {
	r := &Report{
		Against: against,
		Partial: t.Partial, Calls: t.Calls, Prompts: t.Prompts, Denied: t.Denied, Results: t.Results, Rewritten: t.Redacted,
		Causes: []CauseCount{}, Shapes: []ShapeCount{}, Days: []Day{}, NotRun: []NotRun{}, Rows: append([]Row{}, t.Rows...), RowsOmitted: t.RowsOmitted,
	}
	r.Read = Read{
		Files: sum(t.Files), Sessions: len(t.Sessions), Agents: []string{}, Versions: append([]string{}, slices.Sorted(maps.Keys(t.Versions))...),
		Unknown: t.Unknown, Problems: append(append([]Problem{}, f.Unreadable...), t.Problems...), Omitted: f.omitted(t), Before: int(p.FromBefore.Load()),
	}
	for _, name := range slices.Sorted(maps.Keys(t.Files)) {
		one, many := "file", "files"
		if name == Log {
			one, many = "thread", "threads"
		}
		r.Read.Agents = append(r.Read.Agents, fmt.Sprintf("%s (%s)", name, words.Count(t.Files[name], one, many)))
	}
	for _, c := range ranked(t.Hooks, compareCauses) {
		r.Causes = append(r.Causes, CauseCount{c.Hook, c.Verdict, c.Why, t.Hooks[c]})
	}
	for _, s := range ranked(t.Shapes, strings.Compare) {
		r.Shapes = append(r.Shapes, ShapeCount{s, t.Shapes[s]})
	}
	r.Shapes = r.Shapes[:min(len(r.Shapes), mostShapes)]
	for _, day := range slices.Sorted(maps.Keys(t.Days)) {
		r.Days = append(r.Days, *t.Days[day])
	}
	r.Summary = r.summary()
	return r
}

func compareCauses(a, b Cause) int {
	return cmp.Or(strings.Compare(a.Hook, b.Hook), strings.Compare(string(a.Verdict), string(b.Verdict)), strings.Compare(a.Why, b.Why))
}

// omitted says what was not read.
func (f *Found) omitted(t *Tally) []string {
	omitted, one, many := []string{}, "file", "files"
	if len(f.Files) > 0 && f.Files[0].Source == Log {
		one, many = "thread", "threads"
	}
	for _, o := range []struct {
		n              int
		one, many, why string
	}{
		{f.Old, one, many, "older than the period"},
		{t.Elsewhere, one, many, "of other directories"},
		{f.Unsampled, one, many, "not in the sample"},
		{f.Irregular, one, many, "links, pipes or devices"},
		{f.Surplus, one, many, fmt.Sprintf("beyond the first %d", mostFiles)},
		{f.lacks.NotKept, "call", "calls", "recorded without manifest.keep_inputs: calls"},
		{f.lacks.Omitted, "input", "inputs", "too large for the record, or withheld"},
		{f.lacks.Erased, "input", "inputs", "erased since"},
	} {
		if o.n > 0 {
			omitted = append(omitted, words.Count(o.n, o.one, o.many)+" "+o.why)
		}
	}
	return omitted
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
	for _, c := range ranked(changes, strings.Compare) {
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
	for _, hook := range ranked(counts, strings.Compare) {
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
