package treestore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tree"
)

const summaryColumns = "id, folder_id, status, content_sha256, version, chars, updated_at"

func summaryInto(d *tree.Summary, more ...any) []any {
	return append([]any{&d.ID, sqldb.OrZero(&d.FolderID), &d.Status, &d.ContentSHA256, &d.Version, &d.Chars, sqldb.Nanos{To: &d.UpdatedAt}}, more...)
}

func scanSummary(rows *sql.Rows, d *tree.Summary) error { return rows.Scan(summaryInto(d)...) }

// pager reads one page: folders in the order of their ids, then threads. A cursor is "f" or "t"
// and the id of the last one.
type pager struct {
	query tree.Query
	phase byte
	after string
	page  tree.Page
}

// Tree implements [tree.Store].
func (s *Store) Tree(ctx context.Context, q tree.Query) (tree.Page, error) {
	if err := tree.Check(q); err != nil {
		return tree.Page{}, err
	}
	g := pager{query: q, phase: 'f', page: tree.Page{Folders: []tree.Folder{}, Threads: []tree.Thread{}, AgentsDocs: []tree.Summary{}}}
	if q.Cursor != "" {
		g.phase, g.after = q.Cursor[0], q.Cursor[1:]
		if g.phase != 'f' && g.phase != 't' || tree.CheckID("cursor", g.after) != nil {
			return tree.Page{}, tree.Errorf(tree.CodeInvalid, "cursor: %q is not a cursor of this tree", q.Cursor)
		}
	}
	err := s.read(ctx, "reading the tree", nil, func(tx txn) error {
		if err := s.hold(ctx, tx, q.Scope, ""); err != nil {
			return err
		}
		if q.FolderID != "" || q.Depth > 0 { // do not walk down a damaged tree
			if _, _, err := s.height(ctx, tx, q.Scope, math.MaxInt32); err != nil {
				return err
			}
		}
		return g.read(ctx, tx)
	})
	return g.page, err
}

func (g *pager) read(ctx context.Context, tx txn) error {
	if g.query.Cursor == "" {
		query, args := live(g.query.Scope, summaryColumns)
		var err error
		if g.page.AgentsDocs, err = sqldb.List(ctx, tx.Tx, query, args, scanSummary); err != nil {
			return err
		}
	}
	if g.phase == 'f' {
		if err := g.folders(ctx, tx); err != nil || g.page.NextCursor != nil {
			return err
		}
		g.after = ""
	}
	if g.query.Threads == tree.NoThreads {
		return nil
	}
	return g.threads(ctx, tx)
}

// within are the parts of a query for a page: what precedes it, a condition on the folders in column, and their
// arguments. With containing it omits the deepest folders, whose content is too deep.
func (g *pager) within(column string, containing bool) (with, condition string, args []any) {
	q := g.query
	if q.FolderID == "" && q.Depth == 0 {
		return "", "workspace_id = $1", []any{q.WorkspaceID}
	}
	with, args = below(q.Scope)
	depth := damagedDepth
	if q.Depth > 0 {
		depth = min(depth, q.Depth)
	}
	if !containing {
		return with, "workspace_id = $1 AND " + column + " IN (SELECT id FROM below WHERE depth <= " + strconv.Itoa(depth) + ")", args
	}
	self := column + " IS NULL"
	if q.FolderID != "" {
		self = column + " = $2"
	}
	return with, "workspace_id = $1 AND (" + self + " OR " + column + " IN (SELECT id FROM below WHERE depth < " + strconv.Itoa(depth) + "))", args
}

// ordered ends a query in the order of ids after the cursor, with one row more than the page takes.
func (g *pager) ordered(args []any) (string, []any) {
	n := len(args)
	return fmt.Sprintf(" AND deleted_at IS NULL AND id > $%d ORDER BY id LIMIT $%d", n+1, n+2), append(args, g.after, tree.MaxPage-len(g.page.Folders)+1)
}

func (g *pager) folders(ctx context.Context, tx txn) error {
	with, within, args := g.within("id", false)
	tail, args := g.ordered(args)
	var err error
	g.page.Folders, err = sqldb.List(ctx, tx.Tx, with+"SELECT id, parent_id, name FROM tree_folders WHERE "+within+tail, args,
		func(rows *sql.Rows, f *tree.Folder) error {
			return rows.Scan(&f.ID, sqldb.OrZero(&f.ParentID), &f.Name)
		})
	if err != nil || len(g.page.Folders) == 0 {
		return err
	}
	if len(g.page.Folders) > tree.MaxPage {
		g.page.Folders = g.page.Folders[:tree.MaxPage]
		g.next('f', g.page.Folders[tree.MaxPage-1].ID)
	}
	return g.docs(ctx, tx)
}

func (g *pager) next(phase byte, id string) {
	cursor := string(phase) + id
	g.page.NextCursor = &cursor
}

