package treestore

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tree"
)

type kind string

const (
	ofWorkspace kind = "workspace"
	ofFolder    kind = "folder"
	ofThread    kind = "thread"
	ofDoc       kind = "doc"
)

const logColumns = "seq, workspace_id, kind, action, actor, at, item_id, parent_id, name, status, content_sha256, version, chars"

type logEntry struct {
	workspace, actor string
	at               time.Time
	// seq is the transaction's number, if it must be known beforehand.
	seq any
}

func (s *Store) beginEntry(ctx context.Context, tx txn, workspace, actor string) (logEntry, error) {
	d := logEntry{workspace: workspace, actor: actor, at: s.now()}
	if s.phrase.nextSeq == "" {
		return d, nil
	}
	var seq int64
	_, err := tx.one(ctx, s.phrase.nextSeq, nil, []any{&seq})
	d.seq = seq
	return d, err
}

func (s *Store) seqOf(argument string) string { return s.phrase.seq[0] + argument + s.phrase.seq[1] }

func (s *Store) insertChange() string {
	return "INSERT INTO tree_changes (" + logColumns + ") VALUES (" + s.seqOf("$1") +
		", $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)" + s.phrase.notify
}

func (s *Store) logItem(ctx context.Context, tx txn, workspace, actor string, k kind, action tree.Action, id string, parent tree.FolderID, name string) error {
	d, err := s.beginEntry(ctx, tx, workspace, actor)
	if err != nil {
		return err
	}
	_, err = tx.exec(ctx, s.insertChange(), d.seq, workspace, string(k), string(action), actor, d.at.UnixNano(), id, nullable(parent), name, nil, nil, nil, nil)
	return err
}

func (s *Store) logDoc(ctx context.Context, tx txn, d logEntry, action tree.Action, doc *tree.Doc) error {
	_, err := tx.exec(ctx, s.insertChange(), d.seq, d.workspace, string(ofDoc), string(action), d.actor, d.at.UnixNano(),
		doc.ID, nullable(doc.FolderID), nil, string(doc.Status), doc.ContentSHA256, doc.Version, tree.Chars(doc.Content))
	return err
}

// scanChange reads a row of the log. Rows of an unknown kind are a newer program's and come without content.
func scanChange(rows *sql.Rows, c *tree.Change) error {
	var k, id, name string
	d := tree.Summary{}
	err := rows.Scan(&c.Seq, &c.WorkspaceID, &k, &c.Action, &c.Actor, sqldb.Nanos{To: &c.At}, &id, sqldb.OrZero(&d.FolderID), sqldb.OrZero(&name),
		sqldb.OrZero(&d.Status), sqldb.OrZero(&d.ContentSHA256), sqldb.OrZero(&d.Version), sqldb.OrZero(&d.Chars))
	switch kind(k) {
	case ofWorkspace:
		c.Workspace = &tree.Workspace{ID: id, Name: name}
	case ofFolder:
		c.Folder = &tree.Folder{ID: id, ParentID: d.FolderID, Name: name}
	case ofThread:
		c.Thread = &tree.Thread{ID: id, FolderID: d.FolderID, Title: name}
	case ofDoc:
		d.ID, d.UpdatedAt = id, c.At
		c.Doc = &d
	}
	return err
}

// generationBits is where a change's number begins with the generation of the log; below is the
// number of the transaction.
const generationBits = 48

// The queries for a [logState]. PostgreSQL's origin is the cluster, its timeline, the database
// and the table: what differs in a restored database.
const (
	stateSQLite = `SELECT l.floor, l.generation, l.origin, '', n.seq + 1, 0
		FROM tree_log l, sqlite_sequence n WHERE n.name = 'tree_changes'`
	statePostgres = `SELECT floor, generation, origin, ` + originPostgres + `, horizon,
		CASE WHEN EXISTS (SELECT 1 FROM tree_changes WHERE seq >= horizon) THEN 1 ELSE 0 END
		FROM tree_log, LATERAL (SELECT (generation << 48) | CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT) AS horizon) h`
	originPostgres = `concat_ws('/', (SELECT system_identifier FROM pg_control_system()), (SELECT timeline_id FROM pg_control_checkpoint()),
		(SELECT oid FROM pg_database WHERE datname = current_database()), CAST(CAST('tree_changes' AS regclass) AS oid))`
)

type logState struct {
	floor       tree.Seq
	generation  int64
	noted, real string
	horizon     tree.Seq // the first number that may still be in progress
	waiting     int      // 0 if no changes are behind the horizon
}

