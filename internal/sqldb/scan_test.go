package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// The bound of tests, which must be longer than what SQLite copies by itself, and
// how long a log may be: the bound, and what is written while one read runs.
const (
	testLog    = 6 << 20
	longestLog = testLog + testLog/2
)

// openLogged opens a database with a short log.
func openLogged(t *testing.T) *DB {
	t.Helper()
	d := openTest(t, Options{Synchronous: SynchronousNormal, LockTimeout: time.Minute}) // with the race detector reads are slow
	d.maxLog = testLog
	return d
}

// writeMegabytes writes notes of a megabyte each.
func writeMegabytes(t *testing.T, d *DB, n int) {
	t.Helper()
	for range n {
		if err := d.Change(t.Context(), "writing", note(strings.Repeat("x", 1<<20), nil)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOverlappingScansDoNotGrowTheLog scans all the time: each scan ends when the
// next one has begun, or waits for it. A client can do that by calling again and again.
func TestOverlappingScansDoNotGrowTheLog(t *testing.T) {
	t.Parallel()

	d := openLogged(t)
	writeMegabytes(t, d, 1)
	end, ended := func() {}, make(chan struct{})
	close(ended)
	for range 10 {
		began, release, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			err := d.Scan(t.Context(), "scanning", func(tx *sql.Tx) error {
				var n int
				err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM notes").Scan(&n)
				close(began)
				<-release
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}()
		select {
		case <-began:
		case <-time.After(200 * time.Millisecond): // it waits for the one before it
		}
		end()
		<-ended
		<-began
		end, ended = func() { close(release) }, over
		writeMegabytes(t, d, 2)
	}
	end()
	<-ended
	if size := d.logSize(); size > longestLog {
		t.Errorf("the log has %d bytes", size)
	}
}

// TestManyShortReadsDoNotGrowTheLog has readers that leave no moment without a read, and
// writes as fast as they read, however slow the machine is.
func TestManyShortReadsDoNotGrowTheLog(t *testing.T) {
	t.Parallel()

	d := openLogged(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			for ctx.Err() == nil {
				err := d.Snapshot(ctx, "reading", func(tx *sql.Tx) error {
					var n int
					return tx.QueryRowContext(ctx, "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n < 1000) SELECT (SELECT count(*) FROM notes) + count(*) FROM c").Scan(&n)
				})
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				select {
				case ended <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 28 {
		writeMegabytes(t, d, 1)
		<-ended
	}
	stop()
	group.Wait()
	if size := d.logSize(); size > longestLog {
		t.Errorf("the log has %d bytes", size)
	}
}

// TestScanWaitsNoLongerThanItsContext: a scan that waits for others can be ended.
func TestScanWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()

	d := openLogged(t)
	err := d.Scan(t.Context(), "scanning", func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM notes").Scan(&n); err != nil {
			return err
		}
		writeMegabytes(t, d, 8)
		cause := errors.New("no more time")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if err := d.Scan(ctx, "scanning", func(*sql.Tx) error { return nil }); !errors.Is(err, cause) {
			t.Errorf("the second scan: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
