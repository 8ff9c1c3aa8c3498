package itemstore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// model is a store as it is meant: a list, searched from its beginning to its end.
type model struct {
	items []*itemstore.Item
	// dead are texts that were forgotten, by scope and text.
	dead map[string]bool
	keys map[string]bool
}

// spot names a scope.
func spot(i itemstore.Item) string {
	return fmt.Sprintf("%q %s %q", i.WorkspaceID, i.Scope, i.ScopeID)
}

func grave(i itemstore.Item) string { return spot(i) + recall.Key(i.Text) }

// find returns the item in effect that fits.
func (m *model) find(fits func(i *itemstore.Item) bool) *itemstore.Item {
	for _, i := range m.items {
		if i.SupersededBy == "" && fits(i) {
			return i
		}
	}
	return nil
}

// remember does what the store did. Ids of new items are taken from it.
func (m *model) remember(b itemstore.Batch, did []itemstore.Outcome, now time.Time) (want []itemstore.Outcome, ok bool) {
	if m.keys[b.Key] {
		return nil, true
	}
	for _, n := range b.Items {
		kept := b.Restore || !m.dead[grave(itemOf(b, n))]
		// A known item with the text may have replaced it already.
		known := m.find(func(i *itemstore.Item) bool { return grave(*i) == grave(itemOf(b, n)) })
		done := known != nil && slices.ContainsFunc(m.items, func(i *itemstore.Item) bool { return i.ID == n.Replaces && i.SupersededBy == known.ID })
		if kept && n.Replaces != "" && !done && m.find(func(i *itemstore.Item) bool { return i.ID == n.Replaces }) == nil {
			return nil, false
		}
	}
	if b.Restore {
		for _, n := range b.Items {
			delete(m.dead, grave(itemOf(b, n)))
		}
	}
	for n := range b.Items {
		id := ""
		if n < len(did) {
			id = did[n].Item.ID
		}
		want = append(want, m.one(itemOf(b, b.Items[n]), b.Items[n].Replaces, id, now))
	}
	if b.Key != "" {
		m.keys[b.Key] = true
	}
	return want, true
}

func itemOf(b itemstore.Batch, n itemstore.New) itemstore.Item {
	return itemstore.Item{
		WorkspaceID: b.WorkspaceID, Scope: n.Scope, ScopeID: n.ScopeID, Category: n.Category, Text: n.Text, Evidence: n.Evidence, Source: n.Source, Slot: n.Slot,
	}
}

// one remembers one item.
func (m *model) one(item itemstore.Item, replaces, id string, now time.Time) itemstore.Outcome {
	if m.dead[grave(item)] {
		return itemstore.Outcome{Change: itemstore.Forgotten}
	}
	known := m.find(func(i *itemstore.Item) bool { return grave(*i) == grave(item) })
	var older []*itemstore.Item
	for _, i := range []*itemstore.Item{
		m.find(func(i *itemstore.Item) bool { return i.ID == replaces }),
		m.find(func(i *itemstore.Item) bool { return spot(*i) == spot(item) && item.Slot != "" && i.Slot == item.Slot }),
	} {
		if i != nil && i != known && !slices.Contains(older, i) {
			older = append(older, i)
		}
	}
	outcome := itemstore.Outcome{Change: itemstore.Known}
	if known == nil {
		outcome.Change = itemstore.Added
		item.ID, item.CreatedAt = id, now
		known = &item
		m.items = append(m.items, known)
	}
	if item.Slot != "" {
		known.Slot = item.Slot
	}
	known.UpdatedAt = now
	for _, i := range older {
		i.SupersededBy = known.ID
		outcome.Replaced = append(outcome.Replaced, i.ID)
	}
	if len(older) > 0 {
		known.Supersedes = older[0].ID
		if outcome.Change == itemstore.Added {
			outcome.Change = itemstore.Replaced
		}
	}
	outcome.Item = *known
	return outcome
}

// forget forgets items with the versions before them, and returns all ids.
func (m *model) forget(ids []string) []string {
	for n := 0; n < len(ids); n++ {
		for _, i := range m.items {
			if i.SupersededBy == ids[n] && !slices.Contains(ids, i.ID) {
				ids = append(ids, i.ID)
			}
		}
	}
	var gone []string
	m.items = slices.DeleteFunc(m.items, func(i *itemstore.Item) bool {
		if !slices.Contains(ids, i.ID) {
			return false
		}
		m.dead[grave(*i)] = true
		gone = append(gone, i.ID)
		return true
	})
	for _, i := range m.items {
		if slices.Contains(gone, i.Supersedes) {
			i.Supersedes = ""
		}
	}
	return gone
}

