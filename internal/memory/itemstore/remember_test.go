package itemstore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// TestRemembered: what was said is there as it was said.
func TestRemembered(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		c := newClock()
		s := open(t, dsn, fixed(c))
		n := itemstore.Item{
			Scope: itemstore.ScopeUser, ScopeID: "ann", Category: turnpolicy.Preference, Text: "  Prefers tabs. ",
			Evidence: "I prefer tabs, really.", Source: itemstore.SourceTool, Slot: "indent",
		}
		got := remember(t, s, n)[0]
		want := itemstore.Item{
			ID: got.Item.ID, WorkspaceID: "w", Scope: itemstore.ScopeUser, ScopeID: "ann", Category: turnpolicy.Preference, Text: "Prefers tabs.",
			Evidence: "I prefer tabs, really.", Source: itemstore.SourceTool, Slot: "indent", CreatedAt: c.Now(), UpdatedAt: c.Now(), Hash: got.Item.Hash,
		}
		if diff := cmp.Diff(itemstore.Outcome{Change: itemstore.Added, Item: want}, got); diff != "" || len(got.Item.ID) != 26 || len(got.Item.Hash) != 64 {
			t.Errorf("(-want +got):\n%s", diff)
		}
		view := itemstore.View{WorkspaceID: "w", UserID: "ann"}
		for name, s := range map[string]*itemstore.Store{"this store": s, "another": open(t, dsn, itemstore.Options{ReadOnly: true})} {
			item, err := s.Get(t.Context(), view, want.ID)
			if diff := cmp.Diff(want, item); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
			}
		}
	})
}

// step is a batch and what becomes of it, in one word an item.
type step struct {
	batch itemstore.Batch
	want  string
}

