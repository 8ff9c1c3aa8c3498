package itemstore

import (
	"context"
	"strconv"

	"github.com/grapnelhq/grapnel/store/sqldb"
)

// Hits is PostgreSQL's query for the items of a term, and what is said before it, for
// tests that ask how it is planned.
func Hits() (plan, hits string) {
	p := phrasesOf(sqldb.Postgres)
	return p.plan, p.hits
}

// Limit bounds the pages of a SQLite database.
func (s *Store) Limit(ctx context.Context, pages int) error {
	_, err := s.db.Writer().ExecContext(ctx, "PRAGMA max_page_count = "+strconv.Itoa(pages))
	return err
}
