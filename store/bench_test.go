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

// BenchmarkAppend is the price of keeping one ordinary manifest, beside writing
// the same bytes to a file and waiting for the disk.
func BenchmarkAppend(b *testing.B) {
	data, err := manifest.Canonical(sample("w", "t", 0))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("bare write and sync", func(b *testing.B) {
		file, err := os.Create(filepath.Join(b.TempDir(), "bare"))
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := file.Write(data); err != nil {
				b.Fatal(err)
			}
			if err := dataSync(file); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, tt := range []struct {
		name string
		dsn  func(b *testing.B) string
		opts store.Options
	}{
		{"sqlite full", newBenchFile, store.Options{}},
		{"sqlite normal", newBenchFile, store.Options{Synchronous: store.SynchronousNormal}},
		{"sqlite normal, keyed", newBenchFile, store.Options{Synchronous: store.SynchronousNormal, Key: []byte("k")}},
		{"postgres", func(b *testing.B) string { return shared.NewDSN(b) }, store.Options{}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			s := openBench(b, tt.dsn(b), tt.opts)
			b.SetBytes(int64(len(data)))
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
		})
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

// benchVerify reports records and bytes a second.
func benchVerify(b *testing.B, s *store.Store, o manifest.VerifyOptions, size int) {
	b.Helper()
	records := 0
	for b.Loop() {
		got, err := s.Verify(b.Context(), store.Filter{}, o)
		if err != nil || !got.OK {
			b.Fatalf("%+v, %v", got, err)
		}
		records += got.Checked
	}
	rate := float64(records) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "records/s")
	b.ReportMetric(rate*float64(size)/1e6, "MB/s-of-records")
}

// BenchmarkLog shows how reading grows with the log. Half of it is one thread.
// What is called cold is a whole process of its own that opens the store and
// reads. The larger log takes a minute to make.
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
			benchReads(b, s, dsn, size)
		})
	}
}

func benchReads(b *testing.B, s *store.Store, dsn string, size int) {
	b.Helper()
	ctx := b.Context()
	appended := 0
	list := func(f store.Filter) func() error {
		return func() error {
			_, err := s.List(ctx, f)
			return err
		}
	}
	for _, tt := range []struct {
		name string
		do   func() error
	}{
		{"open", func() error {
			again, err := store.Open(ctx, dsn, store.Options{})
			if err != nil {
				return err
			}
			return again.Close()
		}},
		{"list", list(store.Filter{Limit: 50})},
		{"list workspace", list(store.Filter{Workspace: "w", Limit: 50})},
		{"list thread", list(store.Filter{Thread: "long", Limit: 50})},
		{"list short thread", list(store.Filter{Thread: "short-3", Limit: 50})},
		{"list workspace and thread", list(store.Filter{Workspace: "w", Thread: "long", Limit: 50})},
		{"list all", list(store.Filter{})},
		{"latest", func() error {
			_, err := s.Latest(ctx, store.Filter{})
			return err
		}},
		{"show", func() error {
			_, err := s.Get(ctx, sampleID(size/2))
			return err
		}},
		{"diff", func() error {
			x, errX := s.Get(ctx, sampleID(1))
			y, errY := s.Get(ctx, sampleID(size-1))
			if errX != nil || errY != nil || !manifest.Diff(x, y, nil, nil).Same {
				return fmt.Errorf("diff: %w, %w", errX, errY)
			}
			return nil
		}},
		{"append", func() error {
			m := sample("w", "long", 0)
			appended++
			m.ManifestID = sampleID(1<<30 + appended)
			return s.Append(ctx, m, nil)
		}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			for b.Loop() {
				if err := tt.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	m, err := s.Latest(ctx, store.Filter{Thread: "short-3"})
	if err != nil {
		b.Fatal(err)
	}
	record, err := manifest.Canonical(m)
	if err != nil {
		b.Fatal(err)
	}
	for name, opts := range map[string]manifest.VerifyOptions{"verify": {}, "verify chain": {ChainOnly: true}} {
		b.Run(name, func(b *testing.B) { benchVerify(b, s, opts, len(record)) })
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"open", "list", "show", "diff"} {
		b.Run("cold "+name, func(b *testing.B) {
			for b.Loop() {
				if err := storetest.Program(b, name, dsn, sampleID(size/2)).Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
