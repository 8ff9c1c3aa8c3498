package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/gateway/client"
	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/tree"
)

// docsCommand holds what documents of the thread tree have to do with files.
func (a *app) docsCommand() *cobra.Command {
	return group("docs", "Documents of a gateway as files: export them, edit them, import them", a.docsExportCommand(), a.docsImportCommand())
}

// docsFlags are what both commands take.
type docsFlags struct {
	reachFlags

	workspace string
	dryRun    bool
}

func (f *docsFlags) register(c *cobra.Command) {
	f.reachFlags.register(c)
	c.Flags().StringVar(&f.workspace, "workspace", "", "`ID` of the workspace (default the folder's index, or the only one that there is)")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be done, and do nothing")
}

// docsExportCommand writes documents into files.
func (a *app) docsExportCommand() *cobra.Command {
	var f docsFlags
	c := &cobra.Command{
		Use:   "export DIR",
		Short: "Write the documents of a workspace into DIR, one folder with an AGENTS.md for each folder of the tree",
		Long: "Export writes the tree of a workspace into DIR: a folder for each folder, an AGENTS.md for\n" +
			"each document. Names that no file may have are changed. The file " + indexName + " keeps\n" +
			"which folder and version each file is, for import and for the next export.\n\n" +
			"DIR is new, empty, or an earlier export. Files that were edited since then are kept, and\n" +
			"told with exit code 1.",
		Example: "  grapnel docs export ./acme --workspace acme",
		Args:    exactlyOne("docs export takes one DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.docs(c.Context(), &f, args[0], true, (*docsJob).export)
		},
	}
	f.register(c)
	return c
}

// docsImportCommand saves files as documents.
func (a *app) docsImportCommand() *cobra.Command {
	var f docsFlags
	c := &cobra.Command{
		Use:   "import DIR",
		Short: "Save the AGENTS.md files below DIR that were changed as documents of a workspace",
		Long: "Import saves each AGENTS.md below DIR that differs from what was exported, if nobody has\n" +
			"saved the document in between; folders that are new are made. Files that are gone archive\n" +
			"nothing. Links are never followed, and folders whose name begins with a dot are left out.\n\n" +
			"Exit code 1 says that there were conflicts, or files that are no documents; everything\n" +
			"else was saved.",
		Example: "  grapnel docs import ./acme --dry-run\n" +
			"  grapnel docs import ./acme",
		Args: exactlyOne("docs import takes one DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.docs(c.Context(), &f, args[0], false, (*docsJob).imports)
		},
	}
	f.register(c)
	return c
}

// docAction is what became of a document or file.
type docAction string

// What can become of them.
const (
	// docWritten and docRemoved are files, by an export.
	docWritten docAction = "written"
	docRemoved docAction = "removed"
	// docKept is a file that export did not touch, because it was edited.
	docKept docAction = "kept"
	// docSaved is a document with a new version, docCreated one that is new.
	docSaved   docAction = "saved"
	docCreated docAction = "created"
	// docConflict is a document that somebody else has changed.
	docConflict docAction = "conflict"
	// docMissing is a document whose file is gone, which is left alone.
	docMissing docAction = "missing"
	// docSkipped is what is not looked at, docRefused what is no document.
	docSkipped   docAction = "skipped"
	docRefused   docAction = "refused"
	docUnchanged docAction = "unchanged"
)

// bad reports whether an action makes the answer "no".
func (d docAction) bad() bool { return d == docKept || d == docConflict || d == docRefused }

// docRow is one file and what became of it.
type docRow struct {
	Path     string        `json:"path"      jsonschema:"the file, below the folder"`
	FolderID tree.FolderID `json:"folder_id"`
	Action   docAction     `json:"action"`
	Version  int64         `json:"version"   jsonschema:"of the document; 0 if there is none"`
	Detail   string        `json:"detail"    jsonschema:"why"`
}

// docsResult is the JSON of export and import.
type docsResult struct {
	WorkspaceID string   `json:"workspace_id"`
	Dir         string   `json:"dir"`
	DryRun      bool     `json:"dry_run"`
	Folders     int      `json:"folders"      jsonschema:"how many folders the tree had"`
	NewFolders  []string `json:"new_folders"  jsonschema:"folders of the tree that import made"`
	Documents   []docRow `json:"documents"`
}

