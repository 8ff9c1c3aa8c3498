package gateway

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/tree"
)

type (
	scopeParams struct {
		tree.Scope

		Actor string `json:"actor,omitempty"`
	}
	threadParams struct {
		tree.ThreadRef

		Actor string `json:"actor,omitempty"`
	}
	treeParams struct {
		tree.Query

		Actor string `json:"actor,omitempty"`
	}
	revisionsParams struct {
		tree.RevisionQuery

		Actor string `json:"actor,omitempty"`
	}
	archivedParams struct {
		tree.ArchivedQuery

		Actor string `json:"actor,omitempty"`
	}
)

// Deleting something returns what it was.
type (
	workspaceResult struct {
		Workspace tree.Workspace `json:"workspace"`
	}
	workspacesResult struct {
		Workspaces []tree.Workspace `json:"workspaces"`
	}
	folderResult struct {
		Folder tree.Folder `json:"folder"`
	}
	threadResult struct {
		Thread tree.Thread `json:"thread"`
	}
	viewResult struct {
		tree.View

		PromptChars int `json:"prompt_chars" jsonschema:"how many characters of a document a prompt takes; 0 if that is not known"`
	}
	savedResult struct {
		tree.Saved

		Warnings []warning `json:"warnings"`
	}
	warning struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	effectiveResult struct {
		Effective *tree.Effective `json:"effective"`
	}
	docResult struct {
		Doc tree.Doc `json:"doc"`
	}
	revisionsResult struct {
		Revisions []tree.Revision `json:"revisions" jsonschema:"newest first"`
	}
	archivedResult struct {
		Archived []tree.ArchivedDoc `json:"archived" jsonschema:"the one that was archived last first"`
	}
)

func ofWorkspace(w tree.Workspace) workspaceResult { return workspaceResult{w} }
func ofFolder(f tree.Folder) folderResult          { return folderResult{f} }
func ofThread(t tree.Thread) threadResult          { return threadResult{t} }

// treeMethods are for the tree of threads and its documents.
type treeMethods struct {
	tree     tree.Store
	hub      *hub
	metrics  *metrics
	settings *atomic.Pointer[settings]
	deleted  chan<- struct{} // signals that conversations may be left over
}

// stored makes a method of one of the tree's, whose result goes through wrap.
func stored[P, T, R any](m *treeMethods, name string, right rpc.Right, doc string, do func(tree.Store, context.Context, P) (T, error), wrap func(T) R) rpc.Method {
	return method(quick(), name, right, doc, func(ctx context.Context, c call[P]) (R, error) {
		v, err := do(m.tree, ctx, c.params)
		return wrap(v), err
	})
}