// restored reports whether the log was copied from another database.
func (l *logState) restored() bool { return l.noted != l.real }

func (s *Store) logState(ctx context.Context, tx txn) (l logState, err error) {
	query := stateSQLite
	if s.db.Kind() == sqldb.Postgres {
		query = statePostgres
	}
	_, err = tx.one(ctx, query, nil, []any{&l.floor, &l.generation, &l.noted, &l.real, &l.horizon, &l.waiting})
	return l, err
}

// adopt begins a log again that was copied from another database, and records its origin. It
// locks out writers, so that later ones see the new generation.
func (s *Store) adopt(ctx context.Context) error {
	var l logState
	err := s.read(ctx, "reading the log of changes", nil, func(tx txn) (err error) {
		l, err = s.logState(ctx, tx)
		return err
	})
	if err != nil || !l.restored() {
		return err
	}
	return s.quietly(ctx, "adopting the log of changes", func(ctx context.Context, tx txn) error {
		if _, err := tx.exec(ctx, "LOCK TABLE tree_changes IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return err
		}
		l, err := s.logState(ctx, tx)
		if err != nil || !l.restored() {
			return err
		}
		if l.noted != "" { // a new database's log is empty
			l.generation++
			l.floor = tree.Seq(l.generation << generationBits)
			if _, err := tx.exec(ctx, "DELETE FROM tree_changes"); err != nil {
				return err
			}
		}
		_, err = tx.exec(ctx, "UPDATE tree_log SET origin = $1, generation = $2, floor = $3", l.real, l.generation, int64(l.floor))
		return err
	})
}

const defaultChanges = 1_000

// How long Changes waits for older transactions, and how soon it looks again at first.
const (
	horizonWait = 2 * time.Second
	horizonStep = 2 * time.Millisecond
)

// Changes implements [tree.Store]. If the only new changes are younger than a running
// transaction (of any database of the server), it waits for that a moment.
func (s *Store) Changes(ctx context.Context, after tree.Seq, limit int) (tree.Changes, error) {
	if limit < 1 {
		limit = defaultChanges
	}
	bounded, cancel := context.WithTimeout(ctx, horizonWait)
	defer cancel()
	for step := horizonStep; ; step *= 2 {
		got, waiting, err := s.changes(ctx, after, limit)
		if err != nil || got.Gap || !waiting {
			return got, err
		}
		if len(got.List) > 0 {
			got.More = true // the caller asks again for what is not ready
			return got, nil
		}
		select {
		case <-bounded.Done():
			return got, outcome(s.db.Fail(ctx, "reading changes", ctx.Err()))
		case <-time.After(step):
		}
	}
}

var errRestored = errors.New("the log of changes came with a copy of another database")

// changes is Changes without waiting. It reports whether waiting may help.
func (s *Store) changes(ctx context.Context, after tree.Seq, limit int) (got tree.Changes, waiting bool, err error) {
	err = s.read(ctx, "reading changes", nil, func(tx txn) error {
		l, err := s.logState(ctx, tx)
		switch {
		case err != nil:
			return err
		case l.restored():
			return errRestored
		case after < l.floor || after >= l.horizon: // returned places are before the horizon
			got = tree.Changes{Gap: true, Next: l.horizon - 1}
			return nil
		}
		waiting = l.waiting != 0
		got, err = s.behind(ctx, tx, after, l.horizon, limit)
		return err
	})
	if !errors.Is(err, errRestored) {
		return got, waiting, err
	}
	if err := s.adopt(ctx); err != nil {
		return got, false, err
	}
	return s.changes(ctx, after, limit)
}

func (s *Store) behind(ctx context.Context, tx txn, after, horizon tree.Seq, limit int) (tree.Changes, error) {
	got := tree.Changes{Next: after}
	query := "SELECT " + logColumns + " FROM tree_changes WHERE seq > $1 AND seq < $2" + s.phrase.inLog + " LIMIT $3"
	var err error
	if got.List, err = sqldb.List(ctx, tx.Tx, query, []any{int64(after), int64(horizon), limit + 1}, scanChange); err != nil {
		return got, err
	}
	if n := len(got.List); n > limit {
		last := got.List[n-1].Seq
		got.More = true
		got.List = slices.DeleteFunc(got.List, func(c tree.Change) bool { return c.Seq == last })
		if len(got.List) == 0 { // one transaction exceeds the limit
			if got.List, err = sqldb.List(ctx, tx.Tx, query, []any{int64(last - 1), int64(last + 1), math.MaxInt32}, scanChange); err != nil {
				return got, err
			}
			var one int
			got.More, err = tx.one(ctx, "SELECT 1 FROM tree_changes WHERE seq > $1 AND seq < $2 LIMIT 1", []any{int64(last), int64(horizon)}, []any{&one})
		}
	}
	if n := len(got.List); n > 0 {
		got.Next = got.List[n-1].Seq
	}
	return got, err
}

