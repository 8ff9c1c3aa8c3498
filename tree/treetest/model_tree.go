package treetest

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/grapnelhq/grapnel/tree"
)

// notFound tells nothing of other workspaces: there or not, it is the same.
func notFound(what, id string) error {
	return tree.Errorf(tree.CodeNotFound, "%s %q: not in this workspace", what, id)
}

// taken is for ids of deleted things too: they are in revisions and in the log.
func taken(id string) error {
	return tree.Errorf(tree.CodeInvalid, "id: %q is taken, or was", id)
}

// begin starts a call with its parameters' check and the lock, which the caller
// gives back when there is no error.
func (m *Model) begin(ctx context.Context, invalid error) error {
	if invalid != nil {
		return invalid
	}
	return m.lock(ctx)
}

// space returns a workspace that is there.
func (m *Model) space(id string) (*space, error) {
	sp := m.spaces[id]
	if sp == nil || sp.deleted {
		return nil, tree.Errorf(tree.CodeNotFound, "workspace %q: not there", id)
	}
	return sp, nil
}

// inSpace starts a call in a workspace.
func (m *Model) inSpace(ctx context.Context, workspace string, invalid error) (*space, error) {
	if err := m.begin(ctx, invalid); err != nil {
		return nil, err
	}
	sp, err := m.space(workspace)
	if err != nil {
		m.mu.Unlock()
	}
	return sp, err
}

// folder returns a folder that is there.
func (sp *space) folder(id tree.FolderID) (*folder, error) {
	f := sp.folders[string(id)]
	if f == nil || f.deleted {
		return nil, notFound("folder", string(id))
	}
	return f, nil
}

// thread returns a thread that is there.
func (sp *space) thread(id string) (*thread, error) {
	t := sp.threads[id]
	if t == nil || t.deleted {
		return nil, notFound("thread", id)
	}
	return t, nil
}

// place refuses what is neither the root nor a folder.
func (sp *space) place(id tree.FolderID) error {
	if id == "" {
		return nil
	}
	_, err := sp.folder(id)
	return err
}

// up are the folders from a place up to below the root, the place itself first.
func (sp *space) up(id tree.FolderID) []*folder {
	var list []*folder
	for id != "" {
		f := sp.folders[string(id)]
		list = append(list, f)
		id = f.ParentID
	}
	return list
}

// below are the live folders below a place, in the order of their ids, each with
// how deep it is below: 1 is a child.
func (sp *space) below(place tree.FolderID) ([]*folder, map[string]int) {
	var list []*folder
	depths := map[string]int{}
	for _, f := range sp.folders {
		if f.deleted || f.ID == string(place) {
			continue
		}
		up := sp.up(f.ParentID)
		at := len(up) // the root is behind them all
		if place != "" {
			at = slices.IndexFunc(up, func(f *folder) bool { return f.ID == string(place) })
		}
		if at >= 0 {
			list = append(list, f)
			depths[f.ID] = at + 1
		}
	}
	slices.SortFunc(list, func(a, b *folder) int { return cmp.Compare(a.ID, b.ID) })
	return list, depths
}

// threadsIn are the live threads of some places, in the order of their ids.
func (sp *space) threadsIn(in func(place tree.FolderID) bool) []*thread {
	var list []*thread
	for _, id := range slices.Sorted(maps.Keys(sp.threads)) {
		if t := sp.threads[id]; !t.deleted && in(t.FolderID) {
			list = append(list, t)
		}
	}
	return list
}

// empty reports whether nothing is in a place.
func (sp *space) empty(place tree.FolderID) bool {
	folders, _ := sp.below(place)
	threads := sp.threadsIn(func(in tree.FolderID) bool { return in == place })
	return len(folders) == 0 && len(threads) == 0 && sp.live(place) == nil
}

// CreateWorkspace implements tree.Store.
func (m *Model) CreateWorkspace(ctx context.Context, p tree.CreateWorkspace) (tree.Workspace, error) {
	if err := m.begin(ctx, p.Check()); err != nil {
		return tree.Workspace{}, err
	}
	defer m.mu.Unlock()

	want := tree.Workspace{ID: p.ID, Name: p.Name}
	if had := m.spaces[p.ID]; had != nil {
		if had.deleted || had.Workspace != want {
			return tree.Workspace{}, taken(p.ID)
		}
		return want, nil
	}
	want.ID = cmp.Or(want.ID, m.newID())
	m.spaces[want.ID] = &space{
		Workspace: want,
		folders:   map[string]*folder{}, threads: map[string]*thread{}, docs: map[string]*document{},
	}
	m.commit(want.ID, p.Actor, m.now(), tree.Change{Action: tree.Created, Workspace: &want})
	return want, nil
}