func (m *treeMethods) list() []rpc.Method {
	of := quick()
	return []rpc.Method{
		method(of, "workspace/create", rpc.WriteRight,
			"Creates a workspace. Creating it again, with an id of the caller's, returns the existing one. A token that is bound to workspaces may only create those.",
			m.createWorkspace),
		method(of, "workspace/list", rpc.ReadRight, "Lists the workspaces that the caller may see.", m.listWorkspaces),
		stored(m, "workspace/rename", rpc.WriteRight, "Renames a workspace.", tree.Store.RenameWorkspace, ofWorkspace),
		stored(m, "workspace/delete", rpc.WriteRight, "Deletes a workspace. One that is not empty needs recursive.", sweeping(m, tree.Store.DeleteWorkspace), ofWorkspace),
		method(group{connected: true, within: catchUpTime}, "workspace/watch", rpc.ReadRight,
			"Notifies this connection of changes in a workspace; with since_seq first of those since then, which may come before the answer. Gap says that not all of them can be reported: read again.",
			m.watch),
		method(group{connected: true}, "workspace/unwatch", rpc.ReadRight, "Stops that. The seq is where watching can go on later.", m.unwatch),
		stored(m, "folder/create", rpc.WriteRight, "Creates a folder. Creating it again, with an id of the caller's, returns the existing one.", tree.Store.CreateFolder, ofFolder),
		stored(m, "folder/rename", rpc.WriteRight, "Renames a folder.", tree.Store.RenameFolder, ofFolder),
		stored(m, "folder/move", rpc.WriteRight, "Moves a folder to another parent; null is the root. It cannot move below itself.", tree.Store.MoveFolder, ofFolder),
		stored(m, "folder/delete", rpc.WriteRight,
			"Deletes a folder. One that is not empty needs recursive: folders below are deleted too, documents are archived, threads move to the parent.",
			tree.Store.DeleteFolder, ofFolder),
		stored(m, "thread/create", rpc.WriteRight, "Creates a thread. Creating it again, with an id of the caller's, returns the existing one.", tree.Store.CreateThread, ofThread),
		stored(m, "thread/rename", rpc.WriteRight, "Renames a thread.", tree.Store.RenameThread, ofThread),
		stored(m, "thread/move", rpc.WriteRight, "Moves a thread to another folder; null is the root.", tree.Store.MoveThread, ofThread),
		stored(m, "thread/delete", rpc.WriteRight, "Takes a thread out of the tree, with its conversation.", sweeping(m, tree.Store.DeleteThread), ofThread),
		method(of, "thread/tree", rpc.ReadRight, "Reads the tree, or what is below a folder: folders, threads and summaries of documents, drafts included, never their text.",
			func(ctx context.Context, c call[treeParams]) (tree.Page, error) {
				if err := rpc.Expect(ctx, pageBytes); err != nil {
					return tree.Page{}, err
				}
				return m.tree.Tree(ctx, c.params.Query)
			}),
	}
}

// sweeping has what a deletion leaves of conversations removed.
func sweeping[P, T any](m *treeMethods, do func(tree.Store, context.Context, P) (T, error)) func(tree.Store, context.Context, P) (T, error) {
	return func(t tree.Store, ctx context.Context, p P) (T, error) {
		v, err := do(t, ctx, p)
		select {
		case m.deleted <- struct{}{}:
		default: // it is about to be looked at
		}
		return v, err
	}
}

const pageBytes = 4 << 20 // a full page of the tree: 10,000 rows and their JSON

// createWorkspace lets a token that is bound to workspaces create only those, or it could not see the new one.
func (m *treeMethods) createWorkspace(ctx context.Context, c call[tree.CreateWorkspace]) (workspaceResult, error) {
	if !c.MayWorkspace(c.params.ID) {
		return workspaceResult{}, rpc.Errorf(rpc.CodeUnauthorized, "this token is bound to workspaces: it may create those, by their id, and no others")
	}
	w, err := m.tree.CreateWorkspace(ctx, c.params)
	return workspaceResult{w}, err
}

func (m *treeMethods) listWorkspaces(ctx context.Context, c call[anyone]) (workspacesResult, error) {
	list, err := m.tree.Workspaces(ctx)
	seen := []tree.Workspace{}
	for _, w := range list {
		if c.MayWorkspace(w.ID) {
			seen = append(seen, w)
		}
	}
	return workspacesResult{seen}, err
}

