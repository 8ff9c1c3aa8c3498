package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tree"
)

const (
	// readEvery is how often the log of changes is read without being woken, and readTime bounds each read.
	readEvery    = 5 * time.Second
	readTime     = 5 * time.Second
	backoffLeast = 100 * time.Millisecond // the first wait between attempts to listen; backoffMost is the longest
	backoffMost  = 5 * time.Second
	batch        = 1000 // how many changes are read at once
	// burst is how many notes of one workspace are sent singly, half of what may wait for a
	// connection: deleting a large folder must not cost a client its connection.
	burst = 128
)

// hub notifies the connections that watch workspaces of changes. One goroutine listens, one
// reads and notifies. The lock is never held while the database works.
type hub struct {
	watchers[tree.Seq] // by workspace, with where each watch began; their lock also guards what is below placed

	tree    tree.Store
	log     *slog.Logger
	metrics *metrics
	woken   chan struct{} // of capacity 1
	placed  chan struct{} // closed after the first read of the log

	// taken is the place up to which changes were read, if known. Watches that existed then are
	// notified of them; later ones begin after them.
	taken   tree.Seq
	known   bool
	sent    tree.Seq    // the place up to which everybody was notified
	failing atomic.Bool // the last read failed, so that an outage is logged once
}

func newHub(t tree.Store, log *slog.Logger, m *metrics) *hub {
	return &hub{tree: t, log: log, metrics: m, woken: make(chan struct{}, 1), placed: make(chan struct{})}
}

func (h *hub) wake() {
	select {
	case h.woken <- struct{}{}:
	default: // it will look anyway
	}
}

func (h *hub) listen(ctx context.Context) {
	wait := backoffLeast
	for {
		began := time.Now()
		err := h.tree.Listen(ctx, h.wake)
		if ctx.Err() != nil {
			return
		}
		h.metrics.listens.Inc()
		h.wake()
		level := slog.LevelDebug // an outage is logged once
		if time.Since(began) > backoffMost {
			wait = backoffLeast
		}
		if wait == backoffLeast {
			level = slog.LevelWarn
		}
		h.log.Log(ctx, level, "listening for changes ended and begins again; changes are read every few seconds meanwhile", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, backoffMost)
	}
}

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

// step reads a batch of changes and notifies of them. It reports whether there are more.
func (h *hub) step(ctx context.Context) bool {
	at, _, known := h.place()
	if !known {
		at = newest // nobody waits for earlier changes
	}
	got, err := h.changes(ctx, at)
	h.reached(ctx, err)
	if err != nil {
		return false
	}
	wanted := h.take(got.Next)
	if got.Gap {
		h.sendGap(got.Next)
		return got.More
	}
	h.send(h.notes(ctx, got.List, wanted), got.Next)
	return got.More
}

// notes digests the changes of each workspace, in the order of the log across workspaces: a
// client may keep one place for several.
func (h *hub) notes(ctx context.Context, list []tree.Change, wanted map[string]bool) []note {
	var notes []note
	for _, group := range byWorkspace(list, wanted) {
		notes = append(notes, digest(group, burst)...)
	}
	slices.SortStableFunc(notes, func(a, b note) int { return cmp.Compare(a.change.Seq, b.change.Seq) })
	return h.prepare(ctx, notes)
}

func (h *hub) changes(ctx context.Context, after tree.Seq) (tree.Changes, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	return h.tree.Changes(ctx, after, batch)
}

// reached logs when the database goes away and comes back.
func (h *hub) reached(ctx context.Context, err error) {
	was := h.failing.Swap(err != nil)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		h.metrics.reads.Inc()
		if !was {
			h.log.Warn("changes cannot be read; the next attempt is in a few seconds", "error", err)
		}
	case was:
		h.log.Info("changes can be read again")
	}
}

// take advances the place and returns the watched workspaces.
func (h *hub) take(next tree.Seq) map[string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.known {
		close(h.placed)
	}
	h.taken, h.known = next, true
	wanted := make(map[string]bool, len(h.of))
	for id := range h.of {
		wanted[id] = true
	}
	return wanted
}

// prepare encodes notes once for all recipients and counts the affected folders, within a bounded time for all notes.
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
			// For example a time that JSON cannot have. A gap always encodes.
			h.log.Error("a notification cannot be encoded", "error", err)
			*n = gapNote(n.change.WorkspaceID, n.resume)
			_ = n.encode(nil)
		}
	}
	return notes
}

// affects is nil if it is unknown.
func (h *hub) affects(ctx context.Context, s tree.Scope) *int {
	n, err := h.tree.Affected(ctx, s)
	switch {
	case tree.HasCode(err, tree.CodeNotFound): // deleted since
		n = 0
	case err != nil:
		h.log.Debug("what a document affects is unknown", "error", err)
		return nil
	}
	return &n
}

// send notifies the connections that watch and do not know yet.
func (h *hub) send(notes []note, upTo tree.Seq) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range notes {
		n := &notes[i]
		for c, from := range h.of[n.change.WorkspaceID] {
			if n.change.Seq > from {
				c.Notify(n.key, n.method, n.params)
			}
		}
		if n.change.Workspace != nil && n.change.Action == tree.Deleted {
			for c := range h.of[n.change.WorkspaceID] {
				h.leave(c, n.change.WorkspaceID)
			}
		}
	}
	h.sent = upTo
}