// TestChanges: what becomes of new items, next to what is there.
func TestChanges(t *testing.T) {
	t.Parallel()

	say := func(want string, items ...itemstore.Item) step {
		return step{itemstore.Batch{Items: items}, want}
	}
	replacing := func(old string, n itemstore.Item) itemstore.Batch {
		n.Supersedes = old // a text, for the id of its item
		return itemstore.Batch{Items: []itemstore.Item{n}}
	}
	cases := map[string]struct {
		steps []step
		want  []string
	}{
		"one text once": {
			[]step{say("added", fact("The build is green.")), say("known", fact("the build is GREEN"))},
			[]string{"The build is green."},
		},
		"one text twice in a batch": {
			[]step{say("added, known", fact("a b"), fact("A  b."))},
			[]string{"a b"},
		},
		"one text in two scopes": {
			[]step{say("added, added", fact("a b"), of(itemstore.ScopeUser, "ann", fact("a b")))},
			[]string{"a b", "a b"},
		},
		"one text in two workspaces": {
			[]step{say("added", fact("a b")), {itemstore.Batch{WorkspaceID: "another than ", Items: []itemstore.Item{fact("a b")}}, "added"}},
			[]string{"a b"},
		},
		"a slot has one answer": {
			[]step{say("added", inSlot("city", "lives in Bern")), say("replaced", inSlot("city", "lives in Ulm"))},
			[]string{"lives in Ulm"},
		},
		"a slot twice in a batch": {
			[]step{say("added, replaced, replaced", inSlot("city", "Bern"), inSlot("city", "Ulm"), inSlot("city", "Bern"))},
			[]string{"Bern"},
		},
		"a slot per scope": {
			[]step{say("added, added", inSlot("city", "Bern"), of(itemstore.ScopeUser, "ann", inSlot("city", "Ulm")))},
			[]string{"Bern", "Ulm"},
		},
		"replaced by id": {
			[]step{{itemstore.Batch{Items: []itemstore.Item{fact("one"), inSlot("x", "two")}}, "added, added"}, {replacing("one", inSlot("x", "three")), "replaced"}},
			[]string{"three"},
		},
		"replaced by a known text": {
			[]step{say("added, added", fact("one"), fact("two")), {replacing("one", fact("two")), "known"}},
			[]string{"two"},
		},
		"replaced by it before": {
			[]step{say("added", fact("one")), {replacing("one", fact("two")), "replaced"}, {replacing("one", fact("two")), "known"}},
			[]string{"two"},
		},
		"a known text gets a slot": {
			[]step{say("added, added", fact("lives in Ulm"), inSlot("city", "lives in Bern")), say("known", inSlot("city", "lives in Ulm"))},
			[]string{"lives in Ulm"},
		},
		"a known text keeps its slot": {
			[]step{say("added, known, replaced", inSlot("city", "Ulm"), fact("Ulm"), inSlot("city", "Bern"))},
			[]string{"Bern"},
		},
	}
	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		s := open(t, dsn, fixed(newClock()))
		for name, tt := range cases {
			t.Run(name, func(t *testing.T) {
				ids := map[string]string{}
				for n, step := range tt.steps {
					step.batch.WorkspaceID += name
					items := slices.Clone(step.batch.Items) // both databases have the same cases
					for i := range items {
						items[i].Supersedes = ids[items[i].Supersedes]
					}
					step.batch.Items = items
					var got []string
					for _, o := range write(t, s, step.batch) {
						got = append(got, string(o.Change))
						ids[o.Item.Text] = o.Item.ID
					}
					if words := strings.Join(got, ", "); words != step.want {
						t.Errorf("step %d: %q, want %q", n, words, step.want)
					}
				}
				if diff := cmp.Diff(tt.want, texts(list(t, s, everything(name)))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
		checkIndex(t, dsn)
	})
}

// TestKeys: a batch whose key was seen does nothing, whatever is in it.
func TestKeys(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		c := newClock()
		s := open(t, dsn, fixed(c))
		first := itemstore.Batch{WorkspaceID: "w", Key: "turn 1", Items: []itemstore.Item{inSlot("x", "one"), inSlot("x", "two"), fact("three")}}
		did := write(t, s, first)
		c.move(29 * 24 * time.Hour)
		for _, again := range []itemstore.Batch{first, {WorkspaceID: "w", Key: "turn 1", Items: []itemstore.Item{fact("other")}}, {WorkspaceID: "w", Key: "turn 1"}} {
			if got, err := s.Remember(t.Context(), again); err != nil || len(got) > 0 {
				t.Errorf("again: %+v, %v", got, err)
			}
		}
		forget(t, s, did[2].Item.ID)
		if got, err := s.Remember(t.Context(), first); err != nil || len(got) > 0 {
			t.Errorf("again after forgetting: %+v, %v", got, err)
		}
		elsewhere := first
		elsewhere.WorkspaceID = "another"
		if got := write(t, s, elsewhere); len(got) != 3 {
			t.Errorf("keys of two workspaces: %+v", got)
		}
		c.move(2 * 24 * time.Hour)
		write(t, s, itemstore.Batch{WorkspaceID: "w", Key: "turn 2"})
		var n int
		if err := storetest.Raw(t, dsn).QueryRowContext(t.Context(), "SELECT count(*) FROM memory_batches").Scan(&n); err != nil || n != 2 {
			t.Errorf("%d keys after a month, %v", n, err)
		}
	})
}

// TestKeyOfRefused: a batch that was refused may come again with its key.
func TestKeyOfRefused(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		s := open(t, dsn, fixed(newClock()))
		n := fact("new")
		n.Supersedes = "nothing"
		_, err := s.Remember(t.Context(), itemstore.Batch{WorkspaceID: "w", Key: "k", Items: []itemstore.Item{n}})
		wantCode(t, err, sqldb.CodeNotFound)
		n.Supersedes = ""
		if got := write(t, s, itemstore.Batch{WorkspaceID: "w", Key: "k", Items: []itemstore.Item{n}}); got[0].Change != itemstore.Added {
			t.Errorf("%+v", got)
		}
	})
}

