//go:build linux

package soak

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// Bounds of a run: by how much descriptors, goroutines and processes may differ
// in the end, and by how much the heap may grow in so many dispatches.
const (
	slack     = 4
	growth    = 1 << 20
	growthPer = 100_000
)

// Report is what a run came to.
type Report struct {
	Seed       uint64  `json:"seed"`
	Plugins    int     `json:"plugins"`
	Dispatches uint64  `json:"dispatches"`
	Seconds    float64 `json:"seconds"`
	// Samples are, in order: before the engine was there, its steady state at the
	// start and after each stretch, and after Close.
	Samples []Sample `json:"samples"`
	// Runs counts what became of hooks, by "state" or "state code".
	Runs map[string]uint64 `json:"runs"`
	// Events counts changes of plugins and breakers, and what was dropped.
	Events map[string]uint64 `json:"events"`
	// Reloads were put in force; Refused were not, as they should not.
	Reloads uint64 `json:"reloads"`
	Refused uint64 `json:"refused"`
	// DispatchMS are p50, p99 and the slowest of all dispatches.
	DispatchMS [3]float64 `json:"dispatch_ms"`
	// Slowest says which of them that was, and what took its time.
	Slowest string `json:"slowest"`
	// Internal are the first failures of plugins that the engine had no better word
	// for than "internal".
	Internal []string `json:"internal"`
	// CloseMS is how long Close took.
	CloseMS float64 `json:"close_ms"`
	// Problems is what should not be; empty is a run that has passed.
	Problems []string `json:"problems"`
}

// start, middle and end are the steady states to compare.
func (r *Report) start() Sample  { return r.Samples[1] }
func (r *Report) middle() Sample { return r.Samples[len(r.Samples)/2] }
func (r *Report) end() Sample    { return r.Samples[len(r.Samples)-2] }

// heapGrowth is by how much the heap has grown in so many dispatches: growthPer on
// average, or all of a shorter run.
func (r *Report) heapGrowth() (bytes, dispatches int64) {
	grown := r.end().HeapBytes - r.start().HeapBytes
	n := int64(r.end().Dispatches - r.start().Dispatches) //nolint:gosec // nobody waits for so many
	if n <= growthPer {
		return grown, n
	}
	return int64(float64(grown) * growthPer / float64(n)), growthPer
}

// judge compares the samples.
func (r *Report) judge() {
	before, closed := r.Samples[0], r.Samples[len(r.Samples)-1]
	r.compare("in the steady state", r.start(), r.end(), slack)
	r.compare("after Close, beside before", before, closed, slack)
	if closed.Processes > 0 {
		r.problemf("%d processes are left after Close", closed.Processes)
	}
	if grown, n := r.heapGrowth(); grown > growth {
		r.problemf("the heap grows by %s in %d dispatches", mib(grown), n)
	}
}

func (r *Report) compare(what string, a, b Sample, slack int) {
	for _, pair := range []struct {
		name string
		a, b int
	}{
		{"descriptors", a.Descriptors, b.Descriptors}, {"goroutines", a.Goroutines, b.Goroutines}, {"processes", a.Processes, b.Processes},
	} {
		if d := pair.b - pair.a; d > slack || d < -slack {
			r.problemf("%s: %d %s, there were %d", what, pair.b, pair.name, pair.a)
		}
	}
}

func (r *Report) problemf(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// Write prints the report for people.
func (r *Report) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	rows := []struct {
		name string
		Sample
	}{{"before", r.Samples[0]}, {"start", r.start()}, {"middle", r.middle()}, {"end", r.end()}, {"closed", r.Samples[len(r.Samples)-1]}}
	_, _ = fmt.Fprintln(t, "\tdispatches\theap\tresident\tdescriptors\tgoroutines\tprocesses\t") // the writer keeps its error
	for _, row := range rows {
		_, _ = fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%d\t%d\t%d\t\n",
			row.name, row.Dispatches, mib(row.HeapBytes), mib(row.RSSBytes), row.Descriptors, row.Goroutines, row.Processes)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	grown, n := r.heapGrowth()
	_, err := fmt.Fprintf(w, "\n%d dispatches over %d plugins in %.0f s, %d reloads and %d refused, seed %d\n"+
		"a dispatch: p50 %.2f ms, p99 %.2f ms, slowest %.0f ms; Close: %.0f ms; heap: %+.0f KiB in %d dispatches\n",
		r.Dispatches, r.Plugins, r.Seconds, r.Reloads, r.Refused, r.Seed,
		r.DispatchMS[0], r.DispatchMS[1], r.DispatchMS[2], r.CloseMS, float64(grown)/1024, n)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "slowest: %s\n", r.Slowest); err != nil {
		return err
	}
	for _, text := range r.Internal {
		if _, err := fmt.Fprintf(w, "internal: %s\n", text); err != nil {
			return err
		}
	}
	if err := writeCounts(w, "runs of hooks", r.Runs); err != nil {
		return err
	}
	if err := writeCounts(w, "events", r.Events); err != nil {
		return err
	}
	verdict := "passed"
	if len(r.Problems) > 0 {
		verdict = "FAILED"
	}
	if _, err = fmt.Fprintf(w, "\n%s\n", verdict); err != nil {
		return err
	}
	for _, p := range r.Problems {
		if _, err := fmt.Fprintf(w, "  %s\n", p); err != nil {
			return err
		}
	}
	return nil
}

func writeCounts(w io.Writer, title string, counts map[string]uint64) error {
	if _, err := fmt.Fprintf(w, "\n%s:\n", title); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if _, err := fmt.Fprintf(w, "%12d  %s\n", counts[name], name); err != nil {
			return err
		}
	}
	return nil
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
