package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/cli/client"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/internal/tree"
)

type docsFlags struct {
	reachFlags

	Workspace string `flag:"workspace" usage:"{ID} of the workspace (default the directory's index, or the only one that there is)"`
	DryRun    bool   `flag:"dry-run"   usage:"say what would be done, and do nothing"`
}

func (a *app) docsCommands() *cobra.Command {
	return group("docs", "Documents of a gateway as files: export them, edit them, import them",
		command[docsResult](a, "export DIR", "Write the documents of a workspace into DIR, one directory with an AGENTS.md for each folder of the tree",
			exactlyOne("docs export takes one DIR"), func(ctx context.Context, f *docsFlags, args []string) error {
				return a.docs(ctx, f, args[0], true, (*docsJob).export)
			}),
		command[docsResult](a, "import DIR", "Save the AGENTS.md files below DIR that were changed as documents of a workspace",
			exactlyOne("docs import takes one DIR"), func(ctx context.Context, f *docsFlags, args []string) error {
				return a.docs(ctx, f, args[0], false, (*docsJob).imports)
			}))
}

type docAction string

const (
	docWritten   docAction = "written"
	docRemoved   docAction = "removed"
	docKept      docAction = "kept"  // a file that export did not touch, because it was edited
	docSaved     docAction = "saved" // a document with a new version
	docCreated   docAction = "created"
	docConflict  docAction = "conflict"
	docMissing   docAction = "missing" // a document whose file is gone, which is left alone
	docSkipped   docAction = "skipped"
	docRefused   docAction = "refused"
	docUnchanged docAction = "unchanged"
)

type docRow struct {
	Path     string        `json:"path"      jsonschema:"the file, below the directory"`
	FolderID tree.FolderID `json:"folder_id"`
	Action   docAction     `json:"action"`
	Version  int64         `json:"version"   jsonschema:"of the document; 0 if there is none"`
	Detail   string        `json:"detail"    jsonschema:"why"`
}

type docsResult struct {
	WorkspaceID string   `json:"workspace_id"`
	Dir         string   `json:"dir"`
	DryRun      bool     `json:"dry_run"`
	Folders     int      `json:"folders"      jsonschema:"how many folders the tree had"`
	NewFolders  []string `json:"new_folders"  jsonschema:"folders of the tree that import made"`
	Documents   []docRow `json:"documents"`
}

func (r *docsResult) add(folder string, id tree.FolderID, action docAction, version int64, detail string) {
	r.Documents = append(r.Documents, docRow{path.Join(folder, docFile), id, action, version, detail})
}

type docsJob struct {
	tree  tree.Store
	dir   *docsDir
	index docsIndex
	dry   bool

	folders []tree.Folder
	live    map[tree.FolderID]tree.Summary
	result  docsResult
}

