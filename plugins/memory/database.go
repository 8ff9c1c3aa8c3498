package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// retryAfter is how long calls are refused after an attempt to open a database, before
// the next one tries: a server that is out of reach would cost each of them its time.
const retryAfter = 2 * time.Second

// database holds a store that may not be open yet: whoever uses it first opens it, and
// one that could not be opened is tried again. It is safe for concurrent use.
//
//  1. use opens the store if it is not open, calls its argument, and counts who is at
//     it.
//  2. retire says that no new configuration uses it. It is closed when the last call
//     that does has ended; one that comes later, from a turn of before, opens it again
//     and closes it.
type database struct {
	// open opens the store, and now is the clock.
	open func(ctx context.Context) (*itemstore.Store, error)
	now  func() time.Time
	// gate holds one value: who has it opens or closes.
	gate chan struct{}

	mu      sync.Mutex
	store   *itemstore.Store
	users   int
	retired bool
	// failed is why the last attempt to open failed, and again when the next is due.
	failed error
	again  time.Time
}

func newDatabase(open func(ctx context.Context) (*itemstore.Store, error), now func() time.Time) *database {
	return &database{open: open, now: now, gate: make(chan struct{}, 1)}
}

// use calls do with the open store. Errors are the store's, or why it cannot be opened.
func (d *database) use(ctx context.Context, do func(s *itemstore.Store) error) error {
	s, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer d.release()
	return do(s)
}

// acquire returns the open store, for release.
func (d *database) acquire(ctx context.Context) (*itemstore.Store, error) {
	if s, err := d.take(); s != nil || err != nil {
		return s, err
	}
	select {
	case d.gate <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-d.gate }()
	if s, err := d.take(); s != nil || err != nil {
		return s, err // somebody else was faster
	}
	s, err := d.open(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.failed, d.again = err, d.now().Add(retryAfter)
		return nil, err
	}
	d.store, d.failed = s, nil
	d.users++
	return s, nil
}

// take returns the store if it is open, or why it cannot be opened yet. Neither means
// that it is the caller's turn to open it.
func (d *database) take() (*itemstore.Store, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.store != nil:
		d.users++
		return d.store, nil
	case d.failed != nil && d.now().Before(d.again):
		return nil, d.failed
	}
	return nil, nil
}

// release ends what acquire began.
func (d *database) release() {
	d.mu.Lock()
	d.users--
	s := d.unused()
	d.mu.Unlock()
	if s != nil {
		_ = s.Close() // its last user has what it wanted, and nobody is there to be told
	}
}

// unused takes the store out if it is retired and nobody is at it. The lock is held.
func (d *database) unused() *itemstore.Store {
	if !d.retired || d.users > 0 {
		return nil
	}
	s := d.store
	d.store = nil
	return s
}

// retire closes the store, now or when its last user is done.
func (d *database) retire() error {
	d.mu.Lock()
	d.retired = true
	s := d.unused()
	d.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.Close()
}

// warm opens the store in good time. What can pass, such as a lock, a server that is
// down or a file that waits for its backup, is left to the first call; all else is an
// error.
func (d *database) warm(ctx context.Context) error {
	err := d.use(ctx, func(*itemstore.Store) error { return nil })
	if err == nil || passes(err) {
		return nil
	}
	return err
}

// tooLate makes words of a database that did not open in the time that its caller had.
// Other errors are returned as they are.
func tooLate(err error, dsn string) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	late := &sqldb.Error{
		Code: sqldb.CodeUnreachable, Message: "the memory database did not open in time", Remedy: "see whether its server answers", Err: err,
	}
	if strings.HasPrefix(dsn, sqlitePrefix) {
		late.Code, late.Remedy = sqldb.CodeLocked, "see which other program keeps it locked"
	}
	return late
}

// passes reports whether the same may succeed later, with nothing about the
// configuration changed. A damaged file is replaced by a backup while the host runs: it
// must not keep a host from starting, which can do without memory.
func passes(err error) bool {
	failed, ok := errors.AsType[*sqldb.Error](err)
	if !ok {
		return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	}
	switch failed.Code {
	case sqldb.CodeLocked, sqldb.CodeUnreachable, sqldb.CodeFull, sqldb.CodeDamaged:
		return true
	default:
		return false
	}
}

// failure is an error of the store as a hook or a tool reports it: with a code of this
// plugin's, and a text that says what to do.
func failure(err error) error {
	failed, ok := errors.AsType[*sqldb.Error](err)
	if !ok {
		return fmt.Errorf("memory: %w", err)
	}
	out := sdk.Fail("memory_"+string(failed.Code), failed.Error())
	out.Retryable, out.Err = passes(err), err
	return out
}
