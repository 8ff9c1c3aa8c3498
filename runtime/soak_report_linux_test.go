//go:build linux

package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"text/tabwriter"
	"time"
)

const (
	slack     = 4       // how many descriptors, goroutines and processes may differ in the end
	growth    = 1 << 20 // how many bytes the heap may grow in growthPer dispatches
	growthPer = 100_000
)

// soakReport is the result of a run.
type soakReport struct {
	Seed       uint64
	Plugins    int
	Dispatches uint64
	Seconds    float64
	// Samples are, in order: before the engine, its steady state at the start and after
	// each stretch, and after Close.
	Samples []soakSample
	// Runs counts hooks by "state" or "state code".
	Runs map[string]uint64
	// Events counts changes of plugins and breakers, and what was dropped.
	Events map[string]uint64
	// Reloads were put in force; Refused were rightly not.
	Reloads uint64
	Refused uint64
	// DispatchMS are p50, p99 and the slowest of all dispatches.
	DispatchMS [3]float64
	CloseMS    float64
	// Problems is empty if the run passed.
	Problems []string
}

// start, middle and end are the steady states to compare.
func (r *soakReport) start() soakSample  { return r.Samples[1] }
func (r *soakReport) middle() soakSample { return r.Samples[len(r.Samples)/2] }
func (r *soakReport) end() soakSample    { return r.Samples[len(r.Samples)-2] }

// heapGrowth is the growth in growthPer dispatches on average, or in all of a shorter run.
func (r *soakReport) heapGrowth() (bytes, dispatches int64) {
	grown := r.end().HeapBytes - r.start().HeapBytes
	n := int64(r.end().Dispatches - r.start().Dispatches)
	if n <= growthPer {
		return grown, n
	}
	return int64(float64(grown) * growthPer / float64(n)), growthPer
}

// judge compares the samples.
func (r *soakReport) judge() {
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

func (r *soakReport) compare(what string, a, b soakSample, slack int) {
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

func (r *soakReport) problemf(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// Write prints the report for people.
func (r *soakReport) Write(w io.Writer) error {
	var out bytes.Buffer // writing to it cannot fail
	t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	rows := []struct {
		name string
		soakSample
	}{{"before", r.Samples[0]}, {"start", r.start()}, {"middle", r.middle()}, {"end", r.end()}, {"closed", r.Samples[len(r.Samples)-1]}}
	_, _ = fmt.Fprintln(t, "\tdispatches\theap\tresident\tdescriptors\tgoroutines\tprocesses\t")
	for _, row := range rows {
		_, _ = fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%d\t%d\t%d\t\n",
			row.name, row.Dispatches, mib(row.HeapBytes), mib(row.RSSBytes), row.Descriptors, row.Goroutines, row.Processes)
	}
	_ = t.Flush()
	grown, n := r.heapGrowth()
	fmt.Fprintf(&out, "\n%d dispatches over %d plugins in %.0f s, %d reloads and %d refused, seed %d\n"+
		"a dispatch: p50 %.2f ms, p99 %.2f ms, slowest %.0f ms; Close: %.0f ms; heap: %+.0f KiB in %d dispatches\n",
		r.Dispatches, r.Plugins, r.Seconds, r.Reloads, r.Refused, r.Seed,
		r.DispatchMS[0], r.DispatchMS[1], r.DispatchMS[2], r.CloseMS, float64(grown)/1024, n)
	writeCounts(&out, "runs of hooks", r.Runs)
	writeCounts(&out, "events", r.Events)
	outcome := "passed"
	if len(r.Problems) > 0 {
		outcome = "FAILED"
	}
	fmt.Fprintf(&out, "\n%s\n", outcome)
	for _, p := range r.Problems {
		fmt.Fprintf(&out, "  %s\n", p)
	}
	_, err := out.WriteTo(w)
	return err
}

func writeCounts(out *bytes.Buffer, title string, counts map[string]uint64) {
	fmt.Fprintf(out, "\n%s:\n", title)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, "%12d  %s\n", counts[name], name)
	}
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// soakSample is what the host holds at a quiet moment.
type soakSample struct {
	// At is "before", a number of dispatches in the steady state, or "closed".
	At         string
	Dispatches uint64
	Seconds    float64
	// HeapBytes is what is left after a collection; RSSBytes is the host's alone.
	HeapBytes   int64
	RSSBytes    int64
	Descriptors int
	Goroutines  int
	// Processes are those of plugins and their children, and zombies.
	Processes int
}

// countHeld takes a sample.
func countHeld() (soakSample, error) {
	var s soakSample
	fds, errFDs := os.ReadDir("/proc/self/fd")
	processes, errProcesses := processes()
	if err := errors.Join(errFDs, errProcesses); err != nil {
		return s, err
	}
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	s.HeapBytes = int64(m.HeapAlloc)
	s.RSSBytes, s.Goroutines, s.Processes = int64(resident()), goruntime.NumGoroutine(), processes
	s.Descriptors = len(fds) - 1 // without the one that lists them
	return s, nil
}

// processes counts living processes with the mark of this host, and its zombies.
func processes() (int, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	mark := fmt.Appendf(nil, "GRAPNEL_MARK=%d.", os.Getpid())
	zombie := fmt.Appendf(nil, ") Z %d ", os.Getpid())
	n := 0
	for _, dir := range dirs {
		// What cannot be read has gone, or is another user's.
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		if bytes.Contains(env, mark) || bytes.Contains(stat, zombie) {
			n++
		}
	}
	return n, nil
}

// settleTime bounds the wait for old configurations to drain and deaf processes to be killed.
const settleTime = 15 * time.Second

// settled takes a soakSample once nothing changes any more and there are no more processes than
// wanted, or when settleTime is over.
func settled(ctx context.Context, processes int) (soakSample, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	begin := time.Now()
	var last soakSample
	for same := 0; ; {
		goruntime.GC() // twice: the first one empties pools half-way
		goruntime.GC()
		now, err := countHeld()
		if err != nil {
			return now, err
		}
		if now.Descriptors == last.Descriptors && now.Goroutines == last.Goroutines && now.Processes <= processes {
			same++
		} else {
			same = 0
		}
		if last = now; same >= 5 || time.Since(begin) > settleTime {
			return now, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return now, context.Cause(ctx)
		}
	}
}
