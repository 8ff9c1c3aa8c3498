package itemstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"

	"github.com/grapnelhq/grapnel/plugins/memory/recall"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// txn is a transaction.
type txn struct {
	*sql.Tx

	phrase *phrases
	// prepared are statements of its connections, by their texts.
	prepared map[string]*sql.Stmt
}

// maxCollisions is how often a transaction is run again that collided with others.
const maxCollisions = 10

// change runs do in a transaction that changes something. Do may run again, from its
// beginning, and by another goroutine.
//
// Transactions of PostgreSQL wait for each other in one order, which keeps them from
// waiting in a circle: for the index, for a batch's name, for scopes that are made,
// for scopes by their numbers. Rows come last, and nobody waits for those who hold them.
func (s *Store) change(ctx context.Context, doing string, do func(ctx context.Context, tx txn) error) error {
	return s.transact(ctx, doing, txn.share, do)
}

// changeAlone is change for what touches scopes that are not known before.
func (s *Store) changeAlone(ctx context.Context, doing string, do func(ctx context.Context, tx txn) error) error {
	return s.transact(ctx, doing, txn.own, do)
}

// wait waits for what has these numbers, in a class of locks.
type wait func(tx txn, ctx context.Context, class int, numbers ...int64) error

func (s *Store) transact(ctx context.Context, doing string, index wait, do func(ctx context.Context, tx txn) error) error {
	in := func(ctx context.Context, tx *sql.Tx) error {
		t := txn{tx, &s.phrase, s.writing}
		if err := t.steady(ctx); err != nil {
			return err
		}
		if err := index(t, ctx, lockClassStore, lockIndex); err != nil {
			return err
		}
		if err := t.checkVersion(ctx); err != nil {
			return err
		}
		return do(ctx, t)
	}
	err := s.db.Join(ctx, doing, in)
	for n := 0; n < maxCollisions && s.db.Collided(err); n++ {
		err = s.db.Join(ctx, doing, in)
	}
	return err
}

// read runs do on one state of the database.
func (s *Store) read(ctx context.Context, doing string, do func(tx txn) error) error {
	return s.db.Snapshot(ctx, doing, func(tx *sql.Tx) error { return do(txn{tx, &s.phrase, s.reading}) })
}

// steady keeps PostgreSQL from planning by what it takes the tables to be like.
func (tx txn) steady(ctx context.Context) error {
	if tx.phrase.plan == "" {
		return nil
	}
	_, err := tx.exec(ctx, tx.phrase.plan)
	return err
}

// checkVersion refuses an index that another program has made anew by other rules.
func (tx txn) checkVersion(ctx context.Context) error {
	version, err := tx.meta(ctx, metaVersion)
	if err != nil {
		return err
	}
	if version != strconv.Itoa(recall.Version) {
		return sqldb.Failf(sqldb.CodeSchema, "use one version of Grapnel for all who share the memory, and start again",
			"the index was made by the rules %q meanwhile, this program has %d", version, recall.Version)
	}
	return nil
}

// share waits until nobody owns what has these numbers, and keeps it so.
func (tx txn) share(ctx context.Context, class int, numbers ...int64) error {
	return tx.lock(ctx, tx.phrase.share, class, numbers)
}

// own waits until nobody shares or owns what has these numbers, and keeps it so.
func (tx txn) own(ctx context.Context, class int, numbers ...int64) error {
	return tx.lock(ctx, tx.phrase.own, class, numbers)
}

func (tx txn) lock(ctx context.Context, text string, class int, numbers []int64) error {
	if text == "" || len(numbers) == 0 {
		return nil
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(numbers)))
	_, err := tx.exec(ctx, text, class, sorted)
	return err
}

// exec runs a statement and returns how many rows it was about.
func (tx txn) exec(ctx context.Context, text string, args ...any) (int64, error) {
	var result sql.Result
	var err error
	if stmt := tx.prepared[text]; stmt != nil {
		result, err = tx.StmtContext(ctx, stmt).ExecContext(ctx, args...) //nolint:sqlclosecheck // closed with the transaction
	} else {
		result, err = tx.ExecContext(ctx, text, args...)
	}
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// one scans the only row of a query. Where there is none it leaves into as it is.
func (tx txn) one(ctx context.Context, text string, args, into []any) error {
	var row *sql.Row
	if stmt := tx.prepared[text]; stmt != nil {
		row = tx.StmtContext(ctx, stmt).QueryRowContext(ctx, args...) //nolint:sqlclosecheck // closed with the transaction
	} else {
		row = tx.QueryRowContext(ctx, text, args...)
	}
	if err := row.Scan(into...); !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return nil
}

// each calls do for each row of a query.
func (tx txn) each(ctx context.Context, text string, args []any, do func(rows *sql.Rows) error) error {
	stmt := tx.prepared[text]
	if stmt == nil {
		return sqldb.Each(ctx, tx.Tx, text, args, do)
	}
	rows, err := tx.StmtContext(ctx, stmt).QueryContext(ctx, args...) //nolint:sqlclosecheck // closed with the transaction
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err tells what matters
	for rows.Next() {
		if err := do(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// column returns the only column of all rows of a query.
func column[T any](ctx context.Context, tx txn, text string, args ...any) ([]T, error) {
	var all []T
	err := tx.each(ctx, text, args, func(rows *sql.Rows) error {
		var v T
		if err := rows.Scan(&v); err != nil {
			return err
		}
		all = append(all, v)
		return nil
	})
	return all, err
}

// prepare returns prepared statements by their texts, also those before one that
// failed.
func prepare(ctx context.Context, db *sql.DB, texts ...string) (map[string]*sql.Stmt, error) {
	all := map[string]*sql.Stmt{}
	for _, text := range texts {
		stmt, err := db.PrepareContext(ctx, text) //nolint:sqlclosecheck // by Close
		if err != nil {
			return all, err
		}
		all[text] = stmt
	}
	return all, nil
}
