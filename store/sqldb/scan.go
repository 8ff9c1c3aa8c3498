package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync"
	"time"
)

// maxLog is how long SQLite's write-ahead log may grow before it is emptied. SQLite
// writes the log from its beginning again only when nobody reads what is in it, so
// reads that overlap all the time would make it grow without end.
const maxLog = 64 << 20

const (
	// writerWait is how long emptying the log waits for changes that run.
	writerWait = time.Second
	// emptyWait is how long it then waits for short reads. Changes wait as long.
	emptyWait = 100 * time.Millisecond
)

// scans are the long reads of a SQLite database that run.
type scans struct {
	mu      sync.Mutex
	running int
	// ended is closed when the last of them ends; nil while nobody waits for that.
	ended chan struct{}
	// retry is how long the log has to be for another attempt, after one that failed
	// because another program reads.
	retry int64
}

// Scan is [DB.Snapshot] for what reads a large part of the database. While SQLite's
// write-ahead log is long, a scan waits for others to end, so that the log can be
// emptied between them.
func (d *DB) Scan(ctx context.Context, doing string, do func(tx *sql.Tx) error) error {
	if err := d.beginScan(ctx); err != nil {
		return d.Fail(ctx, doing, err)
	}
	defer d.scans.end()
	return d.Snapshot(ctx, doing, do)
}

// beginScan waits until a scan may begin, and counts it.
func (d *DB) beginScan(ctx context.Context) error {
	s := &d.scans
	for {
		s.mu.Lock()
		if s.running == 0 {
			d.emptyLog(ctx)
		}
		if s.running == 0 || d.logSize() < d.maxLog {
			s.running++
			s.mu.Unlock()
			return nil
		}
		if s.ended == nil {
			s.ended = make(chan struct{})
		}
		ended := s.ended
		s.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *scans) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running--; s.running == 0 && s.ended != nil {
		close(s.ended)
		s.ended = nil
	}
}

// tryEmptyLog empties a long log, unless somebody else does. Reads that overlap are
// what makes it long, so reads do the work, and not changes.
func (d *DB) tryEmptyLog(ctx context.Context) {
	if d.logSize() >= d.maxLog && d.scans.mu.TryLock() {
		defer d.scans.mu.Unlock()
		d.emptyLog(ctx)
	}
}

// emptyLog empties the write-ahead log if it is long and nobody scans. If others
// read it for too long, it stays until it has grown by a quarter of the bound. The
// mutex of scans is held.
func (d *DB) emptyLog(ctx context.Context) {
	size := d.logSize()
	if size < max(d.maxLog, d.scans.retry) || d.scans.running > 0 {
		return
	}
	d.scans.retry = size + d.maxLog/4
	ctx, cancel := context.WithTimeout(ctx, writerWait)
	defer cancel()
	conn, err := d.write.Conn(ctx)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool
	ctx = context.WithoutCancel(ctx)
	var busy, pages, copied int
	_, _ = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", emptyWait.Milliseconds()))
	err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &copied)
	_, _ = conn.ExecContext(ctx, "PRAGMA busy_timeout = 0")
	if err == nil && busy == 0 {
		d.scans.retry = 0
	}
}

// logSize is how long SQLite's write-ahead log is; 0 where there is none, or this
// program cannot empty it.
func (d *DB) logSize() int64 {
	if d.dialect.kind != SQLite || d.opts.ReadOnly {
		return 0
	}
	info, err := os.Stat(d.name + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}
