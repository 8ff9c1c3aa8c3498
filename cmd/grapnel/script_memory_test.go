package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
)

// memoryCommands are the commands of scripts about memories.
func memoryCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"remember": cmdRemember,
		"sqlite":   cmdSQLite,
		"hold":     cmdHold,
		"cursor":   cmdCursor,
		"itemid":   cmdItemID,
	}
}

// rememberedAt is when the first memory of cmdRemember was stored.
var rememberedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// cmdRemember is "remember DB WORKSPACE SCOPE[:ID]/CATEGORY/TEXT...": memories, each a
// minute younger than the one before it. A text "SLOT=TEXT" is the answer to a slot.
func cmdRemember(ts *testscript.TestScript, _ bool, args []string) {
	at := rememberedAt
	random := rand.NewChaCha8([32]byte([]byte(strings.Repeat(ts.Name()+args[1]+args[2], 32)[:32])))
	s, err := itemstore.Open(context.Background(), "sqlite:"+ts.MkAbs(args[0]), itemstore.Options{Now: func() time.Time { return at }, Entropy: random})
	ts.Check(err)
	for _, arg := range args[2:] {
		scope, rest, _ := strings.Cut(arg, "/")
		category, text, _ := strings.Cut(rest, "/")
		scope, id, _ := strings.Cut(scope, ":")
		item := itemstore.Item{
			Scope: itemstore.Scope(scope), ScopeID: id, Category: turnpolicy.Category(category), Text: text,
			Evidence: "she said: " + text, Source: itemstore.SourceTurn,
		}
		if slot, answer, ok := strings.Cut(text, "="); ok {
			item.Slot, item.Text = slot, answer
		}
		_, err := s.Remember(context.Background(), itemstore.Batch{WorkspaceID: args[1], Items: []itemstore.Item{item}})
		ts.Check(err)
		at = at.Add(time.Minute)
	}
	ts.Check(s.Close())
}

// openSQLite opens a file with the driver that the store brings along.
func openSQLite(ts *testscript.TestScript, name string) *sql.DB {
	db, err := sql.Open("sqlite", ts.MkAbs(name))
	ts.Check(err)
	db.SetMaxOpenConns(1)
	ts.Defer(func() { _ = db.Close() })
	return db
}

// cmdSQLite is "sqlite DB SQL...": changes past the store.
func cmdSQLite(ts *testscript.TestScript, _ bool, args []string) {
	db := openSQLite(ts, args[0])
	for _, statement := range args[1:] {
		_, err := db.ExecContext(context.Background(), statement)
		ts.Check(err)
	}
	ts.Check(db.Close())
}

// cmdHold is "hold DB": it keeps everybody else from writing until the script ends.
func cmdHold(ts *testscript.TestScript, _ bool, args []string) {
	_, err := openSQLite(ts, args[0]).ExecContext(context.Background(), "BEGIN IMMEDIATE")
	ts.Check(err)
}

// cmdCursor is "cursor VARIABLE": the cursor that list --json printed.
func cmdCursor(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], decodedList(ts).Next)
}

// cmdItemID is "itemid VARIABLE TEXT": the id of the memory that list --json printed
// with that text.
func cmdItemID(ts *testscript.TestScript, _ bool, args []string) {
	for _, row := range decodedList(ts).Items {
		if row.Text == args[1] {
			ts.Setenv(args[0], row.ID)
			return
		}
	}
	ts.Fatalf("no memory %q", args[1])
}

// decodedList is the file out as list --json writes it.
func decodedList(ts *testscript.TestScript) (list memoryList) {
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("out")), &list))
	return list
}
