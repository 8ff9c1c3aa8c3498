package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/phases"
)

// ConversationEntry is one entry of a thread's conversation.
type ConversationEntry struct {
	// Seq numbers the entries of a thread from 0. Numbers of erased ones are missing.
	Seq int64
	// ID is the host's, unique in the thread, and TurnID the turn's that brought the entry.
	ID, TurnID string
	// Actor is who the turn was made for, as records name it.
	Actor string
	At    time.Time
	// Status is how the turn ended; empty until it has.
	Status string
	// Entry is JSON.
	Entry json.RawMessage
}

// Conversation is a part of one.
type Conversation struct {
	// Summary stands for the entries up to Through; without one Through is -1.
	Summary string
	Through int64
	// Entries are in the order of the thread.
	Entries []ConversationEntry
	// Bytes is how long they are together, and More says that there are older ones.
	Bytes int
	More  bool
}

// ConversationQuery asks for the newest entries of a thread.
type ConversationQuery struct {
	WorkspaceID, ThreadID string
	// Before is the number that they are below; 0 is no limit.
	Before int64
	// Unsummarized omits those that the summary stands for.
	Unsummarized bool
	// Limit and Bytes bound them; both are needed. The newest one is returned in any case.
	Limit, Bytes int
	// Expect, if set, is called with the length of what is about to be read. Its error is returned.
	Expect func(bytes int) error
}

const liveConversation = "SELECT id FROM conversations WHERE workspace_id = $1 AND thread_id = $2 AND gone = 0"

// AppendConversation appends entries of a turn to a thread's conversation and sets their numbers. One whose ID is there
// already keeps its number; with another content it is an error, with the code CodeInvalid, and nothing is appended. The
// turn is one that has not ended.
func (s *Store) AppendConversation(ctx context.Context, of Scope, turnID string, at time.Time, entries []ConversationEntry) error {
	for _, value := range []string{of.WorkspaceID, of.ThreadID, of.Actor, turnID} {
		if !isText(value) {
			return sqldb.Failf(CodeInvalid, "", "the conversation is not text: %.80q", value)
		}
	}
	for i := range entries {
		e := &entries[i]
		if !isText(e.ID) || e.ID == "" {
			return sqldb.Failf(CodeInvalid, "", "entry %d: its id is not text: %.80q", i, e.ID)
		}
		if err := jsonscan.Check(e.Entry, phases.MaxJSONDepth); err != nil {
			return &Error{Code: CodeInvalid, Message: "entry " + e.ID + " cannot be kept", Err: err}
		}
	}
	id, err := ulid.New(ulid.Timestamp(at), ulid.DefaultEntropy())
	if err != nil {
		return err
	}
	return s.db.Join(ctx, "appending to a conversation", func(ctx context.Context, tx *sql.Tx) error {
		return appendConversation(ctx, tx, id.String(), of, turnID, at, entries)
	})
}

