package itemstore

import (
	"context"
	"strconv"

	"github.com/grapnelhq/grapnel/internal/sqldb"
)

// Phrases are a database's queries for the items of a term and for statistics, and what
// is said before them, for tests that ask how they are planned.
func Phrases(k sqldb.Kind) (plan, hits, counts string) {
	p := phrasesOf(k)
	return p.plan, p.hits, p.counts
}

// Candidates are a database's queries for candidates and for terms by their first letters.
func Candidates(k sqldb.Kind) (candidates, vocabulary string) {
	p := phrasesOf(k)
	return p.readCandidates(), p.vocabulary
}

// The statements that change statistics, for the same tests.
const (
	FoldDeltas  = foldDeltas
	DropNothing = dropUnusedTerms
)

// Limit bounds the pages of a SQLite database.
func (s *Store) Limit(ctx context.Context, pages int) error {
	_, err := s.db.Writer().ExecContext(ctx, "PRAGMA max_page_count = "+strconv.Itoa(pages))
	return err
}
