package gateway

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// conversing is a gateway with a log and a tree in one database, which keeps the conversations of the workspaces w and v.
func conversing(t *testing.T, dsn string, change func(o *Options)) *served {
	t.Helper()
	log := must(store.Open(t.Context(), dsn, store.Options{}))(t)
	t.Cleanup(func() { _ = log.Close() })
	tr := must(log.Tree(t.Context()))(t)
	for _, id := range []string{"w", "v", "none"} {
		workspace(t, tr, id)
	}
	o := Options{Tree: tr, Engine: engine(t, tr, log), Log: log, Conversations: Conversations{
		Workspaces: []string{"w", "v"}, Log: log, CountTokens: func(s string) int { return (len(s) + 3) / 4 },
	}}
	if change != nil {
		change(&o)
	}
	return serve(t, o)
}

// entry is one entry for thread/append.
func entry(id, role, text string) object { return object{"id": id, "role": role, "text": text} }

// converse makes one turn: it compiles, appends a question and an answer, and ends. It returns what the prompt had.
func converse(t *testing.T, c *caller, id, status string) compiledTurn {
	t.Helper()
	handle := do[begunTurn](t, c, "turn/begin", object{"turn": turnOf(object{"turn_id": id})}).Handle
	do[appended](t, c, "thread/append", object{"handle": handle, "entries": []object{entry(id+"-q", "user", "Question "+id)}})
	done := do[compiledTurn](t, c, "turn/compile", object{"handle": handle, "input": object{"user_text": "Question " + id, "model": "m"}})
	do[any](t, c, "turn/report", object{"handle": handle, "usage": object{"input_tokens": 2000}})
	do[appended](t, c, "thread/append", object{"handle": handle, "entries": []object{entry(id+"-a", "assistant", "Answer "+id)}})
	do[any](t, c, "turn/end", object{"handle": handle, "end": object{"status": status}})
	return done
}

// ids are the ids of what was chosen, with its summary in front.
func ids(w *history.Window) string {
	if w == nil {
		return "none"
	}
	var out []string
	if w.Summary != "" {
		out = append(out, "("+w.Summary+")")
	}
	for i := range w.Entries {
		out = append(out, w.Entries[i].ID)
	}
	return strings.Join(out, " ")
}

// TestConversation: a thread's conversation goes on from turn to turn, over a restart of the gateway and behind a summary;
// the entries of a blocked turn reach no model; the manifest counts what is sent.
func TestConversation(t *testing.T) {
	t.Parallel()

	dsn := storetest.SQLite(t)
	c := conversing(t, dsn, nil).post(t, "")
	wants := func(got compiledTurn, want string) {
		t.Helper()
		if ids(got.Conversation) != want {
			t.Errorf("chosen: %s, want %s", ids(got.Conversation), want)
		}
	}
	wants(converse(t, c, "1", "succeeded"), "1-q")
	wants(converse(t, c, "2", "blocked"), "1-q 1-a 2-q")
	done := converse(t, c, "3", "failed")
	wants(done, "1-q 1-a 3-q")
	if h := done.Manifest.History; h == nil || h.Entries != 3 || h.Hash == "" {
		t.Errorf("the manifest says %+v", h)
	}
	c = conversing(t, dsn, nil).post(t, "") // another gateway, on the same database
	wants(converse(t, c, "4", "succeeded"), "1-q 1-a 3-q 3-a 4-q")

	kept := do[summarized](t, c, "thread/summarize", object{"workspace_id": "w", "thread_id": "t", "through": "3-q", "text": "Three questions."})
	if kept.ThroughSeq != 4 || kept.PreCompaction == nil || kept.PostCompaction == nil {
		t.Errorf("summarized %+v", kept)
	}
	done = converse(t, c, "5", "succeeded")
	wants(done, "(Three questions.) 3-a 4-q 4-a 5-q")
	if h := done.Manifest.History; h.Summarized != 5 || h.Entries != 4 {
		t.Errorf("the manifest says %+v", h)
	}
	one := do[compiledTurn](t, c, "turn/compile", object{"turn": turnOf(object{"turn_id": "6"})}) // without a handle
	wants(one, "(Three questions.) 3-a 4-q 4-a 5-q 5-a")
	page := do[entriesPage](t, c, "thread/entries", object{"workspace_id": "w", "thread_id": "t", "before_seq": 4, "limit": 3})
	var got []string
	for _, e := range page.Entries {
		got = append(got, fmt.Sprint(e.Seq, e.Entry.ID, e.TurnStatus))
	}
	if diff := cmp.Diff(got, []string{"11-asucceeded", "22-qblocked", "32-ablocked"}); diff != "" || !page.More || page.Summary != "Three questions." {
		t.Errorf("a page %+v (-got +want):\n%s", page, diff)
	}
	if done := do[compiledTurn](t, c, "turn/compile", object{"turn": turnOf(object{"workspace_id": "none"})}); done.Conversation != nil || done.Manifest.History != nil {
		t.Errorf("a workspace without conversations has %+v", done.Conversation)
	}
}