// all are the items as a list has them.
func (m *model) all() []itemstore.Item {
	list := []itemstore.Item{}
	for _, i := range m.items {
		list = append(list, *i)
	}
	slices.SortFunc(list, func(a, b itemstore.Item) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return list
}

// TestRandom compares random sequences with the model.
func TestRandom(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	for seed := range uint64(rounds(1, 3)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()

			storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
				c := newClock()
				run := &randomRun{
					t: t, r: rand.New(rand.NewPCG(seed, 42)), c: c, s: open(t, dsn, fixed(c)),
					m: &model{dead: map[string]bool{}, keys: map[string]bool{}},
				}
				for step := range rounds(120, 250) {
					c.move(time.Duration(run.r.IntN(1000)) * time.Second)
					run.step()
					if t.Failed() {
						t.Fatalf("in step %d", step)
					}
				}
				checkIndex(t, dsn)
			})
		})
	}
}

// randomRun does the same to a store and to the model of it.
type randomRun struct {
	t *testing.T
	r *rand.Rand
	c *clock
	s *itemstore.Store
	m *model
}

// anyID is mostly that of an item.
func (run *randomRun) anyID() string {
	if len(run.m.items) == 0 || run.r.IntN(30) == 0 {
		return "01K0000000000000000000000A"
	}
	return run.m.items[run.r.IntN(len(run.m.items))].ID
}

func (run *randomRun) step() {
	switch what := run.r.IntN(10); {
	case what < 6:
		run.remember()
	case what < 8:
		run.use()
	case what < 9:
		run.forget()
	default:
		run.compare()
	}
}

func (run *randomRun) remember() {
	b := itemstore.Batch{WorkspaceID: "w", Restore: run.r.IntN(6) == 0}
	if run.r.IntN(3) == 0 {
		b.Key = fmt.Sprint("key ", run.r.IntN(60))
	}
	for range run.r.IntN(6) {
		n := fact(fmt.Sprint("text ", run.r.IntN(40)))
		n.Evidence = fmt.Sprint("evidence ", run.r.IntN(10))
		if run.r.IntN(3) == 0 {
			n.Scope, n.ScopeID = itemstore.ScopeUser, []string{"ann", "bob"}[run.r.IntN(2)]
		}
		if run.r.IntN(3) == 0 {
			n.Slot = fmt.Sprint("slot ", run.r.IntN(4))
		}
		b.Items = append(b.Items, n)
	}
	if len(b.Items) > 0 && run.r.IntN(3) == 0 {
		b.Items[0].Replaces = run.anyID() // later ones may be gone by then
	}
	did, err := run.s.Remember(run.t.Context(), b)
	want, ok := run.m.remember(b, did, run.c.Now())
	if !ok {
		wantCode(run.t, err, sqldb.CodeNotFound)
		return
	}
	if err != nil || len(did) != len(want) {
		run.t.Fatalf("%+v: %v, %d outcomes, want %d", b, err, len(did), len(want))
	}
	for n := range did {
		if did[n].Change != want[n].Change || !slices.Equal(did[n].Replaced, want[n].Replaced) {
			run.t.Errorf("item %d of %+v: %+v, want %+v", n, b, did[n], want[n])
		}
	}
}

func (run *randomRun) use() {
	ids := []string{run.anyID(), run.anyID()}
	if err := run.s.Used(run.t.Context(), everything("w"), ids, run.c.Now()); err != nil {
		run.t.Error(err)
	}
	for _, i := range run.m.items {
		if slices.Contains(ids, i.ID) {
			i.Uses++
			i.LastUsedAt = run.c.Now()
		}
	}
}

func (run *randomRun) forget() {
	ids := []string{run.anyID()}
	if run.r.IntN(2) == 0 {
		ids = append(ids, run.anyID())
	}
	removed := forget(run.t, run.s, ids...)
	want := run.m.forget(ids)
	slices.Sort(want)
	slices.Sort(removed.IDs)
	if diff := cmp.Diff(want, removed.IDs); diff != "" || removed.Lingering != nil {
		run.t.Errorf("forgotten: %v (-want +got):\n%s", removed.Lingering, diff)
	}
}

func (run *randomRun) compare() {
	got := list(run.t, run.s, everything("w"))
	for n := range got {
		got[n].Hash = ""
	}
	if diff := cmp.Diff(run.m.all(), got); diff != "" {
		run.t.Errorf("(-model +store):\n%s", diff)
	}
}
