package treetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/tree"
)

// codeOf is the code of an error, "" for none of ours.
func codeOf(err error) tree.Code {
	if e, ok := errors.AsType[*tree.Error](err); ok {
		return e.Code
	}
	return ""
}

// brokenError is a promise that was not kept. It is no unanswered call.
type brokenError struct{ text string }

// Error implements error.
func (e *brokenError) Error() string { return e.text }

// broken makes a brokenError.
func broken(format string, args ...any) error { return &brokenError{fmt.Sprintf(format, args...)} }

// isBroken reports whether an error says that the system did something wrong.
func isBroken(err error) bool {
	_, ok := errors.AsType[*brokenError](err)
	return ok
}

// readTree reads a workspace's whole tree, page after page, with the documents in
// the order of their ids.
func readTree(ctx context.Context, s tree.Store, workspace string) (tree.Page, error) {
	var all tree.Page
	q := tree.Query{Scope: tree.Scope{WorkspaceID: workspace}}
	for {
		page, err := s.Tree(ctx, q)
		if err != nil {
			return tree.Page{}, err
		}
		all.Folders = append(all.Folders, page.Folders...)
		all.Threads = append(all.Threads, page.Threads...)
		all.AgentsDocs = append(all.AgentsDocs, page.AgentsDocs...)
		if page.NextCursor == nil {
			break
		}
		if *page.NextCursor == q.Cursor {
			return tree.Page{}, broken("the page after %q is the same again", q.Cursor)
		}
		q.Cursor = *page.NextCursor
	}
	slices.SortFunc(all.AgentsDocs, func(a, b tree.Summary) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// conflictOf is the conflict of an error, nil for none.
func conflictOf(err error) *tree.Conflict {
	if e, ok := errors.AsType[*tree.Error](err); ok && e.Code == tree.CodeConflict {
		return e.Conflict
	}
	return nil
}

// wellFormed checks a whole tree: every parent is there, no folder is below itself
// or too deep, nothing is there twice, and a scope has one document.
func wellFormed(page tree.Page) error {
	parents := map[tree.FolderID]tree.FolderID{}
	for n, f := range page.Folders {
		if n > 0 && page.Folders[n-1].ID >= f.ID {
			return broken("folder %q comes after %q", f.ID, page.Folders[n-1].ID)
		}
		parents[tree.FolderID(f.ID)] = f.ParentID
	}
	there := func(place tree.FolderID) bool {
		_, ok := parents[place]
		return ok || place == ""
	}
	for id := range parents {
		depth := 0
		for at := id; at != ""; at = parents[at] {
			if depth++; !there(at) || depth > tree.MaxDepth {
				return broken("folder %q is below %q, which is not there, in a cycle, or too deep", id, at)
			}
		}
	}
	for n, t := range page.Threads {
		if n > 0 && page.Threads[n-1].ID >= t.ID || !there(t.FolderID) {
			return broken("thread %q in %q: twice, or there is no such folder", t.ID, t.FolderID)
		}
	}
	docs := map[tree.FolderID]bool{}
	for _, d := range page.AgentsDocs {
		if docs[d.FolderID] || !there(d.FolderID) || d.Status == tree.Archived {
			return broken("document %q (%s) of %q: not the only live one, or there is no such folder", d.ID, d.Status, d.FolderID)
		}
		docs[d.FolderID] = true
	}
	return nil
}
