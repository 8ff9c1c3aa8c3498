package treestore

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/store/sqldb"
	"github.com/grapnelhq/grapnel/tree"
)

// generationBits is where the generation of the log begins in its numbers; below is
// the number of a transaction.
const generationBits = 48

// The state of the log: its floor, its generation, the origin that is noted and the
// one that the database has now; then the first number that may still be in the
// making, and whether there are changes from there on.
//
// PostgreSQL's origin is the cluster, its timeline, the database and the table: what
// differs in a restored database.
const (
	stateSQLite = `SELECT l.floor, l.generation, l.origin, '', n.seq + 1, 0
		FROM tree_log l, sqlite_sequence n WHERE n.name = 'tree_changes'`
	statePostgres = `SELECT floor, generation, origin, ` + originPostgres + `, horizon,
		CASE WHEN EXISTS (SELECT 1 FROM tree_changes WHERE seq >= horizon) THEN 1 ELSE 0 END
		FROM tree_log, LATERAL (SELECT (generation << 48) | CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT) AS horizon) h`
	originPostgres = `concat_ws('/', (SELECT system_identifier FROM pg_control_system()), (SELECT timeline_id FROM pg_control_checkpoint()),
		(SELECT oid FROM pg_database WHERE datname = current_database()), CAST(CAST('tree_changes' AS regclass) AS oid))`
)

// logState is the state of the log.
type logState struct {
	floor       tree.Seq
	generation  int64
	noted, real string
	// horizon is the first number that may still be in the making.
	horizon tree.Seq
	// waiting is not 0 where there are changes behind the horizon.
	waiting int
}

// restored says that the log came with a copy of another database.
func (l *logState) restored() bool { return l.noted != l.real }

func (s *Store) logState(ctx context.Context, tx txn) (l logState, err error) {
	query := stateSQLite
	if s.db.Kind() == sqldb.Postgres {
		query = statePostgres
	}
	_, err = tx.one(ctx, query, nil, []any{&l.floor, &l.generation, &l.noted, &l.real, &l.horizon, &l.waiting})
	return l, err
}

// adopt begins the log anew where it came with a copy of another database, and
// notes where it is of. It keeps everybody from writing into the log meanwhile, and
// waits for those that do: who writes later sees the new generation.
func (s *Store) adopt(ctx context.Context) error {
	return s.quietly(ctx, "adopting the log of changes", func(ctx context.Context, tx txn) error {
		if _, err := tx.exec(ctx, "LOCK TABLE tree_changes IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return err
		}
		l, err := s.logState(ctx, tx)
		if err != nil || !l.restored() {
			return err
		}
		if l.noted != "" { // a new database's has no changes yet
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

// adoptRestored adopts the log if that has to be done.
func (s *Store) adoptRestored(ctx context.Context) error {
	var l logState
	err := s.read(ctx, "reading the log of changes", func(tx txn) (err error) {
		l, err = s.logState(ctx, tx)
		return err
	})
	if err != nil || !l.restored() {
		return err
	}
	return s.adopt(ctx)
}

// How long Changes waits for transactions that are older than changes which are
// there, and how often it looks.
const (
	horizonWait = 2 * time.Second
	horizonStep = 2 * time.Millisecond
)

// Changes implements [tree.Store]. Where only changes are new that are younger than
// a transaction that still runs, of whatever database of the server, it waits for
// that a moment.
func (s *Store) Changes(ctx context.Context, after tree.Seq, limit int) (tree.Changes, error) {
	if limit < 1 {
		limit = tree.DefaultChanges
	}
	bounded, cancel := context.WithTimeout(ctx, horizonWait)
	defer cancel()
	for step := horizonStep; ; step *= 2 {
		got, waiting, err := s.changes(ctx, after, limit)
		if err != nil || got.Gap || !waiting {
			return got, err
		}
		if len(got.List) > 0 {
			got.More = true // the caller comes back for what is not ready yet
			return got, nil
		}
		timer := time.NewTimer(step)
		select {
		case <-bounded.Done():
			timer.Stop()
			return got, outcome(s.db.Fail(ctx, "reading changes", ctx.Err()))
		case <-timer.C:
		}
	}
}

// errRestored says that the log has to be adopted.
var errRestored = errors.New("the log of changes came with a copy of another database")

// changes is Changes without waiting. It reports whether there is something to wait
// for.
func (s *Store) changes(ctx context.Context, after tree.Seq, limit int) (got tree.Changes, waiting bool, err error) {
	err = s.read(ctx, "reading changes", func(tx txn) error {
		l, err := s.logState(ctx, tx)
		switch {
		case err != nil:
			return err
		case l.restored():
			return errRestored
		case after < l.floor || after >= l.horizon: // what was told is always before the horizon
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

// behind returns what is between a place and the horizon.
func (s *Store) behind(ctx context.Context, tx txn, after, horizon tree.Seq, limit int) (tree.Changes, error) {
	got := tree.Changes{Next: after}
	query := "SELECT " + logColumns + " FROM tree_changes WHERE seq > $1 AND seq < $2" + s.phrase.inLog + " LIMIT $3"
	scan := func(rows *sql.Rows, c *tree.Change) (err error) {
		*c, err = scanChange(rows)
		return err
	}
	if err := each(ctx, tx, query, []any{int64(after), int64(horizon), limit + 1}, &got.List, scan); err != nil {
		return got, err
	}
	if n := len(got.List); n > limit {
		last := got.List[n-1].Seq
		got.More = true
		got.List = slices.DeleteFunc(got.List, func(c tree.Change) bool { return c.Seq == last })
		if len(got.List) == 0 { // one transaction is beyond the limit
			if err := each(ctx, tx, query, []any{int64(last - 1), int64(last + 1), math.MaxInt32}, &got.List, scan); err != nil {
				return got, err
			}
			var one int
			var err error
			if got.More, err = tx.one(ctx, "SELECT 1 FROM tree_changes WHERE seq > $1 AND seq < $2 LIMIT 1",
				[]any{int64(last), int64(horizon)}, []any{&one}); err != nil {
				return got, err
			}
		}
	}
	if n := len(got.List); n > 0 {
		got.Next = got.List[n-1].Seq
	}
	return got, nil
}

// Listen implements [tree.Store].
func (s *Store) Listen(ctx context.Context, wake func()) error {
	nudge := make(chan struct{}, 1)
	s.mu.Lock()
	s.nudges[nudge] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.nudges, nudge)
	}()
	return outcome(s.db.Watch(ctx, channel, nudge, wake))
}

// nudge lets those who listen look at once.
func (s *Store) nudge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.nudges {
		select {
		case c <- struct{}{}:
		default: // it will look anyway
		}
	}
}
