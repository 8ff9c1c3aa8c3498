package treestore

import (
	"context"
	"database/sql"
	"errors"
)

// txn is a transaction.
type txn struct {
	*sql.Tx

	// prepared are statements of its connections, by their texts.
	prepared map[string]*sql.Stmt
}

// maxCollisions is how often a transaction is run again that collided with others.
const maxCollisions = 10

// change runs do in a transaction, and tells those who listen. Do may run again.
func (s *Store) change(ctx context.Context, doing string, do func(ctx context.Context, tx txn) error) error {
	err := s.quietly(ctx, doing, do)
	if err == nil {
		s.nudge()
	}
	return err
}

// quietly is change for what nobody listens to.
func (s *Store) quietly(ctx context.Context, doing string, do func(ctx context.Context, tx txn) error) error {
	if err := ctx.Err(); err != nil {
		return s.db.Fail(ctx, doing, err)
	}
	in := func(ctx context.Context, tx *sql.Tx) error { return do(ctx, txn{tx, s.saving}) }
	err := s.db.Join(ctx, doing, in)
	for n := 0; n < maxCollisions && s.db.Collided(err); n++ {
		err = s.db.Join(ctx, doing, in)
	}
	return outcome(err)
}

// read runs do on one state of the database.
func (s *Store) read(ctx context.Context, doing string, do func(tx txn) error) error {
	return outcome(s.db.Snapshot(ctx, doing, func(tx *sql.Tx) error { return do(txn{tx, s.reading}) }))
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

// one scans the only row of a query. It reports false where there is none.
func (tx txn) one(ctx context.Context, text string, args, into []any) (bool, error) {
	var row *sql.Row
	if stmt := tx.prepared[text]; stmt != nil {
		row = tx.StmtContext(ctx, stmt).QueryRowContext(ctx, args...) //nolint:sqlclosecheck // closed with the transaction
	} else {
		row = tx.QueryRowContext(ctx, text, args...)
	}
	return found(row.Scan(into...))
}

// found tells no row from a failure.
func found(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// each appends what scan reads from each row of a query to a list.
func each[T any](ctx context.Context, tx txn, query string, args []any, list *[]T, scan func(rows *sql.Rows, item *T) error) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err tells what matters
	for rows.Next() {
		var item T
		if err := scan(rows, &item); err != nil {
			return err
		}
		*list = append(*list, item)
	}
	return rows.Err()
}
