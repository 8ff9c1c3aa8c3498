package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/sdk"
)

// retryAfter is how long calls fail at once after a failed attempt to open a database: waiting for an unreachable
// server would cost each of them its time.
const retryAfter = 2 * time.Second

// database opens a store on first use, and retries after a failure. It is safe for concurrent use. After retire, the
// store is closed with its last call; a later call, from an earlier turn, opens and closes it again.
type database struct {
	open    func(ctx context.Context) (*itemstore.Store, error)
	now     func() time.Time
	opening chan struct{} // holds one value: its sender may open the store

	mu      sync.Mutex
	store   *itemstore.Store
	users   int
	retired bool
	failed  error     // why the last attempt to open failed
	retryAt time.Time // when the next is due
}

func newDatabase(open func(ctx context.Context) (*itemstore.Store, error), now func() time.Time) *database {
	return &database{open: open, now: now, opening: make(chan struct{}, 1)}
}

// use calls do with the open store. Errors come from the store, or say why it cannot be opened.
func (d *database) use(ctx context.Context, do func(s *itemstore.Store) error) error {
	s, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer func() {
		d.mu.Lock()
		d.users--
		d.mu.Unlock()
		_ = d.closeUnused() // its last user has its result
	}()
	return do(s)
}

func (d *database) acquire(ctx context.Context) (*itemstore.Store, error) {
	if s, err := d.take(); s != nil || err != nil {
		return s, err
	}
	select {
	case d.opening <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-d.opening }()
	if s, err := d.take(); s != nil || err != nil {
		return s, err // another call was faster
	}
	s, err := d.open(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.failed, d.retryAt = err, d.now().Add(retryAfter)
		return nil, err
	}
	d.store, d.failed = s, nil
	d.users++
	return s, nil
}

// take returns the store if it is open, or why it cannot be opened yet. If both are nil, the caller may open it.
func (d *database) take() (*itemstore.Store, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.store != nil:
		d.users++
		return d.store, nil
	case d.failed != nil && d.now().Before(d.retryAt):
		return nil, d.failed
	}
	return nil, nil
}

// closeUnused closes a store that is retired and not in use.
func (d *database) closeUnused() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.retired || d.users > 0 || d.store == nil {
		return nil
	}
	s := d.store
	d.store = nil
	return s.Close()
}

// retire closes the store, now or after its last use.
func (d *database) retire() error {
	d.mu.Lock()
	d.retired = true
	d.mu.Unlock()
	return d.closeUnused()
}

// tooLate explains that a database did not open in time. Other errors stay as they are.
func tooLate(err error, dsn string) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	late := &sqldb.Error{
		Code: sqldb.CodeUnreachable, Message: "the memory database did not open in time", Hint: "see whether its server answers", Err: err,
	}
	if strings.HasPrefix(dsn, sqlitePrefix) {
		late.Code, late.Hint = sqldb.CodeLocked, "see which other program keeps it locked"
	}
	return late
}

// transient reports whether the same call may succeed later with the same configuration. A damaged file counts: a
// host must start without memory, and a backup may replace the file meanwhile.
func transient(err error) bool {
	if failed, ok := errors.AsType[*sqldb.Error](err); ok {
		return slices.Contains([]sqldb.Code{sqldb.CodeLocked, sqldb.CodeUnreachable, sqldb.CodeFull, sqldb.CodeDamaged}, failed.Code)
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// failure is an error of the store as a hook or a tool reports it: with a code of this plugin and a hint.
func failure(err error) error {
	failed, ok := errors.AsType[*sqldb.Error](err)
	if !ok {
		return fmt.Errorf("memory: %w", err)
	}
	out := sdk.Fail("memory_"+string(failed.Code), failed.Error())
	out.Retryable, out.Err = transient(err), err
	return out
}
