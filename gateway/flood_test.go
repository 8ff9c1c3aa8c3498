package gateway

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

// watchedLog is a log whose long reads tell when they begin and how they end.
type watchedLog struct {
	*store.Store

	begun, ended chan error
	// stall, if set, keeps each read at its first record, on its connection, until
	// its context ends; seen counts the records of the last one.
	stall bool
	seen  atomic.Int64
}

func watchLog(s *store.Store) *watchedLog {
	return &watchedLog{Store: s, begun: make(chan error, 1<<16), ended: make(chan error, 1<<16)}
}

// read is called for each record of a read.
func (l *watchedLog) read(ctx context.Context, n int) {
	l.seen.Store(int64(n))
	if n == 1 {
		l.begun <- nil
	}
	if n == 1 && l.stall {
		<-ctx.Done()
	}
}

func (l *watchedLog) Verify(ctx context.Context, f store.Filter, o manifest.VerifyOptions) (manifest.Verdict, error) {
	n := 0
	o.Seen = func(manifest.Index) {
		n++
		l.read(ctx, n)
	}
	v, err := l.Store.Verify(ctx, f, o)
	l.ended <- err
	return v, err
}

// List implements Log. It reads the log as a list does that takes long.
func (l *watchedLog) List(ctx context.Context, f store.Filter) ([]manifest.Index, error) {
	n := 0
	for _, err := range l.Records(ctx, f) {
		n++
		if l.read(ctx, n); err != nil {
			return nil, err
		}
	}
	return []manifest.Index{}, ctx.Err()
}

// wait waits for something to begin or to end.
func wait(t *testing.T, c <-chan error) error {
	t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(patience):
		t.Fatal("it does not happen")
		return nil
	}
}

// openLog opens a log and a tree in a database.
func openLog(t *testing.T, dsn string) (*watchedLog, tree.Store) {
	t.Helper()
	// The machine may be busy: what is tested is that reads do not take the turns' connections.
	s := must(store.Open(t.Context(), dsn, store.Options{LockTimeout: time.Minute}))(t)
	trees := must(s.Tree(t.Context()))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return watchLog(s), trees
}

// fillLog appends n manifests to one thread.
func fillLog(t *testing.T, s *store.Store, n int) {
	t.Helper()
	for i := range n {
		m := manifest.New()
		m.ManifestID, m.WorkspaceID, m.ThreadID = fmt.Sprintf("01JZ%022d", i), "w", "long"
		m.TurnID, m.CreatedAt = strconv.Itoa(i), time.Unix(int64(i), 0)
		m.Complete()
		if err := s.Append(t.Context(), &m, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// keepsTurns compiles turns of new threads while a flood runs, and wants each to
// be kept, without a diagnostic.
func keepsTurns(t *testing.T, s *served, eng *runtime.Engine, turns int) {
	t.Helper()
	c := s.post(t, "host")
	for n := range turns {
		turn := object{"workspace_id": "w", "thread_id": fmt.Sprintf("thread-%d", n), "turn_id": "1"}
		done := do[runtime.Compiled](t, c, "turn/compile", object{"turn": turn})
		if len(done.Manifest.Diagnostics) > 0 {
			t.Errorf("turn %d: %+v", n, done.Manifest.Diagnostics)
		}
	}
	if st := eng.Stats(); st.ManifestsNotKept > 0 || st.ManifestsKept != uint64(turns) {
		t.Errorf("%d of %d manifests were kept, %d were not", st.ManifestsKept, turns, st.ManifestsNotKept)
	}
}

// flood calls a method from many connections at once until it is stopped.
func flood(t *testing.T, s *served, clients int, method string, params object) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for n := range clients {
		c := s.post(t, readers[n%len(readers)])
		group.Go(func() {
			for ctx.Err() == nil {
				c.send(ctx, method, params)
			}
		})
	}
	return func() {
		cancel()
		group.Wait()
	}
}

// readers are tokens that may only read.
var readers = []string{"reader", "auditor", "third"}

// floodTokens are those of the readers, and of a host.
func floodTokens() []rpc.Token {
	tokens := []rpc.Token{token("host", []string{"*"}, rpc.Rights()...)}
	for _, name := range readers {
		tokens = append(tokens, token(name, []string{"*"}, rpc.ReadRight))
	}
	return tokens
}

// send calls a method, and is not interested in the answer.
func (c *caller) send(ctx context.Context, method string, params any) {
	_ = c.Call(ctx, method, params, nil)
}

// TestReadsLeaveConnectionsForTurns: clients that may only read hold as many
// connections of the database as they can get, for as long as they like. Every turn of
// others is kept, on time.
func TestReadsLeaveConnectionsForTurns(t *testing.T) {
	t.Parallel()

	storetest.Both(t, storetest.NewPostgres, func(t *testing.T, dsn string) {
		log, trees := openLog(t, dsn)
		fillLog(t, log.Store, 10)
		workspace(t, trees, "w")
		log.stall = true
		eng := engine(t, trees, log.Store)
		s := serve(t, Options{Tree: trees, Engine: eng, Log: log}.with(floodTokens()...))
		defer flood(t, s, 18, methodVerify, object{})()
		defer flood(t, s, 18, "manifest/list", object{})()
		for range maxReads {
			_ = wait(t, log.begun)
		}
		keepsTurns(t, s, eng, 20)
		// The hub reads now and then too.
		for began := time.Now(); log.DB().Reader().Stats().InUse > maxReads; {
			if time.Since(began) > time.Minute {
				t.Fatalf("clients hold %d connections", log.DB().Reader().Stats().InUse)
			}
		}
	})
}

// TestVerifyEndsWithItsClient: a client that goes away ends what it asked for, and
// the connection to the database is free again.
func TestVerifyEndsWithItsClient(t *testing.T) {
	t.Parallel()

	storetest.Both(t, storetest.NewPostgres, func(t *testing.T, dsn string) {
		log, trees := openLog(t, dsn)
		fillLog(t, log.Store, 1500)
		log.stall = true
		s := serve(t, Options{Tree: trees, Log: log}.with(floodTokens()...))
		for name, c := range map[string]*caller{"http": s.post(t, "reader"), "websocket": s.dial(t, "reader")} { // a token may have one at a time
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.send(ctx, methodVerify, object{})
			}()
			_ = wait(t, log.begun)
			cancel()
			_ = c.Close()
			<-done
			if err := wait(t, log.ended); !errors.Is(err, context.Canceled) && !errors.Is(err, rpc.ErrPeerGone) {
				t.Errorf("%s: verify ended with %v", name, err)
			}
			if n := log.seen.Load(); n > 1000 {
				t.Errorf("%s: it read %d records more", name, n)
			}
		}
	})
}
