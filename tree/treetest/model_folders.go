package treetest

import (
	"cmp"
	"context"
	"slices"

	"github.com/grapnelhq/grapnel/tree"
)

// CreateFolder implements tree.Store.
func (m *Model) CreateFolder(ctx context.Context, p tree.CreateFolder) (tree.Folder, error) {
	sp, err := m.inSpace(ctx, p.WorkspaceID, p.Check())
	if err != nil {
		return tree.Folder{}, err
	}
	defer m.mu.Unlock()

	if err := sp.place(p.ParentID); err != nil {
		return tree.Folder{}, err
	}
	want := tree.Folder{ID: p.ID, ParentID: p.ParentID, Name: p.Name}
	if had := sp.folders[p.ID]; had != nil {
		if had.deleted || had.Folder != want {
			return tree.Folder{}, taken(p.ID)
		}
		return want, nil
	}
	if len(sp.up(p.ParentID))+1 > tree.MaxDepth {
		return tree.Folder{}, tooDeep()
	}
	want.ID = cmp.Or(want.ID, m.newID())
	sp.folders[want.ID] = &folder{Folder: want}
	m.commit(sp.ID, p.Actor, m.now(), tree.Change{Action: tree.Created, Folder: &want})
	return want, nil
}

// tooDeep is invalid, not a cycle: the place is fine but for its depth.
func tooDeep() error {
	return tree.Errorf(tree.CodeInvalid, "parent_id: folders would be more than %d deep", tree.MaxDepth)
}

// RenameFolder implements tree.Store.
func (m *Model) RenameFolder(ctx context.Context, p tree.RenameFolder) (tree.Folder, error) {
	sp, err := m.inSpace(ctx, p.WorkspaceID, p.Check())
	if err != nil {
		return tree.Folder{}, err
	}
	defer m.mu.Unlock()

	f, err := sp.folder(tree.FolderID(p.FolderID))
	if err != nil {
		return tree.Folder{}, err
	}
	if f.Name != p.Name {
		f.Name = p.Name
		now := f.Folder
		m.commit(sp.ID, p.Actor, m.now(), tree.Change{Action: tree.Renamed, Folder: &now})
	}
	return f.Folder, nil
}

// MoveFolder implements tree.Store.
func (m *Model) MoveFolder(ctx context.Context, p tree.MoveFolder) (tree.Folder, error) {
	sp, err := m.inSpace(ctx, p.WorkspaceID, p.Check())
	if err != nil {
		return tree.Folder{}, err
	}
	defer m.mu.Unlock()

	f, err := sp.folder(tree.FolderID(p.FolderID))
	if err != nil {
		return tree.Folder{}, err
	}
	if err := sp.place(p.ParentID); err != nil {
		return tree.Folder{}, err
	}
	if f.ParentID == p.ParentID {
		return f.Folder, nil
	}
	above := sp.up(p.ParentID)
	if slices.Contains(above, f) {
		return tree.Folder{}, tree.Errorf(tree.CodeCycle, "parent_id: folder %q would be below itself", f.ID)
	}
	height := 0
	_, depths := sp.below(tree.FolderID(f.ID))
	for _, depth := range depths {
		height = max(height, depth)
	}
	if len(above)+1+height > tree.MaxDepth {
		return tree.Folder{}, tooDeep()
	}
	f.ParentID = p.ParentID
	now := f.Folder
	m.commit(sp.ID, p.Actor, m.now(), tree.Change{Action: tree.Moved, Folder: &now})
	return now, nil
}

// DeleteFolder implements tree.Store.
func (m *Model) DeleteFolder(ctx context.Context, p tree.DeleteFolder) (tree.Folder, error) {
	sp, err := m.inSpace(ctx, p.WorkspaceID, p.Check())
	if err != nil {
		return tree.Folder{}, err
	}
	defer m.mu.Unlock()

	top, err := sp.folder(tree.FolderID(p.FolderID))
	if err != nil {
		return tree.Folder{}, err
	}
	if !p.Recursive && !sp.empty(tree.FolderID(top.ID)) {
		return tree.Folder{}, tree.Errorf(tree.CodeInvalid, "folder %q: it is not empty; delete it with recursive", top.ID)
	}
	folders, _ := sp.below(tree.FolderID(top.ID))
	folders = append(folders, top)
	gone := func(place tree.FolderID) bool {
		return slices.ContainsFunc(folders, func(f *folder) bool { return f.ID == string(place) })
	}
	at := m.now()
	var changes []tree.Change
	for _, t := range sp.threadsIn(gone) {
		t.FolderID = top.ParentID
		now := t.Thread
		changes = append(changes, tree.Change{Action: tree.Moved, Thread: &now})
	}
	for _, f := range folders {
		if d := sp.live(tree.FolderID(f.ID)); d != nil {
			changes = append(changes, m.archive(d, p.Actor, at))
		}
		f.deleted = true
		was := f.Folder
		changes = append(changes, tree.Change{Action: tree.Deleted, Folder: &was})
	}
	m.commit(sp.ID, p.Actor, at, changes...)
	return top.Folder, nil
}

// Tree implements tree.Store. The cursor of a page is "f" or "t" for a folder or
// thread, and the id of the last.
func (m *Model) Tree(ctx context.Context, q tree.Query) (tree.Page, error) {
	sp, err := m.inSpace(ctx, q.WorkspaceID, q.Check())
	if err != nil {
		return tree.Page{}, err
	}
	defer m.mu.Unlock()

	if q.Cursor != "" && (q.Cursor[0] != 'f' && q.Cursor[0] != 't' || tree.CheckID("cursor", q.Cursor[1:]) != nil) {
		return tree.Page{}, tree.Errorf(tree.CodeInvalid, "cursor: %q is of no page", q.Cursor)
	}
	if err := sp.place(q.FolderID); err != nil {
		return tree.Page{}, err
	}
	page := tree.Page{Folders: []tree.Folder{}, Threads: []tree.Thread{}, AgentsDocs: []tree.Summary{}}
	docs := sp.liveDocs()
	if d := docs[q.FolderID]; d != nil && q.Cursor == "" {
		page.AgentsDocs = append(page.AgentsDocs, d.Summary())
	}
	last := ""
	folders, threads := sp.within(q)
	for _, f := range folders {
		if "f"+f.ID <= q.Cursor {
			continue
		}
		if len(page.Folders) == tree.MaxPage {
			page.NextCursor = &last
			return page, nil
		}
		page.Folders = append(page.Folders, f.Folder)
		if d := docs[tree.FolderID(f.ID)]; d != nil {
			page.AgentsDocs = append(page.AgentsDocs, d.Summary())
		}
		last = "f" + f.ID
	}
	for _, t := range threads {
		if "t"+t.ID <= q.Cursor {
			continue
		}
		if len(page.Folders)+len(page.Threads) == tree.MaxPage {
			page.NextCursor = &last
			return page, nil
		}
		page.Threads = append(page.Threads, t.Thread)
		last = "t" + t.ID
	}
	return page, nil
}

// within are the folders and threads that a query is about.
func (sp *space) within(q tree.Query) ([]*folder, []*thread) {
	folders, depths := sp.below(q.FolderID)
	if q.Depth > 0 {
		folders = slices.DeleteFunc(folders, func(f *folder) bool { return depths[f.ID] > q.Depth })
	}
	if q.Threads == tree.NoThreads {
		return folders, nil
	}
	return folders, sp.threadsIn(func(place tree.FolderID) bool {
		depth, ok := depths[string(place)]
		return (ok || place == q.FolderID) && (q.Depth == 0 || depth < q.Depth)
	})
}