// Listen implements [tree.Store].
func (s *Store) Listen(ctx context.Context, wake func()) error {
	listener := make(chan struct{}, 1)
	s.mu.Lock()
	s.listeners[listener] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, listener)
	}()
	return outcome(s.db.Watch(ctx, channel, listener, wake))
}

const thinBatch = 1_000

// Thin implements [tree.Store]. Batches are transactions: after an error, earlier ones are kept.
func (s *Store) Thin(ctx context.Context, now time.Time) (int, error) {
	taken := 0
	err := s.db.Pieces(ctx, func() (more bool, err error) {
		n, err := s.thinRevisions(ctx, now.Add(-tree.ThinAge))
		taken += n
		return n > 0, err
	})
	if err == nil {
		err = s.db.Pieces(ctx, func() (bool, error) { return s.thinChanges(ctx, now.Add(-tree.ChangesAge)) })
	}
	return taken, outcome(err)
}

// thinRevisions removes autosaves before a time that a later one of the same document and step follows. The newest of
// a document always stays, so they can be found before anything is locked.
func (s *Store) thinRevisions(ctx context.Context, before time.Time) (n int, err error) {
	type revision struct {
		doc     string
		version int64
		chars   int
	}
	step := strconv.FormatInt(int64(tree.ThinStep), 10)
	query := `SELECT r.doc_id, r.version, r.chars FROM thread_agents_doc_revision r
		WHERE r.save_reason = 'autosave' AND r.saved_at < $1 AND EXISTS (
			SELECT 1 FROM thread_agents_doc_revision n WHERE n.doc_id = r.doc_id AND n.version > r.version
				AND n.save_reason = 'autosave' AND n.saved_at < $1 AND n.saved_at / ` + step + ` = r.saved_at / ` + step + `)
		LIMIT $2`
	found, err := sqldb.ReadList(ctx, s.db, "thinning revisions", query, []any{before.UnixNano(), thinBatch}, func(rows *sql.Rows, r *revision) error {
		return rows.Scan(&r.doc, &r.version, &r.chars)
	})
	if err != nil || len(found) == 0 {
		return 0, err
	}
	err = s.db.Pieces(ctx, func() (more bool, err error) {
		fit := 0
		for left := deletePiece; fit < len(found) && left > 0; fit++ {
			left -= 1 + found[fit].chars/charsPerRow
		}
		err = s.quietly(ctx, "thinning revisions", func(ctx context.Context, tx txn) error {
			const remove = "DELETE FROM thread_agents_doc_revision WHERE doc_id = $1 AND version = $2"
			for _, r := range found[:fit] {
				if _, err := tx.exec(ctx, remove, r.doc, r.version); err != nil {
					return err
				}
			}
			return nil
		})
		n, found = n+fit, found[fit:]
		return len(found) > 0, err
	})
	return n, err
}

// thinChanges removes a batch of changes before a time from the beginning of the log and notes
// the new floor. It reports whether there may be more.
func (s *Store) thinChanges(ctx context.Context, before time.Time) (more bool, err error) {
	type row struct{ seq, id, at int64 }
	err = s.quietly(ctx, "thinning the log of changes", func(ctx context.Context, tx txn) error {
		query := "SELECT seq, id, at FROM tree_changes WHERE seq > $1" + s.phrase.inLog + " LIMIT $2"
		rows, err := sqldb.List(ctx, tx.Tx, query, []any{0, thinBatch}, func(rows *sql.Rows, r *row) error { return rows.Scan(&r.seq, &r.id, &r.at) })
		if err != nil {
			return err
		}
		var seq, id int64
		more = len(rows) == thinBatch
		for _, r := range rows {
			if r.at >= before.UnixNano() {
				more = false
				break
			}
			seq, id = r.seq, max(id, r.id)
		}
		if id == 0 {
			return nil
		}
		if _, err := tx.exec(ctx, "DELETE FROM tree_changes WHERE seq <= $1 AND id <= $2", seq, id); err != nil {
			return err
		}
		_, err = tx.exec(ctx, "UPDATE tree_log SET floor = $1 WHERE floor < $1", seq)
		return err
	})
	return more, err
}
