package treestore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"

	"github.com/grapnelhq/grapnel/tree"
)

// summaryColumns are what scanSummary reads.
const summaryColumns = "id, folder_id, status, content_sha256, version, chars, updated_at"

func scanSummary(rows *sql.Rows, d *tree.Summary, more ...any) error {
	var folder sql.NullString
	var updated int64
	into := []any{&d.ID, &folder, &d.Status, &d.ContentSHA256, &d.Version, &d.Chars, &updated}
	err := rows.Scan(append(into, more...)...)
	d.FolderID, d.UpdatedAt = tree.FolderID(folder.String), fromNanos(updated)
	return err
}

// pager reads one page. Folders come first, in the order of their ids, then
// threads. A cursor is "f" or "t", and the id of the last folder or thread.
type pager struct {
	query tree.Query
	// phase is what the cursor was of, after the id behind which the page begins.
	phase byte
	after string
	page  tree.Page
}

// Tree implements [tree.Store].
func (s *Store) Tree(ctx context.Context, q tree.Query) (tree.Page, error) {
	if err := q.Check(); err != nil {
		return tree.Page{}, err
	}
	g := pager{query: q, phase: 'f', page: tree.Page{Folders: []tree.Folder{}, Threads: []tree.Thread{}, AgentsDocs: []tree.Summary{}}}
	if q.Cursor != "" {
		g.phase, g.after = q.Cursor[0], q.Cursor[1:]
		if g.phase != 'f' && g.phase != 't' || tree.CheckID("cursor", g.after) != nil {
			return tree.Page{}, tree.Errorf(tree.CodeInvalid, "cursor: %q is of no page", q.Cursor)
		}
	}
	err := s.read(ctx, "reading the tree", func(tx txn) error {
		if err := s.hold(ctx, tx, q.Scope, ""); err != nil {
			return err
		}
		if err := s.checkHeight(ctx, tx, q); err != nil {
			return err
		}
		return g.read(ctx, tx)
	})
	return g.page, err
}

// checkHeight refuses to walk down a damaged tree. What takes the whole workspace
// needs no walk.
func (s *Store) checkHeight(ctx context.Context, tx txn, q tree.Query) error {
	if q.FolderID == "" && q.Depth == 0 {
		return nil
	}
	_, _, err := s.height(ctx, tx, q.Scope, math.MaxInt32)
	return err
}

func (g *pager) read(ctx context.Context, tx txn) error {
	if g.query.Cursor == "" {
		query, args := live(g.query.Scope, summaryColumns)
		if err := each(ctx, tx, query, args, &g.page.AgentsDocs, func(rows *sql.Rows, d *tree.Summary) error { return scanSummary(rows, d) }); err != nil {
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

// within are the words for the rows of a page: what stands before the query, a
// condition for the folders that column names, and the arguments of both. Of
// containing folders the deepest are left out: what is in them is too deep.
func (g *pager) within(column string, containing bool) (with, condition string, args []any) {
	q := g.query
	if q.FolderID == "" && q.Depth == 0 {
		return "", "workspace_id = $1", []any{q.WorkspaceID}
	}
	with, args = below(q.Scope)
	depth := tree.DamagedDepth
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

// ordered ends a query of rows in the order of their ids behind the cursor: one more
// than there is room for says that there is another page.
func (g *pager) ordered(args []any) (string, []any) {
	room := tree.MaxPage - len(g.page.Folders) + 1
	n := len(args)
	return fmt.Sprintf(" AND deleted_at IS NULL AND id > $%d ORDER BY id LIMIT $%d", n+1, n+2), append(args, g.after, room)
}

// folders reads the page's folders and their documents.
func (g *pager) folders(ctx context.Context, tx txn) error {
	with, within, args := g.within("id", false)
	tail, args := g.ordered(args)
	err := each(ctx, tx, with+"SELECT id, parent_id, name FROM tree_folders WHERE "+within+tail, args, &g.page.Folders,
		func(rows *sql.Rows, f *tree.Folder) error {
			var parent sql.NullString
			err := rows.Scan(&f.ID, &parent, &f.Name)
			f.ParentID = tree.FolderID(parent.String)
			return err
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

// docs reads the live documents of the page's folders: they lie between the first
// and the last of them.
func (g *pager) docs(ctx context.Context, tx txn) error {
	with, within, args := g.within("folder_id", false)
	n := len(args)
	query := with + "SELECT " + summaryColumns + " FROM thread_agents_doc WHERE " + within + fmt.Sprintf(
		" AND folder_id IS NOT NULL AND status <> 'archived' AND folder_id >= $%d AND folder_id <= $%d ORDER BY folder_id", n+1, n+2)
	args = append(args, g.page.Folders[0].ID, g.page.Folders[len(g.page.Folders)-1].ID)
	return each(ctx, tx, query, args, &g.page.AgentsDocs, func(rows *sql.Rows, d *tree.Summary) error { return scanSummary(rows, d) })
}

// threads fills the page up with threads.
func (g *pager) threads(ctx context.Context, tx txn) error {
	with, within, args := g.within("folder_id", true)
	tail, args := g.ordered(args)
	err := each(ctx, tx, with+"SELECT id, folder_id, title FROM tree_threads WHERE "+within+tail, args, &g.page.Threads,
		func(rows *sql.Rows, t *tree.Thread) error {
			var folder sql.NullString
			err := rows.Scan(&t.ID, &folder, &t.Title)
			t.FolderID = tree.FolderID(folder.String)
			return err
		})
	room := tree.MaxPage - len(g.page.Folders)
	if err == nil && len(g.page.Threads) > room {
		g.page.Threads = g.page.Threads[:room]
		if room > 0 {
			g.next('t', g.page.Threads[room-1].ID)
		} else {
			g.next('f', g.page.Folders[len(g.page.Folders)-1].ID)
		}
	}
	return err
}
