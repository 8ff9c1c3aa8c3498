package itemstore_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// spoil makes a store as one of other rules would have left it.
func spoil(t *testing.T, dsn string) {
	t.Helper()
	texts := []string{
		"UPDATE memory_items SET terms = 'other:2 rules', length = 3, hash = 'old ' || id",
		"UPDATE memory_meta SET value = '0' WHERE name = 'recall_version'",
		"UPDATE memory_counts SET n = n + 1",
	}
	if isPostgres(dsn) {
		texts = append(texts, "DELETE FROM memory_index WHERE seq % 2 = 0")
	} else {
		texts = append(texts, "INSERT INTO memory_index (rowid, tokens) VALUES (77777, '1xother 1xrules')")
	}
	for _, text := range texts {
		storetest.Exec(t, dsn, text)
	}
}

// TestRebuild: a store whose index was made by other rules is indexed anew when it is
// opened, also by several at once, and tells how far it is.
func TestRebuild(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		c := newClock()
		s := open(t, dsn, fixed(c))
		r := rand.New(rand.NewPCG(9, 10))
		for range 10 {
			var items []itemstore.Item
			for range 60 {
				items = append(items, randomNew(r))
			}
			remember(t, s, items...)
		}
		want := list(t, s, everything("w"))
		query := recall.Read("the server of база данных word17")
		before, err := s.Recall(t.Context(), everything("w"), query, c.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		spoil(t, dsn)
		_, err = itemstore.Open(t.Context(), dsn, itemstore.Options{ReadOnly: true})
		wantCode(t, err, sqldb.CodeSchema)
		var mu sync.Mutex
		var progress []string
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				s, err := itemstore.Open(t.Context(), dsn, itemstore.Options{LockTimeout: time.Minute, Progress: func(done, total int) {
					mu.Lock()
					defer mu.Unlock()
					progress = append(progress, fmt.Sprint(done, "/", total))
				}})
				if err == nil {
					err = s.Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		// One of them makes the index.
		if diff := cmp.Diff([]string{fmt.Sprintf("500/%d", len(want)), fmt.Sprintf("%d/%[1]d", len(want))}, progress); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
		s = open(t, dsn, fixed(c))
		after, err := s.Recall(t.Context(), everything("w"), query, c.Now())
		if diff := cmp.Diff(before, after); diff != "" || err != nil {
			t.Errorf("recalled: %v (-before +after):\n%s", err, diff)
		}
		if diff := cmp.Diff(want, list(t, s, everything("w"))); diff != "" {
			t.Errorf("items (-before +after):\n%s", diff)
		}
		checkIndex(t, dsn)
	})
}

// TestRebuildDuplicates: two items that are one by the rules of today become one, the
// newer.
func TestRebuildDuplicates(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		s := open(t, dsn, itemstore.Options{})
		got := remember(t, s, fact("a one"), fact("b one"), fact("b two"), fact("a two"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		spoil(t, dsn)
		for _, text := range []string{"UPDATE memory_items SET text = 'one' WHERE text LIKE '%one'", "UPDATE memory_items SET text = 'two' WHERE text LIKE '%two'"} {
			storetest.Exec(t, dsn, text)
		}
		// One of them has the hash of today already.
		storetest.Exec(t, dsn, "UPDATE memory_items SET hash = $1 WHERE id = $2", hashOfTwo, got[3].Item.ID)
		s = open(t, dsn, itemstore.Options{})
		want := map[string]string{got[0].Item.ID: got[1].Item.ID, got[1].Item.ID: "", got[2].Item.ID: got[3].Item.ID, got[3].Item.ID: ""}
		by := map[string]string{}
		for _, i := range list(t, s, everything("w")) {
			by[i.ID] = i.SupersededBy
		}
		if diff := cmp.Diff(want, by); diff != "" {
			t.Errorf("superseded by (-want +got):\n%s", diff)
		}
		checkIndex(t, dsn)
	})
}

// hashOfTwo is the SHA-256 of "two".
const hashOfTwo = "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"

// TestOtherRulesMeanwhile: a program that was running while another made the index
// anew writes nothing more into it.
func TestOtherRulesMeanwhile(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		s := open(t, dsn, itemstore.Options{})
		id := remember(t, s, fact("before"))[0].Item.ID
		storetest.Exec(t, dsn, "UPDATE memory_meta SET value = '999' WHERE name = 'recall_version'")
		_, err := s.Remember(t.Context(), itemstore.Batch{WorkspaceID: "w", Items: []itemstore.Item{fact("after")}})
		wantCode(t, err, sqldb.CodeSchema)
		_, err = s.Forget(t.Context(), everything("w"), []string{id})
		wantCode(t, err, sqldb.CodeSchema)
		if got := list(t, s, everything("w")); len(got) != 1 {
			t.Errorf("%+v", got)
		}
	})
}