// docs reads the live documents of the page's folders, which lie between the first and the last of them.
func (g *pager) docs(ctx context.Context, tx txn) error {
	with, within, args := g.within("folder_id", false)
	n := len(args)
	query := with + "SELECT " + summaryColumns + " FROM thread_agents_doc WHERE " + within + fmt.Sprintf(
		" AND folder_id IS NOT NULL AND status <> 'archived' AND folder_id >= $%d AND folder_id <= $%d ORDER BY folder_id", n+1, n+2)
	args = append(args, g.page.Folders[0].ID, g.page.Folders[len(g.page.Folders)-1].ID)
	docs, err := sqldb.List(ctx, tx.Tx, query, args, scanSummary)
	g.page.AgentsDocs = append(g.page.AgentsDocs, docs...)
	return err
}

func (g *pager) threads(ctx context.Context, tx txn) error {
	with, within, args := g.within("folder_id", true)
	tail, args := g.ordered(args)
	var err error
	g.page.Threads, err = sqldb.List(ctx, tx.Tx, with+"SELECT id, folder_id, title FROM tree_threads WHERE "+within+tail, args,
		func(rows *sql.Rows, t *tree.Thread) error {
			return rows.Scan(&t.ID, sqldb.OrZero(&t.FolderID), &t.Title)
		})
	most := tree.MaxPage - len(g.page.Folders)
	if err == nil && len(g.page.Threads) > most {
		g.page.Threads = g.page.Threads[:most]
		if most > 0 {
			g.next('t', g.page.Threads[most-1].ID)
		} else {
			g.next('f', g.page.Folders[len(g.page.Folders)-1].ID)
		}
	}
	return err
}

func contentIf(wanted bool) string { return map[bool]string{true: "content", false: "NULL"}[wanted] }

// Revisions implements [tree.Store].
func (s *Store) Revisions(ctx context.Context, q tree.RevisionQuery) ([]tree.Revision, error) {
	var list []tree.Revision
	err := s.read(ctx, "reading revisions", q, func(tx txn) error {
		id, err := s.revised(ctx, tx, q)
		if err != nil {
			return err
		}
		query := "SELECT doc_id, version, content_sha256, chars, saved_at, saved_by, save_reason, " + contentIf(q.IncludeContent) +
			" FROM thread_agents_doc_revision WHERE doc_id = $1"
		args := []any{id, cmp.Or(q.Limit, tree.DefaultLimit)}
		if q.BeforeVersion > 0 {
			query += " AND version < $3"
			args = append(args, q.BeforeVersion)
		}
		list, err = sqldb.List(ctx, tx.Tx, query+" ORDER BY version DESC LIMIT $2", args, func(rows *sql.Rows, r *tree.Revision) error {
			return rows.Scan(&r.DocID, &r.Version, &r.ContentSHA256, &r.Chars, sqldb.Nanos{To: &r.SavedAt}, &r.SavedBy, &r.SaveReason, &r.Content)
		})
		return err
	})
	return list, err
}

// revised is the id of the document that a query is about. A named one may be in any scope, deleted ones included.
func (s *Store) revised(ctx context.Context, tx txn, q tree.RevisionQuery) (string, error) {
	query, args := "SELECT id FROM thread_agents_doc WHERE workspace_id = $1 AND id = $2", []any{q.WorkspaceID, q.DocID}
	place := tree.Scope{WorkspaceID: q.WorkspaceID}
	if q.DocID == "" {
		query, args = live(q.Scope, "d.id")
		place = q.Scope
	}
	if err := s.hold(ctx, tx, place, ""); err != nil {
		return "", err
	}
	var id string
	ok, err := tx.one(ctx, query, args, []any{&id})
	if err == nil && !ok {
		err = notFound("document", q.DocID)
	}
	return id, err
}

// ArchivedDocs implements [tree.Store]. The last change of an archived document archived it.
func (s *Store) ArchivedDocs(ctx context.Context, q tree.ArchivedQuery) ([]tree.ArchivedDoc, error) {
	place := q.Scope
	in, args := inScope("folder_id", q.Scope)
	if q.All {
		place.FolderID = ""
		in, args = "workspace_id = $1", []any{q.WorkspaceID}
	}
	query := "SELECT " + summaryColumns + ", archived_at, updated_by, " + contentIf(q.IncludeContent) + " FROM thread_agents_doc WHERE " + in +
		fmt.Sprintf(" AND status = 'archived' ORDER BY archived_seq DESC, id DESC LIMIT $%d", len(args)+1)
	args = append(args, cmp.Or(q.Limit, tree.DefaultLimit))
	var list []tree.ArchivedDoc
	err := s.read(ctx, "listing archived documents", q, func(tx txn) error {
		err := s.hold(ctx, tx, place, "")
		if err != nil {
			return err
		}
		list, err = sqldb.List(ctx, tx.Tx, query, args, func(rows *sql.Rows, d *tree.ArchivedDoc) error {
			return rows.Scan(summaryInto(&d.Summary, sqldb.Nanos{To: &d.ArchivedAt}, &d.ArchivedBy, &d.Content)...)
		})
		return err
	})
	return list, err
}
