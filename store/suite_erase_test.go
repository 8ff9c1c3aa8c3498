package store_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// keepSecret appends sample n, by an actor, with two sections: one that all have, and a secret of its own.
func keepSecret(t *testing.T, s *store.Store, workspace, thread, actor string, n int) {
	t.Helper()
	m := sample(workspace, thread, n)
	m.Actor, m.Sections = actor, m.Sections[:2]
	var texts []manifest.Text
	for i, text := range []string{"what all know", secret(n)} {
		texts = append(texts, manifest.Text{Hash: manifest.Hash(text, nil), Text: text})
		m.Sections[i].Hash, m.Sections[i].Stability = texts[i].Hash, phases.StabilityDynamic
	}
	keep(t, s, m, texts...)
}

// secret is long enough for overflow pages where n is odd.
func secret(n int) string {
	return fmt.Sprintf("secret-%04d-", n) + strings.Repeat(fmt.Sprintf("[s%04d]", n), 1+n%2*900)
}

// wantSecrets checks which of the secrets are kept.
func wantSecrets(t *testing.T, s *store.Store, total int, want ...int) {
	t.Helper()
	var got []int
	for n := range total {
		if _, err := s.Text(t.Context(), manifest.Hash(secret(n), nil)); err == nil {
			got = append(got, n)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept secrets (-want +got):\n%s", diff)
	}
}

func erase(t *testing.T, s *store.Store, e store.Erasing) store.Erased {
	t.Helper()
	e.By, e.Reason = "data protection", "request 7"
	done, err := s.Erase(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func (x suite) testErase(t *testing.T) {
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{})
	keepSecret(t, s, "w", "t", "ann", 0)
	keepSecret(t, s, "w", "t", "bob", 1)
	keepSecret(t, s, "w", "u", "ann", 2)
	keepSecret(t, s, "v", "t", "ann", 3)
	keepSecret(t, s, "v", "u", "bob", 4)
	for _, bad := range []store.Erasing{{By: "a", Reason: "b"}, {Scope: store.Scope{Actor: "ann"}, Reason: "b"}, {Scope: store.Scope{Actor: "ann"}, By: "a"}, {Scope: store.Scope{Actor: "\x00"}, By: "a", Reason: "b"}} {
		_, err := s.Erase(t.Context(), bad)
		wantCode(t, err, store.CodeInvalid)
	}
	want := store.Erased{Threads: 3, Records: 3, Texts: 6}
	if got := erase(t, s, store.Erasing{Scope: store.Scope{Actor: "ann"}, DryRun: true}); got != want {
		t.Errorf("a dry run says %+v, want %+v", got, want)
	}
	wantSecrets(t, s, 5, 0, 1, 2, 3, 4)
	want.Gone = 3
	if got := erase(t, s, store.Erasing{Scope: store.Scope{Actor: "ann"}}); got != want {
		t.Errorf("erased %+v, want %+v", got, want)
	}
	wantSecrets(t, s, 5, 1, 4)
	wantGood(t, s, 8) // with three records of the erasure
	m, err := s.List(t.Context(), store.Filter{Thread: "u", Workspace: "w"})
	if err != nil || len(m) != 2 {
		t.Fatalf("%d records, %v", len(m), err)
	}
	record, err := s.Get(t.Context(), m[1].ManifestID)
	if err != nil {
		t.Fatal(err)
	}
	if err := manifest.Validate(record); err != nil {
		t.Error(err)
	}
	wantErasure := &manifest.Erasure{By: "data protection", Reason: "request 7", Actor: "ann", Records: 1, Texts: 2, At: record.Erasure.At}
	if diff := cmp.Diff(wantErasure, record.Erasure); diff != "" || record.Kind != manifest.KindErasure {
		t.Errorf("the record of the erasure is of the kind %s (-want +got):\n%s", record.Kind, diff)
	}
	if got := erase(t, s, store.Erasing{Scope: store.Scope{Actor: "ann"}}); got != (store.Erased{}) {
		t.Errorf("erased %+v again", got)
	}
	if got := erase(t, s, store.Erasing{Scope: store.Scope{WorkspaceID: "w"}}); got.Gone != 1 {
		t.Errorf("erased %+v of the workspace", got)
	}
	if got := erase(t, s, store.Erasing{Scope: store.Scope{WorkspaceID: "v", ThreadID: "u"}}); got.Gone != 2 {
		t.Errorf("erased %+v of the thread, which was the last one", got)
	}
	wantSecrets(t, s, 5)
	wantGood(t, s, 10)
	storetest.Exec(t, dsn, "DELETE FROM pending") // of the erasures that nothing has settled
}

// testEraseByAge: a text that newer records name too stays, and the log is good only while the record of it is there.
func (x suite) testEraseByAge(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	for n := range 6 {
		keepSecret(t, s, "w", "t", "", n)
	}
	got := erase(t, s, store.Erasing{Before: epoch().Add(3 * time.Second)})
	if want := (store.Erased{Threads: 1, Records: 3, Texts: 3, Gone: 3}); got != want {
		t.Errorf("erased %+v, want %+v", got, want)
	}
	wantSecrets(t, s, 6, 3, 4, 5)
	wantGood(t, s, 7)
}

func (x suite) testHolds(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	for n := range 4 {
		keepSecret(t, s, "w", "t", []string{"ann", "bob"}[n%2], n)
		keepSecret(t, s, "w", "u", "ann", 10+n)
	}
	hold := store.Hold{Scope: store.Scope{Actor: "bob"}, By: "legal", Reason: "case 9", At: epoch()}
	wantCode(t, s.Hold(t.Context(), store.Hold{By: "legal", Reason: "all"}), store.CodeInvalid)
	if err := s.Hold(t.Context(), hold); err != nil {
		t.Fatal(err)
	}
	for scope, code := range map[store.Scope]store.Code{
		{Actor: "bob"}: store.CodeHeld, {WorkspaceID: "w"}: store.CodeHeld, {ThreadID: "t", WorkspaceID: "w"}: store.CodeHeld, {Actor: "ann"}: "",
	} {
		_, err := s.Erase(t.Context(), store.Erasing{Scope: scope, By: "a", Reason: "b", DryRun: true})
		if code == "" && err != nil || code != "" && !store.HasCode(err, code) {
			t.Errorf("erasing %+v: %v, want the code %q", scope, err, code)
		}
	}
	// Of t only the first record goes: the next one is bob's.
	got, err := s.Prune(t.Context(), store.Retention{Workspaces: map[string]store.Retention{"w": {Count: 1}}}, epoch())
	if want := (store.Pruned{Manifests: 4, Texts: 4, Held: 1}); err != nil || got != want {
		t.Errorf("pruned %+v, %v; want %+v", got, err, want)
	}
	list, err := s.Holds(t.Context())
	if diff := cmp.Diff([]store.Hold{hold}, list); err != nil || diff != "" {
		t.Errorf("holds %v (-want +got):\n%s", err, diff)
	}
	if err := s.Release(t.Context(), hold.Scope); err != nil {
		t.Fatal(err)
	}
	wantCode(t, s.Release(t.Context(), hold.Scope), store.CodeNotFound)
	if got, err := s.Prune(t.Context(), store.Retention{Count: 1}, epoch()); err != nil || got.Manifests != 2 || got.Held != 0 {
		t.Errorf("pruned %+v, %v after the release", got, err)
	}
	wantGood(t, s, 2)
}

// TestNothingLeft: what was erased or pruned is in none of the database's files, also while it is open.
func TestNothingLeft(t *testing.T) {
	t.Parallel()

	const total = 400
	for name, remove := range map[string]func(*store.Store) error{
		"erased": func(s *store.Store) error {
			_, err := s.Erase(t.Context(), store.Erasing{Scope: store.Scope{Actor: "ann"}, By: "a", Reason: "b"})
			return err
		},
		"interrupted": func(s *store.Store) error {
			if _, err := s.Writer().ExecContext(t.Context(), "DELETE FROM text_uses WHERE actor = 'ann'"); err != nil {
				return err
			}
			if _, err := s.PruneTexts(t.Context()); err != nil {
				return err
			}
			_, err := s.Prune(t.Context(), store.Retention{}, epoch())
			return err
		},
		"pruned": func(s *store.Store) error {
			_, err := s.Prune(t.Context(), store.Retention{Count: 1}, epoch())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			path := filepath.Join(t.TempDir(), "grapnel.db")
			s := open(t, "sqlite:"+path, store.Options{Synchronous: store.SynchronousNormal})
			for n := range total {
				keepSecret(t, s, "w", strconv.Itoa(n%7%2), []string{"ann", "ann", "bob"}[n*7/3%3], n)
			}
			before := size(t, path)
			if err := remove(s); err != nil {
				t.Fatal(err)
			}
			files := databaseFiles(t, path)
			gone := 0
			for n := range total {
				if _, err := s.Text(t.Context(), manifest.Hash(secret(n), nil)); err == nil {
					continue
				}
				gone++
				if bytes.Contains(files, fmt.Appendf(nil, "s%04d", n)) || bytes.Contains(files, fmt.Appendf(nil, "secret-%04d", n)) {
					t.Errorf("the secret %d is still in a file", n)
				}
			}
			if gone < total/3 || gone == total {
				t.Errorf("%d of %d secrets are gone", gone, total)
			}
			if after := size(t, path); after >= before {
				t.Errorf("the file had %d bytes and has %d", before, after)
			}
		})
	}
}

func databaseFiles(t *testing.T, path string) (all []byte) {
	t.Helper()
	for _, end := range []string{"", "-wal", "-shm"} {
		data, err := os.ReadFile(path + end)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		all = append(all, data...)
	}
	return all
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
