package store

import (
	"database/sql"
	"hash/maphash"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/sqldb/schema"
	"github.com/grapnelhq/grapnel/manifest"
)

// aside checks what no hash covers: tables that are derived from others.
func (r *verification) aside() error {
	checks := []func(*verification) error{(*verification).pages, (*verification).texts, (*verification).words}
	for _, check := range checks {
		if err := check(r); err != nil {
			return err
		}
	}
	return nil
}

// schema compares the database's schema with the one that the program creates: a trigger or a view could hide records. It
// reports whether the database has all that belongs to it.
func (r *verification) schema() (complete bool, err error) {
	query, want, err := schema.Objects(r.store.db.Kind())
	if err != nil {
		return false, err
	}
	have, err := sqldb.List(r.ctx, r.tx, query, nil, func(rows *sql.Rows, object *string) error { return rows.Scan(object) })
	if err != nil {
		return false, err
	}
	complete = true
	tables := map[string]bool{"": true}
	for _, object := range want {
		table, what, _ := strings.Cut(object, "\t")
		if tables[table] = true; !slices.Contains(have, object) {
			complete = false
			r.reportf(manifest.BadDatabase, "", "the table %s lacks this, or has it in another form: %.120s", table, what)
		}
	}
	for _, object := range have {
		if table, what, _ := strings.Cut(object, "\t"); tables[table] && !slices.Contains(want, object) {
			r.reportf(manifest.BadDatabase, "", "the schema has an object that Grapnel did not make: %.120s", what)
		}
	}
	return complete, nil
}

// pages has SQLite compare its indexes with their tables.
func (r *verification) pages() error {
	if r.store.db.Kind() != sqldb.SQLite {
		return nil
	}
	return sqldb.Each(r.ctx, r.tx, "PRAGMA integrity_check(10)", nil, func(rows *sql.Rows) error {
		var finding string
		err := rows.Scan(&finding)
		if err == nil && finding != "ok" {
			r.reportf(manifest.BadDatabase, "", "SQLite says: %s", finding)
		}
		return err
	})
}

// texts checks all kept texts, also those that no record names: `find` reads them.
func (r *verification) texts() error {
	before := ""
	return sqldb.Each(r.ctx, r.tx, "SELECT hash, sha256, text FROM texts ORDER BY hash", nil, func(rows *sql.Rows) error {
		var hash, sum string
		var text sql.RawBytes
		if err := rows.Scan(&hash, &sum, &text); err != nil {
			return err
		}
		if hash == before || sum != digest.SHA256(text) || !fits(hash, string(text), r.opts.FingerprintKey) {
			r.reportf(manifest.BadFingerprint, "", "a text is kept under the hash %.80q that does not have it", hash)
		}
		before = hash
		return nil
	})
}

// words compares the index of words with the texts: by the sums of the hashes of all pairs of a text and a word.
func (r *verification) words() error {
	type pair struct {
		text int64
		word string
	}
	seed := maphash.MakeSeed()
	var want, got uint64
	query := `SELECT t.id, text, EXISTS (` + r.store.phrase.hasWords + `), EXISTS (SELECT 1 FROM text_uses u WHERE u.text_id = t.id
		AND u.first_id < coalesce((SELECT min(id) FROM pending), 9223372036854775807)) FROM texts t`
	err := sqldb.Each(r.ctx, r.tx, query, nil, func(rows *sql.Rows) error {
		var p pair
		var text string
		var indexed, settled bool
		if err := rows.Scan(&p.text, &text, &indexed, &settled); err != nil || !indexed && !settled {
			return err
		}
		if !indexed {
			want++
		}
		seen := map[string]bool{}
		for _, p.word = range wordsOf(text) {
			if p.word = folded(p.word); !seen[p.word] {
				seen[p.word] = true
				want += maphash.Comparable(seed, p)
			}
		}
		return nil
	})
	if open := r.store.phrase.openWords; err == nil && open != "" {
		_, err = r.tx.ExecContext(r.ctx, open)
	}
	if err != nil {
		return err
	}
	err = sqldb.Each(r.ctx, r.tx, r.store.phrase.listWords, nil, func(rows *sql.Rows) error {
		var p pair
		err := rows.Scan(&p.text, &p.word)
		p.word = folded(p.word)
		got += maphash.Comparable(seed, p)
		return err
	})
	if err == nil && got != want {
		r.reportf(manifest.BadDatabase, "", "the index of words does not match the kept texts")
	}
	return err
}

// folded makes words that differ in case alone one word: FTS5 folds more than Go's lower case does, such as a final sigma.
func folded(word string) string {
	if strings.IndexFunc(word, func(c rune) bool { return c >= utf8.RuneSelf }) < 0 {
		return word
	}
	return strings.ToLower(strings.Map(func(c rune) rune {
		least := c
		for other := unicode.SimpleFold(c); other != c; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, word))
}
