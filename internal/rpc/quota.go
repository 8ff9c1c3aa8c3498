package rpc

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	callBytes = 256 << 10 // reserved for the answer of a call; [Expect] reserves more
	// decodedFactor is how much larger a message gets when decoded: maps take a dozen bytes for one of a short
	// member.
	decodedFactor = 8
)

// quota bounds the memory of messages and answers. Bytes are reserved before they are used, and count against the
// process, the token and the connection, so that one client cannot take everything.
type quota struct {
	log       *slog.Logger
	admission time.Duration // how long a reservation waits
	stall     time.Duration // how long a reader may stall if others wait
	slow      time.Duration // the same for 16 KiB of a sender
	body      int64         // the longest message

	mu      sync.Mutex
	process *account
	leases  map[*lease]struct{}
	waiting []*waiter
}

// account is the used part of a share, under the quota's lock.
type account struct {
	name       string
	used, most int64
	arriving   *account // the part for incomplete messages; nil there
}

// newAccount makes a share. A quarter of it is for long messages that arrive, so that slow senders leave the rest to
// calls.
func newAccount(name string, most, body int64) *account {
	return &account{name: name, most: most, arriving: &account{name: name, most: max(most/4, min(most, body))}}
}

// lease is the memory of one message, used by one goroutine at a time.
type lease struct {
	q        *quota
	accounts []*account
	socket   *socket // the answer's; nil outside of [Server.Serve]
	held     int64   // under the quota's lock
	fixed    int64   // without what the current call is expected to take

	drop     func(*Error) // ends the connection of an arriving message
	arriving bool         // counts as arriving too; under the quota's lock
	moved    time.Time    // when the last piece arrived; zero while the sender is not to blame
}

// waiter is a reservation that does not fit yet.
type waiter struct {
	*lease

	want     int64
	arriving bool
	granted  chan struct{}
}

func newQuota(l Limits, log *slog.Logger) *quota {
	return &quota{
		log: log, admission: l.Admission, stall: l.Write / 5, slow: l.Admission / 10, body: int64(l.Body),
		process: newAccount("process", int64(l.Memory), int64(l.Body)), leases: map[*lease]struct{}{},
	}
}

func (q *quota) token() *account {
	return newAccount("token", max(q.process.most/2, q.body), q.body)
}

func (q *quota) connection() *account {
	return newAccount("connection", max(q.process.most/4, q.body), q.body)
}

