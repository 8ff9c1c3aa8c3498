package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

// mark is a term as it is indexed: nobody can choose a term that has another one's mark.
type mark int64

func markOf(t manifest.Term) mark {
	sum := sha256.Sum256([]byte(string(t.Kind) + "\x00" + t.Value))
	return mark(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // all bits count
}

// index makes records findable by their terms, and their texts by their words. A record that cannot be read is left to
// the verifier.
func (s *Store) index(ctx context.Context, tx *sql.Tx, batch []settling) error {
	marks := map[mark][]int64{}
	var fingerprints []string
	for i := range batch {
		m, err := manifest.Parse(batch[i].Record)
		if err != nil {
			continue
		}
		for _, t := range m.Terms() {
			k := markOf(t)
			marks[k] = append(marks[k], batch[i].ID)
		}
		for j := range m.Sections {
			fingerprints = append(fingerprints, m.Sections[j].Fingerprint)
		}
	}
	if err := putMarks(ctx, tx, batch[0].ID, batch[len(batch)-1].ID, marks); err != nil {
		return err
	}
	slices.Sort(fingerprints)
	return s.indexTexts(ctx, tx, slices.Compact(fingerprints))
}

func putMarks(ctx context.Context, tx *sql.Tx, first, last int64, marks map[mark][]int64) error {
	put, err := tx.PrepareContext(ctx, "INSERT INTO marks (term, first_id, count, ids) VALUES ($1, $2, $3, $4)")
	if err != nil {
		return err
	}
	defer put.Close() //nolint:errcheck // with the transaction
	terms := make([]byte, 0, 8*len(marks))
	for _, k := range slices.Sorted(maps.Keys(marks)) {
		terms = binary.BigEndian.AppendUint64(terms, uint64(k)) //nolint:gosec // all bits count
		var ids []byte
		before := first
		for _, id := range marks[k] {
			ids = binary.AppendUvarint(ids, uint64(id-before)) //nolint:gosec // ids ascend
			before = id
		}
		if _, err := put.ExecContext(ctx, int64(k), first, len(marks[k]), ids); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO mark_batches (first_id, last_id, terms) VALUES ($1, $2, $3)", first, last, terms)
	return err
}

// idsOf are the ids of a row of marks, ascending.
func idsOf(first int64, ids []byte) []int64 {
	var list []int64
	for len(ids) > 0 {
		n, size := binary.Uvarint(ids)
		if size <= 0 {
			break
		}
		first, ids = first+int64(n), ids[size:] //nolint:gosec // see putMarks
		list = append(list, first)
	}
	return list
}

// pruneMarks removes the marks of batches of which no record is left.
func (s *Store) pruneMarks(ctx context.Context, p *pace) error {
	const find = `SELECT first_id, terms FROM mark_batches b WHERE first_id > $1 AND NOT EXISTS
		(SELECT 1 FROM manifests m WHERE m.id BETWEEN b.first_id AND b.last_id) ORDER BY first_id LIMIT 1`
	last := int64(-1)
	var terms []byte
	next := func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, find, last).Scan(&last, &terms)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	}
	_, err := s.steps(ctx, "retention of the index", p, func(ctx context.Context, tx *sql.Tx, most int) (n int, err error) {
		if len(terms) == 0 {
			if err := next(tx); err != nil || len(terms) == 0 {
				return 0, err
			}
		}
		for ; n < most && len(terms) >= 8; n, terms = n+1, terms[8:] {
			if _, err := tx.ExecContext(ctx, "DELETE FROM marks WHERE term = $1 AND first_id = $2", int64(binary.BigEndian.Uint64(terms)), last); err != nil { //nolint:gosec // all bits count
				return n, err
			}
		}
		if len(terms) < 8 {
			terms = nil
			_, err = tx.ExecContext(ctx, "DELETE FROM mark_batches WHERE first_id = $1", last)
		}
		return n, err
	})
	return err
}

// indexTexts indexes the kept texts with these fingerprints that are not indexed yet.
func (s *Store) indexTexts(ctx context.Context, tx *sql.Tx, fingerprints []string) error {
	query := "SELECT id, text FROM texts t WHERE fingerprint = $1 AND NOT EXISTS (" + s.phrase.hasWords + ")"
	type row struct {
		id   int64
		text string
	}
	for _, f := range fingerprints {
		found, err := sqldb.List(ctx, tx, query, []any{f}, func(rows *sql.Rows, r *row) error { return rows.Scan(&r.id, &r.text) })
		if err != nil {
			return err
		}
		for _, r := range found {
			if _, err := tx.ExecContext(ctx, s.phrase.putWords, r.id, s.phrase.words(r.text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget removes texts that are about to go from what makes them findable.
func (s *Store) forget(ctx context.Context, tx *sql.Tx, ids []any) error {
	type row struct {
		id   int64
		text string
	}
	gone, err := sqldb.List(ctx, tx, "SELECT id, text FROM texts WHERE id IN ("+places(len(ids))+")", ids,
		func(rows *sql.Rows, r *row) error { return rows.Scan(&r.id, &r.text) })
	for _, r := range gone {
		if err == nil {
			args := []any{r.id}
			if s.db.Kind() == sqldb.SQLite { // its index has no copy of the words
				args = append(args, s.phrase.words(r.text))
			}
			_, err = tx.ExecContext(ctx, s.phrase.removeWords, args...)
		}
	}
	return err
}
