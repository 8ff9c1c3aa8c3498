package toolset

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
)

// item is one with a text.
func item(id, text string) itemstore.Item {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return itemstore.Item{
		ID: id, WorkspaceID: "w", Scope: itemstore.ScopeUser, ScopeID: "ada", Category: turnpolicy.Preference, Text: text,
		Evidence: "I said: " + text, Source: itemstore.SourceTurn, CreatedAt: at, UpdatedAt: at, Uses: 2,
	}
}

// large is the largest item that a store can have, in signs that JSON writes longest.
func large(i int) itemstore.Item {
	it := item(fmt.Sprintf("01J8Z%021d", i), strings.Repeat("\x01", itemstore.MaxText))
	it.WorkspaceID, it.ScopeID = strings.Repeat("\x02", itemstore.MaxName), strings.Repeat("\x03", itemstore.MaxName)
	it.Evidence = strings.Repeat("\x04", itemstore.MaxEvidence)
	it.Slot = strings.Repeat("\x05", itemstore.MaxSlot)
	it.Supersedes, it.SupersededBy, it.Uses = it.ID, it.ID, 1<<30
	it.LastUsedAt = it.CreatedAt
	return it
}

// checkAnswer reports an answer that is no JSON, or too long.
func checkAnswer(t *testing.T, raw json.RawMessage, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(raw) || utf8.RuneCount(raw) > MaxAnswer {
		t.Errorf("%d characters of valid JSON: %v", utf8.RuneCount(raw), json.Valid(raw))
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	one, two := item("01", "I prefer <tabs>"), item("02", "second")
	const entry = `"scope":"user","scope_id":"ada","category":"preference","text":`
	const at = `"updated_at":"2026-01-02T03:04:05Z","uses":2`
	raw := func(raw json.RawMessage, _ int, err error) (json.RawMessage, error) { return raw, err }
	remembered := func(change itemstore.Change, replaced ...string) (json.RawMessage, error) {
		return AnswerRemember(&itemstore.Outcome{Change: change, Item: one, Replaced: replaced})
	}
	check := func(want string) func(raw json.RawMessage, err error) {
		return func(raw json.RawMessage, err error) {
			t.Helper()
			checkAnswer(t, raw, err)
			if diff := cmp.Diff(string(raw), want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		}
	}
	check(`{"items":[{"id":"01",` + entry + `"I prefer <tabs>",` + at + `,"score":1.5}],"omitted":3}`)(AnswerSearch([]itemstore.Hit{{Item: one, Score: 1.5}}, 3))
	check(`{"items":[]}`)(AnswerSearch(nil, 0))
	check(`{"items":[{"id":"01",` + entry + `"I prefer <tabs>",` + at + `},{"id":"02",` + entry + `"second",` + at + `}],"next":"c"}`)(
		raw(AnswerList([]itemstore.Item{one, two}, "c")))
	check(`{"item":{"id":"01","workspace_id":"w",` + entry + `"I prefer <tabs>","evidence":"I said: I prefer <tabs>","source":"turn","created_at":"2026-01-02T03:04:05Z",` +
		at + `,"hash":""}}`)(AnswerGet(&one))
	check(`{"change":"replaced","id":"01","replaced":["00"]}`)(remembered(itemstore.Replaced, "00"))
	check(`{"change":"known","id":"01","message":"This is remembered already."}`)(remembered(itemstore.Known))
	check(`{"matches":[{"id":"02",` + entry + `"second",` + at + `}],"count":1,"confirmation":"forget-x",` +
		`"message":"Nothing is forgotten yet. If all of these are to be forgotten, call again with the same arguments and this confirmation; if only some, call with their ids."}`)(
		AnswerMatches([]itemstore.Item{two}, Ask{Count: 1, Confirmation: "forget-x"}))
	check(`{"matches":[],"count":0,"message":"Nothing that is remembered matches."}`)(AnswerMatches(nil, Ask{Confirmation: "forget-x"}))
	check(`{"count":1,"ids":["01"],"lingering":"busy"}`)(AnswerForget(itemstore.Removed{IDs: []string{"01"}, Lingering: errors.New("busy")}, false))
	check(`{"count":0,"ids":[]}`)(AnswerForget(itemstore.Removed{}, false))
	check(`{"error":"not now","reason_code":"en.no_save.dont"}`)(AnswerRefusal("en.no_save.dont", "not now"))
}

// TestLarge: of the largest items at least one has room, whatever the answer.
func TestLarge(t *testing.T) {
	t.Parallel()
	var items []itemstore.Item
	var hits []itemstore.Hit
	var ids []string
	for i := range 500 {
		items = append(items, large(i))
		hits = append(hits, itemstore.Hit{Item: items[i], Score: 1})
		ids = append(ids, items[i].ID)
	}
	raw, err := AnswerSearch(hits, 7)
	checkAnswer(t, raw, err)
	var found Hits
	if err := json.Unmarshal(raw, &found); err != nil || len(found.Items) < 1 || found.Omitted != 507-len(found.Items) {
		t.Errorf("%d hits, %d omitted: %v", len(found.Items), found.Omitted, err)
	}
	raw, n, err := AnswerList(items[:50], strings.Repeat("x", 200))
	checkAnswer(t, raw, err)
	if n < 1 {
		t.Error("a page of nothing")
	}
	raw, err = AnswerGet(&items[0])
	checkAnswer(t, raw, err)
	var whole Whole
	if err := json.Unmarshal(raw, &whole); err != nil || !whole.Shortened {
		t.Errorf("whole: %v, %v", whole.Shortened, err)
	}
	shown, err := Preview(items[:20])
	if err != nil || len(shown) < 1 {
		t.Fatalf("%d shown: %v", len(shown), err)
	}
	raw, err = AnswerMatches(shown, Ask{Count: len(shown), Confirmation: Confirmation("w", shown), More: true, Stale: true})
	checkAnswer(t, raw, err)
	var m Matches
	if err := json.Unmarshal(raw, &m); err != nil || len(m.Matches) != len(shown) {
		t.Errorf("%d of %d matches: %v", len(m.Matches), len(shown), err)
	}
	raw, err = AnswerMatches(items, Ask{Count: 500, Confirmation: Confirmation("w", items), More: true})
	checkAnswer(t, raw, err)
	raw, err = AnswerForget(itemstore.Removed{IDs: ids, Lingering: errors.New(strings.Repeat("\x01", 9000))}, true)
	checkAnswer(t, raw, err)
	var gone Forgotten
	if err := json.Unmarshal(raw, &gone); err != nil || gone.Count != 500 || len(gone.IDs) < 100 {
		t.Errorf("%d ids of %d: %v", len(gone.IDs), gone.Count, err)
	}
	raw, err = AnswerRefusal(strings.Repeat("\x01", 9000), strings.Repeat("\x01", 9000))
	checkAnswer(t, raw, err)
}
