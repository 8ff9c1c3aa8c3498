package itemstore

import (
	"context"
	"strconv"

	"github.com/grapnelhq/grapnel/internal/sqldb"
)

// Statements are PostgreSQL's, for tests that ask how they are planned.
type Statements struct{ Plan, Hits, Counts, Candidates, Vocabulary, Fold string }

// PostgresStatements returns the statements of a recall, and the one that folds statistics.
func PostgresStatements() Statements {
	p := phrasesOf(sqldb.Postgres)
	return Statements{p.plan, p.hits, p.counts, p.readCandidates(), p.vocabulary, foldDeltas}
}

// Limit bounds the pages of a SQLite database.
func (s *Store) Limit(ctx context.Context, pages int) error {
	_, err := s.db.Writer().ExecContext(ctx, "PRAGMA max_page_count = "+strconv.Itoa(pages))
	return err
}
