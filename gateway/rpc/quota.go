package rpc

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// What a call is expected to take.
const (
	// callBytes is reserved for the answer of a call; [Expect] reserves more.
	callBytes = 256 << 10
	// decodedFactor is how much larger a message may be decoded than as text: a map
	// takes a dozen bytes for one of a short member's.
	decodedFactor = 8
)

// quota bounds the memory of messages and answers: what was read, what calls are
// expected to take, and answers until they are written. It is admission control:
// bytes are reserved before there is something to be held. Each lease counts
// against the process, its token and its connection, so that one client cannot
// take everything.
type quota struct {
	log       *slog.Logger
	admission time.Duration // how long a reservation waits
	stall     time.Duration // a reader without progress for so long is evicted when others wait
	slow      time.Duration // a sender that takes longer for a piece likewise
	body      int64         // the longest message

	mu      sync.Mutex
	process *account
	leases  map[*lease]struct{}
	waiting []*waiter
}

// account is bytes used of a share. The quota's lock guards it.
type account struct {
	name       string
	used, most int64
	arriving   *account // the part of it for messages that are not whole; nil there
}

// newAccount makes a share, a quarter of which is for long messages that arrive: who
// sends them slowly leaves the rest to calls.
func newAccount(name string, most, body int64) *account {
	return &account{name: name, most: most, arriving: &account{name: name, most: max(most/4, min(most, body))}}
}

