package treestore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
)

// saveText saves a text at the root, on what is there.
func saveText(tb testing.TB, s tree.Store, content string) tree.Doc {
	tb.Helper()
	view, err := s.Doc(tb.Context(), scope(""))
	if err != nil {
		tb.Fatal(err)
	}
	p := tree.Save{Scope: scope(""), Content: content, Actor: "ann"}
	if view.Explicit != nil {
		p.ExpectedVersion = &view.Explicit.Version
	}
	got, err := s.Save(tb.Context(), p)
	if err != nil {
		tb.Fatal(err)
	}
	return got.Doc
}

// changesBehind returns all changes behind a place, as action and kind, and the
// place behind them.
func changesBehind(tb testing.TB, s tree.Store, after tree.Seq) ([]string, tree.Seq) {
	tb.Helper()
	var list []string
	for more := true; more; {
		got, err := s.Changes(tb.Context(), after, 2)
		if err != nil || got.Gap {
			tb.Fatalf("changes behind %d: %+v, %v", after, got, err)
		}
		for _, c := range got.List {
			id := ""
			switch {
			case c.Folder != nil:
				id = c.Folder.ID
			case c.Thread != nil:
				id = c.Thread.ID
			}
			list = append(list, string(c.Action)+" "+id)
		}
		after, more = got.Next, got.More
	}
	return list, after
}

// awaitChanges is changesBehind until there are so many: what others do on the server
// may hold them up.
func awaitChanges(tb testing.TB, s tree.Store, after tree.Seq, n int) ([]string, tree.Seq) {
	tb.Helper()
	var all []string
	for tb.Context().Err() == nil {
		var list []string
		list, after = changesBehind(tb, s, after)
		if all = append(all, list...); len(all) >= n {
			break
		}
	}
	return all, after
}

// logPast begins a transaction past the store that logs the creation of a folder, as
// another program would.
func logPast(t *testing.T, dsn, folder string) *sql.Tx {
	t.Helper()
	tx, err := storetest.Raw(t, dsn).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	_, err = tx.ExecContext(t.Context(), `INSERT INTO tree_changes (seq, workspace_id, kind, action, actor, at, item_id, name)
		VALUES (CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT), 'w', 'folder', 'created', '', $1, $2, $2)`, time.Now().UnixNano(), folder)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// TestCommitsOutOfOrder has transactions that commit in another order than they
// began. A reader never goes past one that still runs, so that it misses none.
//
// It is not parallel: what it keeps open holds up the readers of all databases of the
// server.
func TestCommitsOutOfOrder(t *testing.T) {
	dsn := shared.NewStore(t)
	s := open(t, dsn)
	_, after := changesBehind(t, s, 0)
	first, second := logPast(t, dsn, "first"), logPast(t, dsn, "second")
	if err := second.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateFolder(t.Context(), tree.CreateFolder{WorkspaceID: "w", ID: "third", Name: "third"}); err != nil {
		t.Fatal(err)
	}
	list, after := changesBehind(t, s, after)
	if len(list) > 0 {
		t.Errorf("read past a transaction that runs: %q", list)
	}
	if err := first.Commit(); err != nil {
		t.Fatal(err)
	}
	list, after = awaitChanges(t, s, after, 3)
	if diff := cmp.Diff(list, []string{"created first", "created second", "created third"}); diff != "" {
		t.Errorf("changes (-got +want):\n%s", diff)
	}
	undone := logPast(t, dsn, "undone")
	if _, err := s.CreateFolder(t.Context(), tree.CreateFolder{WorkspaceID: "w", ID: "fourth", Name: "fourth"}); err != nil {
		t.Fatal(err)
	}
	if err := undone.Rollback(); err != nil {
		t.Fatal(err)
	}
	if list, _ := awaitChanges(t, s, after, 1); len(list) != 1 {
		t.Errorf("behind a transaction that was undone: %q", list)
	}
}

// TestRestoredLog has a database that came from another server, whose transactions
// have other numbers. Its readers are told to read again, and go on from there.
func TestRestoredLog(t *testing.T) {
	t.Parallel()

	dsn := shared.NewStore(t)
	s := open(t, dsn)
	for _, seq := range []int64{3, 1 << 40} { // places that look old, and like the future
		t.Run(strconv.FormatInt(seq, 10), func(t *testing.T) {
			storetest.Exec(t, dsn, "UPDATE tree_log SET origin = 'elsewhere'")
			storetest.Exec(t, dsn, "INSERT INTO tree_changes (seq, workspace_id, kind, action, actor, at, item_id, name) VALUES ($1, 'w', 'folder', 'created', '', 0, 'x', 'x')", seq)
			for _, after := range []tree.Seq{0, 2, 1 << 40, 1 << 41} {
				got, err := s.Changes(t.Context(), after, 0)
				if err != nil || !got.Gap || len(got.List) != 0 {
					t.Errorf("behind %d: %+v, %v, want a gap", after, got, err)
				}
			}
			got, err := s.Changes(t.Context(), 1<<62, 0)
			if err != nil || !got.Gap {
				t.Fatalf("%+v, %v", got, err)
			}
			saveText(t, s, fmt.Sprint("after ", seq))
			list, next := awaitChanges(t, s, got.Next, 1)
			if diff := cmp.Diff(list, []string{"saved "}); diff != "" || next <= got.Next {
				t.Errorf("from the gap on (-got +want):\n%s", diff)
			}
		})
	}
	// Who opens it finds that too.
	before := mustNext(t, s)
	storetest.Exec(t, dsn, "UPDATE tree_log SET origin = 'elsewhere again'")
	again := on(t, storetest.Open(t, dsn, sqldb.Options{}), time.Now)
	if got, err := again.Changes(t.Context(), before, 0); err != nil || !got.Gap {
		t.Errorf("%+v, %v, want a gap", got, err)
	}
}

// mustNext is the newest place.
func mustNext(tb testing.TB, s tree.Store) tree.Seq {
	tb.Helper()
	got, err := s.Changes(tb.Context(), 1<<62, 1)
	if err != nil || !got.Gap {
		tb.Fatalf("%+v, %v", got, err)
	}
	return got.Next
}

// TestListenToOthers: changes by another program wake who listens, without anything
// being asked.
func TestListenToOthers(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		here, there := open(t, dsn), open(t, dsn)
		_, after := changesBehind(t, here, 0)
		ctx, cancel := context.WithCancel(t.Context())
		woken := make(chan struct{}, 1)
		ended := make(chan error, 1)
		go func() {
			ended <- here.Listen(ctx, func() {
				select {
				case woken <- struct{}{}:
				default:
				}
			})
		}()
		<-woken // it listens
		held := time.NewTicker(5 * time.Second)
		defer held.Stop()
		if strings.HasPrefix(dsn, "sqlite:") { // has no server
			held.Stop()
		}
		for n := range 5 {
			saveText(t, there, strconv.Itoa(n))
			for list := []string(nil); len(list) == 0; list, after = changesBehind(t, here, after) {
				select {
				case <-woken:
				case <-time.After(time.Minute):
					t.Fatal("nobody was woken")
				case <-held.C: // woken long ago, while others on the server held the change up
				}
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("listening ended with %v", err)
		}
	})
}
