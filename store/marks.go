package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

// indexing is what makes the records of a batch findable: their terms, and the words of their texts that are not
// indexed yet.
type indexing struct {
	marks map[mark][]int64
	texts []textWords
}

type textWords struct {
	id    int64
	words any
}

// addRecord adds a record's terms and returns the hashes of the texts that it may have kept.
func (x *indexing) addRecord(id int64, m *manifest.Manifest) []string {
	for _, t := range m.Terms() {
		k := markOf(t)
		x.marks[k] = append(x.marks[k], id)
	}
	return textHashes(m)
}

// textHashes are the hashes of what a record may have kept: sections, arguments of calls, and reminders.
func textHashes(m *manifest.Manifest) (hashes []string) {
	for i := range m.Sections {
		hashes = append(hashes, m.Sections[i].Hash)
	}
	for i := range m.Calls {
		hashes = append(hashes, m.Calls[i].Came, m.Calls[i].Went)
	}
	for i := range m.Reminders {
		hashes = append(hashes, m.Reminders[i].Hash)
	}
	return hashes
}

// addTexts adds the kept texts with these hashes that are not indexed yet.
func (x *indexing) addTexts(ctx context.Context, tx *sql.Tx, p *phrases, hashes []string) error {
	query := "SELECT id, text FROM texts t WHERE hash = $1 AND NOT EXISTS (" + p.hasWords + ")"
	for _, hash := range hashes {
		found, err := sqldb.List(ctx, tx, query, []any{hash}, func(rows *sql.Rows, w *textWords) error {
			var text string
			err := rows.Scan(&w.id, &text)
			w.words = p.words(text)
			return err
		})
		if err != nil {
			return err
		}
		x.texts = append(x.texts, found...)
	}
	return nil
}

// put writes it as a segment of its own. Only one transaction does so at a time.
func (x *indexing) put(ctx context.Context, tx *sql.Tx, p *phrases, batch []settling) error {
	if err := x.putTexts(ctx, tx, p); err != nil {
		return err
	}
	var size int64
	for _, ids := range x.marks {
		size += int64(10 + 3*len(ids)) // about
	}
	g := segment{Bits: slotBits(size), Records: int64(len(batch)), Bytes: size, First: batch[0].ID, Last: batch[len(batch)-1].ID}
	if err := g.create(ctx, tx); err != nil {
		return err
	}
	w := slotWriter{segment: &g}
	for _, k := range slices.Sorted(maps.Keys(x.marks)) {
		if err := w.add(ctx, tx, k, x.marks[k]); err != nil {
			return err
		}
	}
	return w.flush(ctx, tx)
}

// putTexts indexes those of the texts that are still there and that nobody has indexed meanwhile.
func (x *indexing) putTexts(ctx context.Context, tx *sql.Tx, p *phrases) error {
	for _, t := range x.texts {
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
	if err == nil && s.phrase.noteRemoval != "" {
		_, err = tx.ExecContext(ctx, s.phrase.noteRemoval)
	}
	return err
}
