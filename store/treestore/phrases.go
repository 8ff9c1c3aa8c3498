package treestore

import "github.com/grapnelhq/grapnel/store/sqldb"

// phrases are what differs between the databases in the statements of the tree.
// SQLite has locked the whole database by the first statement.
type phrases struct {
	// queue waits for all others who change something in a workspace, and queueBeside
	// for those who change the same item of it. They are the first statements of their
	// transactions, which have no number yet while they wait: so the numbers are in the
	// order in which the same thing was changed. Rows that are locked later do not wait.
	queue, queueBeside string
	// share ends a query for a folder, f, that nobody may take away before the
	// transaction ends, own one for rows that nobody else may change, and seize one for
	// rows that nobody else may even share.
	share, own, seize string
	// seq is the number of the transaction in the log, around the argument with what
	// the caller knows of it; nextSeq asks what the caller of SQLite has to know.
	seq     [2]string
	nextSeq string
	// inLog goes on from a condition that seq is greater than $1: in the log's order,
	// by an index.
	inLog string
	// list is the table, around the argument with a JSON array of texts, that has them
	// in its column "value".
	list [2]string
	// notify ends an insert into the log, and tells those who listen.
	notify string
}

// channel is what PostgreSQL's listeners listen to. What is notified is the id of a
// workspace.
const channel = "grapnel_tree"

func phrasesOf(k sqldb.Kind) phrases {
	if k == sqldb.Postgres {
		return phrases{
			queue:       "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
			queueBeside: "SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0)), pg_advisory_xact_lock(hashtextextended($2, 0))",
			share:       " FOR KEY SHARE OF f", own: " FOR NO KEY UPDATE", seize: " FOR UPDATE",
			seq: [2]string{
				"coalesce(CAST(", " AS BIGINT), (SELECT (generation << 48) | CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) FROM tree_log))",
			},
			inLog:  " ORDER BY seq, id",
			list:   [2]string{"json_array_elements_text(CAST(", " AS JSON))"},
			notify: " RETURNING pg_notify('" + channel + "', workspace_id)",
		}
	}
	return phrases{
		inLog:   " AND id > $1 ORDER BY id",
		list:    [2]string{"json_each(", ")"},
		nextSeq: "SELECT seq + 1 FROM sqlite_sequence WHERE name = 'tree_changes'",
	}
}