func (q *quota) lease(k *key, conn *account, to *socket) *lease {
	l := &lease{q: q, socket: to, accounts: []*account{q.process, conn}}
	if k != nil {
		l.accounts = append(l.accounts, k.memory)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leases[l] = struct{}{}
	return l
}

// set makes the lease hold n bytes. Less takes effect at once. More waits for others, up to [Limits.Admission], and
// holds only what is fixed meanwhile, so that waiters cannot block each other. The error is CodeOverloaded, at once
// if n exceeds a whole share.
func (l *lease) set(ctx context.Context, n int64) *Error { return l.reserve(ctx, n, false) }

// reserve is set for a message that is arriving, or has arrived.
func (l *lease) reserve(ctx context.Context, n int64, arriving bool) *Error {
	l.q.mu.Lock()
	full := l.take(n, arriving)
	if full == nil || n > full.most {
		l.q.mu.Unlock()
		return overloaded(full)
	}
	l.take(l.fixed, l.arriving)
	l.moved = time.Time{}
	w := &waiter{l, n, arriving, make(chan struct{})}
	l.q.waiting = append(l.q.waiting, w)
	l.q.mu.Unlock()
	return w.wait(ctx)
}

func (l *lease) most() int64 {
	most := l.q.process.most
	for _, a := range l.accounts {
		most = min(most, a.most)
	}
	return most
}

// expect reserves n bytes besides what is fixed, or the whole share if that is less.
func (l *lease) expect(ctx context.Context, n int64) *Error {
	return l.set(ctx, max(l.fixed, min(l.fixed+n, l.most())))
}

// fix is reserve; the n bytes become what is fixed.
func (l *lease) fix(ctx context.Context, n int64, arriving bool) *Error {
	bad := l.reserve(ctx, n, arriving)
	if bad == nil {
		l.fixed = n
	}
	return bad
}

// decode reserves what a decoded message takes, with its first call.
func (l *lease) decode(ctx context.Context, length int) *Error {
	n := min(int64(length)*decodedFactor, l.most()/2)
	l.fixed = min(l.fixed, n)
	bad := l.set(ctx, min(n+callBytes, l.most()))
	if bad == nil {
		l.fixed = n
	}
	return bad
}

// settle fixes up to n bytes and releases the rest.
func (l *lease) settle(n int64) {
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	l.fixed = min(n, l.held)
	l.take(l.fixed, l.arriving)
}

func (l *lease) release() {
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	l.take(0, false)
	delete(l.q.leases, l)
}

// take makes the lease hold n bytes, or returns the account that is full. The lock is held.
func (l *lease) take(n int64, arriving bool) (full *account) {
	full = l.hold(n, arriving)
	for full == nil && l.q.admit() {
	}
	return full
}

// hold is take, but does not admit waiters.
func (l *lease) hold(n int64, arriving bool) *account {
	if full := l.full(n, arriving); len(full) > 0 {
		return full[0]
	}
	for a, more := range l.changes(n, arriving) {
		a.used += more
	}
	if l.arriving != arriving {
		l.arriving, l.moved = arriving, time.Time{}
		if arriving {
			l.moved = time.Now()
		}
	}
	l.held = n
	return nil
}

// changes yields by how much each account would grow.
func (l *lease) changes(n int64, arriving bool) iter.Seq2[*account, int64] {
	arrivals := int64(0)
	if arriving {
		arrivals = n
	}
	if l.arriving {
		arrivals -= l.held
	}
	return func(yield func(*account, int64) bool) {
		for _, a := range l.accounts {
			if !yield(a, n-l.held) || !yield(a.arriving, arrivals) {
				return
			}
		}
	}
}

// full returns the accounts that n bytes do not fit. The lock is held.
func (l *lease) full(n int64, arriving bool) (full []*account) {
	for a, more := range l.changes(n, arriving) {
		if more > 0 && a.used+more > a.most {
			full = append(full, a)
		}
	}
	return full
}

func (l *lease) in(a *account) bool {
	return slices.ContainsFunc(l.accounts, func(own *account) bool { return own == a || l.arriving && own.arriving == a })
}

// admit grants the reservations that fit, the smallest holder first, and reports whether there were any: a grant may free
// memory of an arriving message. The lock is held.
func (q *quota) admit() (granted bool) {
	slices.SortStableFunc(q.waiting, func(a, b *waiter) int { return cmp.Compare(a.own().used, b.own().used) })
	q.waiting = slices.DeleteFunc(q.waiting, func(w *waiter) bool {
		if w.hold(w.want, w.arriving) != nil {
			return false
		}
		granted = true
		close(w.granted)
		return true
	})
	return granted
}

// own is the token's account, or the connection's without one.
func (l *lease) own() *account { return l.accounts[len(l.accounts)-1] }

// wait waits for the grant, and evicts clients that hold it up.
func (w *waiter) wait(ctx context.Context) *Error {
	late, look := time.NewTimer(w.q.admission), time.NewTicker(min(w.q.stall, w.q.slow))
	defer late.Stop()
	defer look.Stop()
	for {
		w.evict()
		select {
		case <-w.granted:
			return nil
		case <-look.C:
			continue
		case <-ctx.Done():
		case <-late.C:
		}
		return w.giveUp(ctx)
	}
}

// giveUp withdraws the reservation, unless it has just been granted.
func (w *waiter) giveUp(ctx context.Context) *Error {
	w.q.mu.Lock()
	defer w.q.mu.Unlock()
	full := w.take(w.want, w.arriving)
	if at := slices.Index(w.q.waiting, w); at >= 0 {
		w.q.waiting = slices.Delete(w.q.waiting, at, at+1)
	}
	if full != nil && ctx.Err() != nil {
		return cutShort(ctx, ctx.Err())
	}
	return overloaded(full)
}

// evict disconnects clients that hold the full share and do not read their answers or send their messages.
func (w *waiter) evict() {
	w.q.mu.Lock()
	defer w.q.mu.Unlock()
	full := w.full(w.want, w.arriving)
	for l := range w.q.leases {
		unread := l.socket != nil && l.socket.stalled() > w.q.stall
		unsent := !l.moved.IsZero() && time.Since(l.moved) > w.q.slow
		if !unread && !unsent || !slices.ContainsFunc(full, l.in) {
			continue
		}
		w.q.log.Warn("a slow client was disconnected: others wait for the memory of its unread answer or unsent message", l.peer())
		if unread {
			_ = l.socket.Close() // ends its writer
		} else {
			l.moved = time.Time{} // once
			l.drop(Errorf(CodeOverloaded, "the message arrives too slowly, and others wait: send it again"))
		}
	}
}

func (l *lease) peer() slog.Attr {
	if l.socket == nil {
		return slog.String("peer", "")
	}
	return slog.Any("peer", l.socket.RemoteAddr())
}

func overloaded(full *account) *Error {
	if full == nil {
		return nil
	}
	e := Errorf(CodeOverloaded, "the gateway holds as much for this %s as it may: read the answers that are due, then try again with fewer or smaller calls", full.name)
	e.Data = map[string]any{"share": full.name, "retry_after_ms": time.Second.Milliseconds()}
	return e
}

func isOverloaded(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == CodeOverloaded
}

type leaseKey struct{}

// Expect reserves n bytes for what a method is about to build, answer included, instead of the 256 KiB of every call.
// It waits for others; the error is [CodeOverloaded]. Outside of a call it does nothing.
func Expect(ctx context.Context, n int) error {
	l, ok := ctx.Value(leaseKey{}).(*lease)
	if !ok {
		return nil
	}
	if bad := l.expect(ctx, int64(n)); bad != nil {
		return bad
	}
	return nil
}

const (
	// A message up to smallMessage does not count as arriving: it gets past long ones that others send slowly.
	smallMessage = 16 << 10
	readPiece    = 16 << 10 // how much must arrive to count as progress
)

// arrival reads a message and reserves its memory. A long one is reserved as a whole, so that messages do not wait
// for each other's second halves. Each piece must arrive within a third of [Limits.Read].
type arrival struct {
	ctx      context.Context //nolint:containedctx // io.Reader takes none
	lease    *lease
	from     io.Reader
	whole    int64 // its longest length
	read     time.Duration
	deadline func(time.Time) error // the connection's

	n, next int64     // bytes so far, and where the next piece begins
	by      time.Time // when all of it must be there
}

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

// piece notes an arrived piece, and sets the deadline of the next.
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
	_ = a.deadline(due)                                             // a server without deadlines has its own
	if bad, ok := errors.AsType[*Error](context.Cause(a.ctx)); ok { // after the deadline, because cut sets one after ending ctx
		return bad
	}
	return nil
}

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

func (l *lease) progress(now time.Time) {
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	if l.arriving {
		l.moved = now
	}
}
