package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// storeCommands are the commands of scripts about the audit log.
func storeCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"record": cmdRecord,
		"report": cmdReport,
		"tamper": cmdTamper,
		"edit":   cmdEdit,
		"forge":  cmdForge,
		"newest": cmdNewest,
		"lines":  cmdLines,
	}
}

// recordedAt is when the first record of cmdRecord was made; each later one of
// its thread is a minute younger.
var recordedAt = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)

// openLog opens a log of the script.
func openLog(ts *testscript.TestScript, name string) *store.Store {
	s, err := store.Open(context.Background(), "sqlite:"+ts.MkAbs(name), store.Options{})
	ts.Check(err)
	ts.Defer(func() { _ = s.Close() })
	return s
}

// cmdRecord is "record DB THREAD N": N more turns of a thread, with their texts.
// Their ids are turn-0, turn-1 and so on.
func cmdRecord(ts *testscript.TestScript, _ bool, args []string) {
	var n int
	_, err := fmt.Sscan(args[2], &n)
	ts.Check(err)
	s, ctx := openLog(ts, args[0]), context.Background()
	first, err := s.Count(ctx, store.Filter{Thread: args[1]})
	ts.Check(err)
	random := rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%-32.32s", args[1]+args[2]+ts.Name()))))
	for i := first; i < first+n; i++ {
		out, err := compiler.Compile(compiler.Input{
			Profile: phases.ProfileFull, KeepTexts: true, Host: compiler.HostTexts{Identity: fmt.Sprintf("I am the identity of turn %d.", i)},
		})
		ts.Check(err)
		m := out.Manifest()
		m.CreatedAt = recordedAt.Add(time.Duration(i) * time.Minute)
		id, err := ulid.New(ulid.Timestamp(m.CreatedAt), random)
		ts.Check(err)
		m.ManifestID, m.WorkspaceID, m.ThreadID, m.TurnID = id.String(), "local", args[1], fmt.Sprintf("turn-%d", i)
		m.Complete()
		ts.Check(s.Append(ctx, &m, out.Texts))
	}
	ts.Check(s.Close())
}

// cmdReport is "report DB THREAD READ ROUNDS": a provider's report about the
// thread's last manifest, with so many tokens from the cache.
func cmdReport(ts *testscript.TestScript, _ bool, args []string) {
	s, ctx := openLog(ts, args[0]), context.Background()
	m, err := s.Latest(ctx, store.Filter{Thread: args[1]})
	ts.Check(err)
	u := manifest.Usage{ManifestID: m.ManifestID, ReportedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	u.InputTokens, u.OutputTokens = 1000, 30
	_, err = fmt.Sscan(args[2]+" "+args[3], &u.CacheReadTokens, &u.Rounds)
	ts.Check(err)
	ts.Check(s.Report(ctx, u))
	ts.Check(s.Close())
}

// cmdTamper is "tamper FROM TO SQL...": a copy of a log in which something was
// changed past the store.
func cmdTamper(ts *testscript.TestScript, _ bool, args []string) {
	db := copied(ts, args[0], args[1])
	for _, statement := range args[2:] {
		result, err := db.ExecContext(context.Background(), statement)
		ts.Check(err)
		if n, err := result.RowsAffected(); err == nil && n == 0 && !strings.HasPrefix(statement, "CREATE") {
			ts.Fatalf("no row was changed by %s", statement)
		}
	}
	ts.Check(db.Close())
}

// cmdForge is "forge FROM TO THREAD": a copy of a log without the thread's last
// record, signed off anew by somebody who knows how.
func cmdForge(ts *testscript.TestScript, _ bool, args []string) {
	db, ctx := copied(ts, args[0], args[1]), context.Background()
	c := manifest.Chain{WorkspaceID: "local", ThreadID: args[2]}
	ts.Check(db.QueryRowContext(ctx, "SELECT seq, hash FROM manifests WHERE thread_id = $1 ORDER BY seq DESC LIMIT 1 OFFSET 1", args[2]).Scan(&c.Next, &c.Last))
	c.Next++
	ts.Check(c.Sign(nil))
	for _, change := range []struct {
		statement string
		args      []any
	}{
		{"DELETE FROM manifests WHERE thread_id = $1 AND seq = $2", []any{args[2], c.Next}},
		{"DELETE FROM pending WHERE id NOT IN (SELECT id FROM manifests)", nil},
		{"UPDATE chains SET next_seq = $1, last_hash = $2, last_at = 0, signature = $3 WHERE thread_id = $4", []any{c.Next, c.Last, c.Signature, args[2]}},
	} {
		_, err := db.ExecContext(ctx, change.statement, change.args...)
		ts.Check(err)
	}
	ts.Check(db.Close())
}

// cmdEdit is "edit FROM TO WHERE OLD NEW": a copy of a log in which a piece of the selected record was replaced.
func cmdEdit(ts *testscript.TestScript, _ bool, args []string) {
	db, ctx := copied(ts, args[0], args[1]), context.Background()
	var packed []byte
	ts.Check(db.QueryRowContext(ctx, "SELECT record FROM manifests WHERE "+args[2]).Scan(&packed))
	edited, err := storetest.Edit(packed, args[3], args[4])
	ts.Check(err)
	_, err = db.ExecContext(ctx, "UPDATE manifests SET record = $1 WHERE "+args[2], edited)
	ts.Check(err)
	ts.Check(db.Close())
}

// copied opens a copy of a log with the driver that the store brings along.
func copied(ts *testscript.TestScript, from, to string) *sql.DB {
	// Closing the last connection leaves nothing beside the file.
	ts.Check(openLog(ts, from).Close())
	data, err := os.ReadFile(ts.MkAbs(from))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(to), data, 0o600))
	db, err := sql.Open("sqlite", ts.MkAbs(to))
	ts.Check(err)
	ts.Defer(func() { _ = db.Close() })
	return db
}

// cmdNewest is "newest FILE VARIABLE [KEY]": it sets a variable to the id, or to
// another field, of the last manifest that list --json printed.
func cmdNewest(ts *testscript.TestScript, _ bool, args []string) {
	var list api.ManifestList
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &list))
	x := list.Manifests[len(list.Manifests)-1]
	value := x.ManifestID
	if len(args) > 2 && args[2] == "hash" {
		value = x.Hash
	}
	ts.Setenv(args[1], value)
}

// cmdLines is "lines N": the file out has so many lines, which are then in the
// files line1, line2 and so on.
func cmdLines(ts *testscript.TestScript, _ bool, args []string) {
	list := strings.SplitAfter(ts.ReadFile("out"), "\n")
	list = list[:len(list)-1] // behind the last newline
	if got := strconv.Itoa(len(list)); got != args[0] {
		ts.Fatalf("got %s lines, want %s", got, args[0])
	}
	for i, line := range list {
		ts.Check(os.WriteFile(ts.MkAbs(fmt.Sprintf("line%d", i+1)), []byte(line), 0o600))
	}
}
