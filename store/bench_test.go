package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

func openBench(b *testing.B, dsn string, o store.Options) *store.Store {
	b.Helper()
	s, err := store.Open(b.Context(), dsn, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// BenchmarkAppend keeps one ordinary manifest, without waiting for the disk.
func BenchmarkAppend(b *testing.B) {
	s := openBench(b, newBenchFile(b), store.Options{Synchronous: store.SynchronousNormal})
	b.ReportAllocs()
	sample := sample("w", "t", 0)
	n := 0
	for b.Loop() {
		m := *sample
		m.ManifestID = sampleID(n)
		if err := s.Append(b.Context(), &m, nil); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

// BenchmarkAppendPaired alternates batches of appending to the embedded store,
// which waits for the disk, with batches of bare writes of the same bytes that
// wait for it too, and reports the median ratio of their times. A batch is long
// enough to bear its share of what happens now and then, such as checkpoints.
func BenchmarkAppendPaired(b *testing.B) {
	const batch = 250
	sample := sample("w", "t", 0)
	data, err := manifest.Canonical(sample)
	if err != nil {
		b.Fatal(err)
	}
	s := openBench(b, newBenchFile(b), store.Options{})
	file, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var ratios, bares, kepts []float64
	n := 0
	for b.Loop() {
		start := time.Now()
		for range batch {
			if _, err := file.Write(data); err != nil {
				b.Fatal(err)
			}
			if err := dataSync(file); err != nil {
				b.Fatal(err)
			}
		}
		bare := time.Since(start)
		start = time.Now()
		for range batch {
			m := *sample
			m.ManifestID = sampleID(n)
			if err := s.Append(b.Context(), &m, nil); err != nil {
				b.Fatal(err)
			}
			n++
		}
		kept := time.Since(start)
		ratios = append(ratios, float64(kept)/float64(bare))
		bares, kepts = append(bares, float64(bare.Microseconds())/batch), append(kepts, float64(kept.Microseconds())/batch)
	}
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(median(bares), "bare-µs")
	b.ReportMetric(median(kepts), "append-µs")
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

func newBenchFile(b *testing.B) string {
	b.Helper()
	return "sqlite:" + filepath.Join(b.TempDir(), "grapnel.db")
}

// BenchmarkLog verifies the chains of a log, half of which is one thread, and reads it as a command does: with a whole
// process of its own. The larger log takes a minute to make.
func BenchmarkLog(b *testing.B) {
	for _, size := range []int{1000, 100_000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			if testing.Short() && size > 1000 {
				b.Skip("takes a minute to make")
			}
			dsn := newBenchFile(b)
			s := openBench(b, dsn, store.Options{Synchronous: store.SynchronousNormal})
			for n := range size {
				thread := "long"
				if n%2 == 1 {
					thread = fmt.Sprintf("short-%d", n/20)
				}
				if err := s.Append(b.Context(), sample("w", thread, n), nil); err != nil {
					b.Fatal(err)
				}
			}
			b.Run("verify chain", func(b *testing.B) { benchVerify(b, s, size) })
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			for _, name := range []string{"list", "show", "diff"} {
				b.Run("cold "+name, func(b *testing.B) {
					for b.Loop() {
						if err := storetest.Program(b, name, dsn, sampleID(size/2)).Run(); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}

// benchVerify reports records and bytes a second.
func benchVerify(b *testing.B, s *store.Store, size int) {
	b.Helper()
	record, err := manifest.Canonical(sample("w", "long", 0))
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		got, err := s.Verify(b.Context(), store.Filter{}, manifest.VerifyOptions{ChainOnly: true})
		if err != nil || !got.OK || got.Checked != size {
			b.Fatalf("%+v, %v", got, err)
		}
		n += got.Checked
	}
	rate := float64(n) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "records/s")
	b.ReportMetric(rate*float64(len(record))/1e6, "MB/s-of-records")
}