// sendGap makes everybody read again. The log may be a restored copy, so every place is new.
func (h *hub) sendGap(upTo tree.Seq) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.of) > 0 {
		h.log.Warn("the log of changes has a gap: clients have to read again", "seq", upTo)
	}
	for id, conns := range h.of {
		n := gapNote(id, upTo)
		if err := n.encode(nil); err != nil {
			h.log.Error("a notification cannot be encoded", "error", err)
			continue
		}
		for c := range conns {
			c.Notify(n.key, n.method, n.params)
			conns[c] = upTo
		}
	}
	h.sent = upTo
}

// place returns the places up to which changes were read and everybody was notified; false before the first read.
func (h *hub) place() (taken, sent tree.Seq, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.taken, h.sent, h.known
}

type watchParams struct {
	WorkspaceID string    `json:"workspace_id"`
	SinceSeq    *tree.Seq `json:"since_seq,omitempty" jsonschema:"the seq of the last notification of this workspace, or of the last watch or unwatch"`
	Actor       string    `json:"actor,omitempty"`
}

type unwatchParams struct {
	WorkspaceID string `json:"workspace_id"`
	Actor       string `json:"actor,omitempty"`
}

type watchResult struct {
	Seq tree.Seq `json:"seq" jsonschema:"everything up to this place was sent, or could be read"`
	Gap bool     `json:"gap" jsonschema:"not everything since since_seq can be sent: read again"`
}

const (
	// catchUpRounds is how many batches of changes are read for a returning client, and catchUpTime bounds the time.
	catchUpRounds = 16
	catchUpTime   = 10 * time.Second
)

func (m *treeMethods) watch(ctx context.Context, c call[watchParams]) (watchResult, error) {
	p := c.params
	if p.SinceSeq != nil && *p.SinceSeq < 0 {
		return watchResult{}, rpc.Errorf(rpc.CodeInvalid, "since_seq: %d is less than 0", *p.SinceSeq)
	}
	if _, err := m.tree.Doc(ctx, tree.Scope{WorkspaceID: p.WorkspaceID}); err != nil {
		return watchResult{}, err // such as an unknown workspace
	}
	if err := m.hub.await(ctx); err != nil {
		return watchResult{}, err
	}
	if p.SinceSeq == nil {
		return m.hub.join(c.Conn, p.WorkspaceID, false)
	}
	return m.hub.catchUp(ctx, c.Conn, p.WorkspaceID, *p.SinceSeq)
}

func (m *treeMethods) unwatch(_ context.Context, c call[unwatchParams]) (watchResult, error) {
	seq, ok := m.hub.stop(c.Conn, c.params.WorkspaceID)
	if !ok {
		return watchResult{}, rpc.Errorf(rpc.CodeNotFound, "this connection does not watch the workspace %q", c.params.WorkspaceID)
	}
	return watchResult{Seq: seq}, nil
}

// await waits until the log of changes was read once.
func (h *hub) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readTime, rpc.Errorf(rpc.CodeUnavailable, "the log of changes has not been read yet; try again"))
	defer cancel()
	select {
	case <-h.placed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join begins a watch where the hub is now. An existing watch goes on, unless the connection
// must read again: it would miss changes that were taken and not yet sent.
func (h *hub) join(c conn, workspace string, gap bool) (watchResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if from, ok := h.of[workspace][c]; ok && !gap {
		return watchResult{Seq: max(from, h.sent)}, nil
	}
	return watchResult{h.taken, gap}, h.enter(c, workspace, h.taken)
}

// catchUp notifies a connection of the changes since a place, and lets it watch. It reads until
// it has reached the hub, and then sends everything at once: a connection that watches already
// would otherwise get older changes after newer ones.
func (h *hub) catchUp(ctx context.Context, c conn, workspace string, at tree.Seq) (watchResult, error) {
	wanted := map[string]bool{workspace: true}
	var missed []note
	for range catchUpRounds {
		got, err := h.changes(ctx, at)
		if err != nil {
			return watchResult{}, err
		}
		if got.Gap {
			break
		}
		for _, group := range byWorkspace(got.List, wanted) {
			notes := digest(group, burst-len(missed))
			if notes[0].gap {
				return h.join(c, workspace, true)
			}
			missed = append(missed, h.prepare(ctx, notes)...)
		}
		at = got.Next
		if got.More {
			continue
		}
		if ok, err := h.enterAt(c, workspace, at, missed); ok || err != nil {
			return watchResult{Seq: at}, err
		}
	}
	return h.join(c, workspace, true)
}

// enterAt enters and sends what was missed, unless the hub is ahead of the connection.
func (h *hub) enterAt(c conn, workspace string, at tree.Seq, missed []note) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at < h.taken {
		return false, nil
	}
	if err := h.enter(c, workspace, at); err != nil {
		return true, err
	}
	for i := range missed {
		c.Notify(missed[i].key, missed[i].method, missed[i].params)
	}
	return true, nil
}

// stop ends a watch and returns the place up to which its connection was notified.
func (h *hub) stop(c conn, workspace string) (tree.Seq, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from, ok := h.leave(c, workspace)
	return max(from, h.sent), ok
}
