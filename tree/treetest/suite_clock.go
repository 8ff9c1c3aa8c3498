package treetest

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/tree"
)

// Clock is a clock that stands still until it is moved. It is safe for concurrent
// use.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// NewClock makes one that shows a time.
func NewClock(at time.Time) *Clock { return &Clock{at: at} }

// Now is what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Set moves the clock to a time, forwards or backwards.
func (c *Clock) Set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

// Add moves the clock by a duration.
func (c *Clock) Add(d time.Duration) { c.Set(c.Now().Add(d)) }

// SuiteClock runs the part of the suite that needs a store with a clock of the
// test's. Open is as for [Suite].
func SuiteClock(t *testing.T, open func(t *testing.T, now func() time.Time) tree.Store) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, x world, c *Clock)
	}{
		{"times", testTimes},
		{"thin", testThin},
		{"thin changes", testThinChanges},
		{"clock standing still", testClockStill},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			// On a step's border, with a fraction that every database can keep.
			c := NewClock(time.Date(2026, 3, 1, 12, 0, 0, 123_456_000, time.UTC))
			s := open(t, c.Now)
			w := must(s.CreateWorkspace(t.Context(), tree.CreateWorkspace{ID: "w", Name: "Work"}))(t)
			test.run(t, world{s, w.ID}, c)
		})
	}
}

// testTimes: what is kept is the clock's time, in UTC.
func testTimes(t *testing.T, x world, c *Clock) {
	made := c.Now()
	x.save(t, "", "one")
	c.Add(time.Hour)
	c.Set(c.Now().In(time.FixedZone("elsewhere", 3600)))
	doc, saved := x.save(t, "", "two"), c.Now()
	c.Add(time.Hour)
	view := x.view(t, "")
	same(t, "document", view.Explicit, &doc)
	utc(t, "document", doc.CreatedAt, doc.UpdatedAt, view.Effective.ResolvedAt)
	same(t, "created", doc.CreatedAt, made)
	same(t, "updated", doc.UpdatedAt, saved)
	same(t, "resolved", view.Effective.ResolvedAt, c.Now())
	x.archive(t, "")
	list := must(x.ArchivedDocs(t.Context(), tree.ArchivedQuery{Scope: x.scope("")}))(t)
	same(t, "archived", []time.Time{list[0].ArchivedAt, list[0].UpdatedAt}, []time.Time{c.Now(), c.Now()})
	for n, r := range x.revisions(t, doc.ID) {
		same(t, "revision", r.SavedAt, []time.Time{c.Now(), saved, made}[n])
	}
	changes, _ := x.since(t, 0)
	for n, change := range changes {
		same(t, "change", change.At, []time.Time{made, made, saved, c.Now()}[n])
	}
}

// thinPlan are saves of a document, by the time since the first, and whether they
// are left by testThin.
func thinPlan() []struct {
	at     time.Duration
	reason tree.SaveReason
	left   bool
} {
	const auto, manual = tree.Autosave, tree.Manual
	return []struct {
		at     time.Duration
		reason tree.SaveReason
		left   bool
	}{
		{0, auto, false},
		{time.Minute, auto, false},
		{2 * time.Minute, manual, true},
		{9 * time.Minute, auto, true}, // the last autosave of its step, with a manual save behind it
		{9*time.Minute + 30*time.Second, manual, true},
		{10 * time.Minute, auto, true},
		{25 * time.Minute, auto, false},
		{29 * time.Minute, auto, true},
		{time.Hour, auto, false},
		{time.Hour + 4*time.Minute, auto, true}, // the last before the border, within its step
		{time.Hour + 5*time.Minute, auto, true}, // at the border: young
		{time.Hour + 6*time.Minute, auto, true},
		{2 * time.Hour, auto, true},
	}
}

// testThin: of autosaves older than ThinAge, the last of each step stays, and what
// is the newest of all.
func testThin(t *testing.T, x world, c *Clock) {
	start := c.Now()
	plan := thinPlan()
	var doc, lone tree.Doc
	x.folder(t, "", "f")
	for n, p := range plan {
		c.Set(start.Add(p.at))
		save := tree.Save{Scope: x.scope(""), Content: strconv.Itoa(n), ExpectedVersion: new(int64(n)), SaveReason: p.reason}
		doc = must(x.Save(t.Context(), save))(t).Doc
		if n < 2 {
			// Another document has steps of its own.
			save.Scope = x.scope("f")
			lone = must(x.Save(t.Context(), save))(t).Doc
		}
	}
	c.Set(start.Add(time.Hour + 5*time.Minute).Add(tree.ThinAge))
	if n := must(x.Thin(t.Context(), c.Now()))(t); n != 5 {
		t.Errorf("%d revisions were taken, want 5", n)
	}
	var want, got []int64
	for n, p := range plan {
		if p.left {
			want = append([]int64{int64(n + 1)}, want...)
		}
	}
	for _, r := range x.revisions(t, doc.ID) {
		got = append(got, r.Version)
	}
	same(t, "left", got, want)
	if list := x.revisions(t, lone.ID); len(list) != 1 || list[0].Version != 2 {
		t.Errorf("left of the other document: %+v, want version 2", list)
	}
	same(t, "document", x.view(t, "").Explicit, &doc)
	next := x.save(t, "", "goes on")
	if next.Version != doc.Version+1 {
		t.Errorf("the next version is %d, want %d", next.Version, doc.Version+1)
	}
}

// testThinChanges: changes older than ChangesAge go, and who asks for them is told.
func testThinChanges(t *testing.T, x world, c *Clock) {
	x.folder(t, "", "old")
	old := x.newest(t)
	c.Add(time.Hour)
	x.folder(t, "", "young")
	c.Add(tree.ChangesAge)
	must(x.Thin(t.Context(), c.Now()))(t)
	if got := must(x.Changes(t.Context(), 0, 0))(t); !got.Gap || len(got.List) > 0 {
		t.Errorf("changes from the beginning: %+v, want a gap", got)
	}
	list, _ := x.since(t, old)
	told(t, list, tree.Change{WorkspaceID: x.w, Action: tree.Created, Folder: &tree.Folder{ID: "young", Name: "young"}})
}

// testClockStill: what happens at one time, or while the clock goes backwards, keeps
// its order.
func testClockStill(t *testing.T, x world, c *Clock) {
	var want []string
	for n := range 5 {
		x.save(t, "", strconv.Itoa(n))
		want = append([]string{x.archive(t, "").ID}, want...)
	}
	c.Add(-time.Hour)
	x.save(t, "", "before")
	want = append([]string{x.archive(t, "").ID}, want...)
	var got []string
	for _, d := range must(x.ArchivedDocs(t.Context(), tree.ArchivedQuery{Scope: x.scope("")}))(t) {
		got = append(got, d.ID)
	}
	same(t, "archived", got, want)
	if doc := x.restore(t, "", "", 1, nil); doc.ID != want[0] {
		t.Errorf("restored %s, want %s, which was archived last", doc.ID, want[0])
	}
}
