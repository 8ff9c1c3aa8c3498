package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

var errIndexDamaged = sqldb.Failf(CodeDamaged, "grapnel manifest prune makes it again", "the index of the log is damaged")

// textWords are the words of a text that is not indexed yet.
type textWords struct {
	id    int64
	words any
}

// termsOf are a record's terms, as they are indexed.
func termsOf(m *manifest.Manifest) []string {
	var list []string
	for _, t := range m.Terms() {
		list = append(list, indexedTerm(t))
	}
	return list
}

// textHashes are the hashes of what a record may have kept: sections, inputs and facts of calls, and reminders.
func textHashes(m *manifest.Manifest) (hashes []string) {
	for i := range m.Sections {
		hashes = append(hashes, m.Sections[i].Hash)
	}
	for i := range m.Calls {
		hashes = append(hashes, m.Calls[i].Came, m.Calls[i].Went)
		hashes = append(hashes, m.Calls[i].TextHashes()...)
		if m.Calls[i].FactsHash != "" {
			hashes = append(hashes, m.Calls[i].FactsHash)
		}
	}
	hashes = append(hashes, m.RequestTexts()...)
	for i := range m.Reminders {
		hashes = append(hashes, m.Reminders[i].Hash)
	}
	return hashes
}

// unindexedTexts returns the kept texts with some hashes that are not indexed yet.
func unindexedTexts(ctx context.Context, tx *sql.Tx, p *phrases, hashes []string) (all []textWords, err error) {
	query := "SELECT id, text FROM texts t WHERE hash = $1 AND NOT EXISTS (" + p.hasWords + ")"
	for _, hash := range hashes {
		found, err := sqldb.List(ctx, tx, query, []any{hash}, func(rows *sql.Rows, w *textWords) error {
			var text string
			err := rows.Scan(&w.id, &text)
			w.words = p.list(wordsOf(text))
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// index indexes the records and texts of a batch. Only one transaction does so at a time.
func (b *batch) index(ctx context.Context, tx *sql.Tx, p *phrases) error {
	const put = "INSERT INTO indexed_records (id, created_at, chain_id) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING"
	for i := range b.records {
		r := &b.records[i]
		if _, err := tx.ExecContext(ctx, put, r.ID, r.Created, r.Chain); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, p.putTerms, r.ID, p.list(r.terms)); err != nil {
			return err
		}
	}
	if err := b.indexTimes(ctx, tx); err != nil {
		return err
	}
	return b.indexTexts(ctx, tx, p)
}

// indexTimes notes between which ids and times the records of the batch are.
func (b *batch) indexTimes(ctx context.Context, tx *sql.Tx) error {
	const put = "INSERT INTO indexed_batches (first_id, last_id, first_at, last_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING"
	byTime := func(x, y settling) int { return cmp.Compare(x.Created, y.Created) }
	first, last := slices.MinFunc(b.records, byTime), slices.MaxFunc(b.records, byTime)
	_, err := tx.ExecContext(ctx, put, b.records[0].ID, b.records[len(b.records)-1].ID, first.Created, last.Created)
	return err
}

// indexTexts indexes those of the texts that are still there and that nobody has indexed meanwhile.
func (b *batch) indexTexts(ctx context.Context, tx *sql.Tx, p *phrases) error {
	for _, t := range b.texts {
		var lacking bool
		query := "SELECT EXISTS (SELECT 1 FROM texts t WHERE id = $1 AND NOT EXISTS (" + p.hasWords + "))"
		if err := tx.QueryRowContext(ctx, query, t.id).Scan(&lacking); err != nil {
			return err
		}
		if !lacking {
			continue
		}
		if _, err := tx.ExecContext(ctx, p.putWords, t.id, t.words); err != nil {
			return err
		}
	}
	return nil
}

// forgetRecords takes records that are gone out of the index. They need not be indexed yet.
func (s *Store) forgetRecords(ctx context.Context, tx *sql.Tx, ids []any) error {
	some := "(" + places(len(ids)) + ")"
	// Who indexes them does the first of it, too, and so has finished or finds nothing.
	for _, remove := range []string{"DELETE FROM pending WHERE id IN ", "DELETE FROM indexed_records WHERE id IN ", s.phrase.removeTerms} {
		if _, err := tx.ExecContext(ctx, remove+some, ids...); err != nil {
			return err
		}
	}
	return nil
}

// pruneIndex gives back the space of what was taken out of the index.
func (s *Store) pruneIndex(ctx context.Context) error {
	const doing, behind = "retention of the index", "DELETE FROM indexed_batches WHERE last_id < (SELECT coalesce(min(id), 0) FROM indexed_records)"
	err := s.db.Change(ctx, doing, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, behind)
		return err
	})
	if err != nil {
		return err
	}
	return s.mergeIndex(ctx, doing, s.phrase.mergeTerms)
}

// forgetTexts removes texts that are about to go from what makes them findable.
func (s *Store) forgetTexts(ctx context.Context, tx *sql.Tx, ids []any) error {
	_, err := tx.ExecContext(ctx, s.phrase.removeWords+"("+places(len(ids))+")", ids...)
	if err == nil && s.phrase.noteRemoval != "" {
		_, err = tx.ExecContext(ctx, s.phrase.noteRemoval)
	}
	return err
}