// TestRefused: what makes no sense is refused, and nothing is changed.
func TestRefused(t *testing.T) {
	t.Parallel()

	long := func(n int) string { return strings.Repeat("ä", n) }
	with := func(change func(n *itemstore.Item)) itemstore.Batch {
		n := fact("good")
		change(&n)
		return itemstore.Batch{WorkspaceID: "w", Items: []itemstore.Item{fact("before"), n}}
	}
	cases := map[string]itemstore.Batch{
		"text too long":     with(func(n *itemstore.Item) { n.Text = long(itemstore.MaxText + 1) }),
		"evidence too long": with(func(n *itemstore.Item) { n.Evidence = long(itemstore.MaxEvidence + 1) }),
		"no text":           with(func(n *itemstore.Item) { n.Text = " " }),
		"NUL":               with(func(n *itemstore.Item) { n.Text = "a\x00b" }),
		"no UTF-8":          with(func(n *itemstore.Item) { n.Evidence = "a\xffb" }),
		"scope":             with(func(n *itemstore.Item) { n.Scope = "rest" }),
		"scope without id":  with(func(n *itemstore.Item) { n.Scope = itemstore.ScopeThread }),
		"workspace with id": with(func(n *itemstore.Item) { n.ScopeID = "x" }),
		"id of NUL":         with(func(n *itemstore.Item) { n.Scope, n.ScopeID = itemstore.ScopeUser, "\x00" }),
		"category":          with(func(n *itemstore.Item) { n.Category = "rumour" }),
		"source":            with(func(n *itemstore.Item) { n.Source = "" }),
		"slot too long":     with(func(n *itemstore.Item) { n.Slot = long(itemstore.MaxSlot) }),
		"workspace":         {WorkspaceID: long(itemstore.MaxName), Items: []itemstore.Item{fact("good")}},
		"key":               {WorkspaceID: "w", Key: "a\x00", Items: []itemstore.Item{fact("good")}},
		"too many":          {WorkspaceID: "w", Items: make([]itemstore.Item, itemstore.MaxBatch+1)},
	}
	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		s := open(t, dsn, itemstore.Options{})
		for name, b := range cases {
			_, err := s.Remember(t.Context(), b)
			if !sqldb.HasCode(err, itemstore.CodeInvalid) {
				t.Errorf("%s: error %v", name, err)
			}
		}
		bad := itemstore.View{WorkspaceID: "w", UserID: "\xff"}
		_, err := s.Get(t.Context(), bad, "x")
		_, _, listErr := s.List(t.Context(), bad, itemstore.Filter{}, itemstore.Page{})
		_, forgetErr := s.Forget(t.Context(), bad, nil)
		_, searchErr := search(t.Context(), s, bad, "x", 0)
		_, statsErr := s.Stats(t.Context(), bad)
		_, tooMuch := s.Stats(t.Context(), itemstore.View{WorkspaceID: "w", AllScopes: true, UserID: "ann", UserEverywhere: true})
		for _, err := range []error{tooMuch, err, listErr, forgetErr, searchErr, statsErr, s.Used(t.Context(), bad, nil, time.Time{})} {
			wantCode(t, err, itemstore.CodeInvalid)
		}
		_, err = s.Get(t.Context(), everything("w"), "\x00\xff")
		wantCode(t, err, sqldb.CodeNotFound)
		if got := list(t, s, everything("w")); len(got) != 0 {
			t.Errorf("kept %+v", got)
		}
		full := with(func(n *itemstore.Item) {
			n.Text, n.Evidence = long(itemstore.MaxText), long(itemstore.MaxEvidence)
			n.Slot, n.Scope, n.ScopeID = strings.Repeat("s", itemstore.MaxSlot), itemstore.ScopeUser, strings.Repeat("u", itemstore.MaxName)
		})
		if _, err := s.Remember(t.Context(), full); err != nil {
			t.Errorf("at the limits: %v", err)
		}
	})
}
