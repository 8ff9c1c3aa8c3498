package treetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/tree"
)

// brokenError is a broken promise: an answer, though a wrong one.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

func broken(format string, args ...any) error { return &brokenError{fmt.Sprintf(format, args...)} }

func isBroken(err error) bool {
	_, ok := errors.AsType[*brokenError](err)
	return ok
}

func answered(err error) bool {
	if err == nil || isBroken(err) {
		return true
	}
	e, ok := errors.AsType[*tree.Error](err)
	return ok && e.Code != tree.CodeUnavailable
}

type refusal struct {
	Code     tree.Code
	Conflict *tree.Conflict
	Canceled bool
}

func refusalOf(err error) refusal {
	r := refusal{Canceled: errors.Is(err, context.Canceled)}
	if e, ok := errors.AsType[*tree.Error](err); ok {
		r.Code, r.Conflict = e.Code, e.Conflict
	}
	return r
}

// outcome is an answer in the trace of the last calls.
func outcome(answer any, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%.200s", fmt.Sprintf("%+v", answer))
}

// diffAnswers compares values, or the codes and conflicts of errors.
func diffAnswers(want any, wantErr error, got any, gotErr error) string {
	times := gocmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) && a.Location() == b.Location() })
	if wantErr != nil || gotErr != nil {
		return gocmp.Diff(refusalOf(wantErr), refusalOf(gotErr), times)
	}
	return gocmp.Diff(sortedDocs(want), sortedDocs(got), times)
}

func sortedDocs(answer any) any {
	if page, ok := answer.(tree.Page); ok {
		page.AgentsDocs = slices.SortedFunc(slices.Values(page.AgentsDocs), func(a, b tree.Summary) int { return cmp.Compare(a.ID, b.ID) })
		return page
	}
	return answer
}

type survey struct {
	Workspaces []tree.Workspace
	Trees      map[string]tree.Page
	Views      map[tree.Scope]tree.View
	Archived   map[string][]tree.ArchivedDoc
	Revisions  map[string][]tree.Revision
}

func readAll(ctx context.Context, s tree.Store) (survey, error) {
	all := survey{
		Trees: map[string]tree.Page{}, Views: map[tree.Scope]tree.View{},
		Archived: map[string][]tree.ArchivedDoc{}, Revisions: map[string][]tree.Revision{},
	}
	var err error
	if all.Workspaces, err = s.Workspaces(ctx); err != nil {
		return all, err
	}
	for _, w := range all.Workspaces {
		if err := all.read(ctx, s, w.ID); err != nil {
			return all, fmt.Errorf("workspace %q: %w", w.ID, err)
		}
	}
	return all, nil
}

func (a *survey) read(ctx context.Context, s tree.Store, w string) error {
	page, err := s.Tree(ctx, tree.Query{Scope: tree.Scope{WorkspaceID: w}})
	if err != nil {
		return err
	}
	page, _ = sortedDocs(page).(tree.Page)
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
	a.Archived[w], err = s.ArchivedDocs(ctx, tree.ArchivedQuery{Scope: scopes[0], All: true, Limit: tree.MaxLimit, IncludeContent: true})
	if err != nil {
		return err
	}
	docs := slices.Clone(page.AgentsDocs)
	for _, d := range a.Archived[w] {
		docs = append(docs, d.Summary)
	}
	for _, d := range docs {
		q := tree.RevisionQuery{Scope: scopes[0], DocID: d.ID, Limit: tree.MaxLimit, IncludeContent: true}
		if a.Revisions[d.ID], err = s.Revisions(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// wellFormed checks a whole tree: parents exist, no cycles, depths, no duplicates, one document
// per scope.
func wellFormed(page tree.Page) error {
	parents := map[tree.FolderID]tree.FolderID{"": ""}
	for n, f := range page.Folders {
		if n > 0 && page.Folders[n-1].ID >= f.ID {
			return broken("folder %q comes after %q", f.ID, page.Folders[n-1].ID)
		}
		parents[tree.FolderID(f.ID)] = f.ParentID
	}
	exists := func(place tree.FolderID) bool { _, ok := parents[place]; return ok }
	for id := range parents {
		depth := 0
		for at := id; at != ""; at = parents[at] {
			if depth++; !exists(at) || depth > tree.MaxDepth {
				return broken("folder %q is below %q, which does not exist, is in a cycle, or is too deep", id, at)
			}
		}
	}
	for n, t := range page.Threads {
		if n > 0 && page.Threads[n-1].ID >= t.ID || !exists(t.FolderID) {
			return broken("thread %q in %q: a duplicate, or there is no such folder", t.ID, t.FolderID)
		}
	}
	docs := map[tree.FolderID]bool{}
	for _, d := range page.AgentsDocs {
		if docs[d.FolderID] || !exists(d.FolderID) || d.Status == tree.Archived {
			return broken("document %q (%s) of %q: not the only live one, or there is no such folder", d.ID, d.Status, d.FolderID)
		}
		docs[d.FolderID] = true
	}
	return nil
}

type logReader struct {
	after tree.Seq // where it will go on
	list  []tree.Change
}

func (l *logReader) read(ctx context.Context, s tree.Store, limit int) error {
	for more := true; more; {
		got, err := s.Changes(ctx, l.after, limit)
		if err != nil {
			return fmt.Errorf("changes behind %d: %w", l.after, err)
		}
		n := len(got.List)
		if got.Gap || got.Next < l.after || n > 0 && got.Next != got.List[n-1].Seq || n > limit && got.List[0].Seq != got.Next {
			return broken("changes behind %d with limit %d: %d, gap %t, next %d", l.after, limit, n, got.Gap, got.Next)
		}
		last := l.after
		for i, c := range got.List {
			if c.Seq < last || i == 0 && c.Seq == last {
				return broken("changes behind %d up to %d: number %d is out of order", l.after, got.Next, c.Seq)
			}
			last = c.Seq
			l.list = append(l.list, c)
		}
		l.after, more = got.Next, got.More
	}
	return nil
}

// transactions groups the changes by transaction, without numbers, in an order that does not
// depend on the store.
func (l *logReader) transactions() [][]tree.Change {
	var all [][]tree.Change
	last := tree.Seq(math.MinInt64)
	for _, c := range l.list {
		if c.Seq != last {
			all = append(all, nil)
		}
		last, c.Seq = c.Seq, 0
		all[len(all)-1] = append(all[len(all)-1], c)
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b tree.Change) int { return cmp.Compare(itemOf(a), itemOf(b)) })
	}
	return all
}

func itemOf(c tree.Change) string {
	switch {
	case c.Folder != nil:
		return "folder " + c.Folder.ID
	case c.Thread != nil:
		return "thread " + c.Thread.ID
	case c.Doc != nil:
		return "doc " + c.Doc.ID
	default:
		return "workspace"
	}
}

func (m *model) knowsDoc(id string) bool {
	for sp := range maps.Values(m.spaces) {
		if sp.docs[id] != nil {
			return true
		}
	}
	return false
}
