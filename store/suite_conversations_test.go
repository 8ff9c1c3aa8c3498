package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/store"
)

// said are entries with these ids.
func said(ids ...string) []store.ConversationEntry {
	var list []store.ConversationEntry
	for _, id := range ids {
		list = append(list, store.ConversationEntry{ID: id, Entry: json.RawMessage(`{"text":"` + id + `"}`)})
	}
	return list
}

// say appends entries of a turn at a time.
func say(t *testing.T, s *store.Store, of store.Scope, turn string, at time.Time, ids ...string) {
	t.Helper()
	if err := s.AppendConversation(t.Context(), of, turn, at, said(ids...)); err != nil {
		t.Fatal(err)
	}
}

// heard are the ids of a part of a conversation, with their numbers and the summary in front.
func heard(t *testing.T, s *store.Store, q store.ConversationQuery) string {
	t.Helper()
	if q.Limit == 0 {
		q.Limit, q.Bytes = 1000, 1<<20
	}
	c, err := s.Conversation(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	if c.Through >= 0 {
		out = append(out, fmt.Sprintf("(%d %s)", c.Through, c.Summary))
	}
	for _, e := range c.Entries {
		out = append(out, fmt.Sprintf("%d%s%s", e.Seq, e.ID, e.Status))
	}
	if c.More {
		out = append([]string{"…"}, out...)
	}
	return strings.Join(out, " ")
}

// testConversation: entries are kept once, in order, with how their turns ended, and a summary stands for some.
func (x suite) testConversation(t *testing.T) {
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{})
	ada := store.Scope{WorkspaceID: "w", ThreadID: "t", Actor: "user:ada"}
	q := store.ConversationQuery{WorkspaceID: "w", ThreadID: "t"}
	wants := func(q store.ConversationQuery, want string) {
		t.Helper()
		if got := heard(t, s, q); got != want {
			t.Errorf("%+v: %q, want %q", q, got, want)
		}
	}
	wants(q, "")
	say(t, s, ada, "1", epoch(), "a", "b")
	say(t, s, ada, "1", epoch(), "b", "c") // again, and one more
	if err := s.EndConversationTurn(t.Context(), "w", "t", "1", "blocked"); err != nil {
		t.Fatal(err)
	}
	say(t, s, ada, "2", epoch(), "d")
	say(t, s, store.Scope{WorkspaceID: "w", ThreadID: "u"}, "1", epoch(), "a")
	wants(q, "0ablocked 1bblocked 2cblocked 3d")
	wants(store.ConversationQuery{WorkspaceID: "v", ThreadID: "t"}, "")
	q.Limit, q.Bytes = 2, 1<<20
	wants(q, "… 2cblocked 3d")
	q.Before = 2
	wants(q, "0ablocked 1bblocked")
	q = store.ConversationQuery{WorkspaceID: "w", ThreadID: "t", Limit: 9, Bytes: 25}
	wants(q, "… 2cblocked 3d")
	q.Bytes = 1
	wants(q, "… 3d")
	q = store.ConversationQuery{WorkspaceID: "w", ThreadID: "t"}

	for _, bad := range [][]store.ConversationEntry{
		{{ID: "x", Entry: json.RawMessage(`{`)}},
		{{ID: "", Entry: json.RawMessage(`{}`)}},
		{{ID: "a\x00", Entry: json.RawMessage(`{}`)}},
		append(said("e"), store.ConversationEntry{ID: "a", Entry: json.RawMessage(`{"text":"other"}`)}), said("e", "a"), // of another turn
	} {
		wantCode(t, s.AppendConversation(t.Context(), ada, "2", epoch(), bad), store.CodeInvalid)
	}
	wants(q, "0ablocked 1bblocked 2cblocked 3d")

	summarize := func(through, text string, code store.Code) {
		t.Helper()
		_, err := s.SummarizeConversation(t.Context(), "w", "t", through, text, epoch())
		if code == "" && err != nil {
			t.Fatal(err)
		}
		if code != "" {
			wantCode(t, err, code)
		}
	}
	summarize("none", "S", store.CodeNotFound)
	summarize("b", "", store.CodeInvalid)
	summarize("b", "S", "")
	summarize("b", "S2", "")
	summarize("a", "S", store.CodeInvalid)
	wants(q, "(1 S2) 0ablocked 1bblocked 2cblocked 3d")
	q.Unsummarized = true
	s = open(t, dsn, store.Options{}) // the next program
	wants(q, "(1 S2) 2cblocked 3d")
}

