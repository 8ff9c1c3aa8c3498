package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/tree"
)

// Times and sizes of the hub.
const (
	// readEvery is how often the log of changes is read without being woken.
	readEvery = 5 * time.Second
	// readTime bounds one reading.
	readTime = 5 * time.Second
	// backoffLeast and backoffMost are the waits between attempts to listen.
	backoffLeast = 100 * time.Millisecond
	backoffMost  = 5 * time.Second
	// batch is how many changes are read at once.
	batch = 1000
	// burst is how many notes of one workspace are told one by one, half of what may
	// wait for a connection: a folder with thousands of threads that is deleted does
	// not cost a client its connection.
	burst = 128
)

// conn is what the hub needs of a *rpc.Conn.
type conn interface {
	// Notify queues a notification and never blocks.
	Notify(key, method string, params any)
	Context() context.Context
	Caller() *rpc.Caller
}

// hub knows who watches what, and tells them what changed.
//
// One goroutine listens, one reads and tells. Connections come and go by the
// calls of their clients. The lock is never held while the database works.
type hub struct {
	tree    tree.Store
	log     *slog.Logger
	metrics *metrics
	woken   chan struct{} // of capacity 1
	// placed is closed when the log of changes has been read for the first time.
	placed chan struct{}

	mu sync.Mutex
	// taken is the place up to which changes were read; known says that it is one.
	// They are told soon after, to whoever watched by then: who comes later begins
	// behind them.
	taken tree.Seq
	known bool
	// told is the place up to which everybody has been told.
	told  tree.Seq
	rooms map[string]map[conn]*watch // by workspace
	conns map[conn]*member
	count int // watches
	// failing says that the last reading failed, so that an outage is logged once.
	failing bool
}

// watch is one connection's interest in one workspace.
type watch struct {
	// from is where it began: what was before that, the connection knows.
	from tree.Seq
}

// member is one connection with all its watches.
type member struct {
	rooms map[string]*watch
	// forget takes back that its end is looked out for.
	forget func() bool
}

func newHub(t tree.Store, log *slog.Logger, m *metrics) *hub {
	return &hub{tree: t, log: log, metrics: m, woken: make(chan struct{}, 1), placed: make(chan struct{}), rooms: map[string]map[conn]*watch{}, conns: map[conn]*member{}}
}

// wake makes read look at the log soon.
func (h *hub) wake() {
	select {
	case h.woken <- struct{}{}:
	default: // it will look anyway
	}
}

// listen listens until ctx ends, and begins again when listening ends before.
func (h *hub) listen(ctx context.Context) {
	wait := backoffLeast
	for {
		began := time.Now()
		err := h.tree.Listen(ctx, h.wake)
		if ctx.Err() != nil {
			return
		}
		h.metrics.listenEnded()
		h.wake()
		level := slog.LevelDebug // an outage is logged once
		if time.Since(began) > backoffMost {
			wait = backoffLeast
		}
		if wait == backoffLeast {
			level = slog.LevelWarn
		}
		h.log.Log(ctx, level, "listening for changes ended; it begins again, and changes are read every few seconds meanwhile", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, backoffMost)
	}
}

// read reads what changed and tells it, until ctx ends.
func (h *hub) read(ctx context.Context) {
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for {
		for h.step(ctx) {
		}
		select {
		case <-ctx.Done():
			return
		case <-h.woken:
		case <-tick.C:
		}
	}
}

// step reads a batch of changes and tells them. It reports whether there are more.
func (h *hub) step(ctx context.Context) bool {
	at, known := h.place()
	if !known {
		at = newest // what was before the gateway began, nobody waits for
	}
	got, err := h.changes(ctx, at)
	h.reached(ctx, err)
	if err != nil {
		return false
	}
	wanted := h.take(got.Next)
	if got.Gap {
		h.tellGap(got.Next)
		return got.More
	}
	h.tell(h.notes(ctx, got.List, wanted), got.Next)
	return got.More
}

