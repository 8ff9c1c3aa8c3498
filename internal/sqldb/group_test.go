package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// openTest opens a new SQLite database with a table "notes".
func openTest(t *testing.T, o Options) *DB {
	t.Helper()
	o.Schema = notesSchema()
	d, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "test.db"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// note is a part of a transaction that writes a note and then fails with err, if it
// is not nil.
func note(text string, err error) func(ctx context.Context, tx *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO notes VALUES ($1)", text); err != nil {
			return err
		}
		return err
	}
}

func notes(t *testing.T, d *DB) []string {
	t.Helper()
	var list []string
	err := d.Snapshot(t.Context(), "reading notes", func(tx *sql.Tx) error {
		return Each(t.Context(), tx, "SELECT text FROM notes ORDER BY text", nil, func(rows *sql.Rows) error {
			var text string
			err := rows.Scan(&text)
			list = append(list, text)
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// hold takes the writer, and returns how to give it back.
func hold(t *testing.T, d *DB) (release func()) {
	t.Helper()
	tx, err := d.Writer().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
}

// awaitQueue waits until so many jobs are in the queue.
func awaitQueue(t *testing.T, d *DB, n int) {
	t.Helper()
	for t.Context().Err() == nil {
		d.group.mu.Lock()
		length := len(d.group.queue)
		d.group.mu.Unlock()
		if length == n {
			return
		}
		runtime.Gosched()
	}
}

// TestJoinShares: calls that come together share a transaction, and those that fail
// are undone alone.
func TestJoinShares(t *testing.T) {
	t.Parallel()

	d := openTest(t, Options{})
	release := hold(t, d)
	refused := errors.New("refused")
	var mu sync.Mutex
	seen := map[*sql.Tx]int{}
	var group sync.WaitGroup
	for n := range 6 {
		var fails error
		if n%3 == 2 {
			fails = refused
		}
		group.Go(func() {
			err := d.Join(t.Context(), "noting", func(ctx context.Context, tx *sql.Tx) error {
				mu.Lock()
				seen[tx]++
				mu.Unlock()
				return note(string(rune('a'+n)), fails)(ctx, tx)
			})
			if !errors.Is(err, fails) {
				t.Errorf("part %d: %v, want %v", n, err, fails)
			}
		})
	}
	awaitQueue(t, d, 6)
	release()
	group.Wait()
	if len(seen) != 1 {
		t.Errorf("parts of each transaction: %v, want one of 6", seen)
	}
	if diff := cmp.Diff(notes(t, d), []string{"a", "b", "d", "e"}); diff != "" {
		t.Errorf("notes (-got +want):\n%s", diff)
	}
}

// TestPiecesLetOthersIn: who waits for the writer gets it between two pieces.
func TestPiecesLetOthersIn(t *testing.T) {
	t.Parallel()

	d := openTest(t, Options{LockTimeout: time.Minute})
	var group sync.WaitGroup
	pieces, seen := 0, []string(nil)
	err := d.Pieces(t.Context(), func() (bool, error) {
		pieces++
		if pieces == 2 {
			group.Wait()
			seen = notes(t, d)
			return false, nil
		}
		return true, d.Change(t.Context(), "working", func(context.Context, *sql.Tx) error {
			group.Go(func() { //nolint:contextcheck // a change of its own
				if err := d.Change(t.Context(), "noting", note("between", nil)); err != nil {
					t.Error(err)
				}
			})
			for d.write.Stats().WaitCount == 0 {
				runtime.Gosched()
			}
			return nil
		})
	})
	if err != nil || len(seen) != 1 {
		t.Errorf("the second piece sees %q, %v; want the other's", seen, err)
	}
}

// TestJoinWaits: callers wait no longer than they want, the leader among them, and
// those behind go on.
func TestJoinWaits(t *testing.T) {
	t.Parallel()

	d := openTest(t, Options{LockTimeout: time.Hour})
	release := hold(t, d)
	cause := errors.New("no more time")
	var ends []context.CancelCauseFunc
	var given sync.WaitGroup
	for n := range 3 { // the first leads
		ctx, cancel := context.WithCancelCause(t.Context())
		ends = append(ends, cancel)
		given.Go(func() {
			if err := d.Join(ctx, "noting", note("given up", nil)); !errors.Is(err, cause) {
				t.Errorf("caller %d: %v", n, err)
			}
		})
		awaitQueue(t, d, n+1)
	}
	var last sync.WaitGroup
	last.Go(func() {
		if err := d.Join(t.Context(), "noting", note("last", nil)); err != nil {
			t.Error(err)
		}
	})
	awaitQueue(t, d, 4)
	for _, n := range []int{1, 0, 2} {
		ends[n](cause)
	}
	given.Wait()
	release()
	last.Wait()
	if diff := cmp.Diff(notes(t, d), []string{"last"}); diff != "" {
		t.Errorf("notes (-got +want):\n%s", diff)
	}
	d.group.mu.Lock()
	defer d.group.mu.Unlock()
	if len(d.group.queue) != 0 || d.group.led {
		t.Errorf("left behind: %d jobs, led %t", len(d.group.queue), d.group.led)
	}
}

// TestJoinLosesAll: where the whole transaction is lost, nobody is told that his
// part is kept.
func TestJoinLosesAll(t *testing.T) {
	t.Parallel()

	d := openTest(t, Options{})
	release := hold(t, d)
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			err := d.Join(t.Context(), "noting", func(ctx context.Context, tx *sql.Tx) error {
				if n != 3 {
					return note("x", nil)(ctx, tx)
				}
				_, err := tx.ExecContext(ctx, "ROLLBACK") // as SQLite does by itself when a disk is full
				return errors.Join(errors.New("full"), err)
			})
			if err == nil {
				t.Error("a part of a lost transaction was acknowledged")
			}
		})
		awaitQueue(t, d, n+1)
	}
	release()
	group.Wait()
	if list := notes(t, d); len(list) != 0 {
		t.Errorf("notes %q", list)
	}
	if err := d.Join(t.Context(), "noting", note("next", nil)); err != nil {
		t.Errorf("behind it: %v", err)
	}
}

// TestJoinPanic: a panic goes to the caller in whose goroutine it happened; the
// others get an error.
func TestJoinPanic(t *testing.T) {
	t.Parallel()

	d := openTest(t, Options{})
	release := hold(t, d)
	var group sync.WaitGroup
	panics := make(chan any, 2)
	for n := range 2 {
		group.Go(func() {
			defer func() { panics <- recover() }()
			err := d.Join(t.Context(), "noting", func(context.Context, *sql.Tx) error {
				if n == 1 {
					panic("a bug")
				}
				return nil
			})
			if !errors.Is(err, errBatchLost) {
				t.Errorf("error %v, want %v", err, errBatchLost)
			}
		})
		awaitQueue(t, d, n+1)
	}
	release()
	group.Wait()
	if first, second := <-panics, <-panics; (first == nil) == (second == nil) {
		t.Errorf("recovered %v and %v, want one panic", first, second)
	}
	if err := d.Join(t.Context(), "noting", note("next", nil)); err != nil {
		t.Errorf("behind it: %v", err)
	}
}

// TestWorkOutlivesItsContext: once the writer is theirs, transactions end as they
// will, also when the leader's caller is gone.
func TestWorkOutlivesItsContext(t *testing.T) {
	t.Parallel()

	d := openTest(t, Options{LockTimeout: time.Minute})
	for name, work := range map[string]func(context.Context, string, func(context.Context, *sql.Tx) error) error{"change": d.Change, "join": d.Join} {
		ctx, cancel := context.WithCancel(t.Context())
		err := work(ctx, "writing a note", func(ctx context.Context, tx *sql.Tx) error {
			cancel()
			return note(name, nil)(ctx, tx)
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if diff := cmp.Diff(notes(t, d), []string{"change", "join"}); diff != "" {
		t.Errorf("notes (-got +want):\n%s", diff)
	}
}

// TestBeginEnds: who waits for the writer goes when their time is over, and leaves
// nothing behind that holds it.
func TestBeginEnds(t *testing.T) {
	t.Parallel()

	d := openTest(t, Options{})
	d.opts.LockTimeout = 30 * time.Millisecond
	release := hold(t, d)
	if err := d.Change(t.Context(), "waiting", note("late", nil)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	release()
	d.opts.LockTimeout = time.Minute
	if err := d.Join(t.Context(), "writing", note("in time", nil)); err != nil {
		t.Error(err)
	}
}
