package treestore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/storetest"
	"github.com/grapnelhq/grapnel/store/treestore"
	"github.com/grapnelhq/grapnel/tree"
)

// TestServerGoesAway ends the server under a tree. All calls say that it is not
// available, who listens is told, and it works again when the server does. The
// server is not shared with other tests.
func TestServerGoesAway(t *testing.T) {
	t.Parallel()

	pg, dsn := shared.Own(t)
	s := open(t, dsn)
	for n := range 2 {
		saveText(t, s, fmt.Sprint("before ", n))
		listening := make(chan struct{}, 1)
		ended := make(chan error, 1)
		go func() {
			ended <- s.Listen(t.Context(), func() {
				select {
				case listening <- struct{}{}:
				default:
				}
			})
		}()
		<-listening
		if err := pg.Crash(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantCode(t, <-ended, tree.CodeUnavailable)
		for name, call := range callsOf(s) {
			if err := call(t.Context()); !tree.HasCode(err, tree.CodeUnavailable) {
				t.Errorf("%s without a server: %v", name, err)
			}
		}
		if err := pg.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := saveText(t, s, fmt.Sprint("after ", n)); d.Version != int64(2*n+2) {
			t.Errorf("version %d after the crash", d.Version)
		}
		if list, _ := awaitChanges(t, s, 0, 2*n+3); len(list) != 2*n+3 {
			t.Errorf("changes %q", list)
		}
	}
}

// callsOf are a call of each kind.
func callsOf(s *treestore.Store) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"save": func(ctx context.Context) error {
			_, err := s.Save(ctx, tree.Save{Scope: scope(""), Content: "x"})
			return err
		},
		"doc":     func(ctx context.Context) error { _, err := s.Doc(ctx, scope("")); return err },
		"tree":    func(ctx context.Context) error { _, err := s.Tree(ctx, tree.Query{Scope: scope("")}); return err },
		"changes": func(ctx context.Context) error { _, err := s.Changes(ctx, 0, 0); return err },
		"listen":  func(ctx context.Context) error { return s.Listen(ctx, func() {}) },
		"resolve": func(ctx context.Context) error {
			_, err := s.Resolve(ctx, tree.ThreadRef{WorkspaceID: "w", ThreadID: "t"})
			return err
		},
	}
}

// TestLocked has somebody else who keeps the database, or the row, locked. Changes
// say after a while that it is not available; reading goes on.
func TestLocked(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		saveText(t, open(t, dsn), "x")
		impatient := on(t, storetest.Open(t, dsn, sqldb.Options{LockTimeout: 500 * time.Millisecond}), treestore.Options{})
		patient := on(t, storetest.Open(t, dsn, sqldb.Options{LockTimeout: time.Hour}), treestore.Options{})
		holder, err := storetest.Open(t, dsn, sqldb.Options{}).Writer().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := holder.ExecContext(t.Context(), "UPDATE thread_agents_doc SET title = title"); err != nil {
			t.Fatal(err)
		}
		save := tree.Save{Scope: scope(""), Content: "y", ExpectedVersion: new(int64(1))}
		_, err = impatient.Save(t.Context(), save)
		wantCode(t, err, tree.CodeUnavailable)
		if view, err := impatient.Doc(t.Context(), scope("")); err != nil || view.Explicit.Content != "x" {
			t.Errorf("reading meanwhile: %+v, %v", view, err)
		}
		cause := errors.New("no more time")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, cause)
		defer cancel()
		if _, err := patient.Save(ctx, save); !errors.Is(err, cause) {
			t.Errorf("a context that ends: %v", err)
		}
		if err := holder.Rollback(); err != nil {
			t.Fatal(err)
		}
		if got, err := patient.Save(t.Context(), save); err != nil || got.Doc.Version != 2 {
			t.Errorf("after the lock: %+v, %v", got, err)
		}
	})
}

// TestFull fills a database that may not grow. What was acknowledged is there, and
// it goes on when there is room.
func TestFull(t *testing.T) {
	t.Parallel()

	dsn := storetest.SQLite(t)
	db := storetest.Open(t, dsn, sqldb.Options{})
	s := on(t, db, treestore.Options{})
	if _, err := s.CreateWorkspace(t.Context(), tree.CreateWorkspace{ID: "w", Name: "W"}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Writer().ExecContext(t.Context(), "PRAGMA max_page_count = 150"); err != nil {
		t.Fatal(err)
	}
	var last int64
	var err error
	for err == nil {
		var got tree.Saved
		got, err = s.Save(t.Context(), tree.Save{
			Scope: scope(""), Content: fmt.Sprint(last, strings.Repeat("x", 10_000)), ExpectedVersion: new(last),
		})
		if err == nil {
			last = got.Doc.Version
		}
	}
	wantCode(t, err, tree.CodeUnavailable)
	if !sqldb.HasCode(err, sqldb.CodeFull) || last < 5 {
		t.Errorf("after %d versions: %v", last, err)
	}
	if _, err := db.Writer().ExecContext(t.Context(), "PRAGMA max_page_count = 100000"); err != nil {
		t.Fatal(err)
	}
	if d := saveText(t, s, "room again"); d.Version != last+1 {
		t.Errorf("version %d after %d", d.Version, last)
	}
	if list, err := s.Revisions(t.Context(), tree.RevisionQuery{Scope: scope("")}); err != nil || int64(len(list)) != last+1 {
		t.Errorf("%d revisions, %v", len(list), err)
	}
}

// TestReadOnly: a database that was opened for reading can be read.
func TestReadOnly(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		saveText(t, open(t, dsn), "x")
		s := on(t, storetest.Open(t, dsn, sqldb.Options{ReadOnly: true}), treestore.Options{})
		if view, err := s.Doc(t.Context(), scope("")); err != nil || view.Effective == nil {
			t.Errorf("%+v, %v", view, err)
		}
		_, err := s.Save(t.Context(), tree.Save{Scope: scope(""), Content: "y", ExpectedVersion: new(int64(1))})
		if !sqldb.HasCode(err, sqldb.CodePermission) {
			t.Errorf("saved: %v", err)
		}
	})
}
