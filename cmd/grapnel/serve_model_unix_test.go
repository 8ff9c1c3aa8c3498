//go:build unix

package main

import (
	"context"
	"database/sql"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/gateway/client"
	"github.com/grapnelhq/grapnel/tree"
	"github.com/grapnelhq/grapnel/tree/treetest"
)

// modelSeed makes the calls of TestServeModel, and when the gateway is killed. With
// the default many of them change something between two kills: what a loss needs.
var modelSeed = flag.Uint64("serve.seed", 9, "seed of the calls on a gateway that is killed")

// TestServeModel plays random calls on a gateway that is killed again and again, by
// clients that come over HTTP, a WebSocket and a unix socket: first in turns, each
// answer compared with the model's, then at once.
//
// It fails if anything that was acknowledged is lost. In turns, all that can be read
// is compared with the model after each kill, and the model has made every
// acknowledged change; only the one call that was under way may be missing. At once,
// each acknowledged version is looked for in the end, with its text, and each thread
// that nobody deleted. A process that comes back on an older copy of its database is
// found by both.
func TestServeModel(t *testing.T) {
	t.Parallel()

	const steps, clients, every = 250, 6, 40
	for name, dsn := range serveStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			k := &killed{dir: t.TempDir(), dsn: dsn(t), trees: make([]tree.Store, clients)}
			k.start(t)
			o := treetest.RunOptions{
				Seed: *modelSeed, Steps: steps, Clients: k.clients(), Remote: true,
				Prefix: "turns-", Crash: k.crash, CrashEvery: every,
			}
			treetest.Run(t, o)
			inTurns := k.crashes
			o.Prefix, o.Steps = "at-once-", steps/clients
			treetest.RunConcurrent(t, o)
			// Run tosses for each crash, RunConcurrent counts.
			if atOnce := k.crashes - inTurns; inTurns == 0 || atOnce < steps/clients*clients/every {
				t.Errorf("killed %d times in turns, %d times at once", inTurns, atOnce)
			}
			// Its standard error ends only when its plugins have ended too.
			if code, said := k.served.end(t, syscall.SIGTERM); code != exitOK || strings.Contains(said, "panic") {
				t.Errorf("exit code %d:\n%s", code, said)
			}
		})
	}
}

// killed is a gateway that is killed and started anew on the same store, and clients
// that connect again.
type killed struct {
	dir, dsn string
	served   *served
	dialled  []*heard
	crashes  int

	mu    sync.Mutex // held where clients look for their tree
	trees []tree.Store
}

// clients are those of treetest, each with the tree of its latest connection.
func (k *killed) clients() []treetest.Client {
	list := make([]treetest.Client, len(k.trees))
	for n := range list {
		list[n].Actor = "client-" + strconv.Itoa(n)
		list[n].Store = func() tree.Store {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.trees[n]
		}
	}
	return list
}

// start starts the gateway, and connects the clients in all ways by turns.
func (k *killed) start(t *testing.T) {
	t.Helper()
	socket, file := filepath.Join(k.dir, "g.sock"), filepath.Join(k.dir, "tokens.yaml")
	lines := []string{"tokens:\n"}
	for _, c := range k.clients() { // a token's name is who acts
		lines = append(lines, tokenLine(c.Actor, "secret of "+c.Actor, "read", "write"))
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	k.served = serveIn(t, k.dir, "--store", k.dsn, "--listen", "127.0.0.1:0", "--socket", socket, "--token-file", file)
	ways := []string{k.served.target(), wsOf(k.served.target()), "unix:" + socket}
	k.dialled = nil
	for n, c := range k.clients() {
		k.dialled = append(k.dialled, dial(t, ways[n%len(ways)], "secret of "+c.Actor))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for n, c := range k.dialled {
		k.trees[n] = client.NewTree(c)
	}
}

// crash kills the gateway, waits until nothing works for it any more, and starts it.
func (k *killed) crash(t *testing.T) {
	t.Helper()
	k.crashes++
	if code, said := k.served.end(t, syscall.SIGKILL); code != -1 {
		t.Errorf("it was not killed, it ended with %d:\n%s", code, said)
	}
	for _, c := range k.dialled {
		_ = c.Close() // it is lost
	}
	if strings.HasPrefix(k.dsn, "postgres:") {
		waitForSessions(t, k.dsn)
	}
	k.start(t)
}

// waitForSessions waits until no program has a session with a database of
// PostgreSQL. The server finds out by itself that one is gone; until then it may
// still commit what that one has sent.
func waitForSessions(t *testing.T, dsn string) {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing was changed
	db.SetMaxOpenConns(1)
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	const others = `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`
	for sessions := -1; ; {
		if err := db.QueryRowContext(ctx, others).Scan(&sessions); err != nil {
			t.Fatalf("%d sessions of the killed gateway are left: %v", sessions, err)
		}
		if sessions == 0 {
			return
		}
		if _, err := db.ExecContext(ctx, "SELECT pg_sleep(0.005)"); err != nil {
			t.Fatalf("%d sessions of the killed gateway are left: %v", sessions, err)
		}
	}
}
