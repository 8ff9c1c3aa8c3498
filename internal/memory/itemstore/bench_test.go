package itemstore_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// What the benchmarks run on: items in the scopes of a few workspaces, most of them
// in "w", of words that are as frequent as those of a language.
const benchWords = 30_000

var benchItems = flag.Int("items", 100_000, "how many items the benchmarks run on")

// author writes texts.
type author struct {
	r *rand.Rand
	z *rand.Zipf
}

func newAuthor(seed uint64) author {
	r := rand.New(rand.NewPCG(seed, 1))
	return author{r, rand.NewZipf(r, 1.07, 8, benchWords-1)}
}

// word is the word of a rank; 0 is the most common.
func word(rank uint64) string {
	const letters = "etaoinhrdlcumwfgypbvk"
	b := []byte{'q'}
	for rank += uint64(len(letters)); rank > 0; rank /= uint64(len(letters)) {
		b = append(b, letters[rank%uint64(len(letters))])
	}
	return string(b)
}

// words are n words, as frequent as they are.
func (a author) words(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = word(a.z.Uint64())
	}
	return strings.Join(list, " ")
}

// item is one in some scope.
func (a author) item() itemstore.New {
	n := fact(a.words(6 + a.r.IntN(24)))
	n.Category = []turnpolicy.Category{turnpolicy.Factual, turnpolicy.Preference, turnpolicy.Decision, turnpolicy.Task}[a.r.IntN(4)]
	if a.r.IntN(4000) == 0 {
		n.Category = turnpolicy.Instruction
	}
	n.Evidence = a.words(10)
	switch a.r.IntN(4) {
	case 0:
		n = of(itemstore.ScopeUser, fmt.Sprint("user", a.r.IntN(10)), n)
	case 1:
		n = of(itemstore.ScopeThread, fmt.Sprint("thread", a.r.IntN(200)), n)
	}
	return n
}

// batch is a full batch.
func (a author) batch() itemstore.Batch {
	b := itemstore.Batch{WorkspaceID: "w"}
	if a.r.IntN(5) == 0 {
		b.WorkspaceID = fmt.Sprint("w", a.r.IntN(20))
	}
	for range itemstore.MaxBatch {
		b.Items = append(b.Items, a.item())
	}
	return b
}

// library is a database with all items, which is made once.
type library struct {
	once sync.Once
	dsn  string
	// rate is how many items a second were written.
	rate float64
}

var libraries struct{ sqlite, postgres library }

