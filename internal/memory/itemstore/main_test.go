package itemstore_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// shared is the PostgreSQL server of this run.
var shared storetest.Shared

// TestMain also is the programs that other tests start.
func TestMain(m *testing.M) {
	if code, ok := programs().Run(context.Background()); ok {
		os.Exit(code)
	}
	os.Exit(shared.Main(m, libraries.sqlite.remove))
}

// rounds is how often a random test repeats itself: a few times on every run, and often
// with GRAPNEL_LONG=1.
func rounds(short, long int) int {
	if storetest.Long() {
		return long
	}
	return short
}

func isPostgres(dsn string) bool { return strings.HasPrefix(dsn, "postgres:") }

// open opens a store that is closed with the test. Unless the options say otherwise
// it is patient: the machine may do much else.
func open(tb testing.TB, dsn string, o itemstore.Options) *itemstore.Store {
	tb.Helper()
	if o.LockTimeout == 0 {
		o.LockTimeout = time.Minute
	}
	s, err := itemstore.Open(tb.Context(), dsn, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return s
}

// clock is a clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fixed are options with which two stores do the same: a clock, and ids by a seed.
func fixed(c *clock) itemstore.Options {
	return itemstore.Options{Now: c.Now, Entropy: rand.NewChaCha8([32]byte{1})}
}

func wantCode(tb testing.TB, err error, code sqldb.Code) {
	tb.Helper()
	if !sqldb.HasCode(err, code) {
		tb.Errorf("error %v, want the code %s", err, code)
	}
}

// fact is an item of workspace "w", for everybody in it.
func fact(text string) itemstore.Item {
	return itemstore.Item{Scope: itemstore.ScopeWorkspace, Category: turnpolicy.Factual, Text: text, Source: itemstore.SourceTurn}
}

// inSlot is a fact with a slot.
func inSlot(slot, text string) itemstore.Item {
	n := fact(text)
	n.Slot = slot
	return n
}

// of puts an item into another scope.
func of(scope itemstore.Scope, id string, n itemstore.Item) itemstore.Item {
	n.Scope, n.ScopeID = scope, id
	return n
}

// remember keeps items in workspace "w".
func remember(tb testing.TB, s *itemstore.Store, items ...itemstore.Item) []itemstore.Outcome {
	tb.Helper()
	return write(tb, s, itemstore.Batch{WorkspaceID: "w", Items: items})
}

func write(tb testing.TB, s *itemstore.Store, b itemstore.Batch) []itemstore.Outcome {
	tb.Helper()
	outcomes, err := s.Remember(tb.Context(), b)
	if err != nil {
		tb.Fatal(err)
	}
	if len(outcomes) != len(b.Items) && b.Key == "" {
		tb.Fatalf("%d outcomes for %d items", len(outcomes), len(b.Items))
	}
	return outcomes
}

// forget forgets items of workspace "w".
func forget(tb testing.TB, s *itemstore.Store, ids ...string) itemstore.Removed {
	tb.Helper()
	removed, err := s.Forget(tb.Context(), everything("w"), ids)
	if err != nil {
		tb.Fatal(err)
	}
	return removed
}

// everything is the view of a person who looks after a workspace.
func everything(workspace string) itemstore.View {
	return itemstore.View{WorkspaceID: workspace, AllScopes: true}
}

// list returns all items in a view, the oldest first.
func list(tb testing.TB, s *itemstore.Store, v itemstore.View) []itemstore.Item {
	tb.Helper()
	items := []itemstore.Item{}
	for i, err := range s.All(tb.Context(), v, itemstore.Filter{History: true}, itemstore.Page{Limit: itemstore.MaxPage, OldestFirst: true}) {
		if err != nil {
			tb.Fatal(err)
		}
		items = append(items, i)
	}
	return items
}

// texts are those of items in effect.
func texts(items []itemstore.Item) []string {
	list := []string{}
	for _, i := range items {
		if i.SupersededBy == "" {
			list = append(list, i.Text)
		}
	}
	return list
}

// search returns the items that have any of a text's terms, the best first, at most 10
// if limit is 0.
func search(ctx context.Context, s *itemstore.Store, v itemstore.View, text string, limit int) ([]itemstore.Item, error) {
	found, err := s.Recall(ctx, v, recall.Read(text), time.Now())
	if err != nil {
		return nil, err
	}
	ranked := slices.DeleteFunc(found, func(r recall.Scored) bool { return r.Evidence <= 0 })
	slices.SortStableFunc(ranked, func(a, b recall.Scored) int { return cmp.Compare(b.Score, a.Score) })
	if limit == 0 {
		limit = 10
	}
	var items []itemstore.Item
	for _, r := range ranked[:min(limit, len(ranked))] {
		item, err := s.Get(ctx, v, r.ID)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}