func (m *treeMethods) docs() []rpc.Method {
	of := quick()
	return []rpc.Method{
		method(of, "thread/agents_doc/get", rpc.ReadRight, "Reads the document of a scope (a folder, or null for the root), drafts included, and the one in effect there.",
			func(ctx context.Context, c call[scopeParams]) (viewResult, error) {
				view, err := m.tree.Doc(ctx, c.params.Scope)
				return viewResult{view, m.settings.Load().promptChars}, err
			}),
		method(of, "thread/agents_doc/save", rpc.WriteRight,
			"Saves the document of a scope. expected_version is the version that the text is based on; 0 or absent for a new document. A version_conflict says what there is instead.",
			m.save),
		method(of, "thread/agents_doc/archive", rpc.WriteRight, "Archives the document of a scope, and returns what is in effect then.",
			func(ctx context.Context, c call[tree.ArchiveDoc]) (tree.ArchivedNow, error) {
				now, err := m.tree.Archive(ctx, c.params)
				m.metrics.save("archived", err)
				return now, err
			}),
		method(of, "thread/agents_doc/resolve_for_thread", rpc.ReadRight, "Finds the document in effect for a thread.", m.resolve),
		method(of, "thread/agents_doc/revisions", rpc.ReadRight, "Lists versions of a document, newest first.",
			func(ctx context.Context, c call[revisionsParams]) (revisionsResult, error) {
				p := c.params
				list, err := listed(ctx, p.IncludeContent, p.Limit, func(r *tree.Revision) int { return r.Chars }, func(texts bool) ([]tree.Revision, error) {
					p.IncludeContent = texts
					return m.tree.Revisions(ctx, p.RevisionQuery)
				})
				return revisionsResult{list}, err
			}),
		method(of, "thread/agents_doc/restore", rpc.WriteRight, "Makes the text of an earlier version the document's newest one. An archived document is active again.",
			func(ctx context.Context, c call[tree.RestoreDoc]) (docResult, error) {
				doc, err := m.tree.Restore(ctx, c.params)
				m.metrics.save("restored", err)
				return docResult{doc}, err
			}),
		method(of, "thread/agents_doc/archived", rpc.ReadRight, "Lists archived documents: those of a scope, or, with all, of every scope.",
			func(ctx context.Context, c call[archivedParams]) (archivedResult, error) {
				p := c.params
				list, err := listed(ctx, p.IncludeContent, p.Limit, func(d *tree.ArchivedDoc) int { return d.Chars }, func(texts bool) ([]tree.ArchivedDoc, error) {
					p.IncludeContent = texts
					return m.tree.ArchivedDocs(ctx, p.ArchivedQuery)
				})
				return archivedResult{list}, err
			}),
	}
}

// maxTexts is how many characters the texts of a list may have together, and charBytes the most that a character
// takes, as text and as JSON with its buffer. Such a list fits [rpc.Limits.Answer].
const (
	maxTexts  = 40 * tree.MaxChars
	charBytes = 4 + 6
)

// listed reads a list with texts first without them: it refuses more than one answer takes, and reserves memory.
func listed[T any](ctx context.Context, texts bool, limit int, chars func(*T) int, ask func(texts bool) ([]T, error)) ([]T, error) {
	list, err := ask(false)
	if err != nil || !texts {
		return list, err
	}
	sum := 0
	for i := range list {
		sum += chars(&list[i])
	}
	if sum > maxTexts {
		return nil, rpc.Errorf(rpc.CodeTooLarge, "limit: the texts have %s characters together, and an answer takes %s: ask for fewer than %d at once",
			text.Thousands(sum), text.Thousands(maxTexts), cmp.Or(limit, tree.DefaultLimit))
	}
	if err := rpc.Expect(ctx, sum*charBytes); err != nil {
		return nil, err
	}
	return ask(true)
}

const warnPromptCut = "longer_than_prompt" // prompts will cut a document off

func (m *treeMethods) save(ctx context.Context, c call[tree.Save]) (savedResult, error) {
	saved, err := m.tree.Save(ctx, c.params)
	outcome := "saved"
	if saved.Unchanged {
		outcome = "unchanged"
	}
	m.metrics.save(outcome, err)
	warnings := []warning{}
	if n, most := tree.Chars(saved.Doc.Content), m.settings.Load().promptChars; most > 0 && n > most {
		warnings = append(warnings, warning{warnPromptCut, fmt.Sprintf("the text has %s characters, and a prompt takes %s: the end will be cut off",
			text.Thousands(n), text.Thousands(most))})
	}
	return savedResult{saved, warnings}, err
}

// resolve knows threads of the tree only; [Documents] takes others as unplaced.
func (m *treeMethods) resolve(ctx context.Context, c call[threadParams]) (effectiveResult, error) {
	found, err := m.tree.Resolve(ctx, c.params.ThreadRef)
	if err == nil && !found.Known {
		err = rpc.Errorf(rpc.CodeNotFound, "there is no thread %q in the workspace %q", c.params.ThreadID, c.params.WorkspaceID)
	}
	return effectiveResult{found.Effective}, err
}