func appendConversation(ctx context.Context, tx *sql.Tx, id string, of Scope, turnID string, at time.Time, entries []ConversationEntry) error {
	// Also locks it.
	const begin = `INSERT INTO conversations (id, workspace_id, thread_id, gone, next_seq) VALUES ($1, $2, $3, 0, 0)
		ON CONFLICT (workspace_id, thread_id) WHERE gone = 0 DO UPDATE SET next_seq = conversations.next_seq RETURNING id, next_seq`
	var next int64
	if err := tx.QueryRowContext(ctx, begin, id, of.WorkspaceID, of.ThreadID).Scan(&id, &next); err != nil {
		return err
	}
	const turn = `INSERT INTO conversation_turns (conversation_id, turn_id, status) VALUES ($1, $2, '')
		ON CONFLICT (conversation_id, turn_id) DO UPDATE SET status = ''`
	if _, err := tx.ExecContext(ctx, turn, id, turnID); err != nil {
		return err
	}
	const had = "SELECT seq, turn_id, entry FROM conversation_entries WHERE conversation_id = $1 AND entry_id = $2"
	const put = `INSERT INTO conversation_entries (conversation_id, seq, entry_id, turn_id, actor, created_at, bytes, entry)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	for i := range entries {
		e := &entries[i]
		var there, ofTurn string
		err := tx.QueryRowContext(ctx, had, id, e.ID).Scan(&e.Seq, &ofTurn, &there)
		if err == nil && (there != string(e.Entry) || ofTurn != turnID) {
			return sqldb.Failf(CodeInvalid, "", "the thread has an entry %.80q already, with another content or of another turn", e.ID)
		}
		if errors.Is(err, sql.ErrNoRows) {
			e.Seq = next
			next++
			_, err = tx.ExecContext(ctx, put, id, e.Seq, e.ID, turnID, of.Actor, at.UnixNano(), len(e.Entry), string(e.Entry))
		}
		if err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, "UPDATE conversations SET next_seq = $2 WHERE id = $1", id, next)
	return err
}

// EndConversationTurn says how a turn ended that has appended entries. Of another one nothing is kept.
func (s *Store) EndConversationTurn(ctx context.Context, workspace, thread, turnID, status string) error {
	const query = "UPDATE conversation_turns SET status = $4 WHERE conversation_id = (" + liveConversation + ") AND turn_id = $3"
	return s.db.Join(ctx, "ending a turn of a conversation", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, query, workspace, thread, turnID, status)
		return err
	})
}

// The statements of Conversation read backwards by the primary key, and no more than they return.
const (
	newestSummary = "SELECT through, summary FROM conversation_summaries WHERE conversation_id = $1 ORDER BY through DESC LIMIT 1"
	measureTail   = "SELECT seq, bytes FROM conversation_entries WHERE conversation_id = $1 AND seq < $2 AND seq > $3 ORDER BY seq DESC LIMIT $4"
	readTail      = `SELECT e.seq, e.entry_id, e.turn_id, e.actor, e.created_at, coalesce(t.status, ''), e.entry FROM conversation_entries e
		LEFT JOIN conversation_turns t ON t.conversation_id = e.conversation_id AND t.turn_id = e.turn_id
		WHERE e.conversation_id = $1 AND e.seq < $2 AND e.seq >= $3 ORDER BY e.seq`
)

// Conversation returns the newest entries of a thread, and its newest summary. It reads what it returns, however long the
// conversation is. A thread without a conversation has an empty one.
func (s *Store) Conversation(ctx context.Context, q ConversationQuery) (Conversation, error) {
	c, before := Conversation{Through: -1}, q.Before
	if before <= 0 {
		before = math.MaxInt64
	}
	id, from := "", before
	err := s.db.Snapshot(ctx, "measuring a conversation", func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, liveConversation, q.WorkspaceID, q.ThreadID).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, newestSummary, id).Scan(&c.Through, &c.Summary); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		from, err = c.measure(ctx, tx, id, before, &q)
		return err
	})
	if err != nil || c.Bytes == 0 {
		return c, err
	}
	if q.Expect != nil {
		if err := q.Expect(c.Bytes); err != nil {
			return c, err
		}
	}
	c.Entries, err = sqldb.ReadList(ctx, s.db, "reading a conversation", readTail, []any{id, before, from}, func(rows *sql.Rows, e *ConversationEntry) error {
		var entry string
		err := rows.Scan(&e.Seq, &e.ID, &e.TurnID, &e.Actor, sqldb.Nanos{To: &e.At}, &e.Status, &entry)
		e.Entry = json.RawMessage(entry)
		return err
	})
	return c, err
}

// measure finds the first entry that fits, and adds up.
func (c *Conversation) measure(ctx context.Context, tx *sql.Tx, id string, before int64, q *ConversationQuery) (from int64, err error) {
	after := int64(-1)
	if q.Unsummarized {
		after = c.Through
	}
	n := 0
	err = sqldb.Each(ctx, tx, measureTail, []any{id, before, after, q.Limit + 1}, func(rows *sql.Rows) error {
		var seq int64
		var bytes int
		if err := rows.Scan(&seq, &bytes); err != nil || c.More {
			return err
		}
		if c.More = n == q.Limit || n > 0 && c.Bytes+bytes > q.Bytes; !c.More {
			n, from, c.Bytes = n+1, seq, c.Bytes+bytes
		}
		return nil
	})
	return from, err
}

// SummarizeConversation keeps a summary of a thread's conversation up to an entry, and returns the number of that. A
// later summary replaces it; the entries stay. An entry that is not there has the code CodeNotFound; one that another
// summary stands for already, CodeInvalid.
func (s *Store) SummarizeConversation(ctx context.Context, workspace, thread, through, summary string, at time.Time) (seq int64, err error) {
	if !isText(through) || !isText(summary) || summary == "" {
		return 0, sqldb.Failf(CodeInvalid, "", "the summary is not text")
	}
	const entry = "SELECT conversation_id, seq FROM conversation_entries WHERE conversation_id = (" + liveConversation + ") AND entry_id = $3"
	const put = `INSERT INTO conversation_summaries (conversation_id, through, created_at, summary) VALUES ($1, $2, $3, $4)
		ON CONFLICT (conversation_id, through) DO UPDATE SET created_at = excluded.created_at, summary = excluded.summary`
	err = s.db.Join(ctx, "keeping a summary", func(ctx context.Context, tx *sql.Tx) error {
		var id, was string
		err := tx.QueryRowContext(ctx, entry, workspace, thread, through).Scan(&id, &seq)
		if errors.Is(err, sql.ErrNoRows) {
			return sqldb.Failf(CodeNotFound, "", "the thread has no entry %.80q", through)
		}
		if err != nil {
			return err
		}
		newest := int64(-1)
		if err := tx.QueryRowContext(ctx, newestSummary, id).Scan(&newest, &was); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if newest > seq {
			return sqldb.Failf(CodeInvalid, "", "a later summary stands for the entry %.80q already", through)
		}
		_, err = tx.ExecContext(ctx, put, id, seq, at.UnixNano(), summary)
		return err
	})
	return seq, err
}