// lease is what one message holds. It is used by one goroutine at a time.
type lease struct {
	q        *quota
	accounts []*account
	socket   *socket // that the answer goes to; nil where [Server.Serve] does not serve
	held     int64   // changed under the quota's lock
	fixed    int64   // without what the call under way is expected to take

	drop     func(*Error) // ends the connection of a message that arrives
	arriving bool         // what is held counts as arriving too; under the quota's lock
	moved    time.Time    // when the last piece of it arrived; zero while that is not up to the sender
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

// token is the account of a token: half of the process's.
func (q *quota) token() *account {
	return newAccount("token", max(q.process.most/2, q.body), q.body)
}

// connection is the account of a connection: a quarter of the process's.
func (q *quota) connection() *account {
	return newAccount("connection", max(q.process.most/4, q.body), q.body)
}

// lease begins one that holds nothing. Its end is release.
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

// set makes the lease hold n bytes. Less takes effect at once; for more it waits
// until others release theirs, up to [Limits.Admission], and meanwhile holds only
// what is fixed: who held more while waiting could block everybody. Then, or where n
// is more than a whole share, the error is CodeOverloaded.
func (l *lease) set(ctx context.Context, n int64) *Error { return l.reserve(ctx, n, false) }

// reserve is set; the message counts as arriving, or not any more.
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

// most is how much the lease may hold at all.
func (l *lease) most() int64 {
	most := l.q.process.most
	for _, a := range l.accounts {
		most = min(most, a.most)
	}
	return most
}

// expect makes the lease hold n bytes besides what is fixed; its share, where that
// is less.
func (l *lease) expect(ctx context.Context, n int64) *Error {
	return l.set(ctx, max(l.fixed, min(l.fixed+n, l.most())))
}

// fix makes n bytes of a message that arrives what is fixed.
func (l *lease) fix(ctx context.Context, n int64, arriving bool) *Error {
	bad := l.reserve(ctx, n, arriving)
	if bad == nil {
		l.fixed = n
	}
	return bad
}

// decode makes what a message of so many bytes takes decoded what is fixed, together
// with the first call, so that nobody who has been let in waits for that.
func (l *lease) decode(ctx context.Context, length int) *Error {
	n := min(int64(length)*decodedFactor, l.most()/2)
	l.fixed = min(l.fixed, n)
	bad := l.set(ctx, min(n+callBytes, l.most()))
	if bad == nil {
		l.fixed = n
	}
	return bad
}

// settle makes n bytes what is fixed, or what the lease holds if that is less, and
// gives the rest back.
func (l *lease) settle(n int64) {
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	l.fixed = min(n, l.held)
	l.take(l.fixed, l.arriving)
}

// release gives everything back.
func (l *lease) release() {
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	l.take(0, false)
	delete(l.q.leases, l)
}

// take makes the lease hold n bytes, or returns the account that is full. The lock
// is held.
func (l *lease) take(n int64, arriving bool) (full *account) {
	freed, full := l.hold(n, arriving)
	for freed {
		freed = l.q.admit()
	}
	return full
}

// hold is take without letting in others where it frees something.
func (l *lease) hold(n int64, arriving bool) (freed bool, full *account) {
	if full := l.full(n, arriving); len(full) > 0 {
		return false, full[0]
	}
	more, moreArriving := l.more(n, arriving)
	for _, a := range l.accounts {
		a.used += more
		a.arriving.used += moreArriving
	}
	if l.arriving != arriving {
		l.arriving, l.moved = arriving, time.Time{}
		if arriving {
			l.moved = time.Now()
		}
	}
	l.held = n
	return more < 0 || moreArriving < 0, nil
}

// more is by how much the accounts would grow.
func (l *lease) more(n int64, arriving bool) (all, arrivals int64) {
	if arriving {
		arrivals = n
	}
	if l.arriving {
		arrivals -= l.held
	}
	return n - l.held, arrivals
}

// full are the accounts that have no room for n bytes. The lock is held.
func (l *lease) full(n int64, arriving bool) (full []*account) {
	more, moreArriving := l.more(n, arriving)
	for _, a := range l.accounts {
		if more > 0 && a.used+more > a.most {
			full = append(full, a)
		}
		if b := a.arriving; moreArriving > 0 && b.used+moreArriving > b.most {
			full = append(full, b)
		}
	}
	return full
}

// in reports whether the lease holds something of an account.
func (l *lease) in(a *account) bool {
	return slices.ContainsFunc(l.accounts, func(own *account) bool { return own == a || l.arriving && own.arriving == a })
}

// admit grants what waiters want and fits now, first those whose token, or connection
// without one, holds the least. One that is granted may free something. The lock is
// held.
func (q *quota) admit() (freed bool) {
	slices.SortStableFunc(q.waiting, func(a, b *waiter) int { return cmp.Compare(a.own().used, b.own().used) })
	q.waiting = slices.DeleteFunc(q.waiting, func(w *waiter) bool {
		some, full := w.hold(w.want, w.arriving)
		if full != nil {
			return false
		}
		freed = freed || some
		close(w.granted)
		return true
	})
	return freed
}

// own is the account of the token, or of the connection where there is none.
func (l *lease) own() *account { return l.accounts[len(l.accounts)-1] }

// wait waits until the reservation is granted, and evicts those who hold it up.
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

// giveUp withdraws the reservation, unless it was granted in this moment.
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

// evict disconnects clients that hold the share which the waiter waits for, and do
// not read their answers, or do not send their messages.
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
		w.q.log.Warn("a client was disconnected: others wait for the memory of its answer, which it does not read, or of its message, which it does not send", l.peer())
		if unread {
			_ = l.socket.Close() // whoever writes returns
		} else {
			l.moved = time.Time{} // once
			l.drop(Errorf(CodeOverloaded, "the message arrives too slowly, and others wait: send it again"))
		}
	}
}

// peer says in a log whose lease it is.
func (l *lease) peer() slog.Attr {
	if l.socket == nil {
		return slog.String("peer", "")
	}
	return slog.Any("peer", l.socket.RemoteAddr())
}

// overloaded is the error for a share that is full; nil for none.
func overloaded(full *account) *Error {
	if full == nil {
		return nil
	}
	e := Errorf(CodeOverloaded, "the gateway holds as much for this %s as it may: read the answers that are due, then try again with fewer or smaller calls", full.name)
	e.Data = map[string]any{"share": full.name, "retry_after_ms": time.Second.Milliseconds()}
	return e
}

// isOverloaded reports whether an error is that of overloaded.
func isOverloaded(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == CodeOverloaded
}

// leaseKey finds the lease in the context of a call.
type leaseKey struct{}

// Expect reserves n bytes for what a method is about to build, its answer and what
// that is made of, instead of the 256 KiB that every call may take unasked. It waits
// for others; the error is [CodeOverloaded]. A context of no call has no bound.
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
