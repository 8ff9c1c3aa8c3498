package itemstore_test

import (
	"fmt"
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

// placed is an item of a scope in a workspace, written "workspace scope id".
func placed(where, text string) itemstore.Batch {
	parts := strings.Split(where+"  ", " ")
	n := of(itemstore.Scope(parts[1]), parts[2], fact(text))
	return itemstore.Batch{WorkspaceID: parts[0], Items: []itemstore.Item{n}}
}

// TestViews: every read returns what is in view, and nothing else.
func TestViews(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	places := []string{
		"w workspace", "w thread t1", "w thread t2", "w agent a1", "w agent a2", "w user ann", "w user bob",
		"v workspace", "v thread t1", "v agent a1", "v user ann", "v user bob", "w thread ann", "u user ann",
	}
	cases := map[string]struct {
		view itemstore.View
		want []string
	}{
		"workspace":             {itemstore.View{WorkspaceID: "w"}, []string{"w workspace"}},
		"unknown workspace":     {itemstore.View{WorkspaceID: "x", ThreadID: "t1", AgentID: "a1", UserID: "ann"}, []string{}},
		"nameless workspace":    {itemstore.View{}, []string{}},
		"thread":                {itemstore.View{WorkspaceID: "w", ThreadID: "t1"}, []string{"w workspace", "w thread t1"}},
		"a thread called as":    {itemstore.View{WorkspaceID: "w", ThreadID: "ann"}, []string{"w workspace", "w thread ann"}},
		"agent":                 {itemstore.View{WorkspaceID: "w", AgentID: "a2"}, []string{"w workspace", "w agent a2"}},
		"user":                  {itemstore.View{WorkspaceID: "w", UserID: "ann"}, []string{"w workspace", "w user ann"}},
		"user everywhere":       {itemstore.View{WorkspaceID: "w", UserID: "ann", UserEverywhere: true}, []string{"w workspace", "w user ann", "v user ann", "u user ann"}},
		"nobody everywhere":     {itemstore.View{WorkspaceID: "w", UserEverywhere: true}, []string{"w workspace"}},
		"everywhere from a new": {itemstore.View{WorkspaceID: "x", UserID: "bob", UserEverywhere: true}, []string{"w user bob", "v user bob"}},
		"all of a turn": {
			itemstore.View{WorkspaceID: "w", ThreadID: "t2", AgentID: "a1", UserID: "bob"},
			[]string{"w workspace", "w thread t2", "w agent a1", "w user bob"},
		},
		"all scopes": {
			itemstore.View{WorkspaceID: "v", AllScopes: true, ThreadID: "t9"},
			[]string{"v workspace", "v thread t1", "v agent a1", "v user ann", "v user bob"},
		},
	}
	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		s := open(t, dsn, itemstore.Options{})
		ids := map[string]string{}
		for _, p := range places {
			ids[p] = write(t, s, placed(p, "the place "+p))[0].Item.ID
		}
		for name, tt := range cases {
			want := slices.Clone(tt.want)
			slices.Sort(want)
			for how, got := range seen(t, s, tt.view, ids) {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s by %s (-want +got):\n%s", name, how, diff)
				}
			}
		}
		checkIndex(t, dsn)
	})
}

// seen are the places whose items a view has, by each way to read.
func seen(t *testing.T, s *itemstore.Store, v itemstore.View, ids map[string]string) map[string][]string {
	t.Helper()
	all := map[string][]string{"get": {}, "list": {}, "export": {}, "search": {}, "recall": {}}
	see := func(how, text string) { all[how] = append(all[how], strings.TrimPrefix(text, "the place ")) }
	for _, id := range ids {
		item, err := s.Get(t.Context(), v, id)
		if err == nil {
			see("get", item.Text)
		} else if !sqldb.HasCode(err, sqldb.CodeNotFound) {
			t.Error(err)
		}
	}
	items, _, err := s.List(t.Context(), v, itemstore.Filter{}, itemstore.Page{})
	for _, i := range items {
		see("list", i.Text)
	}
	for _, i := range list(t, s, v) {
		see("export", i.Text)
	}
	hits, searchErr := search(t.Context(), s, v, "place", 100)
	for _, h := range hits {
		see("search", h.Text)
	}
	found, recallErr := s.Recall(t.Context(), v, recall.Read("place"), time.Now())
	for _, r := range found {
		see("recall", r.Text)
	}
	stats, statsErr := s.Stats(t.Context(), v)
	if err != nil || searchErr != nil || recallErr != nil || statsErr != nil {
		t.Error(err, searchErr, recallErr, statsErr)
	}
	for _, l := range all {
		slices.Sort(l)
	}
	if stats.Items != len(items) {
		t.Errorf("%+v: %d items by stats, %d by list", v, stats.Items, len(items))
	}
	return all
}

