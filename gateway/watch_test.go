package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/store"
)

// noted is a notification of a real connection.
func noted(tb testing.TB, m message) told {
	tb.Helper()
	n := decoded[told](tb, m.Params)
	n.Method = m.Method
	return n
}

// TestWatch checks watching over a real connection, against the schema.
func TestWatch(t *testing.T) {
	t.Parallel()

	model := storetest.Tree(t, nil)
	workspace(t, model, "w")
	s := serve(t, Options{Tree: model})
	c := s.dial(t, "")
	begun := ready(t, c, object{"workspace_id": "w"})
	schemas := description(t)
	save(t, model, "w", "", "one")
	m := c.note(t)
	if n := noted(t, m); n.Method != notifyDoc || n.Seq <= begun.Seq || n.Summary == nil || n.Summary.Version != 1 {
		t.Errorf("%s: %+v", n.Method, n)
	}
	if err := fits(schemas.Notifications[notifyDoc].Params, m.Params); err != nil {
		t.Errorf("%s: %v", m.Params, err)
	}
	do[any](t, c, "folder/create", object{"workspace_id": "w", "id": "a", "name": "A"})
	m = c.note(t)
	if n := noted(t, m); n.Method != notifyTree || n.Folder == nil || n.Folder.ID != "a" || n.Action != tree.Created {
		t.Errorf("%s: %+v", n.Method, n)
	}
	if err := fits(schemas.Notifications[notifyTree].Params, m.Params); err != nil {
		t.Errorf("%s: %v", m.Params, err)
	}
	left := do[watchResult](t, c, "workspace/unwatch", object{"workspace_id": "w"})
	if left.Seq < noted(t, m).Seq {
		t.Errorf("left at %d, told up to %d", left.Seq, noted(t, m).Seq)
	}
	save(t, model, "w", "", "two")
	// Watching again from there tells it, and nothing of before.
	if got := do[watchResult](t, c, "workspace/watch", object{"workspace_id": "w", "since_seq": left.Seq}); got.Gap {
		t.Errorf("watching again: %+v", got)
	}
	if n := noted(t, c.note(t)); n.Summary == nil || n.Summary.Version != 2 {
		t.Errorf("told %+v", n)
	}
	for name, tt := range map[string]struct {
		method string
		params object
		code   string
	}{
		"no such workspace": {"workspace/watch", object{"workspace_id": "v"}, rpc.CodeNotFound},
		"a negative place":  {"workspace/watch", object{"workspace_id": "w", "since_seq": -1}, rpc.CodeInvalid},
		"a far place":       {"workspace/watch", object{"workspace_id": "w", "since_seq": 1 << 50}, ""},
		"not watched":       {"workspace/unwatch", object{"workspace_id": "v"}, rpc.CodeNotFound},
	} {
		raw, bad := c.call(t, tt.method, tt.params)
		if bad.code() != tt.code {
			t.Errorf("%s: %+v, want %q", name, bad, tt.code)
		}
		if bad == nil && !decoded[watchResult](t, raw).Gap {
			t.Errorf("%s: %s, want a gap", name, raw)
		}
	}
}

// ready watches; a gateway that has just begun lets the call wait.
func ready(tb testing.TB, c *caller, params object) watchResult {
	tb.Helper()
	raw, bad := c.call(tb, "workspace/watch", params)
	if bad != nil {
		tb.Fatalf("watching: %+v", bad)
	}
	return decoded[watchResult](tb, raw)
}

