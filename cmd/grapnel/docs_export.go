package main

import (
	"context"
	"maps"
	"path"
	"slices"

	"github.com/grapnelhq/grapnel/tree"
)

// export writes the tree into the folder. What was edited there stays, with the
// index's old row for it, so that an import of it finds out whether it is the
// newer one.
func (j *docsJob) export(ctx context.Context) error {
	old := j.index.Folders
	j.index.Folders = map[string]indexRow{}
	paths := layout(j.folders)
	byPath := make(map[string]tree.FolderID, len(paths))
	for id, p := range paths {
		byPath[p] = id
	}
	var err error
	for _, p := range slices.Sorted(maps.Keys(byPath)) {
		if err = j.exportFolder(ctx, p, byPath[p], old[p]); err != nil {
			break
		}
	}
	if err == nil {
		j.tidy(byPath, old)
	} else {
		for p, row := range old { // what was not come to is as it was
			if _, done := j.index.Folders[p]; !done {
				j.index.Folders[p] = row
			}
		}
	}
	if j.dry {
		return err
	}
	return firstError(err, j.dir.writeIndex(j.index))
}

// exportFolder writes one folder with its document. The error is the gateway's.
func (j *docsJob) exportFolder(ctx context.Context, p string, id tree.FolderID, old indexRow) error {
	row := indexRow{FolderID: id}
	if old.FolderID != id {
		old = row // the path was another folder's
	}
	j.index.Folders[p] = old
	if !j.dry {
		if err := j.dir.makeFolder(p); err != nil {
			j.result.add(p, id, docRefused, 0, err.Error())
			return nil
		}
	}
	local, unreadable := j.dir.readDoc(p)
	summary, live := j.live[id]
	var text string
	if live && (!local.there || local.sum != summary.ContentSHA256) {
		view, err := j.tree.Doc(ctx, tree.Scope{WorkspaceID: j.index.WorkspaceID, FolderID: id})
		if err != nil {
			return err
		}
		if live = view.Explicit != nil; live { // else it was archived since the tree was read
			summary, text = view.Explicit.Summary(), view.Explicit.Content
		}
	}
	if live {
		row.DocID, row.Version, row.SHA256 = summary.ID, summary.Version, summary.ContentSHA256
	}
	known := old.DocID != "" && local.sum == old.SHA256
	switch {
	case unreadable != nil:
		j.result.add(p, id, docRefused, row.Version, unreadable.Error())
		return nil
	case local.there && local.sum == row.SHA256:
		j.result.add(p, id, docUnchanged, row.Version, "")
	case local.there && !known:
		row = old
		j.result.add(p, id, docKept, row.Version, "it was edited here")
	case live:
		j.writeDoc(p, &row, text)
	case local.there:
		j.removeDoc(p, row.FolderID)
	}
	j.index.Folders[p] = row
	return nil
}

// writeDoc writes a file. One that cannot be written is told, and has no row.
func (j *docsJob) writeDoc(p string, row *indexRow, text string) {
	if !j.dry {
		if err := j.dir.write(path.Join(p, docFile), []byte(text)); err != nil {
			j.result.add(p, row.FolderID, docRefused, row.Version, err.Error())
			*row = indexRow{FolderID: row.FolderID}
			return
		}
	}
	j.result.add(p, row.FolderID, docWritten, row.Version, "")
}

// removeDoc removes a file whose document is no more.
func (j *docsJob) removeDoc(p string, id tree.FolderID) {
	if !j.dry {
		if err := j.dir.root.Remove(path.Join(p, docFile)); err != nil {
			j.result.add(p, id, docRefused, 0, unwrapPath(err).Error())
			return
		}
	}
	j.result.add(p, id, docRemoved, 0, "the document is not there any more")
}

// tidy removes what an earlier export wrote into folders that are no more, or are
// elsewhere by now. The deepest come first, so that folders become empty.
func (j *docsJob) tidy(now map[string]tree.FolderID, old map[string]indexRow) {
	paths := slices.Sorted(maps.Keys(old))
	for _, p := range slices.Backward(paths) {
		if _, there := now[p]; there {
			continue
		}
		local, err := j.dir.readDoc(p)
		switch {
		case err != nil:
			j.result.add(p, old[p].FolderID, docRefused, 0, err.Error())
		case local.there && local.sum != old[p].SHA256:
			j.result.add(p, old[p].FolderID, docKept, 0, "it was edited here, and its folder is not there any more, or has another name: an import makes it anew")
		case local.there:
			j.removeDoc(p, old[p].FolderID)
		}
		if there, err := j.dir.isFolder(p); there && err == nil && !j.dry {
			_ = j.dir.root.Remove(p) // unless something else is in it
		}
	}
}
