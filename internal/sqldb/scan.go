package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	// maxLog is how long SQLite's write-ahead log may grow. SQLite starts it again only while
	// nobody reads it: overlapping reads would make it grow without end.
	maxLog = 64 << 20
	// emptyWait is how long emptying the log blocks changes while it waits for readers.
	emptyWait = 100 * time.Millisecond
)

type scans struct {
	mu      sync.Mutex
	running int
	// ended is closed when the last of them ends; nil if nobody waits.
	ended chan struct{}
	// retry is how long the log must be for another attempt after a failed one.
	retry int64
}

// Scan is [DB.Snapshot] for reading a large part of the database. While SQLite's write-ahead
// log is long, scans run one after the other, so that it can be emptied in between.
func (d *DB) Scan(ctx context.Context, doing string, do func(tx *sql.Tx) error) error {
	if err := d.beginScan(ctx); err != nil {
		return d.Fail(ctx, doing, err)
	}
	defer d.scans.end()
	return d.Snapshot(ctx, doing, do)
}

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

// tryEmptyLog is called by reads: they make the log long, and changes have deadlines.
func (d *DB) tryEmptyLog(ctx context.Context) {
	if d.logSize() >= d.maxLog && d.scans.mu.TryLock() {
		defer d.scans.mu.Unlock()
		d.emptyLog(ctx)
	}
}

// emptyLog empties a long log if nobody scans. New reads wait while it waits, up to
// LockTimeout, for running ones and for the writer. The mutex of scans is held.
func (d *DB) emptyLog(ctx context.Context) {
	size := d.logSize()
	if size < max(d.maxLog, d.scans.retry) || d.scans.running > 0 {
		return
	}
	d.scans.retry = size + d.maxLog/4
	ctx, cancel := context.WithTimeout(ctx, d.opts.LockTimeout)
	defer cancel()
	held := 0
	defer func() {
		for range held {
			<-d.reads
		}
	}()
	for ; held < cap(d.reads); held++ {
		select {
		case d.reads <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
	if d.truncateLog(ctx) {
		d.scans.retry = 0
	}
}

// truncateLog reports whether it emptied the log. It waits for readers of it a little, which blocks changes.
func (d *DB) truncateLog(ctx context.Context) bool {
	conn, err := d.write.Conn(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool
	ctx = context.WithoutCancel(ctx)
	var busy, pages, copied int
	_, _ = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", emptyWait.Milliseconds()))
	err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &copied)
	_, _ = conn.ExecContext(ctx, "PRAGMA busy_timeout = 0")
	return err == nil && busy == 0
}

// Wipe makes SQLite give free pages back to the system, overwrite what is left behind in the pages of tables, and empty
// its write-ahead log, so that nothing of what was removed from the tables with SecureDelete is left in a file. It works in
// pieces, and waits up to LockTimeout for readers of the log. On PostgreSQL it does nothing.
func (d *DB) Wipe(ctx context.Context, tables ...string) error {
	if d.dialect.kind != SQLite {
		return nil
	}
	if err := d.mapPages(ctx); err != nil {
		return err
	}
	const pages = 64 // of one piece
	err := d.Pieces(ctx, func() (more bool, err error) {
		err = d.Change(ctx, "giving space back", func(ctx context.Context, tx *sql.Tx) error {
			var free int
			if err := tx.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free); err != nil {
				return err
			}
			more = free > pages
			return Each(ctx, tx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", pages), nil, func(*sql.Rows) error { return nil })
		})
		return more, err
	})
	if err != nil {
		return err
	}
	if err := d.wipeGaps(ctx, tables); err != nil {
		return err
	}
	d.scans.mu.Lock()
	defer d.scans.mu.Unlock()
	for until := time.Now().Add(d.opts.LockTimeout); ; {
		// Copying most of the log beforehand holds up no other program.
		_, _ = d.write.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
		if d.truncateLog(ctx) {
			return nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return Failf(CodeLocked, "try again when nobody reads it: until then removed data stays in the file "+d.name+"-wal",
				"%s: its log cannot be emptied, because somebody reads it", d.name)
		}
	}
}

// mapPages gives a database that was restored from a dump the map of pages that Wipe and the gaps need, which writes
// it anew. Those that we made have it.
func (d *DB) mapPages(ctx context.Context) error {
	const incremental = 2
	var mode int
	err := d.write.QueryRowContext(ctx, "PRAGMA auto_vacuum").Scan(&mode)
	if err == nil && mode != incremental {
		_, err = d.write.ExecContext(ctx, "PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
	}
	return err
}

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