// TestWatchWaits: who watches before the log was ever read is let in when it is, and
// told so where that does not come about.
func TestWatchWaits(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		h := quietHub(storetest.Tree(t, nil))
		var late *rpc.Error
		if err := h.await(t.Context()); !errors.As(err, &late) || late.Code != rpc.CodeUnavailable {
			t.Errorf("never read: %v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := h.await(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
		answer := make(chan error, 1)
		go func() { answer <- h.await(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-answer:
			t.Errorf("before the first reading: %v", err)
		default:
		}
		h.step(t.Context())
		if err := <-answer; err != nil {
			t.Errorf("after the first reading: %v", err)
		}
	})
}

// TestManyWatchers: 50 clients of two gateways on one database see the last state
// of everything, while others change it through both, and while their connections
// are lost and made again.
func TestManyWatchers(t *testing.T) {
	t.Parallel()

	storetest.Both(t, storetest.NewPostgres, func(t *testing.T, dsn string) { manyWatchers(t, treeStore(t, dsn), treeStore(t, dsn)) })
}

// treeStore opens a tree in a database.
func treeStore(t *testing.T, dsn string) tree.Store {
	t.Helper()
	return storetest.TreeOf(t, dsn, store.Options{})
}

// manyWatchers runs them over two stores of one database.
func manyWatchers(t *testing.T, one, two tree.Store) {
	t.Helper()
	watchers, writers, changes, folders := 16, 4, 15, 10
	if storetest.Long() {
		watchers, changes = 50, 40
	}
	workspace(t, one, "w")
	for i := range folders {
		folder(t, one, strconv.Itoa(i))
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	both := []*served{serve(t, Options{Tree: one, Logger: log}), serve(t, Options{Tree: two, Logger: log})}
	var clients []*follower
	for i := range watchers {
		f := &follower{s: both[i%2], rng: rand.New(rand.NewPCG(uint64(i), 3)), docs: map[tree.FolderID]int64{}, names: map[string]string{}}
		f.connect(t)
		clients = append(clients, f)
	}
	var writing, reading sync.WaitGroup
	for i := range writers {
		writing.Go(func() { write(t, both[i%2].post(t, ""), rand.New(rand.NewPCG(uint64(i), 4)), changes, folders) })
	}
	finish := make(chan struct{})
	for _, f := range clients {
		reading.Go(func() { f.follow(t, finish) })
	}
	writing.Wait()
	do[any](t, both[0].post(t, ""), "workspace/rename", object{"workspace_id": "w", "name": "finished"})
	close(finish)
	reading.Wait()
	docs, names := truth(t, both[0].post(t, ""))
	for i, f := range clients {
		if fmt.Sprint(f.docs) != fmt.Sprint(docs) || fmt.Sprint(f.names) != fmt.Sprint(names) {
			t.Errorf("client %d, %d connections: saw %v %v\nwant %v %v", i, f.connections, f.docs, f.names, docs, names)
		}
	}
}

// write saves documents and renames folders at random. Conflicts with others are
// what they are.
func write(t *testing.T, c *caller, rng *rand.Rand, changes, folders int) {
	t.Helper()
	for n := range changes {
		id := strconv.Itoa(rng.IntN(folders))
		if rng.IntN(4) == 0 {
			params := object{"workspace_id": "w", "folder_id": id, "name": fmt.Sprint("name ", rng.IntN(100))}
			if bad := patiently(t, c, "folder/rename", params); bad != nil {
				t.Errorf("rename: %+v", bad)
			}
			continue
		}
		view := do[tree.View](t, c, "thread/agents_doc/get", object{"workspace_id": "w", "folder_id": id})
		params := object{"workspace_id": "w", "folder_id": id, "content": fmt.Sprint("text ", n, rng.IntN(1000))}
		if view.Explicit != nil {
			params["expected_version"] = view.Explicit.Version
		}
		if bad := patiently(t, c, "thread/agents_doc/save", params); bad.code() != "" && bad.code() != rpc.CodeConflict {
			t.Errorf("save: %+v", bad)
		}
	}
}

// patiently calls again while it is told to try again: a busy machine makes SQLite
// wait longer for its lock than a call may take.
func patiently(tb testing.TB, c *caller, method string, params object) *wireErr {
	tb.Helper()
	for deadline := time.Now().Add(patience); ; {
		_, bad := c.call(tb, method, params)
		if bad.code() != rpc.CodeUnavailable || time.Now().After(deadline) {
			return bad
		}
	}
}

// truth reads the versions of all documents and the names of all folders.
func truth(tb testing.TB, c *caller) (docs map[tree.FolderID]int64, names map[string]string) {
	tb.Helper()
	docs, names = map[tree.FolderID]int64{}, map[string]string{}
	page := do[tree.Page](tb, c, "thread/tree", object{"workspace_id": "w"})
	for _, d := range page.AgentsDocs {
		docs[d.FolderID] = d.Version
	}
	for _, f := range page.Folders {
		names[f.ID] = f.Name
	}
	return docs, names
}

// follower is a client that keeps a copy of a tree up to date.
type follower struct {
	s           *served
	rng         *rand.Rand
	c           *caller
	at          tree.Seq
	connections int
	docs        map[tree.FolderID]int64
	names       map[string]string
}

// connect watches from where the client is, or begins.
func (f *follower) connect(t *testing.T) {
	t.Helper()
	f.c = f.s.dial(t, "")
	f.connections++
	params := object{"workspace_id": "w"}
	if f.connections > 1 {
		params["since_seq"] = f.at
	}
	got := ready(t, f.c, params)
	if f.connections == 1 || got.Gap {
		f.at = got.Seq
		f.reread(t)
	}
}

// reread takes the tree as it is.
func (f *follower) reread(t *testing.T) {
	t.Helper()
	docs, names := truth(t, f.c)
	for id, v := range docs {
		f.docs[id] = max(f.docs[id], v)
	}
	f.names = names
}

// follow takes what it is told, and loses its connection at times, until it has
// heard that all are finished.
func (f *follower) follow(t *testing.T, finish <-chan struct{}) {
	t.Helper()
	for {
		n := noted(t, f.c.note(t))
		if n.Seq < f.at {
			t.Errorf("the place goes back from %d to %d", f.at, n.Seq)
		}
		f.at = n.Seq
		switch {
		case n.Gap:
			f.reread(t)
		case n.Folder != nil:
			f.names[n.Folder.ID] = n.Folder.Name
		case n.Summary != nil:
			f.docs[n.FolderID] = max(f.docs[n.FolderID], n.Summary.Version)
		}
		if n.Workspace != nil && n.Workspace.Name == "finished" {
			<-finish
			return
		}
		if f.rng.IntN(40) == 0 {
			_ = f.c.Close()
			f.connect(t)
		}
	}
}

// BenchmarkFanOut measures how long it takes from a save until the last of 1,000
// connections has read of it, over real sockets of this process.
func BenchmarkFanOut(b *testing.B) {
	const watchers = 1000
	model := storetest.Tree(b, nil)
	workspace(b, model, "w")
	s := serve(b, Options{Tree: model})
	var arrived sync.WaitGroup
	for range watchers {
		c := s.dial(b, "")
		ready(b, c, object{"workspace_id": "w"})
		go func() {
			for range c.notes {
				arrived.Done()
			}
		}()
	}
	var took []time.Duration
	for n := 0; b.Loop(); n++ {
		arrived.Add(watchers)
		began := time.Now()
		save(b, model, "w", "", fmt.Sprint("text ", n))
		arrived.Wait()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
