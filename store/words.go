package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"strconv"
	"strings"
	"unicode"

	"github.com/grapnelhq/grapnel/manifest"
)

// indexPhrases are the statements about the words of kept texts, and the terms of records.
type indexPhrases struct {
	// hasWords is whether the text t is indexed, putWords indexes one, removeWords takes one out, and findWords finds the
	// newest that match a query; its first argument is a workspace, or empty.
	hasWords, putWords, removeWords, findWords string
	// listWords lists all words with their texts, after openWords.
	openWords, listWords string
	// noteRemoval notes that words were removed, and rewrite is how the index is then written again; empty where nothing of
	// what is removed is left in it.
	noteRemoval string
	rewrite     rewritePhrases
	// putTerms indexes a record, removeTerms takes it out if its id is among those that follow, and findTerms finds the ids
	// of those that match a query. mergeTerms gives back the space of some that were taken out; empty where that is not needed.
	putTerms, removeTerms, findTerms, mergeTerms string
	// emptyWords and emptyTerms take all out.
	emptyWords, emptyTerms string
	// list is a list of words or terms as putWords and putTerms take it.
	list func(words []string) any
	// quote, and, or and goesOn are what queries are made of; the last one stands behind the beginning of a word.
	quote, and, or, goesOn string
}

// usedIn takes only texts of one workspace, if one is given: another one's must not push them out.
const usedIn = ` AND ($1 = '' OR EXISTS (SELECT 1 FROM text_uses u JOIN chains c ON c.id = u.chain_id WHERE u.text_id = t.id AND c.workspace_id = $1))`

func indexInPostgres() indexPhrases {
	return indexPhrases{
		hasWords:    "SELECT 1 FROM text_words w WHERE w.text_id = t.id",
		putWords:    "INSERT INTO text_words (text_id, words) VALUES ($1, array_to_tsvector($2::text[]))",
		removeWords: "DELETE FROM text_words WHERE text_id IN ",
		findWords: `SELECT t.hash, t.text FROM text_words w JOIN texts t ON t.id = w.text_id
			WHERE w.words @@ $2::tsquery` + usedIn + ` ORDER BY w.text_id DESC`,
		listWords:   "SELECT text_id, unnest(tsvector_to_array(words)) FROM text_words",
		putTerms:    "INSERT INTO record_terms (id, terms) VALUES ($1, array_to_tsvector($2::text[])) ON CONFLICT (id) DO NOTHING",
		removeTerms: "DELETE FROM record_terms WHERE id IN ",
		findTerms:   "SELECT id FROM record_terms WHERE terms @@ $%d::tsquery OFFSET 0", // what is behind it must not choose the plan
		emptyWords:  "DELETE FROM text_words",
		emptyTerms:  "DELETE FROM record_terms",
		list:        func(words []string) any { return words },
		quote:       "'", and: " & ", or: " | ", goesOn: ":*",
	}
}

func indexInSQLite() indexPhrases {
	return indexPhrases{
		hasWords:    "SELECT 1 FROM text_words_docsize w WHERE w.id = t.id",
		putWords:    "INSERT INTO text_words (rowid, words) VALUES ($1, $2)",
		removeWords: "DELETE FROM text_words WHERE rowid IN ",
		// The word of text 0 is also a second segment, without which FTS5 has nothing to merge.
		noteRemoval: "INSERT INTO text_words (rowid, words) SELECT 0, '0' WHERE NOT EXISTS (SELECT 1 FROM text_words_docsize WHERE id = 0)",
		rewrite: rewritePhrases{
			needed: "SELECT EXISTS (SELECT 1 FROM text_words_docsize WHERE id = 0)",
			begin:  "INSERT INTO text_words (text_words, rank) VALUES ('merge', -16)",
			goOn:   "INSERT INTO text_words (text_words, rank) VALUES ('merge', 16)",
			end:    "DELETE FROM text_words WHERE rowid = 0",
		},
		findWords: `SELECT t.hash, t.text FROM text_words JOIN texts t ON t.id = text_words.rowid
			WHERE text_words MATCH $2` + usedIn + ` ORDER BY text_words.rowid DESC`,
		openWords:   "CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab('main', 'text_words', 'instance')",
		listWords:   "SELECT doc, term FROM temp.words WHERE doc > 0", // 0 notes a removal
		putTerms:    "INSERT OR REPLACE INTO record_terms (rowid, terms) VALUES ($1, $2)",
		removeTerms: "DELETE FROM record_terms WHERE rowid IN ",
		findTerms:   "SELECT rowid AS id FROM record_terms WHERE record_terms MATCH $%d",
		mergeTerms:  "INSERT INTO record_terms (record_terms, rank) VALUES ('merge', 16)",
		emptyWords:  "INSERT INTO text_words (text_words) VALUES ('delete-all')",
		emptyTerms:  "INSERT INTO record_terms (record_terms) VALUES ('delete-all')",
		list:        func(words []string) any { return strings.Join(words, " ") },
		quote:       `"`, and: " AND ", or: " OR ", goesOn: "*",
	}
}

