package gateway

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
)

// TestOrderAcrossWorkspaces: who watches several workspaces is told in the order of
// the log, so that one place does for all of them.
func TestOrderAcrossWorkspaces(t *testing.T) {
	t.Parallel()

	model := storetest.Tree(t, nil)
	h := quietHub(model)
	c := newConn()
	for _, id := range []string{"a", "b"} {
		workspace(t, model, id)
	}
	h.step(t.Context())
	for _, id := range []string{"a", "b"} {
		must(h.join(c, id, false))(t)
	}
	save(t, model, "b", "", "first")
	save(t, model, "a", "", "second")
	h.step(t.Context())
	if n := c.all(); len(n) != 2 || n[0].WorkspaceID != "b" || n[1].WorkspaceID != "a" || n[0].Seq >= n[1].Seq {
		t.Errorf("told %+v, want the order of the log", n)
	}
}

// TestCatchUpTellsAtOnce: who watches already and catches up from an earlier place
// is told all of it in one go, or, if the database goes away meanwhile, nothing:
// half of it would stand behind what is newer, or replace it while it waits.
func TestCatchUpTellsAtOnce(t *testing.T) {
	t.Parallel()

	model := &faulty{Store: storetest.Tree(t, nil)}
	workspace(t, model, "w")
	h := quietHub(model)
	h.step(t.Context())
	c := newConn()
	since := must(h.join(c, "w", false))(t).Seq
	save(t, model, "w", "", "one")
	save(t, model, "w", "", "two")
	h.step(t.Context())

	// The hub gets ahead while the first batch is read, then the database goes away.
	var reads atomic.Int32
	model.reading = func(tree.Seq) {
		switch reads.Add(1) {
		case 2:
			h.mu.Lock()
			h.taken++
			h.mu.Unlock()
		case 3:
			model.down.Store(true)
		}
	}
	reads.Store(1)
	if got, err := h.catchUp(t.Context(), c, "w", since); err == nil {
		t.Fatalf("caught up with a database that is gone: %+v", got)
	}
	if n := c.all(); len(n) != 1 || n[0].Summary.Version != 2 {
		t.Errorf("told %+v, want only what the hub told", n)
	}
	model.down.Store(false)
	h.mu.Lock()
	h.taken--
	h.mu.Unlock()
	if got, err := h.catchUp(t.Context(), c, "w", since); err != nil || got.Gap {
		t.Fatalf("caught up: %+v, %v", got, err)
	}
	if n := c.all(); len(n) != 2 || n[1].Summary.Version != 2 {
		t.Errorf("told %+v, want the last state again", n)
	}
}

// stuck is a store that answers most questions, and one never.
type stuck struct{ tree.Store }

func (stuck) Affected(ctx context.Context, _ tree.Scope) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// TestAffectsTime: however many documents have changed, what they affect holds
// nobody up for longer than one reading may take.
func TestAffectsTime(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		model := storetest.Tree(t, nil)
		workspace(t, model, "w")
		h := quietHub(stuck{model})
		h.step(t.Context())
		c := newConn()
		defer c.end()
		must(h.join(c, "w", false))(t)
		for _, id := range []string{"a", "b", "c", "d"} {
			folder(t, model, id)
			save(t, model, "w", id, "text")
		}
		began := time.Now()
		h.step(t.Context())
		if took := time.Since(began); took > readTime {
			t.Errorf("telling took %v", took)
		}
		n := slices.DeleteFunc(c.all(), func(n told) bool { return n.Method != notifyDoc })
		if len(n) != 4 || n[0].Affects != nil || n[3].Affects != nil {
			t.Errorf("told %+v, want all four without what they affect", n)
		}
	})
}

// TestLongTexts: a list has as many texts as go into an answer, and says so when
// it is asked for more.
func TestLongTexts(t *testing.T) {
	t.Parallel()

	s := serve(t, Options{})
	workspace(t, s.g.opts.Tree, "w")
	const n, fit = tree.DefaultLimit + 1, maxTexts / tree.MaxChars
	for i := range n {
		save(t, s.g.opts.Tree, "w", "", strings.Repeat(string(rune('a'+i%2)), tree.MaxChars))
	}
	c := s.post(t, "")
	for name, tt := range map[string]struct {
		params object
		want   int
	}{
		"as many as fit":      {object{"limit": fit, "include_content": true}, fit},
		"more, without texts": {object{"limit": tree.MaxLimit}, n},
		"one more":            {object{"limit": fit + 1, "include_content": true}, 0},
		"as many as usual":    {object{"include_content": true}, 0},
		"more than there are": {object{"limit": tree.MaxLimit, "include_content": true, "before_version": fit + 1}, fit},
	} {
		tt.params["workspace_id"] = "w"
		raw, bad := c.call(t, "thread/agents_doc/revisions", tt.params)
		if tt.want == 0 {
			if bad.code() != rpc.CodeTooLarge {
				t.Errorf("%s: %+v", name, bad)
			}
			continue
		}
		if bad != nil {
			t.Errorf("%s: %+v", name, bad)
		} else if got := decoded[revisionsResult](t, raw).Revisions; len(got) != tt.want {
			t.Errorf("%s: %d revisions, want %d", name, len(got), tt.want)
		}
	}
}
