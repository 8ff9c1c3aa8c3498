package store

import (
	"context"
	"database/sql"
	"strings"
	"unicode"
)

// wordPhrases are the statements about the words of kept texts.
type wordPhrases struct {
	// hasWords is whether the text t is indexed, putWords indexes one, removeWords takes one out, and findWords finds the
	// newest that match a query; its first argument is a workspace, or empty.
	hasWords, putWords, removeWords, findWords string
	// listWords lists all words with their texts, after openWords.
	openWords, listWords string
	// noteRemoval notes that words were removed, and rewrite is how the index is then written again; empty where nothing of
	// what is removed is left in it.
	noteRemoval string
	rewrite     rewritePhrases
	// words are those of a text as putWords takes them, and query what finds texts that may hold a sentence.
	words, query func(text string) any
}

// usedIn takes only texts of one workspace, if one is given: another one's must not push them out.
const usedIn = ` AND ($1 = '' OR EXISTS (SELECT 1 FROM text_uses u JOIN chains c ON c.id = u.chain_id WHERE u.text_id = t.id AND c.workspace_id = $1))`

func wordsInPostgres() wordPhrases {
	return wordPhrases{
		hasWords:    "SELECT 1 FROM text_words w WHERE w.text_id = t.id",
		putWords:    "INSERT INTO text_words (text_id, words) VALUES ($1, array_to_tsvector($2::text[]))",
		removeWords: "DELETE FROM text_words WHERE text_id = $1",
		findWords: `SELECT t.hash, t.text FROM text_words w JOIN texts t ON t.id = w.text_id
			WHERE w.words @@ $2::tsquery` + usedIn + ` ORDER BY w.text_id DESC`,
		listWords: "SELECT text_id, unnest(tsvector_to_array(words)) FROM text_words",
		words:     func(text string) any { return wordsOf(text) },
		query:     func(sentence string) any { return queryOf(sentence, "'", " & ", ":*") },
	}
}

func wordsInSQLite() wordPhrases {
	return wordPhrases{
		hasWords: "SELECT 1 FROM text_words_docsize w WHERE w.id = t.id",
		putWords: "INSERT INTO text_words (rowid, words) VALUES ($1, $2)",
		removeWords: `INSERT INTO text_words (text_words, rowid, words) SELECT 'delete', $1, $2
			WHERE EXISTS (SELECT 1 FROM text_words_docsize WHERE id = $1)`,
		// The word of text 0 is also a second segment, without which FTS5 has nothing to merge.
		noteRemoval: "INSERT INTO text_words (rowid, words) SELECT 0, '0' WHERE NOT EXISTS (SELECT 1 FROM text_words_docsize WHERE id = 0)",
		rewrite: rewritePhrases{
			needed: "SELECT EXISTS (SELECT 1 FROM text_words_docsize WHERE id = 0)",
			begin:  "INSERT INTO text_words (text_words, rank) VALUES ('merge', -16)",
			goOn:   "INSERT INTO text_words (text_words, rank) VALUES ('merge', 16)",
			end:    "INSERT INTO text_words (text_words, rowid, words) VALUES ('delete', 0, '0')",
		},
		findWords: `SELECT t.hash, t.text FROM text_words JOIN texts t ON t.id = text_words.rowid
			WHERE text_words MATCH $2` + usedIn + ` ORDER BY text_words.rowid DESC`,
		openWords: "CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab('main', 'text_words', 'instance')",
		listWords: "SELECT doc, term FROM temp.words WHERE doc > 0", // 0 notes a removal
		words:     func(text string) any { return strings.Join(wordsOf(text), " ") },
		query:     func(sentence string) any { return queryOf(sentence, `"`, " AND ", "*") },
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
	run := func(statement string) (changed int, err error) {
		err = s.db.Change(ctx, rewriting, func(ctx context.Context, tx *sql.Tx) error {
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
	if _, err := run(p.begin); err != nil {
		return err
	}
	err := s.db.Pieces(ctx, func() (more bool, err error) {
		changed, err := run(p.goOn)
		return changed > 1, err // the statement counts as one
	})
	if err != nil {
		return err
	}
	_, err = run(p.end)
	return err
}

// queryOf asks for texts that may hold a sentence. The words at its ends may be parts of words: the last one chooses by
// its beginning, the first one not at all unless it is the only one.
func queryOf(sentence, quote, and, goesOn string) string {
	words := wordsOf(sentence)
	last := len(words) - 1
	var b strings.Builder
	for _, w := range words[min(1, last):last] {
		b.WriteString(quote + w + quote + and)
	}
	return b.String() + quote + words[last] + quote + goesOn
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
