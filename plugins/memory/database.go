package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	open func(ctx context.Context) (*itemstore.Store, error)
	now  func() time.Time
	lock chan struct{} // holds a value while the fields below are used, and while the store is opened

	store   *itemstore.Store
	users   int
	retired bool
	failed  error     // why the last attempt to open failed
	retryAt time.Time // when the next is due
}

func newDatabase(open func(ctx context.Context) (*itemstore.Store, error), now func() time.Time) *database {
	return &database{open: open, now: now, lock: make(chan struct{}, 1)}
}

// use calls do with the open store. Errors come from the store, or say why it cannot be opened.
func (d *database) use(ctx context.Context, do func(s *itemstore.Store) error) error {
	s, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer func() {
		d.lock <- struct{}{}
		d.users--
		_ = d.closeUnused() // its last user has its result
		<-d.lock
	}()
	return do(s)
}

func (d *database) acquire(ctx context.Context) (*itemstore.Store, error) {
	select {
	case d.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-d.lock }()
	if d.store == nil {
		if d.failed != nil && d.now().Before(d.retryAt) {
			return nil, d.failed
		}
		if d.store, d.failed = d.open(ctx); d.failed != nil {
			d.store, d.retryAt = nil, d.now().Add(retryAfter)
			return nil, d.failed
		}
	}
	d.users++
	return d.store, nil
}

// closeUnused closes a store that is retired and not in use. Its caller holds the lock.
func (d *database) closeUnused() error {
	if !d.retired || d.users > 0 || d.store == nil {
		return nil
	}
	s := d.store
	d.store = nil
	return s.Close()
}

// retire closes the store, now or after its last use. It waits for a call that is opening it.
func (d *database) retire() error {
	d.lock <- struct{}{}
	defer func() { <-d.lock }()
	d.retired = true
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
