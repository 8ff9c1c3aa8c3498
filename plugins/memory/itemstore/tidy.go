package itemstore

import (
	"context"
	"time"

	"github.com/grapnelhq/grapnel/store/sqldb"
)

// tidy takes what was forgotten out of the files of the database.
//
// SQLite overwrites what it deletes, but where it has divided pages of an index there
// are older copies beside what is read: so the file is written anew, and then the log,
// which has everything, is emptied. Before that the full-text index is merged, since
// it finds its pages by beginnings of terms, those of deleted ones too.
func (s *Store) tidy(ctx context.Context) error {
	const doing = "tidying up"
	meta, err := s.readMeta(ctx)
	switch {
	case err != nil:
	case s.phrase.postgres:
		err = s.tidyPostgres(ctx)
	default:
		err = s.tidySQLite(ctx)
	}
	if err != nil {
		return s.db.Fail(ctx, doing, err)
	}
	return s.change(ctx, doing, func(ctx context.Context, tx txn) error {
		_, err := tx.exec(ctx, "DELETE FROM memory_meta WHERE name = $1 AND value = $2", metaUntidy, meta[metaUntidy])
		return err
	})
}

func (s *Store) tidySQLite(ctx context.Context) error {
	for _, text := range []string{"INSERT INTO memory_index (memory_index) VALUES ('optimize')", "VACUUM"} {
		err := s.patiently(ctx, func() error {
			_, err := s.db.Writer().ExecContext(ctx, text)
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.patiently(ctx, func() error {
		var busy, pages, copied int
		err := s.db.Writer().QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &copied)
		if err == nil && busy != 0 {
			err = sqldb.Failf(sqldb.CodeLocked, "it is tried again with the next forgetting, and when the memory is opened",
				"somebody reads, so that SQLite's log could not be emptied")
		}
		return err
	})
}

// tidyPostgres frees the rows. The statistics come first: they have words that no
// item has any more.
func (s *Store) tidyPostgres(ctx context.Context) error {
	err := s.change(ctx, "adding up statistics", func(ctx context.Context, tx txn) error {
		if err := tx.own(ctx, lockClassStore, lockFold); err != nil {
			return err
		}
		return tx.fold(ctx)
	})
	if err != nil {
		return err
	}
	_, err = s.db.Writer().ExecContext(ctx, "VACUUM (SKIP_LOCKED) memory_items, memory_index, memory_counts, memory_deltas")
	return err
}

// patiently calls do again while others have the database locked, for as long as
// changes wait.
func (s *Store) patiently(ctx context.Context, do func() error) error {
	const pause = 10 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, s.db.LockTimeout())
	defer cancel()
	for {
		err := s.db.Fail(ctx, "tidying up", do())
		if !sqldb.HasCode(err, sqldb.CodeLocked) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// foldEvery is after how many transactions PostgreSQL's statistics are added up. It
// bounds how many rows a reader adds up for a term.
const foldEvery = 64

// foldWhereDue adds PostgreSQL's statistics up when it is time. What fails now is done
// by a later one.
func (s *Store) foldWhereDue(ctx context.Context, x *indexer) {
	if x != nil && x.unfolded >= foldEvery {
		_ = s.fold(ctx)
	}
}

// fold adds PostgreSQL's statistics up, unless somebody is at it.
func (s *Store) fold(ctx context.Context) error {
	return s.change(ctx, "adding up statistics", func(ctx context.Context, tx txn) error {
		var mine bool
		err := tx.one(ctx, "SELECT pg_try_advisory_xact_lock($1, $2)", []any{lockClassStore, lockFold}, []any{&mine})
		if err != nil || !mine {
			return err
		}
		return tx.fold(ctx)
	})
}

// foldDeltas adds up, and takes out what comes to nothing. It looks at no other rows.
const foldDeltas = `WITH gone AS (DELETE FROM memory_deltas RETURNING shelf, name, n),
	sums AS (SELECT shelf, name, sum(n) AS n FROM gone WHERE shelf <> 0 GROUP BY shelf, name ORDER BY shelf, name),
	totals AS MATERIALIZED (SELECT shelf, name, n + coalesce((SELECT c.n FROM memory_counts c WHERE c.shelf = s.shelf AND c.name = s.name), 0) AS n FROM sums s),
	nothing AS (DELETE FROM memory_counts c USING totals t WHERE c.shelf = t.shelf AND c.name = t.name AND t.n = 0)
	INSERT INTO memory_counts (shelf, name, n) SELECT shelf, name, n FROM totals WHERE n <> 0
	ON CONFLICT (shelf, name) DO UPDATE SET n = excluded.n`

// fold adds PostgreSQL's statistics up. One does it at a time.
func (tx txn) fold(ctx context.Context) error {
	_, err := tx.exec(ctx, foldDeltas)
	return err
}
