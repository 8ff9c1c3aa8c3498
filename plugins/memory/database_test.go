package memory

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// watch is a clock that is set by hand.
type watch struct{ ahead atomic.Int64 }

func (w *watch) now() time.Time           { return at.Add(time.Duration(w.ahead.Load())) }
func (w *watch) advance(by time.Duration) { w.ahead.Add(int64(by)) }

// holding runs statements on a SQLite file, the last of which begin a transaction, and returns what ends it.
func holding(tb testing.TB, dsn string, statements ...string) (unlock func()) {
	tb.Helper()
	conn, err := storetest.Raw(tb, dsn).Conn(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	for _, s := range statements {
		if _, err := conn.ExecContext(tb.Context(), s); err != nil {
			tb.Fatal(err)
		}
	}
	return sync.OnceFunc(func() {
		_, err := conn.ExecContext(context.WithoutCancel(tb.Context()), "ROLLBACK")
		if err := errors.Join(err, conn.Close()); err != nil {
			tb.Error(err)
		}
	})
}

// TestDamaged: a file that is no database costs the turns their memories, is left as it
// is, and is used again as soon as a good one is in its place.
func TestDamaged(t *testing.T) {
	t.Parallel()
	good, dsn := file(t), file(t)
	seed(t, good, itemstore.Item{Text: "My dog is called Rex"})
	path, damage := strings.TrimPrefix(dsn, sqlitePrefix), strings.Repeat("no database ", 1000)
	if err := os.WriteFile(path, []byte(damage), 0o600); err != nil {
		t.Fatal(err)
	}
	var w watch
	p := newPlugin(&life{getenv: environment(nil), now: w.now, openTime: time.Minute})
	closes(t, p)
	if _, err := p.Configure(t.Context(), &phases.Configuration{Config: config(t, dsn, nil)}); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, begin(t, p, ada("1")).says("What is my dog called?").errors, "memory_damaged", "put a backup in its place")
	if after, err := os.ReadFile(path); err != nil || string(after) != damage {
		t.Errorf("%d bytes are left, %v", len(after), err)
	}
	if err := os.Rename(strings.TrimPrefix(good, sqlitePrefix), path); err != nil {
		t.Fatal(err)
	}
	w.advance(retryAfter)
	x := begin(t, p, ada("2")).says("What is my dog called?")
	x.fine()
	if !contains(x.recalled(), "Rex") {
		t.Errorf("recalled %q", x.recalled())
	}
}

// closes ends a plugin with the test.
func closes(tb testing.TB, p *sdk.Plugin) {
	tb.Helper()
	tb.Cleanup(func() {
		if err := p.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
}

// wantFailure checks that one hook failed with a code and a text.
func wantFailure(t *testing.T, errs []error, code, text string) {
	t.Helper()
	if len(errs) != 1 {
		t.Fatalf("errors %v, want one", errs)
	}
	failed, ok := errors.AsType[*phases.Error](errs[0])
	if !ok || failed.PluginCode != code || !strings.Contains(failed.Message, text) {
		t.Errorf("error %+v, want the code %s and %q", errs[0], code, text)
	}
}

// TestUnusable: what time does not heal is refused with the configuration, with the
// place of the mistake and a remedy.
func TestUnusable(t *testing.T) {
	t.Parallel()
	foreign := file(t)
	storetest.Exec(t, foreign, "CREATE TABLE accounts (x)")
	for dsn, want := range map[string]string{
		foreign: "another program", "mysql://x/y": "", sqlitePrefix + filepath.Join(os.DevNull, "memory.db"): "",
	} {
		p := patientPlugin()
		closes(t, p)
		_, err := p.Configure(t.Context(), &phases.Configuration{Config: config(t, dsn, nil)})
		wrong, ok := errors.AsType[*phases.ConfigError](err)
		if !ok || wrong.Pointer != "/dsn" || !strings.Contains(wrong.Message, want) {
			t.Errorf("%s: error %v, want one about /dsn with %q", dsn, err, want)
		}
	}
}

// TestLockedWhileWriting: the turn's end says what kept it, and the queue's next attempt
// stores what was said, once.
func TestLockedWhileWriting(t *testing.T) {
	t.Parallel()
	dsn := file(t)
	p := configured(t, dsn, nil, nil)
	begin(t, p, ada("1")).whole("I live in Graz.") // opens it
	unlock := holding(t, dsn, "BEGIN IMMEDIATE")
	x := begin(t, p, ada("2")).says("I prefer tabs.")
	x.fine() // reading waits for no writer
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	d := &phases.Dispatch{
		Hook: "extract", Subscription: "memory.extract", Phase: phases.PostTurn, Context: x.context, Policies: x.policies, IdempotencyKey: "2/memory.extract",
		Input: &phases.PostTurnInput{Status: phases.TurnSucceeded, UserText: phases.NewPreview("I prefer tabs.", 100)},
	}
	if _, err := p.Dispatch(ctx, d); err == nil {
		t.Error("it was stored in a locked database")
	}
	unlock()
	for range 2 {
		if _, err := p.Dispatch(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if got := memories(t, p); len(got) != 2 {
		t.Errorf("memories %q", got)
	}
}

// TestReconfigure: another database comes into force while calls run, none of which
// fails, and everything of the old one is kept.
func TestReconfigure(t *testing.T) {
	t.Parallel()
	dsns := []string{file(t), file(t)}
	p := configured(t, dsns[0], nil, nil)
	stop := make(chan struct{})
	var calls sync.WaitGroup
	for n := range 2 {
		calls.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				x := begin(t, p, ada("1")).says("What is my dog called?")
				if x.fine(); len(x.policies) != 1 {
					t.Errorf("caller %d: policies %+v", n, x.policies)
				}
			}
		})
	}
	for i := range 4 {
		if _, err := p.Configure(t.Context(), &phases.Configuration{Instance: "memory", Config: config(t, dsns[i%2], nil)}); err != nil {
			t.Error(err)
		}
		begin(t, p, ada("2")).whole("Remember that my dog is called Rex.")
	}
	close(stop)
	calls.Wait()
	for _, dsn := range dsns {
		if got := memories(t, configured(t, dsn, nil, nil)); len(got) != 1 {
			t.Errorf("%s: memories %q", dsn, got)
		}
	}
}

// Locked keeps a SQLite file from everybody else until it is called.
func Locked(tb testing.TB, dsn string) (unlock func()) {
	tb.Helper()
	return holding(tb, dsn, "PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE", "CREATE TABLE IF NOT EXISTS lock_of_a_test (x)")
}
