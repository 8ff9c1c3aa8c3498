package itemstore_test

import (
	"encoding/json"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// each yields items that were read well.
func each(items []itemstore.Item) iter.Seq2[itemstore.Item, error] {
	return func(yield func(itemstore.Item, error) bool) {
		for _, i := range items {
			if !yield(i, nil) {
				return
			}
		}
	}
}

func importAll(t *testing.T, s *itemstore.Store, items []itemstore.Item) itemstore.Imported {
	t.Helper()
	counts, err := s.Import(t.Context(), each(items))
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// exported is a workspace as it comes back from a file.
func exported(t *testing.T, s *itemstore.Store) []itemstore.Item {
	t.Helper()
	items := list(t, s, everything("w"))
	for n := range items {
		data, err := json.Marshal(items[n])
		if err != nil {
			t.Fatal(err)
		}
		items[n] = itemstore.Item{}
		if err := json.Unmarshal(data, &items[n]); err != nil {
			t.Fatal(err)
		}
	}
	return items
}

// someItems fills a store with items and versions of them.
func someItems(t *testing.T, s *itemstore.Store, c *clock) {
	t.Helper()
	r := rand.New(rand.NewPCG(9, 10))
	for range 6 {
		var items []itemstore.Item
		for range 50 {
			items = append(items, randomNew(r))
		}
		for _, o := range remember(t, s, items...) {
			if r.IntN(5) == 0 {
				if err := s.Used(t.Context(), everything("w"), []string{o.Item.ID}, c.Now()); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.move(time.Hour)
	}
}

// TestRoundTrip: what was exported is imported into another store as it was, once.
func TestRoundTrip(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		c := newClock()
		from := open(t, storetest.SQLite(t), fixed(c))
		someItems(t, from, c)
		want := exported(t, from)
		s := open(t, dsn, itemstore.Options{})
		if got := importAll(t, s, want); got != (itemstore.Imported{Added: len(want)}) {
			t.Errorf("%+v of %d", got, len(want))
		}
		if diff := cmp.Diff(want, list(t, s, everything("w"))); diff != "" {
			t.Errorf("(-want +got):\n%.3000s", diff)
		}
		for _, again := range [][]itemstore.Item{want, slices.Clone(want)} {
			slices.Reverse(again)
			if got := importAll(t, s, again); got != (itemstore.Imported{Known: len(want)}) {
				t.Errorf("again: %+v", got)
			}
		}
		checkIndex(t, dsn)
	})
}

// TestImportCopies: a workspace is copied into another of the same store, with its history.
func TestImportCopies(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		c := newClock()
		s := open(t, dsn, fixed(c))
		someItems(t, s, c)
		want := exported(t, s)
		for n := range want {
			want[n].WorkspaceID = "v"
		}
		for _, counts := range []itemstore.Imported{{Added: len(want)}, {Known: len(want)}} {
			if got := importAll(t, s, want); got != counts {
				t.Errorf("%+v, want %+v", got, counts)
			}
		}
		got := list(t, s, everything("v"))
		ids := cmpopts.IgnoreFields(itemstore.Item{}, "ID", "Supersedes", "SupersededBy")
		byText := cmpopts.SortSlices(func(a, b itemstore.Item) bool {
			return a.Hash+a.ScopeID+a.CreatedAt.String() < b.Hash+b.ScopeID+b.CreatedAt.String()
		})
		if diff := cmp.Diff(want, got, ids, byText); diff != "" {
			t.Errorf("(-want +got):\n%.3000s", diff)
		}
		all, history := map[string]itemstore.Item{}, 0
		for _, i := range got {
			all[i.ID] = i
		}
		for _, i := range got {
			if i.SupersededBy == "" {
				continue
			}
			history++
			if by, there := all[i.SupersededBy]; !there || by.Scope != i.Scope {
				t.Errorf("%s is superseded by %q, which is not of this workspace", i.ID, i.SupersededBy)
			}
		}
		if history < 5 {
			t.Errorf("%d versions: this test shows little", history)
		}
		checkIndex(t, dsn)
	})
}

