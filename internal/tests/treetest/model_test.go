package treetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/tree"
)

// model is a [tree.Store] in memory, made of maps, for one caller. It has no Listen. [newModel] makes it.
type model struct {
	tree.Store

	now   func() time.Time
	newID func() string // set for each call

	spaces  map[string]*space
	log     []tree.Change
	seq     tree.Seq // of the last change; 0 before the first
	thinned tree.Seq // of the last change that Thin removed
}

var _ tree.Store = (*model)(nil)

// space is a workspace. Nothing is removed from its maps.
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

// newModel makes an empty model.
func newModel(now func() time.Time) *model {
	return &model{
		now:    func() time.Time { return now().UTC().Round(0) }, // without the monotonic part, which would not compare equal
		spaces: map[string]*space{},
	}
}

func answer[R any](ctx context.Context, invalid error, f func() (R, error)) (R, error) {
	var none R
	if invalid != nil {
		return none, invalid
	}
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("model: %w", err)
	}
	got, err := f()
	if err != nil {
		return none, err
	}
	return got, nil
}

func in[R any](ctx context.Context, m *model, workspace string, invalid error, f func(sp *space) (R, error)) (R, error) {
	return answer(ctx, invalid, func() (got R, err error) {
		sp := m.spaces[workspace]
		if sp == nil || sp.deleted {
			return got, refuse(tree.CodeNotFound)
		}
		return f(sp)
	})
}

func inScope[R any](ctx context.Context, m *model, s tree.Scope, invalid error, f func(sp *space) (R, error)) (R, error) {
	return in(ctx, m, s.WorkspaceID, invalid, func(sp *space) (got R, err error) {
		if err := sp.place(s.FolderID); err != nil {
			return got, err
		}
		return f(sp)
	})
}

func (m *model) commit(workspace, actor string, at time.Time, changes ...tree.Change) {
	m.seq++
	for _, c := range changes {
		c.Seq, c.WorkspaceID, c.Actor, c.At = m.seq, workspace, actor, at
		m.log = append(m.log, c)
	}
}

// refuse is an error, of which only the code is compared.
func refuse(code tree.Code) error { return tree.Errorf(code, "refused by the model") }

func (m *model) CreateWorkspace(ctx context.Context, p tree.CreateWorkspace) (tree.Workspace, error) {
	return answer(ctx, tree.Check(p), func() (tree.Workspace, error) {
		want := tree.Workspace{ID: p.ID, Name: p.Name}
		if had := m.spaces[p.ID]; had != nil {
			if had.deleted || had.Workspace != want {
				return want, refuse(tree.CodeInvalid) // revisions and the log keep the ids of what is deleted
			}
			return want, nil
		}
		want.ID = cmp.Or(want.ID, m.newID())
		m.spaces[want.ID] = &space{
			Workspace: want, folders: map[string]*folder{}, threads: map[string]*thread{}, docs: map[string]*document{},
		}
		m.commit(want.ID, p.Actor, m.now(), tree.Change{Action: tree.Created, Workspace: &want})
		return want, nil
	})
}

func (m *model) Workspaces(ctx context.Context) ([]tree.Workspace, error) {
	return answer(ctx, nil, func() ([]tree.Workspace, error) {
		list := []tree.Workspace{}
		for _, id := range slices.Sorted(maps.Keys(m.spaces)) {
			if sp := m.spaces[id]; !sp.deleted {
				list = append(list, sp.Workspace)
			}
		}
		return list, nil
	})
}

func (m *model) RenameWorkspace(ctx context.Context, p tree.RenameWorkspace) (tree.Workspace, error) {
	return in(ctx, m, p.WorkspaceID, tree.Check(p), func(sp *space) (tree.Workspace, error) {
		if sp.Name != p.Name {
			sp.Name = p.Name
			now := sp.Workspace
			m.commit(sp.ID, p.Actor, m.now(), tree.Change{Action: tree.Renamed, Workspace: &now})
		}
		return sp.Workspace, nil
	})
}

func (m *model) DeleteWorkspace(ctx context.Context, p tree.DeleteWorkspace) (tree.Workspace, error) {
	return in(ctx, m, p.WorkspaceID, tree.Check(p), func(sp *space) (tree.Workspace, error) {
		if !p.Recursive && !sp.empty("") {
			return sp.Workspace, refuse(tree.CodeInvalid)
		}
		sp.deleted = true
		was := sp.Workspace
		m.commit(sp.ID, p.Actor, m.now(), tree.Change{Action: tree.Deleted, Workspace: &was})
		return was, nil
	})
}