// rewritePhrases write the index of words again, in pieces. FTS5 only notes what is removed until then; its secure-delete
// takes some milliseconds a text, and leaves words in the keys of pages.
type rewritePhrases struct{ needed, begin, goOn, end string }

// wipe sees to it that nothing of removed texts is left in the database's files.
func (s *Store) wipe(ctx context.Context) error {
	if err := s.rewriteWords(ctx); err != nil {
		return err
	}
	return s.db.Wipe(ctx, "texts", "conversation_entries", "conversation_summaries", "text_words_data", "text_words_idx")
}

const rewriting = "writing the index of words again"

// wordsLeft reports whether words were removed since the index was last written again.
func (s *Store) wordsLeft(ctx context.Context) (left bool, err error) {
	if s.phrase.rewrite.needed == "" {
		return false, nil
	}
	err = s.db.Snapshot(ctx, rewriting, func(tx *sql.Tx) error { return tx.QueryRowContext(ctx, s.phrase.rewrite.needed).Scan(&left) })
	return left, err
}

func (s *Store) rewriteWords(ctx context.Context) error {
	p := &s.phrase.rewrite
	if left, err := s.wordsLeft(ctx); err != nil || !left {
		return err
	}
	if _, err := s.changing(ctx, rewriting, p.begin); err != nil {
		return err
	}
	if err := s.mergeIndex(ctx, rewriting, p.goOn); err != nil {
		return err
	}
	_, err := s.changing(ctx, rewriting, p.end)
	return err
}

// mergeIndex runs a statement that merges a piece of an index of FTS5 until nothing is left to merge.
func (s *Store) mergeIndex(ctx context.Context, doing, statement string) error {
	if statement == "" {
		return nil
	}
	return s.db.Pieces(ctx, func() (more bool, err error) {
		changed, err := s.changing(ctx, doing, statement)
		return changed > 1, err // the statement counts as one
	})
}

// changing runs a statement, and returns how many rows it changed, those of an index of FTS5 among them.
func (s *Store) changing(ctx context.Context, doing, statement string) (changed int, err error) {
	err = s.db.Change(ctx, doing, func(ctx context.Context, tx *sql.Tx) error {
		var before int
		if err := tx.QueryRowContext(ctx, "SELECT total_changes()").Scan(&before); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, "SELECT total_changes() - $1", before).Scan(&changed)
	})
	return changed, err
}

// sentenceQuery asks for texts that may hold a sentence. The words at its ends may be parts of words: the last one chooses
// by its beginning, the first one not at all unless it is the only one.
func (p *indexPhrases) sentenceQuery(sentence string) string {
	words := wordsOf(sentence)
	last := len(words) - 1
	var b strings.Builder
	for _, w := range words[min(1, last):last] {
		b.WriteString(p.quote + w + p.quote + p.and)
	}
	return b.String() + p.quote + words[last] + p.quote + p.goesOn
}

// termsQuery asks for records that have all of some terms and, if there are others, one of these.
func (p *indexPhrases) termsQuery(all, one []manifest.Term) string {
	parts := make([]string, 0, len(all)+1)
	for _, t := range all {
		parts = append(parts, p.quote+indexedTerm(t)+p.quote)
	}
	if len(one) > 0 {
		others := make([]string, len(one))
		for i, t := range one {
			others[i] = p.quote + indexedTerm(t) + p.quote
		}
		parts = append(parts, "("+strings.Join(others, p.or)+")")
	}
	return strings.Join(parts, p.and)
}

// indexedTerm is a term as it is indexed: nobody can choose one that stands for another term, too.
func indexedTerm(t manifest.Term) string {
	sum := sha256.Sum256([]byte(string(t.Kind) + "\x00" + t.Value))
	return strconv.FormatUint(binary.BigEndian.Uint64(sum[:]), 36)
}

const maxWord = 64 // characters of a word that are indexed

// wordsOf returns the words of a text in lower case: runs of letters, digits and marks. In scripts that are written
// without blanks each character is a word.
func wordsOf(s string) []string {
	var words []string
	seen := map[string]bool{}
	for _, run := range strings.FieldsFunc(s, func(c rune) bool { return !unicode.In(c, unicode.L, unicode.N, unicode.M) }) {
		for _, w := range splitRun(strings.ToLower(run)) {
			if !seen[w] {
				seen[w] = true
				words = append(words, w)
			}
		}
	}
	return words
}

func splitRun(run string) []string {
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words = append(words, string(word[:min(len(word), maxWord)]))
		}
		word = word[:0]
	}
	for _, c := range run {
		if !unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
			word = append(word, c)
			continue
		}
		flush()
		words = append(words, string(c))
	}
	flush()
	return words
}