// TestImportBeside: what an import does where something is already.
func TestImportBeside(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		c := newClock()
		s := open(t, dsn, fixed(c))
		here := remember(t, s, fact("known"), inSlot("older", "older here"), inSlot("newer", "newer here"), fact("edited"), fact("moved"), fact("gone"), inSlot("v", "one"), inSlot("v", "two"))
		forget(t, s, here[5].Item.ID)
		line := func(n int, change func(i *itemstore.Item)) itemstore.Item {
			item := here[n].Item
			change(&item)
			return item
		}
		fresh := func(text, slot string, updated time.Duration) itemstore.Item {
			return itemstore.Item{
				WorkspaceID: "w", Scope: itemstore.ScopeWorkspace, Category: "task", Source: itemstore.SourceUser, Text: text, Slot: slot,
				UpdatedAt: c.Now().Add(updated), CreatedAt: c.Now(),
			}
		}
		for name, tt := range map[string]struct {
			item itemstore.Item
			want itemstore.Imported
		}{
			"known":           {fresh("Known", "", time.Hour), itemstore.Imported{Known: 1}},
			"no id, no times": {itemstore.Item{WorkspaceID: "w", Scope: "workspace", Category: "fact", Source: "user", Text: "brand new"}, itemstore.Imported{Added: 1}},
			"newer slot":      {fresh("newer there", "older", time.Hour), itemstore.Imported{Replaced: 1}},
			"older slot":      {fresh("older there", "newer", -time.Hour), itemstore.Imported{Outdated: 1}},
			"edited":          {line(3, func(i *itemstore.Item) { i.Text = "edited by hand" }), itemstore.Imported{Replaced: 1}},
			"moved":           {line(4, func(i *itemstore.Item) { i.Scope, i.ScopeID = itemstore.ScopeUser, "ann" }), itemstore.Imported{Replaced: 1}},
			"forgotten":       {fresh("gone", "", 0), itemstore.Imported{Forgotten: 1}},
			"edited history":  {line(6, func(i *itemstore.Item) { i.Text = "one, edited" }), itemstore.Imported{Outdated: 1}},
			"history, unknown": {line(6, func(i *itemstore.Item) {
				i.ID, i.Text, i.SupersededBy = "01K0000000000000000000000A", "zero", here[6].Item.ID
			}), itemstore.Imported{Added: 1}},
		} {
			if got := importAll(t, s, []itemstore.Item{tt.item}); got != tt.want {
				t.Errorf("%s: %+v, want %+v", name, got, tt.want)
			}
		}
		want := []string{"brand new", "edited by hand", "known", "moved", "newer here", "newer there", "two"}
		got := texts(list(t, s, everything("w")))
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		checkIndex(t, dsn)
	})
}

// TestImportRefused: what makes no sense ends an import; whole parts before it stay.
func TestImportRefused(t *testing.T) {
	t.Parallel()

	good := itemstore.Item{WorkspaceID: "w", Scope: "workspace", Category: "fact", Source: "user", Text: "good"}
	with := func(change func(i *itemstore.Item)) itemstore.Item {
		item := good
		change(&item)
		return item
	}
	cases := map[string]itemstore.Item{
		"id":        with(func(i *itemstore.Item) { i.ID = "x" }),
		"successor": with(func(i *itemstore.Item) { i.SupersededBy = "'" }),
		"own place": with(func(i *itemstore.Item) {
			i.ID, i.SupersededBy = "01K0000000000000000000000A", "01K0000000000000000000000A"
		}),
		"uses":       with(func(i *itemstore.Item) { i.Uses = -1 }),
		"year 3000":  with(func(i *itemstore.Item) { i.CreatedAt = time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC) }),
		"year 1000":  with(func(i *itemstore.Item) { i.LastUsedAt = time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC) }),
		"NUL":        with(func(i *itemstore.Item) { i.Text = "a\x00" }),
		"own scopes": with(func(i *itemstore.Item) { i.Scope, i.ScopeID = "everywhere", "ann" }),
	}
	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		s := open(t, dsn, itemstore.Options{})
		for name, item := range cases {
			counts, err := s.Import(t.Context(), each([]itemstore.Item{good, item}))
			if !sqldb.HasCode(err, itemstore.CodeInvalid) || counts != (itemstore.Imported{}) {
				t.Errorf("%s: %+v, %v", name, counts, err)
			}
		}
		broken := errors.New("broken line")
		counts, err := s.Import(t.Context(), func(yield func(itemstore.Item, error) bool) {
			for n := range itemstore.MaxBatch + 3 {
				if !yield(with(func(i *itemstore.Item) { i.Text = letters(rand.New(rand.NewPCG(1, uint64(n)))) }), nil) {
					return
				}
			}
			yield(itemstore.Item{}, broken)
		})
		if !errors.Is(err, broken) || counts.Added != itemstore.MaxBatch {
			t.Errorf("%+v, %v", counts, err)
		}
		if got := list(t, s, everything("w")); len(got) != itemstore.MaxBatch {
			t.Errorf("%d items", len(got))
		}
	})
}

// TestIDsOfOthers: an id that is another workspace's by now, or that another workspace's
// item names, is of no effect there.
func TestIDsOfOthers(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		c := newClock()
		s := open(t, dsn, fixed(c))
		b := itemstore.Batch{WorkspaceID: "w", Key: "k", Items: []itemstore.Item{fact("of w")}}
		moved := write(t, s, b)[0].Item
		forget(t, s, moved.ID)
		// The version of v names an item that there is not yet.
		version := moved
		version.ID, version.WorkspaceID, version.Text, version.SupersededBy = "01K0000000000000000000000A", "v", "version of v", moved.ID
		importAll(t, s, []itemstore.Item{version})
		moved.WorkspaceID, moved.Text = "u", "of u"
		importAll(t, s, []itemstore.Item{moved})
		if removed, err := s.Forget(t.Context(), everything("u"), []string{moved.ID}); err != nil || len(removed.IDs) != 1 {
			t.Errorf("u forgets: %+v, %v", removed, err)
		}
		if got := list(t, s, everything("v")); len(got) != 1 || got[0].Text != "version of v" {
			t.Errorf("v has %+v", got)
		}
		checkIndex(t, dsn)
	})
}