// TestOutOfView: what is not in view is neither forgotten nor used. Uses are counted, once a call, and the last one is the
// latest.
func TestOutOfView(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		c := newClock()
		s := open(t, dsn, fixed(c))
		mine := write(t, s, placed("w user ann", "mine"))[0].Item
		hers := write(t, s, placed("w user bob", "hers"))[0].Item
		view := itemstore.View{WorkspaceID: "w", UserID: "ann"}
		for _, d := range []time.Duration{time.Hour, 3 * time.Hour, 2 * time.Hour} {
			if err := s.Used(t.Context(), view, []string{mine.ID, hers.ID, mine.ID, "nothing", ""}, c.Now().Add(d)); err != nil {
				t.Fatal(err)
			}
		}
		removed, err := s.Forget(t.Context(), view, []string{hers.ID, "nothing"})
		if err != nil || len(removed.IDs) > 0 {
			t.Errorf("forgot %v, %v", removed, err)
		}
		mine.Uses, mine.LastUsedAt = 3, c.Now().Add(3*time.Hour)
		if diff := cmp.Diff([]itemstore.Item{mine, hers}, list(t, s, everything("w"))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestPages: pages have all items once, in order, whatever changes meanwhile.
func TestPages(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		c := newClock()
		s := open(t, dsn, fixed(c))
		var want []string
		for n := range 23 {
			c.move(time.Second)
			where := []string{"w workspace", "w thread t", "w user ann"}[n%3]
			want = append(want, write(t, s, placed(where, fmt.Sprint("item ", n)))[0].Item.ID)
		}
		for _, view := range []itemstore.View{everything("w"), {WorkspaceID: "w", ThreadID: "t", UserID: "ann"}} {
			for _, oldest := range []bool{true, false} {
				var got []string
				p := itemstore.Page{Limit: 5, OldestFirst: oldest}
				for pages := 1; ; pages++ {
					items, next, err := s.List(t.Context(), view, itemstore.Filter{}, p)
					if err != nil {
						t.Fatal(err)
					}
					for _, i := range items {
						got = append(got, i.ID)
					}
					if next == "" {
						if pages != 5 {
							t.Errorf("%d pages", pages)
						}
						break
					}
					remember(t, s, fact("item 0")) // said again: it is newer, and stays where it is
					p.After = next
				}
				if !oldest {
					slices.Reverse(got)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("oldest first %v (-want +got):\n%s", oldest, diff)
				}
			}
		}
	})
}

// TestFilters: lists by scope, category and history.
func TestFilters(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		s := open(t, dsn, itemstore.Options{})
		rule := of(itemstore.ScopeUser, "ann", fact("rule"))
		rule.Category = "instruction"
		remember(t, s, fact("plain"), rule, of(itemstore.ScopeThread, "t", fact("t")), of(itemstore.ScopeThread, "u", fact("u")), inSlot("x", "old"))
		remember(t, s, inSlot("x", "new"))
		turn := itemstore.View{WorkspaceID: "w", ThreadID: "t", UserID: "ann"}
		for name, tt := range map[string]struct {
			view itemstore.View
			f    itemstore.Filter
			want []string
		}{
			"all":              {everything("w"), itemstore.Filter{}, []string{"new", "plain", "rule", "t", "u"}},
			"with history":     {everything("w"), itemstore.Filter{History: true}, []string{"new", "old", "plain", "rule", "t", "u"}},
			"threads":          {everything("w"), itemstore.Filter{Scope: itemstore.ScopeThread}, []string{"t", "u"}},
			"thread of a turn": {turn, itemstore.Filter{Scope: itemstore.ScopeThread}, []string{"t"}},
			"workspace":        {turn, itemstore.Filter{Scope: itemstore.ScopeWorkspace}, []string{"new", "plain"}},
			"category":         {turn, itemstore.Filter{Category: "instruction"}, []string{"rule"}},
			"both":             {turn, itemstore.Filter{Scope: itemstore.ScopeWorkspace, Category: "instruction"}, []string{}},
		} {
			items, _, err := s.List(t.Context(), tt.view, tt.f, itemstore.Page{OldestFirst: true})
			got := []string{}
			for _, i := range items {
				got = append(got, i.Text)
			}
			slices.Sort(got) // ids of one moment are in no order
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
			}
		}
		for name, f := range map[string]itemstore.Filter{
			"scope": {Scope: "rest"}, "category": {Category: "rumour"},
		} {
			if _, _, err := s.List(t.Context(), turn, f, itemstore.Page{}); !sqldb.HasCode(err, itemstore.CodeInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