// docs prints what was done even if the work failed.
func (a *app) docs(ctx context.Context, f *docsFlags, dir string, create bool, work func(*docsJob, context.Context) error) (err error) {
	d, err := openDocsDir(dir, create, f.DryRun)
	if err != nil {
		return err
	}
	defer d.close()
	j := &docsJob{dir: d, dry: f.DryRun}
	if j.index, err = d.readIndex(); err != nil {
		return err
	}
	if list, err := fs.ReadDir(d.root.FS(), "."); create && !j.index.there && (err != nil || len(list) > 0) {
		return usagef("%s is neither empty nor an export (it has no %s); choose another directory", dir, indexName)
	}
	r, err := f.reach(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // everything was answered
	j.tree = client.NewTree(patient{r.Client})
	if err := j.begin(ctx, f.Workspace); err != nil {
		return r.failed(err)
	}
	if err := work(j, ctx); err != nil {
		return r.failed(err)
	}
	lacks := slices.ContainsFunc(j.result.Documents, func(row docRow) bool {
		return row.Action == docKept || row.Action == docConflict || row.Action == docRefused
	})
	return a.answer(!lacks, j.result, func() { a.printDocs(&j.result, create) })
}

func (j *docsJob) begin(ctx context.Context, wanted string) error {
	id, err := j.workspace(ctx, wanted)
	if err != nil {
		return err
	}
	j.result = docsResult{WorkspaceID: id, Dir: j.dir.name, DryRun: j.dry, NewFolders: []string{}, Documents: []docRow{}}
	j.index.WorkspaceID = id
	j.live = map[tree.FolderID]tree.Summary{}
	q := tree.Query{Scope: tree.Scope{WorkspaceID: id}, Threads: tree.NoThreads}
	for {
		page, err := j.tree.Tree(ctx, q)
		if err != nil {
			return err
		}
		j.folders = append(j.folders, page.Folders...)
		for _, doc := range page.AgentsDocs {
			j.live[doc.FolderID] = doc
		}
		if page.NextCursor == nil {
			j.result.Folders = len(j.folders)
			return nil
		}
		q.Cursor = *page.NextCursor
	}
}

func (j *docsJob) workspace(ctx context.Context, wanted string) (string, error) {
	if kept := j.index.WorkspaceID; kept != "" {
		if wanted != "" && wanted != kept {
			return "", usagef("%s holds documents of the workspace %s, not of %s; use another directory, or remove its %s", j.dir.name, kept, wanted, indexName)
		}
		wanted = kept
	}
	if wanted != "" {
		return wanted, nil
	}
	list, err := j.tree.Workspaces(ctx)
	if err != nil {
		return "", err
	}
	switch len(list) {
	case 0:
		return "", refused(errors.New("there are no workspaces; make one on the gateway's page (grapnel serve --open), or with the method workspace/create"))
	case 1:
		return list[0].ID, nil
	}
	var ids []string
	for _, w := range list[:min(len(list), 10)] {
		ids = append(ids, w.ID)
	}
	return "", usagef("there are %d workspaces; choose one with --workspace: %s", len(list), strings.Join(ids, ", "))
}

func (a *app) printDocs(r *docsResult, export bool) {
	counts := map[docAction]int{}
	t := newTable("files", "path|what|>version|detail")
	for _, row := range r.Documents {
		counts[row.Action]++
		if row.Action != docUnchanged {
			t.add(row.Path, string(row.Action), row.Version, row.Detail)
		}
	}
	verb := words.If(r.DryRun, "would be ") + map[bool]string{true: "exported to", false: "imported from"}[export]
	a.printf("workspace %s %s %s: folders %s", clean(r.WorkspaceID), verb, clean(r.Dir), text.Thousands(r.Folders+len(r.NewFolders)))
	for _, action := range []docAction{docWritten, docRemoved, docSaved, docCreated, docUnchanged, docKept, docConflict, docRefused, docMissing, docSkipped} {
		if counts[action] > 0 {
			a.printf(", %s %s", action, text.Thousands(counts[action]))
		}
	}
	a.println()
	if len(r.NewFolders) > 0 {
		a.println("new folders:", clean(strings.Join(r.NewFolders, ", ")))
	}
	a.printTable(t)
	switch {
	case counts[docConflict] > 0:
		a.println("\nconflicts: export into another directory, bring both texts together there, and import from there")
	case counts[docKept] > 0:
		a.println("\nfiles that were edited here were kept: import them, or move them away, then export again")
	}
}

// patient retries calls that exceed the rate limit of a token.
type patient struct{ client.Caller }

const patientTries, patientWait = 6, 250 * time.Millisecond

func (p patient) Call(ctx context.Context, method string, params, result any) error {
	wait := patientWait
	for try := 1; ; try++ {
		err := p.Caller.Call(ctx, method, params, result)
		if !client.HasCode(err, rpc.CodeUnavailable) || try == patientTries {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		wait *= 2
	}
}

// export keeps files that were edited, with their old index row, so that an import can tell which is newer.
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
	return cmp.Or(err, j.dir.writeIndex(j.index))
}

// exportFolder returns errors of the gateway alone; others are in the result.
func (j *docsJob) exportFolder(ctx context.Context, p string, id tree.FolderID, old indexRow) error {
	row := indexRow{FolderID: id}
	if old.FolderID != id {
		old = row // the path was another folder's
	}
	j.index.Folders[p] = old
	if err := j.dir.makeFolder(p); err != nil {
		j.result.add(p, id, docRefused, 0, err.Error())
		return nil
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
		if err := j.dir.write(path.Join(p, docFile), []byte(text)); err != nil {
			j.result.add(p, id, docRefused, row.Version, err.Error())
			row = indexRow{FolderID: id}
			break
		}
		j.result.add(p, id, docWritten, row.Version, "")
	case local.there:
		j.removeDoc(p, row.FolderID)
	}
	j.index.Folders[p] = row
	return nil
}

func (j *docsJob) removeDoc(p string, id tree.FolderID) {
	if err := j.dir.remove(path.Join(p, docFile)); err != nil {
		j.result.add(p, id, docRefused, 0, unwrapPath(err).Error())
		return
	}
	j.result.add(p, id, docRemoved, 0, "the document is not there any more")
}

// tidy removes exported files whose folders are gone or moved, the deepest first, so that directories become empty.
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
			j.result.add(p, old[p].FolderID, docKept, 0, "it was edited here, and its folder is not there any more, or has another name: an import creates it again")
		case local.there:
			j.removeDoc(p, old[p].FolderID)
		}
		if there, err := j.dir.isFolder(p); there && err == nil {
			_ = j.dir.remove(p) // unless something else is in it
		}
	}
}

type importing struct {
	*docsJob

	// ids are the folders of the tree by their path; gone are exported paths that are not in the tree any more.
	ids   map[string]tree.FolderID
	gone  map[string]bool
	found map[string]bool
}

// What was saved is in the index even if a failure ends the import.
func (j *docsJob) imports(ctx context.Context) error {
	i := &importing{docsJob: j, ids: map[string]tree.FolderID{}, gone: map[string]bool{}, found: map[string]bool{}}
	i.locate()
	err := i.walk(ctx, ".")
	if err == nil {
		i.addMissing()
	}
	return cmp.Or(err, j.dir.writeIndex(j.index))
}

// locate finds the folders of the tree by the index, and unknown ones by the paths that an export would give them.
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

func (i *importing) walk(ctx context.Context, dir string) error {
	if err := i.file(ctx, dir); err != nil {
		return err
	}
	list, err := fs.ReadDir(i.dir.root.FS(), dir)
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
			return i.failed(dir, id, err)
		}
	}
	row.FolderID = id
	return i.failed(dir, id, i.save(ctx, dir, row, local))
}

// failed records an error about one document. Any other error ends the import.
func (i *importing) failed(dir string, id tree.FolderID, err error) error {
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

// save saves a text if the document did not change since the export, or already has the text.
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

func (i *importing) keep(dir string, action docAction, row indexRow) {
	i.index.Folders[dir] = row
	i.result.add(dir, row.FolderID, action, row.Version, "")
}

func based(version int64) string {
	if version == 0 {
		return "none"
	}
	return fmt.Sprintf("version %d", version)
}

func (i *importing) addMissing() {
	for _, p := range slices.Sorted(maps.Keys(i.index.Folders)) {
		if row := i.index.Folders[p]; row.DocID != "" && !i.found[p] {
			i.result.add(p, row.FolderID, docMissing, row.Version, "the file is gone; the document is left alone (thread/agents_doc/archive puts it away)")
		}
	}
}