// testConversationOfMany: programs that append to one thread at once lose nothing, and number nothing twice.
func (x suite) testConversationOfMany(t *testing.T) {
	dsn := x.newDSN(t)
	var group sync.WaitGroup
	for p := range 2 {
		s := open(t, dsn, store.Options{})
		for c := range 4 {
			group.Go(func() {
				for n := range 10 {
					id := fmt.Sprintf("%d-%d-%d", p, c, n)
					if err := s.AppendConversation(t.Context(), store.Scope{WorkspaceID: "w", ThreadID: "t"}, id, epoch(), said(id+"a", id+"b")); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
	c, err := open(t, dsn, store.Options{}).Conversation(t.Context(), store.ConversationQuery{WorkspaceID: "w", ThreadID: "t", Limit: 1000, Bytes: 1 << 20})
	if err != nil || len(c.Entries) != 160 {
		t.Fatalf("%d entries, %v", len(c.Entries), err)
	}
	for i, e := range c.Entries {
		if e.Seq != int64(i) || i%2 == 1 && e.TurnID != c.Entries[i-1].TurnID {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
}

// testLongConversation: of 100,000 entries the last ones are found by the primary key, and no others are read.
func (x suite) testLongConversation(t *testing.T) {
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{})
	say(t, s, store.Scope{WorkspaceID: "w", ThreadID: "t"}, "1", epoch(), "a")
	var id string
	if err := storetest.Raw(t, dsn).QueryRowContext(t.Context(), "SELECT id FROM conversations").Scan(&id); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, dsn, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
		INSERT INTO conversation_entries (conversation_id, seq, entry_id, turn_id, actor, created_at, bytes, entry)
		SELECT '`+id+`', i, CAST(i AS TEXT), '1', '', 0, 12, '{"text":"x"}' FROM n`)
	storetest.Exec(t, dsn, "ANALYZE")
	c, err := s.Conversation(t.Context(), store.ConversationQuery{WorkspaceID: "w", ThreadID: "t", Limit: 200, Bytes: 1 << 20})
	if err != nil || len(c.Entries) != 200 || !c.More || c.Entries[199].Seq != 100_000 {
		t.Fatalf("%d entries, %v", len(c.Entries), err)
	}
	for query, args := range map[string][]any{
		store.MeasureTail: {id, 100_001, -1, 201},
		store.ReadTail:    {id, 100_001, 99_801},
	} {
		plan := planOf(t, dsn, query, args...)
		if strings.Contains(plan, "Seq Scan on conversation_entries") || strings.Contains(plan, "SCAN e") || strings.Contains(plan, "SCAN conversation_entries") || strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "rows=100") {
			t.Errorf("%s\n%s", query, plan)
		}
	}
}

// planOf is how the database answers a query.
func planOf(t *testing.T, dsn, query string, args ...any) string {
	t.Helper()
	explain := "EXPLAIN QUERY PLAN "
	if strings.HasPrefix(dsn, "postgres:") {
		explain = "EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) "
	}
	rows, err := storetest.Raw(t, dsn).QueryContext(t.Context(), explain+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var plan strings.Builder
	into, detail := make([]any, len(columns)), ""
	for n := range into {
		into[n] = new(any)
	}
	into[len(into)-1] = &detail
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(detail + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

// testConversationErased: an erasure takes what a person said, and summaries that may hold it, with a record.
func (x suite) testConversationErased(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	ada, bob := store.Scope{WorkspaceID: "w", ThreadID: "t", Actor: "user:ada"}, store.Scope{WorkspaceID: "w", ThreadID: "t", Actor: "user:bob"}
	say(t, s, bob, "1", epoch(), "a", "b")
	say(t, s, ada, "2", epoch(), "c")
	say(t, s, bob, "3", epoch().Add(time.Hour), "d")
	for _, through := range []string{"b", "d"} {
		if _, err := s.SummarizeConversation(t.Context(), "w", "t", through, "up to "+through, epoch()); err != nil {
			t.Fatal(err)
		}
	}
	q := store.ConversationQuery{WorkspaceID: "w", ThreadID: "t"}
	e := store.Erasing{Scope: store.Scope{Actor: "user:ada"}, DryRun: true}
	if got := erase(t, s, e); got != (store.Erased{Threads: 1, Entries: 1}) {
		t.Errorf("a dry run says %+v", got)
	}
	e.DryRun = false
	if got := erase(t, s, e); got != (store.Erased{Threads: 1, Entries: 1}) {
		t.Errorf("erased %+v", got)
	}
	if got := heard(t, s, q); got != "(1 up to b) 0a 1b 3d" {
		t.Errorf("left: %s", got)
	}
	wantGood(t, s, 1) // the record of it
	if got := erase(t, s, store.Erasing{Scope: store.Scope{ThreadID: "t"}, Before: epoch().Add(time.Minute)}); got.Entries != 2 || heard(t, s, q) != "3d" {
		t.Errorf("erased %+v, left: %s", got, heard(t, s, q))
	}
	if got := erase(t, s, store.Erasing{Scope: store.Scope{WorkspaceID: "w"}}); got.Entries != 1 || heard(t, s, q) != "" {
		t.Errorf("erased %+v", got)
	}
	say(t, s, bob, "4", epoch(), "e")
	if got := heard(t, s, q); got != "4e" {
		t.Errorf("after an erasure: %s", got)
	}
}

// testConversationPruned: retention by age takes entries from the front, by the rules of the workspace, unless held.
func (x suite) testConversationPruned(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	for _, workspace := range []string{"own", "held", "w"} {
		of := store.Scope{WorkspaceID: workspace, ThreadID: "t"}
		say(t, s, of, "1", epoch(), "a", "b")
		say(t, s, of, "2", epoch().Add(2*time.Hour), "c")
		if _, err := s.SummarizeConversation(t.Context(), workspace, "t", "a", "S", epoch()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Hold(t.Context(), store.Hold{Scope: store.Scope{WorkspaceID: "held"}, By: "b", Reason: "r", At: epoch()}); err != nil {
		t.Fatal(err)
	}
	r := store.Retention{Age: time.Hour, Workspaces: map[string]store.Retention{"own": {}}}
	if got, err := s.Prune(t.Context(), r, epoch().Add(2*time.Hour)); err != nil || got.Entries != 2 {
		t.Errorf("pruned %+v, %v", got, err)
	}
	for workspace, want := range map[string]string{"own": "(0 S) 0a 1b 2c", "held": "(0 S) 0a 1b 2c", "w": "2c"} {
		if got := heard(t, s, store.ConversationQuery{WorkspaceID: workspace, ThreadID: "t"}); got != want {
			t.Errorf("%s: %s, want %s", workspace, got, want)
		}
	}
}

// testConversationGone: with a thread or a workspace of the tree goes its conversation: at once for readers, and soon
// from the database, unless it is held.
func (x suite) testConversationGone(t *testing.T) {
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{})
	tr, err := s.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.CreateWorkspace(t.Context(), tree.CreateWorkspace{ID: "w", Name: "W", Actor: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.CreateThread(t.Context(), tree.CreateThread{WorkspaceID: "w", ID: "t", Title: "T", Actor: "a"}); err != nil {
		t.Fatal(err)
	}
	say(t, s, store.Scope{WorkspaceID: "w", ThreadID: "t"}, "1", epoch(), "a", "b")
	say(t, s, store.Scope{WorkspaceID: "w", ThreadID: "u"}, "1", epoch(), "a")
	say(t, s, store.Scope{WorkspaceID: "v", ThreadID: "t"}, "1", epoch(), "a")
	if _, err := tr.DeleteThread(t.Context(), tree.DeleteThread{WorkspaceID: "w", ThreadID: "t", Actor: "a"}); err != nil {
		t.Fatal(err)
	}
	q := store.ConversationQuery{WorkspaceID: "w", ThreadID: "t"}
	if got := heard(t, s, q); got != "" {
		t.Errorf("of a deleted thread: %s", got)
	}
	say(t, s, store.Scope{WorkspaceID: "w", ThreadID: "t"}, "2", epoch(), "a") // another one
	hold := store.Hold{Scope: store.Scope{ThreadID: "t"}, By: "b", Reason: "r", At: epoch()}
	if err := s.Hold(t.Context(), hold); err != nil {
		t.Fatal(err)
	}
	sweep := func(want int) {
		t.Helper()
		if n, err := s.SweepConversations(t.Context()); err != nil || n != want {
			t.Errorf("swept %d, %v; want %d", n, err, want)
		}
	}
	sweep(0)
	if err := s.Release(t.Context(), hold.Scope); err != nil {
		t.Fatal(err)
	}
	sweep(2)
	sweep(0)
	if got := heard(t, s, q); got != "0a" {
		t.Errorf("of the thread that is there again: %s", got)
	}
	if _, err := tr.DeleteWorkspace(t.Context(), tree.DeleteWorkspace{WorkspaceID: "w", Recursive: true, Actor: "a"}); err != nil {
		t.Fatal(err)
	}
	sweep(2)
	rows := map[string]int{}
	for _, table := range []string{"conversations", "conversation_entries", "conversation_turns"} {
		var n int
		if err := storetest.Raw(t, dsn).QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		rows[table] = n
	}
	if diff := cmp.Diff(rows, map[string]int{"conversations": 1, "conversation_entries": 1, "conversation_turns": 1}); diff != "" {
		t.Errorf("left in the database (-got +want):\n%s", diff)
	}
}
