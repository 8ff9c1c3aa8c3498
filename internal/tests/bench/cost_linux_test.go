package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkProcessorTime alternates batches of dispatches and bare unary calls and reports the median ratio of the
// processor time that host and plugins together take for a call: with many callers, and with one who calls every two
// milliseconds.
func BenchmarkProcessorTime(b *testing.B) {
	text := payload(1 << 10)
	for _, s := range []struct {
		name    string
		callers int
		pause   time.Duration
	}{{"callers=64", 64, 0}, {"callers=1", 1, 0}, {"each=2ms", 1, 2 * time.Millisecond}} {
		b.Run(s.name, func(b *testing.B) {
			ours, theirs := paced(dispatch(startEngine(b, 1), text, 1), s.pause), paced(unary(startBare(b, 1)[0], text), s.pause)
			processorTime(b, s.callers, ours)
			processorTime(b, s.callers, theirs)
			var ratios, micros []float64
			for range max(b.N, 5) {
				o, t := processorTime(b, s.callers, ours), processorTime(b, s.callers, theirs)
				ratios, micros = append(ratios, float64(o)/float64(t)), append(micros, float64(o.Nanoseconds())/1e3/batch)
			}
			b.ReportMetric(median(ratios), "x-unary")
			b.ReportMetric(median(micros), "µs/dispatch")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// paced waits before each call.
func paced(c call, pause time.Duration) call {
	if pause == 0 {
		return c
	}
	return func() error {
		<-time.After(pause)
		return c()
	}
}

// processorTime is that of this process and its descendants in one batch.
func processorTime(b *testing.B, callers int, c call) time.Duration {
	b.Helper()
	before := spent(b, os.Getpid())
	spread(b, callers, batch, c)
	return spent(b, os.Getpid()) - before
}

// spent is the processor time of a process and its descendants so far.
func spent(b *testing.B, pid int) (total time.Duration) {
	b.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, task := range tasks { // a thread may have ended
		stat, _ := os.ReadFile(filepath.Join(task, "schedstat"))
		if fields := strings.Fields(string(stat)); len(fields) > 0 {
			ns, _ := strconv.ParseInt(fields[0], 10, 64)
			total += time.Duration(ns)
		}
		children, _ := os.ReadFile(filepath.Join(task, "children"))
		for child := range strings.FieldsSeq(string(children)) {
			n, _ := strconv.Atoi(child)
			total += spent(b, n)
		}
	}
	return total
}
