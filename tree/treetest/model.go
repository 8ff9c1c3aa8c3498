package treetest

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/tree"
)

// Model is a [tree.Store] in memory: maps under one mutex, and walks over all of
// them. It is safe for concurrent use. Use [NewModel].
type Model struct {
	now func() time.Time
	// newID makes the ids that callers leave out, those of documents among them.
	newID func() string

	mu      sync.Mutex
	spaces  map[string]*space
	log     []tree.Change
	seq     tree.Seq // of the last change, 0 before
	thinned tree.Seq // of the last change that Thin took away
	// changed is closed by the next change, which makes another.
	changed chan struct{}
}

var _ tree.Store = (*Model)(nil)

// space is a workspace. Nothing is taken out of its maps.
type space struct {
	tree.Workspace

	deleted bool
	folders map[string]*folder
	threads map[string]*thread
	docs    map[string]*document
}

type folder struct {
	tree.Folder

	deleted bool
}

type thread struct {
	tree.Thread

	deleted bool
}

// document is live unless its status is archived.
type document struct {
	tree.Doc

	// archivedSeq orders archived documents: times may be equal.
	archivedSeq tree.Seq
	archivedAt  time.Time
	archivedBy  string
	revisions   []revision // oldest first
}

type revision struct {
	tree.Revision

	content string
}

// NewModel makes an empty model. A nil clock is time.Now. The ids that callers
// leave out are ULIDs of the clock's time and a counter: with a clock that is
// always the same, the same calls give the same ids.
func NewModel(now func() time.Time) *Model {
	if now == nil {
		now = time.Now
	}
	m := &Model{
		now:     func() time.Time { return now().UTC().Round(0) }, // no monotonic part: what is read again compares equal
		spaces:  map[string]*space{},
		changed: make(chan struct{}),
	}
	var ids uint64
	m.newID = func() string {
		ids++
		var id ulid.ULID
		binary.BigEndian.PutUint64(id[:], uint64(max(0, m.now().UnixMilli()))<<16)
		binary.BigEndian.PutUint64(id[8:], ids)
		return id.String()
	}
	return m
}

// lock takes the mutex, unless ctx has ended.
func (m *Model) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("model: %w", err)
	}
	m.mu.Lock()
	return nil
}

// commit puts the changes of one transaction into the log and wakes who listens.
func (m *Model) commit(workspace, actor string, at time.Time, changes ...tree.Change) {
	m.seq++
	for _, c := range changes {
		c.Seq, c.WorkspaceID, c.Actor, c.At = m.seq, workspace, actor, at
		m.log = append(m.log, c)
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

// Changes implements tree.Store.
func (m *Model) Changes(ctx context.Context, after tree.Seq, limit int) (tree.Changes, error) {
	if err := m.lock(ctx); err != nil {
		return tree.Changes{}, err
	}
	defer m.mu.Unlock()

	if after < m.thinned || after > m.seq {
		return tree.Changes{Gap: true, Next: m.seq}, nil
	}
	if limit < 1 {
		limit = tree.DefaultChanges
	}
	behind := slices.Clone(m.log)
	behind = slices.DeleteFunc(behind, func(c tree.Change) bool { return c.Seq <= after })
	got := tree.Changes{Next: after}
	for len(behind) > 0 {
		end := slices.IndexFunc(behind, func(c tree.Change) bool { return c.Seq != behind[0].Seq })
		if end < 0 {
			end = len(behind)
		}
		if len(got.List) > 0 && len(got.List)+end > limit {
			got.More = true
			break
		}
		got.Next = behind[0].Seq
		got.List = append(got.List, behind[:end]...)
		behind = behind[end:]
	}
	return got, nil
}

// Listen implements tree.Store. It returns only when ctx ends.
func (m *Model) Listen(ctx context.Context, wake func()) error {
	for {
		if err := m.lock(ctx); err != nil {
			return err
		}
		changed := m.changed
		m.mu.Unlock()
		wake()
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// Thin implements tree.Store.
func (m *Model) Thin(ctx context.Context, now time.Time) (int, error) {
	if err := m.lock(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()

	taken := 0
	for _, sp := range m.spaces {
		for _, d := range sp.docs {
			before := len(d.revisions)
			d.revisions = thinned(d.revisions, now.Add(-tree.ThinAge))
			taken += before - len(d.revisions)
		}
	}
	m.log = slices.DeleteFunc(m.log, func(c tree.Change) bool {
		old := c.At.Before(now.Add(-tree.ChangesAge))
		if old {
			m.thinned = max(m.thinned, c.Seq)
		}
		return old
	})
	return taken, nil
}

// thinned returns the revisions of a document without the autosaves before a time
// that others of the same step follow.
func thinned(list []revision, before time.Time) []revision {
	step := func(r revision) int64 { return r.SavedAt.Unix() / int64(tree.ThinStep/time.Second) }
	old := func(r revision) bool { return r.SaveReason == tree.Autosave && r.SavedAt.Before(before) }
	var kept []revision
	for n, r := range list {
		newest := n == len(list)-1
		followed := slices.ContainsFunc(list[n+1:], func(later revision) bool {
			return old(later) && step(later) == step(r)
		})
		if newest || !old(r) || !followed {
			kept = append(kept, r)
		}
	}
	return kept
}
