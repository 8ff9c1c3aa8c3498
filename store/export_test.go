package store

import "database/sql"

// Writer is the connection that changes things, for tests that make it fail.
func (s *Store) Writer() *sql.DB { return s.db.Writer() }
