package treetest

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/grapnelhq/grapnel/internal/tree"
)

func (sp *space) folder(id tree.FolderID) (*folder, error) {
	f := sp.folders[string(id)]
	if f == nil || f.deleted {
		return nil, refuse(tree.CodeNotFound)
	}
	return f, nil
}

func (sp *space) place(id tree.FolderID) error {
	if id == "" {
		return nil
	}
	_, err := sp.folder(id)
	return err
}

func (sp *space) up(id tree.FolderID) []*folder {
	var list []*folder
	for id != "" {
		f := sp.folders[string(id)]
		list = append(list, f)
		id = f.ParentID
	}
	return list
}

// below returns the live folders below a place in the order of their ids, and each one's depth, 1 for children.
func (sp *space) below(place tree.FolderID) ([]*folder, map[string]int) {
	var list []*folder
	depths := map[string]int{}
	for _, id := range slices.Sorted(maps.Keys(sp.folders)) {
		f := sp.folders[id]
		if f.deleted || f.ID == string(place) {
			continue
		}
		up := sp.up(f.ParentID)
		at := len(up) // the root is above them all
		if place != "" {
			at = slices.IndexFunc(up, func(f *folder) bool { return f.ID == string(place) })
		}
		if at >= 0 {
			list = append(list, f)
			depths[f.ID] = at + 1
		}
	}
	return list, depths
}

func (sp *space) threadsIn(in func(place tree.FolderID) bool) []*thread {
	var list []*thread
	for _, id := range slices.Sorted(maps.Keys(sp.threads)) {
		if t := sp.threads[id]; !t.deleted && in(t.FolderID) {
			list = append(list, t)
		}
	}
	return list
}

func (sp *space) empty(place tree.FolderID) bool {
	folders, _ := sp.below(place)
	threads := sp.threadsIn(func(in tree.FolderID) bool { return in == place })
	return len(folders) == 0 && len(threads) == 0 && sp.live(place) == nil
}

func (m *model) CreateFolder(ctx context.Context, p tree.CreateFolder) (tree.Folder, error) {
	scope := tree.Scope{WorkspaceID: p.WorkspaceID, FolderID: p.ParentID}
	return inScope(ctx, m, scope, tree.Check(p), func(sp *space) (tree.Folder, error) {
		want := tree.Folder{ID: p.ID, ParentID: p.ParentID, Name: p.Name}
		if had := sp.folders[p.ID]; had != nil {
			if had.deleted || had.Folder != want {
				return want, refuse(tree.CodeInvalid)
			}
			return want, nil
		}
		if len(sp.up(p.ParentID))+1 > tree.MaxDepth {
			return want, refuse(tree.CodeInvalid)
		}
		want.ID = cmp.Or(want.ID, m.newID())
		sp.folders[want.ID] = &folder{Folder: want}
		m.commit(sp.ID, p.Actor, m.now(), tree.Change{Action: tree.Created, Folder: &want})
		return want, nil
	})
}

func (m *model) RenameFolder(ctx context.Context, p tree.RenameFolder) (tree.Folder, error) {
	return in(ctx, m, p.WorkspaceID, tree.Check(p), func(sp *space) (tree.Folder, error) {
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
	})
}

func (m *model) MoveFolder(ctx context.Context, p tree.MoveFolder) (tree.Folder, error) {
	return in(ctx, m, p.WorkspaceID, tree.Check(p), func(sp *space) (tree.Folder, error) {
		f, err := sp.folder(tree.FolderID(p.FolderID))
		if err := cmp.Or(err, sp.place(p.ParentID)); err != nil {
			return tree.Folder{}, err
		}
		if f.ParentID == p.ParentID {
			return f.Folder, nil
		}
		above := sp.up(p.ParentID)
		if slices.Contains(above, f) {
			return tree.Folder{}, refuse(tree.CodeCycle)
		}
		height := 0
		_, depths := sp.below(tree.FolderID(f.ID))
		for _, depth := range depths {
			height = max(height, depth)
		}
		if len(above)+1+height > tree.MaxDepth {
			return tree.Folder{}, refuse(tree.CodeInvalid)
		}
		f.ParentID = p.ParentID
		now := f.Folder
		m.commit(sp.ID, p.Actor, m.now(), tree.Change{Action: tree.Moved, Folder: &now})
		return now, nil
	})
}

func (m *model) DeleteFolder(ctx context.Context, p tree.DeleteFolder) (tree.Folder, error) {
	return in(ctx, m, p.WorkspaceID, tree.Check(p), func(sp *space) (tree.Folder, error) {
		top, err := sp.folder(tree.FolderID(p.FolderID))
		if err != nil {
			return tree.Folder{}, err
		}
		if !p.Recursive && !sp.empty(tree.FolderID(top.ID)) {
			return tree.Folder{}, refuse(tree.CodeInvalid)
		}
		folders, depths := sp.below(tree.FolderID(top.ID))
		depths[top.ID] = 0
		at := m.now()
		var changes []tree.Change
		for _, t := range sp.threadsIn(func(place tree.FolderID) bool { _, gone := depths[string(place)]; return gone }) {
			t.FolderID = top.ParentID
			now := t.Thread
			changes = append(changes, tree.Change{Action: tree.Moved, Thread: &now})
		}
		for _, f := range append(folders, top) {
			if d := sp.live(tree.FolderID(f.ID)); d != nil {
				changes = append(changes, m.archive(d, p.Actor, at))
			}
			f.deleted = true
			was := f.Folder
			changes = append(changes, tree.Change{Action: tree.Deleted, Folder: &was})
		}
		m.commit(sp.ID, p.Actor, at, changes...)
		return top.Folder, nil
	})
}

// Tree has no page that is full. A cursor is "f" or "t" for a folder or thread, and the id of the last one.
func (m *model) Tree(ctx context.Context, q tree.Query) (tree.Page, error) {
	invalid := tree.Check(q)
	if invalid == nil && q.Cursor != "" && (q.Cursor[0] != 'f' && q.Cursor[0] != 't' || tree.CheckID("cursor", q.Cursor[1:]) != nil) {
		invalid = refuse(tree.CodeInvalid)
	}
	return inScope(ctx, m, q.Scope, invalid, func(sp *space) (tree.Page, error) {
		page := tree.Page{Folders: []tree.Folder{}, Threads: []tree.Thread{}, AgentsDocs: []tree.Summary{}}
		docs := sp.liveDocs()
		if d := docs[q.FolderID]; d != nil && q.Cursor == "" {
			page.AgentsDocs = append(page.AgentsDocs, d.Summary())
		}
		folders, threads := sp.within(q)
		for _, f := range folders {
			if "f"+f.ID <= q.Cursor {
				continue
			}
			page.Folders = append(page.Folders, f.Folder)
			if d := docs[tree.FolderID(f.ID)]; d != nil {
				page.AgentsDocs = append(page.AgentsDocs, d.Summary())
			}
		}
		for _, t := range threads {
			if "t"+t.ID > q.Cursor {
				page.Threads = append(page.Threads, t.Thread)
			}
		}
		return page, nil
	})
}

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