// TestConversationIsCut: what does not fit is omitted and counted, and compile says that a summary is due.
func TestConversationIsCut(t *testing.T) {
	t.Parallel()

	c := conversing(t, storetest.SQLite(t), func(o *Options) {
		o.Conversations.MaxEntries = 3
	}).post(t, "")
	for i := range 3 {
		converse(t, c, strconv.Itoa(i), "succeeded")
	}
	done := converse(t, c, "last", "succeeded")
	if got := ids(done.Conversation); got != "2-q 2-a last-q" || len(done.Conversation.Dropped) != 4 || done.Conversation.Compaction != history.CompactNow {
		t.Errorf("chosen %s, dropped %+v, %s", got, done.Conversation.Dropped, done.Conversation.Compaction)
	}
	if h := done.Manifest.History; h.Cut != 4 {
		t.Errorf("the manifest says %+v", h)
	}
	if s := done.Conversation.Scale; s.Factor == 1 || s.Safety == 1.5 {
		t.Errorf("nothing was learned of what was reported: %+v", s)
	}
}

// TestAppendRefused: entries are appended once; what makes no sense, is too large or is somebody else's is refused by name,
// and nothing of it is kept.
func TestAppendRefused(t *testing.T) {
	t.Parallel()

	rights := rpc.Rights()
	s := conversing(t, storetest.SQLite(t), func(o *Options) {
		o.Tokens = []Token{token("ada", []string{"w", "none"}, rights...), token("bob", []string{"v"}, rights...), token("reader", []string{"w"}, rpc.ReadRight)}
	})
	ada, bob := s.post(t, "ada"), s.post(t, "bob")
	begin := func(workspace string) string {
		t.Helper()
		return do[begunTurn](t, ada, "turn/begin", object{"turn": turnOf(object{"workspace_id": workspace})}).Handle
	}
	handle := begin("w")
	for range 2 {
		if got := do[appended](t, ada, "thread/append", object{"handle": handle, "entries": []object{entry("1", "user", "a"), entry("2", "assistant", "b")}}); fmt.Sprint(got.Seqs) != "[0 1]" {
			t.Errorf("appended %v", got.Seqs)
		}
	}
	many := make([]object, maxAppend+1)
	for i := range many {
		many[i] = entry(fmt.Sprint("m", i), "user", "x")
	}
	for _, tt := range []struct {
		name, handle string
		entries      any
		code, in     string
	}{
		{"other content", handle, []object{entry("3", "user", "c"), entry("1", "user", "other")}, rpc.CodeInvalid, `entry "1" already`},
		{"no id", handle, []object{{"role": "user", "text": "x"}}, rpc.CodeInvalid, "entries.0.id"},
		{"a long id", handle, []object{entry(strings.Repeat("x", 300), "user", "x")}, rpc.CodeInvalid, "entries.0.id"},
		{"another turn", handle, []object{{"id": "4", "turn_id": "9", "role": "user", "text": "x"}}, rpc.CodeInvalid, "entries.0.turn_id"},
		{"system text", handle, []object{entry("4", "system", "x")}, rpc.CodeInvalid, "entries.0.role"},
		{"too many", handle, many, rpc.CodeTooLarge, "101"},
		{"too large", handle, []object{entry("4", "user", strings.Repeat("x", maxEntryBytes))}, rpc.CodeTooLarge, "entries.0: it has"},
		{"no conversations", begin("none"), []object{entry("1", "user", "x")}, rpc.CodeUnavailable, "serve.conversations"},
		{"no such turn", "x", []object{entry("1", "user", "x")}, rpc.CodeTurnUnknown, "turn/begin"},
	} {
		_, bad := ada.call(t, "thread/append", object{"handle": tt.handle, "entries": tt.entries})
		if bad.code() != tt.code || !strings.Contains(bad.Message, tt.in) {
			t.Errorf("%s: %+v", tt.name, bad)
		}
	}
	where := object{"workspace_id": "w", "thread_id": "t"}
	summary := maps.Clone(where)
	maps.Copy(summary, object{"through": "1", "text": "S"})
	for name, params := range map[string]object{"thread/entries": where, "thread/summarize": summary} {
		missing := maps.Clone(params)
		missing["workspace_id"] = "nowhere"
		_, unknown := bob.call(t, name, missing)
		_, foreign := bob.call(t, name, params)
		if foreign.code() != rpc.CodeNotFound || unknown.code() != rpc.CodeNotFound || foreign.Message != strings.ReplaceAll(unknown.Message, "nowhere", "w") {
			t.Errorf("%s of another tenant: %+v, of nobody: %+v", name, foreign, unknown)
		}
		if _, bad := s.post(t, "reader").call(t, name, params); bad.code() != rpc.CodeUnauthorized {
			t.Errorf("%s without the right: %+v", name, bad)
		}
	}
	if _, bad := bob.call(t, "thread/append", object{"handle": handle, "entries": []object{entry("5", "user", "x")}}); bad.code() != rpc.CodeTurnUnknown {
		t.Errorf("the turn of another token: %+v", bad)
	}
	summary["through"] = "none"
	if _, bad := ada.call(t, "thread/summarize", summary); bad.code() != rpc.CodeNotFound || !strings.Contains(bad.Message, `no entry "none"`) {
		t.Errorf("a summary up to nothing: %+v", bad)
	}
	do[summarized](t, ada, "thread/summarize", object{"handle": handle, "through": "1", "text": "S"}) // a token of one workspace, by the turn
	page := do[entriesPage](t, ada, "thread/entries", where)
	if len(page.Entries) != 2 || page.Entries[1].Entry.ID != "2" {
		t.Errorf("kept %+v", page.Entries)
	}
}

