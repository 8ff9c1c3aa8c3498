package rpc

import (
	"context"
	"errors"
	"io"
	"time"
)

const (
	// smallMessage is up to which length a message needs no room among those that
	// arrive: it always gets past long ones that others send slowly.
	smallMessage = 16 << 10
	// readPiece is how much of a message must arrive to make progress.
	readPiece = 16 << 10
)

// arrival reads a message and counts it. A long one is counted as a whole once it
// turns out to be long, so that messages do not wait for each other's second halves.
// Each piece must arrive within a third of [Limits.Read].
type arrival struct {
	ctx      context.Context //nolint:containedctx // io.Reader takes none
	lease    *lease
	from     io.Reader
	whole    int64 // how long it may be
	read     time.Duration
	deadline func(time.Time) error // sets that of the connection

	n, next int64     // bytes so far, and with which the next piece begins
	by      time.Time // when all of it must be there
}

// Read implements io.Reader.
func (a *arrival) Read(p []byte) (int, error) {
	if a.n >= a.next {
		if err := a.piece(); err != nil {
			return 0, err
		}
	}
	n, err := a.from.Read(p)
	a.n += int64(n)
	if bad := a.count(); bad != nil {
		return 0, bad
	}
	return n, err
}

// piece notes that a piece has arrived, and gives the next one its time.
func (a *arrival) piece() error {
	now := time.Now()
	if a.by.IsZero() {
		a.by = now.Add(a.read)
	}
	a.next = a.n + readPiece
	a.lease.progress(now)
	due := now.Add(a.read / 3)
	if due.After(a.by) {
		due = a.by
	}
	_ = a.deadline(due)                                             // a server without deadlines has its own; reading fails where the connection is closed
	if bad, ok := errors.AsType[*Error](context.Cause(a.ctx)); ok { // behind the deadline: cut sets one too, after it has ended ctx
		return bad
	}
	return nil
}

// count reserves memory for what has arrived, or for all that will.
func (a *arrival) count() *Error {
	switch {
	case a.n <= smallMessage:
		return a.lease.fix(a.ctx, a.n, false)
	case a.n <= a.lease.fixed:
		return nil
	}
	a.by, a.next = time.Time{}, a.n // the wait is not the sender's
	return a.lease.fix(a.ctx, max(a.n, min(a.whole, a.lease.most())), true)
}

// progress notes that a piece of a message has arrived.
func (l *lease) progress(now time.Time) {
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	if l.arriving {
		l.moved = now
	}
}
