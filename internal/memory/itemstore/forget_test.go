package itemstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// TestForget: an item goes with the versions before it, and its text is not
// remembered again before the user asks for it.
func TestForget(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		s := open(t, dsn, fixed(newClock()))
		old := remember(t, s, inSlot("city", "lives in Bern"), fact("other"))
		newer := remember(t, s, inSlot("city", "lives in Ulm"))[0].Item.ID
		last := remember(t, s, inSlot("city", "lives in Graz"))[0].Item.ID
		removed := forget(t, s, last, "nothing")
		if diff := cmp.Diff([]string{old[0].Item.ID, newer, last}, removed.IDs); diff != "" || removed.Lingering != nil {
			t.Errorf("%v (-want +got):\n%s", removed.Lingering, diff)
		}
		for _, id := range removed.IDs {
			_, err := s.Get(t.Context(), everything("w"), id)
			wantCode(t, err, sqldb.CodeNotFound)
		}
		if diff := cmp.Diff([]string{"other"}, texts(list(t, s, everything("w")))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		checkIndex(t, dsn)
		for _, text := range []string{"Lives in Graz!", "lives in Bern"} {
			got := remember(t, s, inSlot("city", text))[0]
			if got.Change != itemstore.Forgotten || got.Item.ID != "" || got.Item.Text != text {
				t.Errorf("%s: %+v", text, got)
			}
		}
		if got := remember(t, s, of(itemstore.ScopeUser, "ann", fact("lives in Graz")))[0]; got.Change != itemstore.Added {
			t.Errorf("in another scope: %+v", got)
		}
		asked := itemstore.Batch{WorkspaceID: "w", Items: []itemstore.Item{fact("lives in Graz")}, Restore: true}
		if got := write(t, s, asked)[0]; got.Change != itemstore.Added {
			t.Errorf("restored: %+v", got)
		}
		forget(t, s, old[1].Item.ID)
		if got := remember(t, s, fact("lives in Graz"), fact("lives in Bern"), fact("other")); got[0].Change != itemstore.Known || got[1].Change != itemstore.Forgotten || got[2].Change != itemstore.Forgotten {
			t.Errorf("after it was restored: %+v", got)
		}
		checkIndex(t, dsn)
	})
}

// letters is a word that is nowhere else.
func letters(r *rand.Rand) string {
	for {
		word := make([]byte, 14)
		for n := range word {
			word[n] = byte('b' + r.IntN(25))
		}
		if terms, _ := recall.Index(string(word)); terms[string(word)] == 1 {
			return string(word) // the index has it as it is, not its stem
		}
	}
}

// TestForgottenBytes looks for what was forgotten in the files of SQLite: text,
// evidence, slot and each word, also of versions. Without merging the index, or without
// wiping the tables, it finds some: see Store.eraseFreed.
func TestForgottenBytes(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	for name, restored := range map[string]bool{"ours": false, "restored from a dump": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dsn := storetest.SQLite(t)
			s := open(t, dsn, itemstore.Options{})
			if restored {
				storetest.Exec(t, dsn, "PRAGMA auto_vacuum = NONE; VACUUM")
			}
			r := rand.New(rand.NewPCG(1, 2))
			for range rounds(1, 4) {
				forgetHalf(t, dsn, s, r)
			}
			checkIndex(t, dsn)
		})
	}
}

// forgetHalf remembers many items, forgets half of what there is, and looks for the words of both.
func forgetHalf(t *testing.T, dsn string, s *itemstore.Store, r *rand.Rand) {
	t.Helper()
	secrets := map[string][]string{}
	for range 12 {
		var items []itemstore.Item
		for range itemstore.MaxBatch {
			item, words := secret(r)
			items = append(items, item)
			secrets[item.Text] = words
		}
		remember(t, s, items...)
	}
	all := list(t, s, everything("w"))
	var ids, gone, left []string
	for n, i := range all {
		if i.SupersededBy == "" && n%2 == 0 {
			ids = append(ids, i.ID)
		}
	}
	removed := forget(t, s, ids...)
	for _, i := range all {
		if slices.Contains(removed.IDs, i.ID) {
			gone = append(gone, secrets[i.Text]...)
		} else {
			left = append(left, secrets[i.Text]...)
		}
	}
	if found := wordsOnDisk(t, dsn, gone); len(found) > 0 || len(gone) < 1000 {
		t.Errorf("%d of %d words are still there", len(found), len(gone))
	}
	if found := wordsOnDisk(t, dsn, left); len(found) != len(left) {
		t.Errorf("of %d words that are kept %d were found: this test looks at the wrong place", len(left), len(found))
	}
}

