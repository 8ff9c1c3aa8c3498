package rpc

import (
	"context"
	"errors"
	"io"
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
	body      int64         // the longest message

	mu      sync.Mutex
	process account
	leases  map[*lease]struct{}
	waiting []*waiter
}

// account is bytes used of a share. The quota's lock guards it.
type account struct {
	name       string
	used, most int64
}

// lease is what one message holds. It is used by one goroutine at a time.
type lease struct {
	q        *quota
	accounts []*account
	socket   *socket // that the answer goes to; nil where [Server.Serve] does not serve
	held     int64   // changed under the quota's lock
	fixed    int64   // without what the call under way is expected to take
}

// waiter is a reservation that does not fit yet.
type waiter struct {
	*lease

	want    int64
	granted chan struct{}
}

func newQuota(l Limits, log *slog.Logger) *quota {
	return &quota{
		log: log, admission: l.Admission, stall: l.Write / 5, body: int64(l.Body),
		process: account{name: "process", most: int64(l.Memory)}, leases: map[*lease]struct{}{},
	}
}

// token is the account of a token: half of the process's.
func (q *quota) token() *account {
	return &account{name: "token", most: max(q.process.most/2, q.body)}
}

// connection is the account of a connection: a quarter of the process's.
func (q *quota) connection() *account {
	return &account{name: "connection", most: max(q.process.most/4, q.body)}
}

// lease begins one that holds nothing. Its end is release.
func (q *quota) lease(k *key, conn *account, to *socket) *lease {
	l := &lease{q: q, socket: to, accounts: []*account{&q.process, conn}}
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
func (l *lease) set(ctx context.Context, n int64) *Error {
	l.q.mu.Lock()
	full := l.take(n)
	if full == nil || n > full.most {
		l.q.mu.Unlock()
		return overloaded(full)
	}
	l.take(l.fixed)
	w := &waiter{l, n, make(chan struct{})}
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

// fix makes n bytes what is fixed. Expected, if any, is no longer.
func (l *lease) fix(ctx context.Context, n int64) *Error {
	bad := l.set(ctx, n)
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
	l.take(l.fixed)
}

// release gives everything back.
func (l *lease) release() {
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	l.take(0)
	delete(l.q.leases, l)
}

// take makes the lease hold n bytes, or returns the account that is full. The lock
// is held.
func (l *lease) take(n int64) (full *account) {
	more := n - l.held
	for _, a := range l.accounts {
		if more > 0 && a.used+more > a.most {
			return a
		}
	}
	for _, a := range l.accounts {
		a.used += more
	}
	if l.held = n; more < 0 {
		l.q.waiting = slices.DeleteFunc(l.q.waiting, (*waiter).admit)
	}
	return nil
}

// admit grants what a waiter wants if it fits now. The lock is held.
func (w *waiter) admit() bool {
	if w.take(w.want) != nil {
		return false
	}
	close(w.granted)
	return true
}

// wait waits until the reservation is granted, and evicts those who hold it up.
func (w *waiter) wait(ctx context.Context) *Error {
	late, look := time.NewTimer(w.q.admission), time.NewTicker(w.q.stall)
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
	full := w.take(w.want)
	if at := slices.Index(w.q.waiting, w); at >= 0 {
		w.q.waiting = slices.Delete(w.q.waiting, at, at+1)
	}
	if full != nil && ctx.Err() != nil {
		return cutShort(ctx.Err())
	}
	return overloaded(full)
}

// evict disconnects clients that hold the share which the waiter waits for and
// do not read their answers.
func (w *waiter) evict() {
	w.q.mu.Lock()
	defer w.q.mu.Unlock()
	for l := range w.q.leases {
		if l.socket != nil && l.socket.stalled() > w.q.stall && slices.ContainsFunc(l.accounts, func(a *account) bool {
			return slices.Contains(w.accounts, a) && a.used+w.want-w.held > a.most
		}) {
			w.q.log.Warn("a client that does not read its answer was disconnected: others wait for the memory", slog.Any("peer", l.socket.RemoteAddr()))
			_ = l.socket.Close() // whoever writes returns
		}
	}
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

// from reads a message and counts it while it arrives.
func (l *lease) from(ctx context.Context, r io.Reader) io.Reader { return &counting{ctx, l, r} }

// counting is a message that arrives.
type counting struct {
	ctx context.Context //nolint:containedctx // io.Reader takes none
	l   *lease
	r   io.Reader
}

// Read implements io.Reader.
func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if bad := c.l.fix(c.ctx, c.l.fixed+int64(n)); bad != nil {
		return 0, bad
	}
	return n, err
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