// notes makes notes of changes, digested for each workspace by itself. They are in
// the order of the log across workspaces too: a client that watches several and
// keeps one place for all would miss something otherwise.
func (h *hub) notes(ctx context.Context, list []tree.Change, wanted map[string]bool) []note {
	var notes []note
	for _, group := range byWorkspace(list, wanted) {
		notes = append(notes, digest(group, burst)...)
	}
	slices.SortStableFunc(notes, func(a, b note) int { return cmp.Compare(a.change.Seq, b.change.Seq) })
	return h.prepare(ctx, notes)
}

// changes reads a batch behind a place.
func (h *hub) changes(ctx context.Context, after tree.Seq) (tree.Changes, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	return h.tree.Changes(ctx, after, batch)
}

// reached logs when the database goes away and comes back.
func (h *hub) reached(ctx context.Context, err error) {
	h.mu.Lock()
	was := h.failing
	h.failing = err != nil
	h.mu.Unlock()
	switch {
	case ctx.Err() != nil:
	case err != nil:
		h.metrics.readFailed()
		if !was {
			h.log.Warn("changes cannot be read; it is tried again every few seconds", "error", err)
		}
	case was:
		h.log.Info("changes can be read again")
	}
}

// take moves the place on and returns the workspaces that are watched by now.
func (h *hub) take(next tree.Seq) map[string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.known {
		close(h.placed)
	}
	h.taken, h.known = next, true
	wanted := make(map[string]bool, len(h.rooms))
	for id := range h.rooms {
		wanted[id] = true
	}
	return wanted
}

// prepare encodes notes, once for all who get them. How many folders a document
// affects is asked here: outside of the transaction that saved it, once for each
// note, and only where somebody watches. That has its time for all of them
// together, as everybody waits.
func (h *hub) prepare(ctx context.Context, notes []note) []note {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	for i := range notes {
		n := &notes[i]
		var affects *int
		if n.change.Doc != nil && !n.tree {
			affects = h.affects(ctx, tree.Scope{WorkspaceID: n.change.WorkspaceID, FolderID: n.change.Doc.FolderID})
		}
		if err := n.encode(affects); err != nil {
			// Such as one with a time that JSON has no form for. The client has to know,
			// and a gap always encodes.
			h.log.Error("a notification cannot be encoded", "error", err)
			*n = gapNote(n.change.WorkspaceID, n.resume)
			_ = n.encode(nil)
		}
	}
	return notes
}

// affects is nil where it could not be told.
func (h *hub) affects(ctx context.Context, s tree.Scope) *int {
	n, err := h.tree.Affected(ctx, s)
	switch {
	case tree.HasCode(err, tree.CodeNotFound): // deleted since
		n = 0
	case err != nil:
		h.log.Debug("it could not be told what a document affects", "error", err)
		return nil
	}
	return &n
}

// tell hands notes to all who watch and do not know yet, and notes the place up to
// which everybody has been told.
func (h *hub) tell(notes []note, upTo tree.Seq) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range notes {
		n := &notes[i]
		for c, w := range h.rooms[n.change.WorkspaceID] {
			if n.change.Seq > w.from {
				c.Notify(n.key, n.method, n.params)
			}
		}
		if n.change.Workspace != nil && n.change.Action == tree.Deleted {
			h.closeRoom(n.change.WorkspaceID)
		}
	}
	h.told = upTo
}

// tellGap tells everybody to read again. The log may be another one than before,
// such as that of a copy that was put back, so that every place is a new one.
func (h *hub) tellGap(upTo tree.Seq) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.rooms) > 0 {
		h.log.Warn("the log of changes has a gap: clients are told to read again", "seq", upTo)
	}
	for id, room := range h.rooms {
		n := gapNote(id, upTo)
		if err := n.encode(nil); err != nil {
			h.log.Error("a notification cannot be encoded", "error", err)
			continue
		}
		for c, w := range room {
			c.Notify(n.key, n.method, n.params)
			w.from = upTo
		}
	}
	h.told = upTo
}

// place is where the next reading begins; false before the first.
func (h *hub) place() (tree.Seq, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.taken, h.known
}

// progress is the place up to which everybody has been told; false before the
// first reading.
func (h *hub) progress() (tree.Seq, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.told, h.known
}

// watchers is how many watches there are.
func (h *hub) watchers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}
