package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/tree"
)

// importing is an import under way.
type importing struct {
	*docsJob

	// ids are the folders of the tree by their path here; gone are paths of folders
	// that were exported and are not in the tree any more.
	ids  map[string]tree.FolderID
	gone map[string]bool
	// found are the folders here that have a file.
	found map[string]bool
}

// imports saves the files that were changed. What was saved is in the index, also
// where a failure ends the work.
func (j *docsJob) imports(ctx context.Context) error {
	i := &importing{docsJob: j, ids: map[string]tree.FolderID{}, gone: map[string]bool{}, found: map[string]bool{}}
	i.locate()
	err := i.walk(ctx, ".")
	if err == nil {
		i.tellMissing()
	}
	if j.dry {
		return err
	}
	return firstError(err, j.dir.writeIndex(j.index))
}

// locate finds the folders of the tree: by the index, and those that it does not
// know by the paths that an export would give them.
func (i *importing) locate() {
	there := map[tree.FolderID]bool{"": true}
	for _, f := range i.folders {
		there[tree.FolderID(f.ID)] = true
	}
	taken := map[tree.FolderID]bool{}
	for p, row := range i.index.Folders {
		if there[row.FolderID] {
			i.ids[p], taken[row.FolderID] = row.FolderID, true
		} else {
			i.gone[p] = true
		}
	}
	for id, p := range layout(i.folders) {
		if _, known := i.ids[p]; !known && !taken[id] && !i.gone[p] {
			i.ids[p] = id
		}
	}
}

// walk imports a folder and those below it. The error is the gateway's.
func (i *importing) walk(ctx context.Context, dir string) error {
	if err := i.file(ctx, dir); err != nil {
		return err
	}
	list, err := i.dir.list(dir)
	if err != nil {
		i.result.Documents = append(i.result.Documents, docRow{Path: dir, Action: docRefused, Detail: unwrapPath(err).Error()})
		return nil
	}
	for _, entry := range list {
		p := path.Join(dir, entry.Name())
		switch {
		case entry.Type() == fs.ModeSymlink && entry.Name() != docFile:
			i.result.Documents = append(i.result.Documents, docRow{Path: p, Action: docSkipped, Detail: "it is a link, and links are not followed"})
		case entry.IsDir() && !strings.HasPrefix(entry.Name(), "."):
			if err := i.walk(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// file imports the file of a folder, if it has one that is new or was changed.
func (i *importing) file(ctx context.Context, dir string) error {
	local, err := i.dir.readDoc(dir)
	if !local.there && err == nil {
		return nil
	}
	i.found[dir] = true
	row, known := i.index.Folders[dir], i.ids
	id, located := known[dir]
	switch {
	case err != nil:
		i.result.add(dir, row.FolderID, docRefused, row.Version, err.Error())
		return nil
	case local.sum == row.SHA256:
		i.result.add(dir, row.FolderID, docUnchanged, row.Version, "")
		return nil
	case i.gone[dir]:
		i.result.add(dir, row.FolderID, docConflict, row.Version, "the folder is not in the tree any more")
		return nil
	case !located:
		if id, err = i.makeFolders(ctx, dir); err != nil {
			return i.told(dir, id, err)
		}
	}
	row.FolderID = id
	return i.told(dir, id, i.save(ctx, dir, row, local))
}

// told notes an error that is about one document alone. Others end the import.
func (i *importing) told(dir string, id tree.FolderID, err error) error {
	e, ok := errors.AsType[*tree.Error](err)
	if !ok || e.Code == tree.CodeUnavailable {
		return err
	}
	action := docRefused
	if e.Code == tree.CodeConflict || e.Code == tree.CodeNotFound {
		action = docConflict
	}
	i.result.add(dir, id, action, i.index.Folders[dir].Version, e.Message)
	return nil
}

// makeFolders makes the folders of a path that are not in the tree.
func (i *importing) makeFolders(ctx context.Context, dir string) (tree.FolderID, error) {
	var parent tree.FolderID
	for p := range pathPrefixes(dir) {
		if i.gone[p] {
			return "", tree.Errorf(tree.CodeNotFound, "the folder %s is not in the tree any more", p)
		}
		id, there := i.ids[p]
		if !there {
			if err := tree.CheckName("name", path.Base(p)); err != nil {
				return "", err
			}
			if !i.dry {
				made, err := i.tree.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: i.index.WorkspaceID, ParentID: parent, Name: path.Base(p)})
				if err != nil {
					return "", err
				}
				id = tree.FolderID(made.ID)
				i.index.Folders[p] = indexRow{FolderID: id}
			}
			i.ids[p] = id
			i.result.NewFolders = append(i.result.NewFolders, p)
		}
		parent = id
	}
	return parent, nil
}

// save saves a text if the document is still the one that it is based on. A text
// that the document has already is no conflict.
func (i *importing) save(ctx context.Context, dir string, row indexRow, local localText) error {
	made := slices.Contains(i.result.NewFolders, dir)
	live, exists := i.live[row.FolderID]
	exists = exists && !made
	switch {
	case exists && live.ContentSHA256 == local.sum:
		i.keep(dir, docUnchanged, indexRow{row.FolderID, live.ID, live.Version, live.ContentSHA256})
		return nil
	case i.dry && exists && (live.Version != row.Version || live.ID != row.DocID):
		return tree.Errorf(tree.CodeConflict, "the document is at version %d, and this is based on %s", live.Version, based(row.Version))
	case i.dry && !exists && row.Version > 0:
		return tree.Errorf(tree.CodeConflict, "the document is not there any more")
	}
	action := docSaved
	if row.Version == 0 {
		action = docCreated
	}
	if i.dry {
		i.result.add(dir, row.FolderID, action, row.Version+1, "")
		return nil
	}
	saved, err := i.tree.Save(ctx, tree.Save{
		Scope:   tree.Scope{WorkspaceID: i.index.WorkspaceID, FolderID: row.FolderID},
		Content: local.text, ExpectedVersion: &row.Version, ExpectedDocID: row.DocID,
	})
	if err != nil {
		return err
	}
	i.keep(dir, action, indexRow{row.FolderID, saved.Doc.ID, saved.Doc.Version, saved.Doc.ContentSHA256})
	return nil
}

// keep notes what is at both ends now.
func (i *importing) keep(dir string, action docAction, row indexRow) {
	i.index.Folders[dir] = row
	i.result.add(dir, row.FolderID, action, row.Version, "")
}

// based says what a text is based on.
func based(version int64) string {
	if version == 0 {
		return "none"
	}
	return fmt.Sprintf("version %d", version)
}

// tellMissing lists documents whose files are gone.
func (i *importing) tellMissing() {
	for _, p := range slices.Sorted(maps.Keys(i.index.Folders)) {
		if row := i.index.Folders[p]; row.DocID != "" && !i.found[p] {
			i.result.add(p, row.FolderID, docMissing, row.Version, "the file is gone; the document is left alone (thread/agents_doc/archive puts it away)")
		}
	}
}
