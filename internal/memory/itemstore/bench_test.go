package itemstore_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
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
func (a author) item() itemstore.Item {
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
		for n := 0; n < *benchItems; n += itemstore.MaxBatch {
			if _, err := s.Remember(b.Context(), a.batch()); err != nil {
				b.Fatal(err)
			}
		}
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
func eachLibrary(b *testing.B, run func(b *testing.B, dsn string)) {
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
		run(b, dsn)
	})
	b.Run("postgres", func(b *testing.B) {
		run(b, libraries.postgres.open(b, func(b *testing.B) string { b.Helper(); return shared.NewDSN(b) }))
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

func BenchmarkRecall(b *testing.B) {
	eachLibrary(b, func(b *testing.B, dsn string) {
		b.Helper()
		s, a := open(b, dsn, itemstore.Options{}), newAuthor(7)
		var took []time.Duration
		for b.Loop() {
			start := time.Now()
			if _, err := s.Recall(b.Context(), benchView(a), recall.Read(a.words(12)), time.Now()); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		b.ReportMetric(percentile(took, 50), "ms-p50")
		b.ReportMetric(percentile(took, 95), "ms-p95")
	})
}

// BenchmarkRemember writes full batches, one after the other and by four at once, on
// top of what is there.
func BenchmarkRemember(b *testing.B) {
	eachLibrary(b, func(b *testing.B, dsn string) {
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
			})
		}
	})
}
