package itemstore

import (
	"encoding/json"
	"fmt"

	"github.com/grapnelhq/grapnel/store/sqldb"
)

// phrases are what differs between the databases in the statements of the store.
type phrases struct {
	postgres bool
	// list is the condition that a column is in a list, an argument: %s are the column
	// and the argument. numbers is the same for numbers.
	list, numbers string
	// share and own wait for others of PostgreSQL, until the transaction ends; of
	// SQLite there is one writer. See Store.change.
	share, own string
	// newest is the number of the next change.
	newest string
	// counts reads statistics by lists of shelves and of names, a row or more for each
	// pair that has any. Count adds to them: of PostgreSQL shelves, names and numbers, and
	// it says how often that was done since they were added up; of SQLite a shelf, and
	// numbers by names.
	counts, count string
	// plan begins transactions: PostgreSQL is to take the indexes, whatever it believes
	// the tables to be like. It is wrong about new tables, and about common terms, and
	// compiling such a query takes it a hundred times as long as running it.
	plan string
	// hits finds the newest items of each of some terms on each of some shelves, and
	// says the terms; of SQLite it is one term, as the index has it. See txn.hits.
	hits string
	// used counts a use of items.
	used string
	// skip ends a query for rows that others may hold, and leaves these out.
	skip string
	// bytes is the size of all.
	bytes string
}

// Classes of PostgreSQL's advisory locks: those of the store as a whole, and those
// of a scope, by its number.
const (
	lockClassStore = 0x6d656d00
	lockClassScope = 0x6d656d01
)

// Numbers of locks in lockClassStore.
const (
	lockIndex = iota
	lockFold
)

func phrasesOf(k sqldb.Kind) phrases {
	if k == sqldb.Postgres {
		return phrases{
			postgres: true,
			list:     "%s = ANY(CAST(%s AS TEXT[]))", numbers: "%s = ANY(CAST(%s AS BIGINT[]))",
			share:  "SELECT pg_advisory_xact_lock_shared($1, n) FROM unnest(CAST($2 AS INTEGER[])) n",
			own:    "SELECT pg_advisory_xact_lock($1, n) FROM unnest(CAST($2 AS INTEGER[])) n",
			newest: "nextval('memory_seq')",
			counts: `SELECT name, n FROM memory_counts WHERE shelf = ANY(CAST($1 AS INTEGER[])) AND name = ANY(CAST($2 AS TEXT[])) UNION ALL
				SELECT name, n FROM memory_deltas WHERE shelf = ANY(CAST($1 AS INTEGER[])) AND name = ANY(CAST($2 AS TEXT[]))`,
			count: `WITH added AS (INSERT INTO memory_deltas (shelf, name, n)
				SELECT d.shelf, d.name, d.n FROM unnest(CAST($1 AS INTEGER[]), CAST($2 AS TEXT[]), CAST($3 AS BIGINT[])) d (shelf, name, n))
				SELECT count(*) FROM memory_deltas WHERE shelf = 0`,
			plan: `SELECT set_config('jit', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true),
				set_config('enable_sort', 'off', true)`,
			hits: `SELECT t.term, h.seq FROM unnest(CAST($1 AS TEXT[])) t (term) CROSS JOIN unnest(CAST($2 AS INTEGER[])) s (shelf) CROSS JOIN LATERAL (
				SELECT i.seq FROM memory_index i WHERE i.shelf = s.shelf AND i.term = t.term
				ORDER BY i.shelf DESC, i.term DESC, i.seq DESC LIMIT $3) h`,
			used: `UPDATE memory_items SET uses = uses + 1, last_used_at = greatest(last_used_at, $2) WHERE seq IN (
				SELECT seq FROM memory_items WHERE id = ANY(CAST($1 AS TEXT[])) ORDER BY id FOR NO KEY UPDATE)`,
			skip: " FOR UPDATE SKIP LOCKED",
			bytes: `SELECT CAST(sum(pg_total_relation_size(CAST(t AS regclass))) AS BIGINT) FROM unnest(ARRAY['memory_meta', 'memory_scopes',
				'memory_items', 'memory_index', 'memory_counts', 'memory_deltas', 'memory_tombstones', 'memory_batches']) t`,
		}
	}
	return phrases{
		list: "%s IN (SELECT value FROM json_each(%s))", numbers: "%s IN (SELECT value FROM json_each(%s))",
		newest: "(SELECT coalesce(max(seq), 0) + 1 FROM memory_items)",
		counts: "SELECT name, n FROM memory_counts WHERE shelf IN (SELECT value FROM json_each($1)) AND name IN (SELECT value FROM json_each($2))",
		count: `INSERT INTO memory_counts (shelf, name, n) SELECT $1, key, value FROM json_each($2) WHERE true
			ON CONFLICT (shelf, name) DO UPDATE SET n = n + excluded.n`,
		hits:  "SELECT rowid FROM memory_index WHERE memory_index MATCH $1 ORDER BY rowid DESC LIMIT $2",
		used:  "UPDATE memory_items SET uses = uses + 1, last_used_at = max(last_used_at, $2) WHERE id IN (SELECT value FROM json_each($1))",
		bytes: "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
	}
}

// in is the condition that a column of texts is in a list.
func (p *phrases) in(column, argument string) string { return fmt.Sprintf(p.list, column, argument) }

// inNumbers is the condition that a column of numbers is in a list.
func (p *phrases) inNumbers(column, argument string) string {
	return fmt.Sprintf(p.numbers, column, argument)
}

// listOf is a list as an argument. Texts are valid UTF-8 by now.
func listOf[T string | int64](p *phrases, list []T) any {
	if p.postgres {
		return list
	}
	text, _ := json.Marshal(list) //nolint:errchkjson // texts and numbers always can
	return string(text)
}
