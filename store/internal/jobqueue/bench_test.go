package jobqueue_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/store/internal/jobqueue"
)

func benchBoth(b *testing.B, bench func(b *testing.B, dsn string)) {
	b.Helper()
	b.Run("sqlite", func(b *testing.B) { bench(b, storetest.SQLite(b)) })
	b.Run("postgres", func(b *testing.B) { bench(b, server.NewDSN(b)) })
}

// roomy is a queue that benchmarks do not fill.
func roomy() jobs.QueueOptions { return jobs.QueueOptions{PerPlugin: 1024} }

// ordinary is a job of ordinary size.
func ordinary() jobs.Job {
	return jobs.Job{Kind: "k", Plugin: "p", Subscription: "p.s", Payload: []byte(`{"text":"` + strings.Repeat("x", 1024) + `"}`)}
}

// BenchmarkAdd adds jobs, by one caller and by many. Nobody works on them; the queue
// is emptied at times.
func BenchmarkAdd(b *testing.B) {
	benchBoth(b, func(b *testing.B, dsn string) {
		for name, callers := range map[string]int{"one": 1, "many": 16} {
			b.Run(name, func(b *testing.B) {
				q := open(b, dsn, roomy())
				tokens := make(chan struct{}, callers)
				added := 0
				var group sync.WaitGroup
				for b.Loop() {
					if added++; added%512 == 0 {
						b.StopTimer()
						group.Wait()
						execute(b, dsn, "DELETE FROM jobs")
						b.StartTimer()
					}
					tokens <- struct{}{}
					group.Go(func() {
						if err := q.Add(context.Background(), ordinary()); err != nil {
							b.Error(err)
						}
						<-tokens
					})
				}
				group.Wait()
				b.ReportMetric(float64(added)/b.Elapsed().Seconds(), "adds/s")
			})
		}
	})
}

// BenchmarkJobs adds jobs and does them, with few in flight: such as may be repeated,
// and such as may not, which it is noted of when they begin.
func BenchmarkJobs(b *testing.B) {
	benchBoth(b, func(b *testing.B, dsn string) {
		for name, once := range map[string]bool{"repeatable": false, "once": true} {
			b.Run(name, func(b *testing.B) { benchJobs(b, open(b, dsn, roomy()), once) })
		}
	})
}

func benchJobs(b *testing.B, q *jobqueue.Queue, once bool) {
	b.Helper()
	flight := make(chan struct{}, 64)
	end := serveAttempts(b, q, func(ctx context.Context, a jobs.Attempt) jobs.Result {
		if once {
			if err := a.Begin(ctx); err != nil {
				b.Error(err)
			}
		}
		<-flight
		return jobs.Result{Action: jobs.Done}
	})
	defer end()
	total := 0
	var group sync.WaitGroup
	for b.Loop() {
		total++
		flight <- struct{}{}
		group.Go(func() { add(b, q, ordinary()) })
	}
	group.Wait()
	if err := q.Idle(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkLatency is the time from Add to the beginning of the work, and of Add
// alone.
func BenchmarkLatency(b *testing.B) {
	benchBoth(b, func(b *testing.B, dsn string) {
		q := open(b, dsn, roomy())
		begun := make(chan time.Time)
		serve(b, q, func(context.Context, jobs.Job, int) jobs.Result {
			begun <- time.Now()
			return jobs.Result{Action: jobs.Done}
		})
		var whole, adding []time.Duration
		for b.Loop() {
			start := time.Now()
			go func() {
				add(b, q, ordinary())
				adding = append(adding, time.Since(start))
				begun <- time.Time{}
			}()
			first := <-begun
			if second := <-begun; first.IsZero() {
				first = second
			}
			whole = append(whole, first.Sub(start))
		}
		report(b, whole, "")
		report(b, adding, "add-")
	})
}

func report(b *testing.B, times []time.Duration, prefix string) {
	b.Helper()
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), prefix+"p50-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), prefix+"p99-µs")
}
