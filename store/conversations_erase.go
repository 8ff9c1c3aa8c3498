package store

import (
	"cmp"
	"context"
	"database/sql"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
)

// heldConversation is the condition that something of the conversation c is held.
const heldConversation = `EXISTS (SELECT 1 FROM holds h WHERE (h.workspace_id = '' OR h.workspace_id = c.workspace_id)
	AND (h.thread_id = '' OR h.thread_id = c.thread_id))`

// addEntries adds what is erased of conversations, also of threads without texts.
func (e *Erasing) addEntries(ctx context.Context, tx *sql.Tx, parts []erasedPart) ([]erasedPart, error) {
	const query = `SELECT c.workspace_id, c.thread_id, count(*) FROM conversations c JOIN conversation_entries e ON e.conversation_id = c.id
		WHERE ($1 = '' OR c.workspace_id = $1) AND ($2 = '' OR c.thread_id = $2) AND ($3 = '' OR e.actor = $3) AND e.created_at < $4
		GROUP BY c.workspace_id, c.thread_id ORDER BY c.workspace_id, c.thread_id`
	type thread struct{ workspace, id string }
	at := map[thread]int{}
	for i := range parts {
		at[thread{parts[i].workspace, parts[i].thread}] = i
	}
	args := []any{e.WorkspaceID, e.ThreadID, e.Actor, cmp.Or(nanos(e.Before), farAway)}
	err := sqldb.Each(ctx, tx, query, args, func(rows *sql.Rows) error {
		var p erasedPart
		if err := rows.Scan(&p.workspace, &p.thread, &p.entries); err != nil {
			return err
		}
		if i, known := at[thread{p.workspace, p.thread}]; known {
			parts[i].entries = p.entries
		} else {
			parts = append(parts, p)
		}
		return nil
	})
	return parts, err
}

// eraseEntries removes entries of a thread's conversations, and the summaries that may hold what they said.
func (s *Store) eraseEntries(ctx context.Context, e *Erasing, p *erasedPart, rate *pace) error {
	const some = `SELECT e.conversation_id, e.seq FROM conversation_entries e JOIN conversations c ON c.id = e.conversation_id
		WHERE c.workspace_id = $1 AND c.thread_id = $2 AND ($3 = '' OR e.actor = $3) AND e.created_at < $4 ORDER BY e.conversation_id, e.seq LIMIT $5`
	const summaries = "DELETE FROM conversation_summaries WHERE conversation_id = $1 AND through >= $2"
	type row struct {
		conversation string
		seq          int64
	}
	_, err := s.steps(ctx, "erasing a conversation", rate, func(ctx context.Context, tx *sql.Tx, most int) (int, error) {
		rows, err := sqldb.List(ctx, tx, some, []any{p.workspace, p.thread, e.Actor, cmp.Or(nanos(e.Before), farAway), most},
			func(rows *sql.Rows, r *row) error { return rows.Scan(&r.conversation, &r.seq) })
		if err != nil {
			return 0, err
		}
		last := ""
		for _, r := range rows {
			if r.conversation != last {
				if _, err := tx.ExecContext(ctx, summaries, r.conversation, r.seq); err != nil {
					return 0, err
				}
				last = r.conversation
			}
			if _, err := tx.ExecContext(ctx, "DELETE FROM conversation_entries WHERE conversation_id = $1 AND seq = $2", r.conversation, r.seq); err != nil {
				return 0, err
			}
		}
		return len(rows), nil
	})
	return err
}

type conversationRow struct {
	id, workspace string
	held          bool
}

// pruneConversations removes entries and summaries that are too old, unless something of their thread is held. Within a
// thread the order of appending counts, not the clock.
func (s *Store) pruneConversations(ctx context.Context, r *Retention, now time.Time, p *pace, done *Pruned) error {
	const query = "SELECT c.id, c.workspace_id, " + heldConversation + " FROM conversations c ORDER BY c.id"
	all, err := sqldb.ReadList(ctx, s.db, "retention of conversations", query, nil, func(rows *sql.Rows, c *conversationRow) error {
		return rows.Scan(&c.id, &c.workspace, &c.held)
	})
	if err != nil {
		return err
	}
	for i := range all {
		c := &all[i]
		age := r.of(c.workspace).Age
		if age <= 0 || c.held {
			continue
		}
		n, err := s.steps(ctx, "retention of conversations", p, func(ctx context.Context, tx *sql.Tx, most int) (int, error) {
			return pruneEntries(ctx, tx, c.id, now.Add(-age).UnixNano(), most)
		})
		if done.Entries += n; err != nil {
			return err
		}
	}
	n, err := s.SweepConversations(ctx)
	done.Entries += n
	return err
}

// pruneEntries removes some entries at the front of a conversation.
func pruneEntries(ctx context.Context, tx *sql.Tx, id string, before int64, most int) (int, error) {
	const front = "SELECT seq, created_at FROM conversation_entries WHERE conversation_id = $1 ORDER BY seq LIMIT $2"
	open, upTo := true, int64(-1)
	err := sqldb.Each(ctx, tx, front, []any{id, most}, func(rows *sql.Rows) error {
		var seq, created int64
		err := rows.Scan(&seq, &created)
		if open = open && created < before; open {
			upTo = seq
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	const summaries = "DELETE FROM conversation_summaries WHERE conversation_id = $1 AND created_at < $2"
	if _, err := tx.ExecContext(ctx, summaries, id, before); err != nil {
		return 0, err
	}
	return affected(tx.ExecContext(ctx, "DELETE FROM conversation_entries WHERE conversation_id = $1 AND seq <= $2", id, upTo))
}

// SweepConversations removes what is left of the conversations of deleted threads and workspaces, unless something of
// their thread is held, and returns how many entries that were.
func (s *Store) SweepConversations(ctx context.Context) (entries int, err error) {
	const query = "SELECT c.id, c.workspace_id, " + heldConversation + " FROM conversations c WHERE c.gone = 1 ORDER BY c.id"
	const some = `DELETE FROM conversation_entries WHERE conversation_id = $1 AND seq IN (
		SELECT seq FROM conversation_entries WHERE conversation_id = $1 ORDER BY seq LIMIT $2)`
	all, err := sqldb.ReadList(ctx, s.db, "looking for deleted conversations", query, nil, func(rows *sql.Rows, c *conversationRow) error {
		return rows.Scan(&c.id, &c.workspace, &c.held)
	})
	if err != nil {
		return 0, err
	}
	var p pace
	for _, c := range all {
		if c.held {
			continue
		}
		n, err := s.steps(ctx, "removing a conversation", &p, func(ctx context.Context, tx *sql.Tx, most int) (int, error) {
			n, err := affected(tx.ExecContext(ctx, some, c.id, most))
			if err != nil || n > 0 {
				return n, err
			}
			for _, rest := range []string{
				"DELETE FROM conversation_summaries WHERE conversation_id = $1", "DELETE FROM conversation_turns WHERE conversation_id = $1",
				"DELETE FROM conversations WHERE id = $1",
			} {
				if _, err := tx.ExecContext(ctx, rest, c.id); err != nil {
					return 0, err
				}
			}
			return 0, nil
		})
		if entries += n; err != nil {
			return entries, err
		}
	}
	return entries, nil
}
