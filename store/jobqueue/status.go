package jobqueue

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/store/sqldb"
)

const (
	// idlePoll is how often Idle looks again where nothing tells it that it should:
	// another process may have ended a job.
	idlePoll = 50 * time.Millisecond
	// maxKnown is how many jobs are known before those are looked for that others
	// have ended.
	maxKnown = 8192
)

// known are the jobs that this process has added or taken, and that may not have
// ended. The zero value knows none.
type known struct {
	mu  sync.Mutex
	ids map[int64]struct{}
	// prune is how many make it worth looking for jobs that have ended.
	prune int
	// changed is closed and replaced when an attempt ends; nil until somebody waits.
	changed chan struct{}
}

// add notes a job. It reports whether there are many by now.
func (k *known) add(id int64) (many bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ids == nil {
		k.ids, k.prune = map[int64]struct{}{}, maxKnown
	}
	k.ids[id] = struct{}{}
	if many = len(k.ids) >= k.prune; many {
		k.prune = 2 * len(k.ids) // not again at once, should the database be away
	}
	return many
}

// forget drops a job that has ended.
func (k *known) forget(id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.ids, id)
}

// keep drops all jobs but those that are open.
func (k *known) keep(open map[int64]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id := range k.ids {
		if !open[id] {
			delete(k.ids, id)
		}
	}
	k.prune = max(maxKnown, 2*len(k.ids))
}

// has reports whether one of the jobs is known.
func (k *known) has(ids map[int64]bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id := range ids {
		if _, ok := k.ids[id]; ok {
			return true
		}
	}
	return false
}

// none reports whether no job is known.
func (k *known) none() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.ids) == 0
}

// signal tells those who wait that an attempt has ended.
func (k *known) signal() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.changed != nil {
		close(k.changed)
		k.changed = nil
	}
}

// wait is closed when an attempt ends after the call.
func (k *known) wait() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.changed == nil {
		k.changed = make(chan struct{})
	}
	return k.changed
}

// forgetOthers drops known jobs that others have ended. If it fails, they are
// dropped another time.
func (q *Queue) forgetOthers(ctx context.Context) {
	open, err := q.ids(ctx, q.phrases.open)
	if err != nil {
		q.opts.Logger.Debug("ended jobs cannot be looked for", "error", err)
		return
	}
	q.known.keep(open)
}

// ids has the result of a statement for ids.
func (q *Queue) ids(ctx context.Context, statement string) (map[int64]bool, error) {
	ids := map[int64]bool{}
	err := q.db.Snapshot(ctx, "looking for jobs", func(tx *sql.Tx) error {
		list, err := idsOf(ctx, tx, statement)
		for _, id := range list {
			ids[id] = true
		}
		return err
	})
	return ids, err
}

// idsOf are the ids that a statement has.
func idsOf(ctx context.Context, tx *sql.Tx, statement string, args ...any) ([]int64, error) {
	ids := []int64{}
	err := sqldb.Each(ctx, tx, statement, args, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// Idle implements [runtime.Queue]. A job that this process has added counts while it
// runs, also where another process works on it.
func (q *Queue) Idle(ctx context.Context) error {
	for {
		if q.known.none() {
			return nil
		}
		changed := q.known.wait()
		busy, err := q.ids(ctx, q.phrases.busy)
		if err != nil {
			return err
		}
		if !q.known.has(busy) {
			return nil
		}
		timer := time.NewTimer(idlePoll)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		timer.Stop()
	}
}