// TestConversationOfLostClient: a client that is killed in the middle of a turn leaves its entries, and the turn is
// interrupted when its time is over. The next turn sees them; calls without results are omitted.
func TestConversationOfLostClient(t *testing.T) {
	t.Parallel()

	s := conversing(t, storetest.SQLite(t), func(o *Options) { o.TurnIdle = 50 * time.Millisecond })
	lost, c := s.dial(t, ""), s.dial(t, "")
	do[any](t, c, "workspace/watch", object{"workspace_id": "w"})
	handle := do[begunTurn](t, lost, "turn/begin", object{"turn": turnOf(object{"turn_id": "lost"})}).Handle
	do[appended](t, lost, "thread/append", object{"handle": handle, "entries": []object{
		entry("q", "user", "?"), {"id": "calls", "role": "assistant", "calls": []object{{"id": "1", "tool": "x", "arguments": object{}}}},
	}})
	_ = lost.Close()
	note := c.note(t)
	if err := fits(description(t).Notifications[notifyTurn].Params, note.Params); err != nil || note.Method != notifyTurn || decoded[TurnEnded](t, note.Params).Handle != handle {
		t.Fatalf("%+v: %v", note, err)
	}
	status := func() string {
		page := do[entriesPage](t, c, "thread/entries", object{"workspace_id": "w", "thread_id": "t"})
		return page.Entries[0].TurnStatus
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for status() == "" && ctx.Err() == nil { // it is written behind the notification
		runtime.Gosched()
	}
	if got := status(); got != string(phases.TurnInterrupted) {
		t.Errorf("the turn was %q", got)
	}
	done := do[compiledTurn](t, c, "turn/compile", object{"turn": turnOf(nil)})
	if got := ids(done.Conversation); got != "q" || done.Manifest.History.Repaired != 1 {
		t.Errorf("the next turn sees %s: %+v", got, done.Manifest.History)
	}
}

// TestConversationGoes: with a thread goes its conversation, and an erasure of a person takes what was said for them.
func TestConversationGoes(t *testing.T) {
	t.Parallel()

	dsn := storetest.SQLite(t)
	c := conversing(t, dsn, nil).post(t, "")
	do[any](t, c, "thread/create", object{"workspace_id": "w", "id": "t", "title": "T"})
	converse(t, c, "1", "succeeded")
	do[any](t, c, "thread/delete", object{"workspace_id": "w", "thread_id": "t"})
	if page := do[entriesPage](t, c, "thread/entries", object{"workspace_id": "w", "thread_id": "t"}); len(page.Entries) != 0 {
		t.Errorf("left: %+v", page.Entries)
	}
	rows := func() (n int) {
		if err := storetest.Raw(t, dsn).QueryRowContext(t.Context(), "SELECT count(*) FROM conversation_entries").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for rows() > 0 && ctx.Err() == nil { // it is removed behind the answer
		runtime.Gosched()
	}
	if n := rows(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	handle := do[begunTurn](t, c, "turn/begin", object{"turn": turnOf(object{"actor": object{"kind": "user", "id": "ada"}})}).Handle
	do[appended](t, c, "thread/append", object{"handle": handle, "entries": []object{entry("1", "user", "a")}})
	log := must(store.Open(t.Context(), dsn, store.Options{}))(t)
	defer func() { _ = log.Close() }()
	erased := must(log.Erase(t.Context(), store.Erasing{Scope: store.Scope{Actor: "user:ada"}, By: "x", Reason: "y"}))(t)
	if erased.Entries != 1 || rows() != 0 {
		t.Errorf("erased %+v", erased)
	}
	if v := must(log.Verify(t.Context(), store.Filter{}, manifest.VerifyOptions{}))(t); !v.OK {
		t.Errorf("the log: %+v", v)
	}
}

// TestConversationOfLargeEntries: of a long past no more is read than a window may have, and compile says that a summary
// is due. A turn that is too long for a prompt is refused, rather than cut.
func TestConversationOfLargeEntries(t *testing.T) {
	t.Parallel()

	c := conversing(t, storetest.SQLite(t), nil).post(t, "")
	begin := func(id string) string {
		t.Helper()
		return do[begunTurn](t, c, "turn/begin", object{"turn": turnOf(object{"turn_id": id})}).Handle
	}
	handle := begin("large")
	compile := object{"handle": handle, "input": object{}}
	for i := range 10 {
		do[appended](t, c, "thread/append", object{"handle": handle, "entries": []object{entry(strconv.Itoa(i), "user", strings.Repeat("x", maxEntryBytes-200))}})
	}
	if _, bad := c.call(t, "turn/compile", compile); bad.code() != rpc.CodeTooLarge || !strings.Contains(bad.Message, "thread/summarize") {
		t.Errorf("a turn that is too long: %+v", bad)
	}
	do[summarized](t, c, "thread/summarize", object{"handle": handle, "through": "8", "text": "S"})
	if got := ids(do[compiledTurn](t, c, "turn/compile", compile).Conversation); got != "(S) 9" {
		t.Errorf("behind a summary: %s", got)
	}
	do[any](t, c, "turn/end", object{"handle": handle, "end": object{"status": "succeeded"}})
	other := begin("next")
	for i := range 10 {
		do[appended](t, c, "thread/append", object{"handle": other, "entries": []object{entry("n"+strconv.Itoa(i), "user", strings.Repeat("x", maxEntryBytes-200))}})
	}
	done := do[compiledTurn](t, c, "turn/compile", object{"turn": turnOf(object{"turn_id": "last"})})
	if w := done.Conversation; len(w.Entries)+len(w.Dropped) > 9 || w.Compaction != history.CompactNow {
		t.Errorf("read %d entries, compaction %s", len(w.Entries)+len(w.Dropped), w.Compaction)
	}
	if page := do[entriesPage](t, c, "thread/entries", object{"workspace_id": "w", "thread_id": "t", "limit": 500}); !page.More || len(page.Entries) > 5 {
		t.Errorf("a page of %d", len(page.Entries))
	}
}
