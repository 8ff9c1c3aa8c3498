package treetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/tree"
)

// answered reports whether a call was answered: with success, refused, or wrongly.
func answered(err error) bool {
	if err == nil || isBroken(err) {
		return true
	}
	e, ok := errors.AsType[*tree.Error](err)
	return ok && e.Code != tree.CodeUnavailable
}

// outcome is an answer in a few words.
func outcome(answer any, err error) string {
	switch {
	case err == nil:
	case !answered(err):
		return fmt.Sprintf("not answered: %v", err)
	default:
		return string(codeOf(err))
	}
	switch a := answer.(type) {
	case tree.Saved:
		return fmt.Sprintf("version %d of %s, unchanged: %t", a.Doc.Version, a.Doc.ID, a.Unchanged)
	case tree.Doc:
		return fmt.Sprintf("version %d of %s", a.Version, a.ID)
	case tree.ArchivedNow:
		return fmt.Sprintf("archived: %t", a.Archived)
	default:
		return "ok"
	}
}

// diffAnswers compares answers of two stores: the values but for times, and of
// errors the code and the conflict.
func diffAnswers(want any, wantErr error, got any, gotErr error) string {
	type refusal struct {
		Code     tree.Code
		Conflict *tree.Conflict
	}
	if wantErr != nil || gotErr != nil {
		a, b := refusal{codeOf(wantErr), conflictOf(wantErr)}, refusal{codeOf(gotErr), conflictOf(gotErr)}
		return cmp.Diff(a, b, anyTime())
	}
	return cmp.Diff(sortedDocs(want), sortedDocs(got), anyTime())
}

// anyTime takes all times for equal.
func anyTime() cmp.Option { return cmp.Comparer(func(_, _ time.Time) bool { return true }) }

// sortedDocs is an answer with the documents of a page in an order.
func sortedDocs(answer any) any {
	page, ok := answer.(tree.Page)
	if ok {
		page.AgentsDocs = slices.SortedFunc(slices.Values(page.AgentsDocs), func(a, b tree.Summary) int { return compareIDs(a.ID, b.ID) })
		return page
	}
	return answer
}

// survey is all that can be read of the workspaces of a run.
type survey struct {
	Workspaces []tree.Workspace
	Trees      map[string]tree.Page
	Views      map[tree.Scope]tree.View
	Archived   map[string][]tree.ArchivedDoc
	Revisions  map[string][]tree.Revision
}

// workspacesOf are the workspaces whose ids have a prefix.
func workspacesOf(ctx context.Context, s tree.Store, prefix string) ([]tree.Workspace, error) {
	list, err := s.Workspaces(ctx)
	return slices.DeleteFunc(list, func(w tree.Workspace) bool { return !strings.HasPrefix(w.ID, prefix) }), err
}

// readAll reads all of the workspaces whose ids have a prefix.
func readAll(ctx context.Context, s tree.Store, prefix string) (survey, error) {
	all := survey{
		Trees: map[string]tree.Page{}, Views: map[tree.Scope]tree.View{},
		Archived: map[string][]tree.ArchivedDoc{}, Revisions: map[string][]tree.Revision{},
	}
	var err error
	if all.Workspaces, err = workspacesOf(ctx, s, prefix); err != nil {
		return all, err
	}
	for _, w := range all.Workspaces {
		if err := all.read(ctx, s, w.ID); err != nil {
			return all, fmt.Errorf("workspace %q: %w", w.ID, err)
		}
	}
	return all, nil
}

// read reads one workspace.
func (a *survey) read(ctx context.Context, s tree.Store, w string) error {
	page, err := readTree(ctx, s, w)
	if err != nil {
		return err
	}
	if err := wellFormed(page); err != nil {
		return err
	}
	a.Trees[w] = page
	scopes := []tree.Scope{{WorkspaceID: w}}
	for _, f := range page.Folders {
		scopes = append(scopes, tree.Scope{WorkspaceID: w, FolderID: tree.FolderID(f.ID)})
	}
	for _, scope := range scopes {
		if a.Views[scope], err = s.Doc(ctx, scope); err != nil {
			return err
		}
	}
	a.Archived[w], err = s.ArchivedDocs(ctx, tree.ArchivedQuery{
		Scope: tree.Scope{WorkspaceID: w}, All: true, Limit: tree.MaxLimit, IncludeContent: true,
	})
	if err != nil {
		return err
	}
	docs := slices.Clone(page.AgentsDocs)
	for _, d := range a.Archived[w] {
		docs = append(docs, d.Summary)
	}
	for _, d := range docs {
		if a.Revisions[d.ID], err = revisionsOf(ctx, s, w, d.ID); err != nil {
			return err
		}
	}
	return nil
}

// revisionsOf are all revisions of a document, newest first.
func revisionsOf(ctx context.Context, s tree.Store, w, doc string) ([]tree.Revision, error) {
	var all []tree.Revision
	q := tree.RevisionQuery{Scope: tree.Scope{WorkspaceID: w}, DocID: doc, Limit: tree.MaxLimit, IncludeContent: true}
	for {
		list, err := s.Revisions(ctx, q)
		all = append(all, list...)
		if err != nil || len(list) < tree.MaxLimit {
			return all, err
		}
		q.BeforeVersion = list[len(list)-1].Version
	}
}

// clone copies the model, so that both can go on apart.
func (m *Model) clone() *Model {
	m.mu.Lock()
	defer m.mu.Unlock()

	c := NewModel(m.now)
	c.log, c.seq, c.thinned = slices.Clone(m.log), m.seq, m.thinned
	for id, sp := range m.spaces {
		n := &space{
			Workspace: sp.Workspace, deleted: sp.deleted,
			folders: map[string]*folder{}, threads: map[string]*thread{}, docs: map[string]*document{},
		}
		for id, f := range sp.folders {
			n.folders[id] = &folder{f.Folder, f.deleted}
		}
		for id, t := range sp.threads {
			n.threads[id] = &thread{t.Thread, t.deleted}
		}
		for id, d := range sp.docs {
			doc := *d
			doc.revisions = slices.Clone(d.revisions)
			n.docs[id] = &doc
		}
		c.spaces[id] = n
	}
	return c
}

// knowsDoc reports whether there is or was a document of that id in any workspace.
// The caller holds the mutex, or has the model alone.
func (m *Model) knowsDoc(id string) bool {
	for _, sp := range m.spaces {
		if sp.docs[id] != nil {
			return true
		}
	}
	return false
}