// add notes what became of the file of a folder.
func (r *docsResult) add(folder string, id tree.FolderID, action docAction, version int64, detail string) {
	r.Documents = append(r.Documents, docRow{path.Join(folder, docFile), id, action, version, detail})
}

// docsJob is an export or import under way.
type docsJob struct {
	tree  tree.Store
	dir   *docsDir
	index docsIndex
	dry   bool

	// folders are those of the tree, and live its documents by folder.
	folders []tree.Folder
	live    map[tree.FolderID]tree.Summary
	result  docsResult
}

// docs reaches the gateway, opens the folder, works, and prints what was done,
// also where the work was ended by a failure.
func (a *app) docs(ctx context.Context, f *docsFlags, dir string, create bool, work func(*docsJob, context.Context) error) (err error) {
	d, err := openDocsDir(dir, create, f.dryRun)
	if err != nil {
		return err
	}
	defer d.close()
	j := &docsJob{dir: d, dry: f.dryRun}
	if j.index, err = d.readIndex(); err != nil {
		return err
	}
	if create && !j.index.there && !d.isEmpty() {
		return usagef("%s is neither empty nor an export (it has no %s); choose another folder", dir, indexName)
	}
	r, err := f.reach(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // everything was answered
	j.tree = client.NewTree(patient{r.Client})
	if err := j.begin(ctx, f.workspace); err != nil {
		return r.docsFailed(err)
	}
	err = work(j, ctx)
	if a.json {
		err = firstError(err, a.printJSON(j.result))
	} else {
		a.printDocs(&j.result, create)
	}
	switch {
	case err != nil:
		return r.docsFailed(err)
	case slices.ContainsFunc(j.result.Documents, func(row docRow) bool { return row.Action.bad() }):
		return answerNo()
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// docsFailed is failed, also for errors of a tree.
func (r *reached) docsFailed(err error) error {
	if _, coded := errors.AsType[*exitError](err); coded {
		return err
	}
	switch {
	case tree.HasCode(err, tree.CodeNotFound):
		return refused(fmt.Errorf("the gateway at %s: %w", r.target, err))
	case tree.HasCode(err, tree.CodeInvalid):
		return usagef("the gateway at %s: %w", r.target, err)
	}
	return r.failed(err)
}

// begin settles the workspace and reads its tree.
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

// workspace is the one of the flag, of the index, or the only one.
func (j *docsJob) workspace(ctx context.Context, wanted string) (string, error) {
	if kept := j.index.WorkspaceID; kept != "" {
		if wanted != "" && wanted != kept {
			return "", usagef("%s holds documents of the workspace %s, not of %s; use another folder, or remove its %s", j.dir.name, kept, wanted, indexName)
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
		return "", refused(errors.New("there are no workspaces; make one with the method workspace/create"))
	case 1:
		return list[0].ID, nil
	}
	var ids []string
	for _, w := range list[:min(len(list), 10)] {
		ids = append(ids, w.ID)
	}
	return "", usagef("there are %d workspaces; choose one with --workspace: %s", len(list), strings.Join(ids, ", "))
}

// printDocs prints for people what became of the files.
func (a *app) printDocs(r *docsResult, export bool) {
	counts := map[docAction]int{}
	t := newTable("files", "path", "what", ">version", "detail")
	for _, row := range r.Documents {
		counts[row.Action]++
		if row.Action != docUnchanged {
			t.add(row.Path, string(row.Action), row.Version, row.Detail)
		}
	}
	verb := map[bool]string{true: "exported to", false: "imported from"}[export]
	if r.DryRun {
		verb = map[bool]string{true: "would be exported to", false: "would be imported from"}[export]
	}
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
		a.println("\nconflicts: export into another folder, bring both texts together there, and import from there")
	case counts[docKept] > 0:
		a.println("\nfiles that were edited here were kept: import them, or move them away, then export again")
	}
}

// patient calls again what the gateway could not do just now: one with tokens
// bounds how often a caller may call.
type patient struct{ client.Caller }

// Times of patient.
const (
	patientTries = 6
	patientWait  = 250 * time.Millisecond
)

// Call implements client.Caller.
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