// secret is an item, and the words by which it is known again. Some are alike: the
// index finds its pages by as much of a word as tells it from the one before.
func secret(r *rand.Rand) (item itemstore.Item, words []string) {
	for range 5 {
		words = append(words, letters(r))
	}
	words[1], words[2] = words[0]+"b", words[0]+"c"
	item = fact(strings.Join([]string{words[0], sentence(r), words[1], words[2]}, " "))
	item.Evidence = words[3] + strings.Repeat(" and so on", r.IntN(10))
	switch r.IntN(8) {
	case 0:
		item.Slot = words[4]
		return item, words
	case 1:
		item.Slot = fmt.Sprint("slot", r.IntN(20))
	}
	return item, words[:4]
}

// wordsOnDisk returns those words that the files of a database have.
func wordsOnDisk(t *testing.T, dsn string, words []string) []string {
	t.Helper()
	files, err := filepath.Glob(strings.TrimPrefix(dsn, "sqlite:") + "*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var all []byte
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data...)
	}
	var found []string
	for _, w := range words {
		if bytes.Contains(all, []byte(w)) {
			found = append(found, w)
		}
	}
	return found
}

// TestLingering: while somebody reads, SQLite's log cannot be emptied. That is told,
// noted, and done by the next who can.
func TestLingering(t *testing.T) {
	t.Parallel()

	dsn := storetest.SQLite(t)
	s := open(t, dsn, itemstore.Options{LockTimeout: time.Minute}) // the machine may be busy
	impatient := open(t, dsn, itemstore.Options{LockTimeout: 200 * time.Millisecond})
	word := letters(rand.New(rand.NewPCG(5, 6)))
	id := remember(t, s, fact(word))[0].Item.ID
	reader, err := storetest.Raw(t, dsn).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reader.QueryRowContext(t.Context(), "SELECT count(*) FROM memory_items").Scan(&n); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	removed := forget(t, impatient, id)
	if !sqldb.HasCode(removed.Lingering, sqldb.CodeLocked) || len(removed.IDs) != 1 {
		t.Errorf("while somebody reads: %+v", removed)
	}
	if untidy, err := s.Untidy(t.Context()); err != nil || !untidy {
		t.Errorf("%+v, %v", untidy, err)
	}
	if found := wordsOnDisk(t, dsn, []string{word}); len(found) == 0 {
		t.Error("the log was emptied after all: this test shows nothing")
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), impatient.Close()); err != nil {
		t.Fatal(err)
	}
	s = open(t, dsn, itemstore.Options{})
	if untidy, err := s.Untidy(t.Context()); err != nil || untidy {
		t.Errorf("opened again: %+v, %v", untidy, err)
	}
	if found := wordsOnDisk(t, dsn, []string{word}); len(found) > 0 {
		t.Error("opened again, the word is there")
	}
}

// TestForgottenRows: PostgreSQL's tables have nothing of what was forgotten, in any of
// their columns.
func TestForgottenRows(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	dsn := shared.NewDSN(t)
	s := open(t, dsn, itemstore.Options{})
	r := rand.New(rand.NewPCG(7, 8))
	word, slot := letters(r), letters(r)
	item := inSlot(slot, "the word is "+word)
	item.Evidence = "he said " + word
	id := write(t, s, itemstore.Batch{WorkspaceID: "w", Key: "k", Items: []itemstore.Item{item}})[0].Item.ID
	if n := rowsWith(t, dsn, word, slot); n == 0 {
		t.Fatal("the word is nowhere: this test shows nothing")
	}
	if removed := forget(t, s, id); removed.Lingering != nil {
		t.Error(removed.Lingering)
	}
	if n := rowsWith(t, dsn, word, slot); n > 0 {
		t.Errorf("%d rows have the word", n)
	}
}

// rowsWith counts the rows of all tables that have one of the words.
func rowsWith(t *testing.T, dsn string, words ...string) int {
	t.Helper()
	all := 0
	for _, table := range []string{"meta", "scopes", "items", "index", "counts", "deltas", "tombstones", "batches"} {
		for _, w := range words {
			var n int
			text := fmt.Sprintf("SELECT count(*) FROM memory_%s t WHERE CAST(t AS TEXT) LIKE '%%' || CAST($1 AS TEXT) || '%%'", table)
			if err := storetest.Raw(t, dsn).QueryRowContext(t.Context(), text, w).Scan(&n); err != nil {
				t.Fatal(err)
			}
			all += n
		}
	}
	return all
}
