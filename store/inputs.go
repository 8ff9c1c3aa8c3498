package store

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

// InputPage has some records of a thread, oldest first, and the texts of their calls that are kept (manifest.keep_inputs), by
// their hashes. A hash under which different texts are kept is not among them.
type InputPage struct {
	Manifests []*manifest.Manifest
	Texts     map[string]string
}

// inputPage bounds the records of a page, which have about 1 MiB of inputs each at most.
const inputPage = 32

// Inputs yields the records of a thread in pages, from the first record on of the turn in which the given time lies. Each page
// is a read of its own: what is pruned or erased meanwhile is not in it. An error ends it.
func (s *Store) Inputs(ctx context.Context, workspace, thread string, since time.Time) iter.Seq2[InputPage, error] {
	const first = `SELECT coalesce((SELECT min(seq) FROM manifests WHERE workspace_id = $1 AND thread_id = $2 AND turn_id = m.turn_id AND turn_id <> ''), seq)
		FROM manifests m WHERE workspace_id = $1 AND thread_id = $2 AND created_at >= $3 ORDER BY seq LIMIT 1`
	return func(yield func(InputPage, error) bool) {
		froms, err := sqldb.ReadList(ctx, s.db, "looking for a turn", first, []any{workspace, thread, nearest(since)}, scanID)
		for err == nil && len(froms) > 0 {
			var p InputPage
			if p, err = s.inputPage(ctx, workspace, thread, froms[0]); err != nil || len(p.Manifests) == 0 || !yield(p, nil) {
				break
			}
			froms[0] = signed(p.Manifests[len(p.Manifests)-1].Seq) + 1
		}
		if err != nil {
			yield(InputPage{}, err)
		}
	}
}

func (s *Store) inputPage(ctx context.Context, workspace, thread string, from int64) (p InputPage, err error) {
	const (
		records = "SELECT " + manifestColumns + " FROM manifests WHERE workspace_id = $1 AND thread_id = $2 AND seq >= $3 ORDER BY seq LIMIT $4"
		texts   = `SELECT hash, min(text) FROM texts t WHERE hash IN (%s) AND EXISTS (SELECT 1 FROM text_uses u WHERE u.text_id = t.id
			AND u.chain_id = (SELECT id FROM chains WHERE workspace_id = $%d AND thread_id = $%d)) GROUP BY hash HAVING count(*) = 1`
	)
	p.Texts = map[string]string{}
	err = s.db.Snapshot(ctx, "reading inputs of calls", func(tx *sql.Tx) error {
		p.Manifests, err = sqldb.List(ctx, tx, records, []any{workspace, thread, from, inputPage}, scanManifest())
		var hashes []any
		for _, m := range p.Manifests {
			for i := range m.Calls {
				for _, hash := range m.Calls[i].TextHashes() {
					hashes = append(hashes, hash)
				}
			}
		}
		for some := range slices.Chunk(hashes, settleBatch) {
			if err != nil {
				break
			}
			n := len(some)
			err = sqldb.Each(ctx, tx, fmt.Sprintf(texts, places(n), n+1, n+2), append(slices.Clip(some), workspace, thread), func(rows *sql.Rows) error {
				var hash, text string
				err := rows.Scan(&hash, &text)
				p.Texts[hash] = text
				return err
			})
		}
		return err
	})
	return p, err
}