func (m *model) CreateThread(ctx context.Context, p tree.CreateThread) (tree.Thread, error) {
	scope := tree.Scope{WorkspaceID: p.WorkspaceID, FolderID: p.FolderID}
	return inScope(ctx, m, scope, tree.Check(p), func(sp *space) (tree.Thread, error) {
		want := tree.Thread{ID: p.ID, FolderID: p.FolderID, Title: p.Title}
		if had := sp.threads[p.ID]; had != nil {
			if had.deleted || had.Thread != want {
				return want, refuse(tree.CodeInvalid)
			}
			return want, nil
		}
		want.ID = cmp.Or(want.ID, m.newID())
		sp.threads[want.ID] = &thread{Thread: want}
		m.commit(sp.ID, p.Actor, m.now(), tree.Change{Action: tree.Created, Thread: &want})
		return want, nil
	})
}

func (m *model) RenameThread(ctx context.Context, p tree.RenameThread) (tree.Thread, error) {
	return m.changeThread(ctx, tree.Renamed, tree.Scope{WorkspaceID: p.WorkspaceID}, p.ThreadID, p.Actor, tree.Check(p),
		func(t *thread) { t.Title = p.Title })
}

func (m *model) MoveThread(ctx context.Context, p tree.MoveThread) (tree.Thread, error) {
	return m.changeThread(ctx, tree.Moved, tree.Scope{WorkspaceID: p.WorkspaceID, FolderID: p.FolderID}, p.ThreadID, p.Actor, tree.Check(p),
		func(t *thread) { t.FolderID = p.FolderID })
}

func (m *model) DeleteThread(ctx context.Context, p tree.DeleteThread) (tree.Thread, error) {
	return m.changeThread(ctx, tree.Deleted, tree.Scope{WorkspaceID: p.WorkspaceID}, p.ThreadID, p.Actor, tree.Check(p),
		func(t *thread) { t.deleted = true })
}

func (m *model) changeThread(ctx context.Context, action tree.Action, s tree.Scope, id, actor string, invalid error, change func(*thread)) (tree.Thread, error) {
	return inScope(ctx, m, s, invalid, func(sp *space) (tree.Thread, error) {
		t := sp.threads[id]
		if t == nil || t.deleted {
			return tree.Thread{}, refuse(tree.CodeNotFound)
		}
		before := *t
		change(t)
		if *t != before {
			now := t.Thread
			m.commit(sp.ID, actor, m.now(), tree.Change{Action: action, Thread: &now})
		}
		return t.Thread, nil
	})
}

// Changes has no limit.
func (m *model) Changes(ctx context.Context, after tree.Seq, _ int) (tree.Changes, error) {
	return answer(ctx, nil, func() (tree.Changes, error) {
		if after < m.thinned || after > m.seq {
			return tree.Changes{Gap: true, Next: m.seq}, nil
		}
		got := tree.Changes{Next: after}
		for _, c := range m.log {
			if c.Seq > after {
				got.Next = c.Seq
				got.List = append(got.List, c)
			}
		}
		return got, nil
	})
}

func (m *model) Thin(ctx context.Context, now time.Time) (int, error) {
	return answer(ctx, nil, func() (int, error) {
		removed := 0
		for _, sp := range m.spaces {
			for _, d := range sp.docs {
				before := len(d.revisions)
				d.revisions = thinned(d.revisions, now.Add(-tree.ThinAge))
				removed += before - len(d.revisions)
			}
		}
		// Only the beginning of the log is removed.
		young := slices.IndexFunc(m.log, func(c tree.Change) bool { return !c.At.Before(now.Add(-tree.ChangesAge)) })
		if young < 0 {
			young = len(m.log)
		}
		if young > 0 {
			m.thinned = m.log[young-1].Seq
			m.log = slices.Clone(m.log[young:])
		}
		return removed, nil
	})
}

func thinned(list []revision, before time.Time) []revision {
	step := func(r revision) int64 { return r.SavedAt.Unix() / int64(tree.ThinStep/time.Second) }
	old := func(r revision) bool { return r.SaveReason == tree.Autosave && r.SavedAt.Before(before) }
	var kept []revision
	for n, r := range list {
		followed := slices.ContainsFunc(list[n+1:], func(later revision) bool { return old(later) && step(later) == step(r) })
		if !old(r) || !followed {
			kept = append(kept, r)
		}
	}
	return kept
}