func (l *library) open(b *testing.B, newDSN func(b *testing.B) string) string {
	b.Helper()
	l.once.Do(func() {
		l.dsn = newDSN(b)
		s, err := itemstore.Open(b.Context(), l.dsn, itemstore.Options{LockTimeout: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		a := newAuthor(1)
		start := time.Now()
		for n := 0; n < *benchItems; n += itemstore.MaxBatch {
			if _, err := s.Remember(b.Context(), a.batch()); err != nil {
				b.Fatal(err)
			}
		}
		l.rate = float64(*benchItems) / time.Since(start).Seconds()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	})
	if l.dsn == "" {
		b.Skip("the database could not be made")
	}
	return l.dsn
}

// eachLibrary runs a benchmark on both.
func eachLibrary(b *testing.B, run func(b *testing.B, dsn string, l *library)) {
	b.Helper()
	b.Run("sqlite", func(b *testing.B) {
		dsn := libraries.sqlite.open(b, func(b *testing.B) string {
			b.Helper()
			dir, err := os.MkdirTemp("", "grapnel-memory-") //nolint:usetesting // it outlives this benchmark
			if err != nil {
				b.Fatal(err)
			}
			return "sqlite:" + filepath.Join(dir, "memory.db")
		})
		run(b, dsn, &libraries.sqlite)
	})
	b.Run("postgres", func(b *testing.B) {
		dsn := libraries.postgres.open(b, func(b *testing.B) string { b.Helper(); return shared.NewDSN(b) })
		run(b, dsn, &libraries.postgres)
	})
}

// remove removes the files of the libraries.
func (l *library) remove() error {
	if path, ok := strings.CutPrefix(l.dsn, "sqlite:"); ok {
		return os.RemoveAll(filepath.Dir(path))
	}
	return nil
}

func percentile(list []time.Duration, p int) float64 {
	slices.Sort(list)
	return float64(list[min(len(list)-1, len(list)*p/100)].Microseconds()) / 1000
}

// benchView is that of a turn.
func benchView(a author) itemstore.View {
	return itemstore.View{
		WorkspaceID: "w", ThreadID: fmt.Sprint("thread", a.r.IntN(200)), AgentID: "agent", UserID: fmt.Sprint("user", a.r.IntN(10)), UserEverywhere: true,
	}
}

// commonest are the twelve words that most items have.
func commonest() string {
	var list []string
	for n := range uint64(recall.MaxTerms) {
		list = append(list, word(n))
	}
	return strings.Join(list, " ")
}

// queries are what is asked for in the benchmarks.
func queries() map[string]func(a author) string {
	return map[string]func(a author) string{
		"ordinary":   func(a author) string { return a.words(12) },
		"commonest":  func(author) string { return commonest() },
		"all scopes": func(a author) string { return a.words(12) },
	}
}

func BenchmarkRecall(b *testing.B) {
	eachLibrary(b, func(b *testing.B, dsn string, _ *library) {
		b.Helper()
		s := open(b, dsn, itemstore.Options{})
		for _, name := range []string{"ordinary", "commonest", "all scopes"} {
			b.Run(name, func(b *testing.B) {
				a := newAuthor(7)
				var took []time.Duration
				candidates := 0
				for b.Loop() {
					view := benchView(a)
					view.AllScopes = name == "all scopes"
					view.UserEverywhere = !view.AllScopes
					text := queries()[name](a)
					start := time.Now()
					found, err := s.Recall(b.Context(), view, recall.Read(text), time.Now())
					took = append(took, time.Since(start))
					if err != nil {
						b.Fatal(err)
					}
					candidates += len(found)
				}
				b.ReportMetric(percentile(took, 50), "ms-p50")
				b.ReportMetric(percentile(took, 95), "ms-p95")
				b.ReportMetric(float64(candidates)/float64(len(took)), "candidates")
			})
		}
	})
}

// BenchmarkRemember writes full batches, one after the other and by four at once, on
// top of what is there.
func BenchmarkRemember(b *testing.B) {
	eachLibrary(b, func(b *testing.B, dsn string, l *library) {
		b.Helper()
		s := open(b, dsn, itemstore.Options{})
		for _, writers := range []int{1, 4} {
			b.Run(fmt.Sprint("writers ", writers), func(b *testing.B) {
				took := make([][]time.Duration, writers)
				var group sync.WaitGroup
				b.ResetTimer()
				start := time.Now()
				for n := range writers {
					group.Go(func() {
						a := newAuthor(uint64(time.Now().UnixNano()))
						for range b.N {
							batch := a.batch()
							at := time.Now()
							if _, err := s.Remember(b.Context(), batch); err != nil {
								b.Error(err)
								return
							}
							took[n] = append(took[n], time.Since(at))
						}
					})
				}
				group.Wait()
				all := slices.Concat(took...)
				b.ReportMetric(float64(len(all)*itemstore.MaxBatch)/time.Since(start).Seconds(), "items/s")
				b.ReportMetric(percentile(all, 95), "ms-p95")
				b.ReportMetric(l.rate, "items/s-from-empty")
			})
		}
	})
}

// BenchmarkSingle writes items one by one, by many callers.
func BenchmarkSingle(b *testing.B) {
	eachLibrary(b, func(b *testing.B, dsn string, _ *library) {
		b.Helper()
		s := open(b, dsn, itemstore.Options{})
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			a := newAuthor(rand.Uint64())
			for pb.Next() {
				if _, err := s.Remember(b.Context(), itemstore.Batch{WorkspaceID: "w", Items: []itemstore.New{a.item()}}); err != nil {
					b.Error(err)
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "items/s")
	})
}

// BenchmarkForget forgets one item, which writes SQLite's file anew.
func BenchmarkForget(b *testing.B) {
	eachLibrary(b, func(b *testing.B, dsn string, _ *library) {
		b.Helper()
		s := open(b, dsn, itemstore.Options{})
		page := itemstore.Page{Limit: 1}
		for b.Loop() {
			items, next, err := s.List(b.Context(), everything("w"), itemstore.Filter{}, page)
			if err != nil {
				b.Fatal(err)
			}
			page.After = next
			removed, err := s.Forget(b.Context(), everything("w"), []string{items[0].ID})
			if err != nil || removed.Lingering != nil {
				b.Fatal(removed, err)
			}
		}
	})
}

// BenchmarkProcess is a program that opens the store and answers 1,000 recalls.
func BenchmarkProcess(b *testing.B) {
	eachLibrary(b, func(b *testing.B, dsn string, _ *library) {
		b.Helper()
		var opened, memory float64
		for b.Loop() {
			out, err := storetest.Program(b, "recall", dsn, "").Output()
			if err != nil {
				b.Fatal(err)
			}
			fields := strings.Fields(string(out))
			ms, err := strconv.ParseFloat(fields[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			kib, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			opened, memory = max(opened, ms), max(memory, kib/1024)
		}
		b.ReportMetric(opened, "ms-open")
		b.ReportMetric(memory, "MiB-RssAnon")
	})
}

// recallOn opens a store and recalls. It prints how long opening took, and how much
// memory it has in the end.
func recallOn(ctx context.Context, dsn string) error {
	start := time.Now()
	s, err := itemstore.Open(ctx, dsn, itemstore.Options{})
	if err != nil {
		return err
	}
	opened := time.Since(start)
	a := newAuthor(11)
	for n := range 1000 {
		text := a.words(12)
		if n%4 == 0 {
			text = commonest()
		}
		if _, err := s.Recall(ctx, benchView(a), recall.Read(text), time.Now()); err != nil {
			return err
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	fmt.Printf("%.2f %s\n", float64(opened.Microseconds())/1000, strings.Fields(rest)[0])
	return s.Close()
}
