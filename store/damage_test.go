package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// pageSize is that of SQLite's files here, walHeader and walFrame those of its
// write-ahead log.
const (
	pageSize  = 4096
	walHeader = 32
	walFrame  = pageSize + 24
)

// TestSQLiteDamagedPage damages each page of a log in turn. Nobody is ever told
// something wrong: reading fails with a code, or the verifier finds it, or it is
// where nothing was.
func TestSQLiteDamagedPage(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	dsn := storetest.SQLite(t)
	s := open(t, dsn, store.Options{})
	fill(t, s, 0, 8)
	for n := range 8 {
		if err := s.Report(t.Context(), manifest.Usage{ManifestID: sampleID(n), Rounds: 1, ReportedAt: epoch()}); err != nil {
			t.Fatal(err)
		}
	}
	want := everything(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(pathOf(dsn))
	if err != nil {
		t.Fatal(err)
	}
	found, pages := 0, 0
	for at := 0; at < len(data); at += pageSize {
		if !isEmptyPage(data[at:]) {
			pages++
		}
		damaged := append([]byte(nil), data...)
		for i := range pageSize {
			damaged[at+i] = 0xa5
		}
		path := filepath.Join(t.TempDir(), "grapnel.db")
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(t.Context(), "sqlite:"+path, store.Options{})
		if err != nil {
			wantError(t, err, store.CodeDamaged, "backup")
			found++
			continue
		}
		got := everything(t, s)
		if got.bad {
			found++
		} else if diff := cmp.Diff(got, want, cmp.AllowUnexported(reading{})); diff != "" {
			t.Errorf("page %d: not noticed (-got +want):\n%s", at/pageSize+1, diff)
		}
		_ = s.Close()
	}
	if found < pages*3/4 {
		t.Errorf("damage was noticed in %d of %d pages that hold something", found, pages)
	}
}

// isEmptyPage reports whether a page is that of a table or index without rows, as
// are those of what is kept beside the log.
func isEmptyPage(page []byte) bool {
	const leafOfIndex, leafOfTable = 0x0a, 0x0d
	return (page[0] == leafOfIndex || page[0] == leafOfTable) && page[3] == 0 && page[4] == 0 // the number of cells
}

// reading is what can be read of a log.
type reading struct {
	bad   bool
	lists [][]manifest.Index
	usage []manifest.Usage
}

// everything reads a log in all ways. Errors have to be coded.
func everything(t *testing.T, s *store.Store) reading {
	t.Helper()
	var r reading
	note := func(err error) {
		if err != nil {
			r.bad = true
			if !store.HasCode(err, store.CodeDamaged) && !store.HasCode(err, store.CodeInvalid) {
				t.Errorf("an error without a code of its own: %v", err)
			}
		}
	}
	got, err := s.Verify(t.Context(), store.Filter{}, manifest.VerifyOptions{})
	note(err)
	r.bad = r.bad || !got.OK
	for _, f := range []store.Filter{{}, {Limit: 3}, {Thread: "t"}, {Workspace: "w", Limit: 2}, {Workspace: "w", Thread: "t", Limit: 2}} {
		list, err := s.List(t.Context(), f)
		note(err)
		_, err = s.Manifests(t.Context(), f)
		note(err)
		r.lists = append(r.lists, list)
	}
	_, err = s.Get(t.Context(), sampleID(5))
	note(err)
	for n := range 8 {
		usage, err := s.Usage(t.Context(), sampleID(n))
		note(err)
		r.usage = append(r.usage, usage...)
	}
	return r
}

// TestSQLiteDamagedWAL cuts the write-ahead log off at many places, and alters it
// there, as a crash of the machine may. What was written before that place is
// there, whole.
func TestSQLiteDamagedWAL(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	dsn := storetest.SQLite(t)
	s := open(t, dsn, store.Options{})
	fill(t, s, 0, 6)
	database, errDB := os.ReadFile(pathOf(dsn))
	wal, errWAL := os.ReadFile(pathOf(dsn) + "-wal")
	if err := errors.Join(errDB, errWAL); err != nil || len(wal) < 6*3*pageSize {
		t.Fatalf("a log of %d bytes, %v", len(wal), err)
	}
	for _, damage := range []struct {
		name string
		do   func(wal []byte, at int) []byte
	}{
		{"cut off", func(wal []byte, at int) []byte { return wal[:at] }},
		{"altered", func(wal []byte, at int) []byte { wal[at-1] ^= 0x55; return wal }},
		{"zeroed", func(wal []byte, at int) []byte { clear(wal[at:]); return wal }},
	} {
		t.Run(damage.name, func(t *testing.T) {
			t.Parallel()

			last := -1
			for at := walHeader + walFrame; at <= len(wal); at += 5*walFrame + 100 {
				kept := keptOf(t, database, damage.do(append([]byte(nil), wal...), at))
				if kept < last {
					t.Errorf("behind %d bytes there are %d manifests, fewer than before", at, kept)
				}
				last = kept
			}
			if last < 4 {
				t.Errorf("no more than %d manifests outlived damage at the end", last)
			}
		})
	}
}

// keptOf opens a database with a write-ahead log and returns how many manifests
// are kept. The log must be good, and must take further ones.
func keptOf(t *testing.T, database, wal []byte) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "grapnel.db")
	if err := errors.Join(os.WriteFile(path, database, 0o600), os.WriteFile(path+"-wal", wal, 0o600)); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), "sqlite:"+path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	kept, err := s.Count(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, 100, 102)
	wantGood(t, s, kept+2)
	return kept
}

func TestSQLiteDamaged(t *testing.T) {
	t.Parallel()

	const fill8 = 8
	tests := []struct {
		name   string
		damage func(data []byte) []byte
		open   bool // whether it can be opened; then reading fails
	}{
		{"no database", func([]byte) []byte { return []byte(strings.Repeat("these are notes\n", 400)) }, false},
		{"header overwritten", func(data []byte) []byte { copy(data, "this is no database now"); return data }, false},
		{"pages overwritten", func(data []byte) []byte {
			for i := 3 * 4096; i < len(data); i++ {
				data[i] = 0xa5
			}
			return data
		}, true},
		{"cut off", func(data []byte) []byte { return data[:4*4096] }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			dsn := storetest.SQLite(t)
			s := open(t, dsn, store.Options{})
			fill(t, s, 0, fill8)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(pathOf(dsn))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(pathOf(dsn), tt.damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err = store.Open(t.Context(), dsn, store.Options{})
			if err == nil {
				_, err = s.Verify(t.Context(), store.Filter{}, manifest.VerifyOptions{})
				_ = s.Close()
			} else if tt.open {
				t.Logf("not even opened: %v", err)
			}
			wantError(t, err, store.CodeDamaged, "backup")
			after, readErr := os.ReadFile(pathOf(dsn))
			if readErr != nil || !tt.open && string(after) != string(tt.damage(data)) {
				t.Errorf("the file was changed: %v", readErr)
			}
		})
	}
}