// Workspaces implements tree.Store.
func (m *Model) Workspaces(ctx context.Context) ([]tree.Workspace, error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()

	list := []tree.Workspace{}
	for _, id := range slices.Sorted(maps.Keys(m.spaces)) {
		if sp := m.spaces[id]; !sp.deleted {
			list = append(list, sp.Workspace)
		}
	}
	return list, nil
}

// RenameWorkspace implements tree.Store.
func (m *Model) RenameWorkspace(ctx context.Context, p tree.RenameWorkspace) (tree.Workspace, error) {
	sp, err := m.inSpace(ctx, p.WorkspaceID, p.Check())
	if err != nil {
		return tree.Workspace{}, err
	}
	defer m.mu.Unlock()

	if sp.Name != p.Name {
		sp.Name = p.Name
		now := sp.Workspace
		m.commit(sp.ID, p.Actor, m.now(), tree.Change{Action: tree.Renamed, Workspace: &now})
	}
	return sp.Workspace, nil
}

// DeleteWorkspace implements tree.Store.
func (m *Model) DeleteWorkspace(ctx context.Context, p tree.DeleteWorkspace) (tree.Workspace, error) {
	sp, err := m.inSpace(ctx, p.WorkspaceID, p.Check())
	if err != nil {
		return tree.Workspace{}, err
	}
	defer m.mu.Unlock()

	if !p.Recursive && !sp.empty("") {
		return tree.Workspace{}, tree.Errorf(tree.CodeInvalid, "workspace %q: it is not empty; delete it with recursive", sp.ID)
	}
	sp.deleted = true
	was := sp.Workspace
	m.commit(sp.ID, p.Actor, m.now(), tree.Change{Action: tree.Deleted, Workspace: &was})
	return was, nil
}

// CreateThread implements tree.Store.
func (m *Model) CreateThread(ctx context.Context, p tree.CreateThread) (tree.Thread, error) {
	sp, err := m.inSpace(ctx, p.WorkspaceID, p.Check())
	if err != nil {
		return tree.Thread{}, err
	}
	defer m.mu.Unlock()

	if err := sp.place(p.FolderID); err != nil {
		return tree.Thread{}, err
	}
	want := tree.Thread{ID: p.ID, FolderID: p.FolderID, Title: p.Title}
	if had := sp.threads[p.ID]; had != nil {
		if had.deleted || had.Thread != want {
			return tree.Thread{}, taken(p.ID)
		}
		return want, nil
	}
	want.ID = cmp.Or(want.ID, m.newID())
	sp.threads[want.ID] = &thread{Thread: want}
	m.commit(sp.ID, p.Actor, m.now(), tree.Change{Action: tree.Created, Thread: &want})
	return want, nil
}

// RenameThread implements tree.Store.
func (m *Model) RenameThread(ctx context.Context, p tree.RenameThread) (tree.Thread, error) {
	return m.changeThread(ctx, tree.Renamed, tree.ThreadRef{WorkspaceID: p.WorkspaceID, ThreadID: p.ThreadID}, p.Actor, p.Check(),
		func(_ *space, t *thread) error {
			t.Title = p.Title
			return nil
		})
}

// MoveThread implements tree.Store.
func (m *Model) MoveThread(ctx context.Context, p tree.MoveThread) (tree.Thread, error) {
	return m.changeThread(ctx, tree.Moved, tree.ThreadRef{WorkspaceID: p.WorkspaceID, ThreadID: p.ThreadID}, p.Actor, p.Check(),
		func(sp *space, t *thread) error {
			if err := sp.place(p.FolderID); err != nil {
				return err
			}
			t.FolderID = p.FolderID
			return nil
		})
}

// DeleteThread implements tree.Store.
func (m *Model) DeleteThread(ctx context.Context, p tree.DeleteThread) (tree.Thread, error) {
	return m.changeThread(ctx, tree.Deleted, tree.ThreadRef{WorkspaceID: p.WorkspaceID, ThreadID: p.ThreadID}, p.Actor, p.Check(),
		func(_ *space, t *thread) error {
			t.deleted = true
			return nil
		})
}

// changeThread does something to a thread that is there.
func (m *Model) changeThread(ctx context.Context, action tree.Action, ref tree.ThreadRef, actor string, invalid error, change func(*space, *thread) error) (tree.Thread, error) {
	sp, err := m.inSpace(ctx, ref.WorkspaceID, invalid)
	if err != nil {
		return tree.Thread{}, err
	}
	defer m.mu.Unlock()

	t, err := sp.thread(ref.ThreadID)
	if err != nil {
		return tree.Thread{}, err
	}
	before := *t
	if err := change(sp, t); err != nil {
		return tree.Thread{}, err
	}
	if *t != before {
		now := t.Thread
		m.commit(sp.ID, actor, m.now(), tree.Change{Action: action, Thread: &now})
	}
	return t.Thread, nil
}
