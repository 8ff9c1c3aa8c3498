package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

// Stats adds up the selected records that were made from since on and before until; zero times do not bound it. It reads
// all of them, and calls seen for each. It ignores the limit.
func (s *Store) Stats(ctx context.Context, f Filter, since, until time.Time, seen func()) (manifest.Stats, error) {
	q := search{query: &Query{Since: since, Until: until}}
	from, to := q.bounds()
	where, args := f.where()
	where = strings.Replace(where, " WHERE", " AND", 1)
	where = fmt.Sprintf(" WHERE created_at >= $%d AND created_at < $%d%s", len(args)+1, len(args)+2, where)
	args = append(args, from, to)
	counter := manifest.NewCounter()
	var u unpacker
	err := s.db.Scan(ctx, "adding up", func(tx *sql.Tx) error {
		query := "SELECT " + manifestColumns + ", " + usageOf + " FROM manifests" + where + " ORDER BY id"
		return sqldb.Each(ctx, tx, query, args, func(rows *sql.Rows) error {
			var id string
			var size int
			var packed sql.RawBytes
			var reported sql.NullString
			if err := rows.Scan(&id, &size, &packed, &reported); err != nil {
				return err
			}
			var m *manifest.Manifest
			if err := parseManifest(id, u.unpack(packed, size), &m); err != nil {
				return err
			}
			usage, err := parseUsage(id, reported)
			if err == nil {
				counter.Add(m, usage)
				seen()
			}
			return err
		})
	})
	return counter.Stats(), err
}
