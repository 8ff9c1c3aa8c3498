package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// pageSize is that of SQLite's files here.
const pageSize = 4096

// TestSQLiteDamagedPage damages each page of a log in turn. Nobody is ever told
// something wrong: reading fails with a code, or the verifier finds it, or it is
// where nothing was.
func TestSQLiteDamagedPage(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	dsn := storetest.SQLite(t)
	s := open(t, dsn, store.Options{})
	fillThread(t, s, "w", "t", 0, 8)
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

func TestSQLiteDamaged(t *testing.T) {
	t.Parallel()

	for name, damage := range map[string]func(data []byte) []byte{
		"no database": func([]byte) []byte { return []byte(strings.Repeat("these are notes\n", 400)) },
		"cut off":     func(data []byte) []byte { return data[:4*pageSize] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dsn := storetest.SQLite(t)
			s := open(t, dsn, store.Options{})
			fillThread(t, s, "w", "t", 0, 8)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(pathOf(dsn))
			if err != nil {
				t.Fatal(err)
			}
			data = damage(data)
			if err := os.WriteFile(pathOf(dsn), data, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err = store.Open(t.Context(), dsn, store.Options{})
			opened := err == nil
			if opened {
				_, err = s.Verify(t.Context(), store.Filter{}, manifest.VerifyOptions{})
				_ = s.Close()
			}
			wantError(t, err, store.CodeDamaged, "backup")
			if after, err := os.ReadFile(pathOf(dsn)); err != nil || !opened && string(after) != string(data) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
}
