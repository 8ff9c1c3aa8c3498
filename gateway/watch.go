package gateway

import (
	"context"
	"time"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/tree"
)

// watchParams are those of workspace/watch.
type watchParams struct {
	WorkspaceID string    `json:"workspace_id"`
	SinceSeq    *tree.Seq `json:"since_seq,omitempty" jsonschema:"the seq of the last notification of this workspace, or of the last watch or unwatch"`
	Actor       string    `json:"actor,omitempty"`
}

// unwatchParams are those of workspace/unwatch.
type unwatchParams struct {
	WorkspaceID string `json:"workspace_id"`
	Actor       string `json:"actor,omitempty"`
}

// watchResult is the result of both.
type watchResult struct {
	Seq tree.Seq `json:"seq" jsonschema:"everything up to this place has been told, or was there to be read"`
	Gap bool     `json:"gap" jsonschema:"not everything since since_seq can be told: read again"`
}

// Bounds of watching.
const (
	// maxWatches is how many workspaces a connection may watch.
	maxWatches = 256
	// catchUpRounds is how many batches of changes are read for one who was away.
	catchUpRounds = 16
	// catchUpTime bounds the reading of all of them.
	catchUpTime = 10 * time.Second
)

// watch begins to tell a connection about a workspace.
func (g *Gateway) watch(ctx context.Context, c call[watchParams]) (watchResult, error) {
	p := c.params
	switch {
	case c.Conn == nil:
		return watchResult{}, rpc.Errorf(rpc.CodeInvalid, "watching needs a WebSocket connection (/ws): an HTTP POST has nowhere to send notifications to")
	case p.SinceSeq != nil && *p.SinceSeq < 0:
		return watchResult{}, rpc.Errorf(rpc.CodeInvalid, "since_seq: %d is less than 0", *p.SinceSeq)
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	if _, err := g.opts.Tree.Doc(ctx, tree.Scope{WorkspaceID: p.WorkspaceID}); err != nil {
		return watchResult{}, err // there is no such workspace, for one
	}
	if err := g.hub.await(ctx); err != nil {
		return watchResult{}, err
	}
	if p.SinceSeq == nil {
		return g.hub.join(c.Conn, p.WorkspaceID, false)
	}
	return g.hub.catchUp(ctx, c.Conn, p.WorkspaceID, *p.SinceSeq)
}

// unwatch ends that.
func (g *Gateway) unwatch(_ context.Context, c call[unwatchParams]) (watchResult, error) {
	if c.Conn == nil {
		return watchResult{}, rpc.Errorf(rpc.CodeInvalid, "an HTTP POST watches nothing")
	}
	seq, ok := g.hub.leave(c.Conn, c.params.WorkspaceID)
	if !ok {
		return watchResult{}, rpc.Errorf(rpc.CodeNotFound, "this connection does not watch the workspace %q", c.params.WorkspaceID)
	}
	return watchResult{Seq: seq}, nil
}

// await waits until the log of changes has been read once: a client may be there before
// that, just after the gateway began.
func (h *hub) await(ctx context.Context) error {
	late := time.NewTimer(readTime)
	defer late.Stop()
	select {
	case <-h.placed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return rpc.Errorf(rpc.CodeUnavailable, "the log of changes has not been read yet; try again")
	}
}

// join lets a connection watch from where the hub is now, which await has waited for. One that watches already
// goes on as it was, unless it has to read again: what was taken and is not told
// yet would be lost otherwise.
func (h *hub) join(c conn, workspace string, gap bool) (watchResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.rooms[workspace][c]; w != nil && !gap {
		return watchResult{Seq: h.toldTo(w)}, nil
	}
	return watchResult{h.taken, gap}, h.enter(c, workspace, h.taken)
}

// catchUp tells a connection what has changed since a place, and lets it watch.
//
// It reads by itself until it is where the hub is, or ahead of it; in that moment
// it tells all of it and enters. What the hub takes before that moment, it has read;
// what the hub takes after it, the hub tells, but for what it has read as well.
// Nothing is told sooner: to a connection that watches already, what is older
// would come after what the hub has told, or take its place in the queue.
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

// enterAt is enter, and tells what was missed, unless the hub is further than the
// connection.
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

// enter registers a watch, or sets back one that is there. The lock is held.
func (h *hub) enter(c conn, workspace string, at tree.Seq) error {
	m := h.conns[c]
	if m == nil {
		m = &member{rooms: map[string]*watch{}}
		h.conns[c] = m
		m.forget = context.AfterFunc(c.Context(), func() { h.gone(c) })
	}
	if m.rooms[workspace] == nil {
		if len(m.rooms) >= maxWatches {
			return rpc.Errorf(rpc.CodeInvalid, "this connection watches %d workspaces, and may watch no more", maxWatches)
		}
		m.rooms[workspace] = &watch{}
		if h.rooms[workspace] == nil {
			h.rooms[workspace] = map[conn]*watch{}
		}
		h.rooms[workspace][c] = m.rooms[workspace]
		h.count++
	}
	m.rooms[workspace].from = at
	return nil
}

// leave ends a watch and returns the place up to which it was told everything.
func (h *hub) leave(c conn, workspace string) (tree.Seq, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.conns[c]
	if m == nil || m.rooms[workspace] == nil {
		return 0, false
	}
	told := h.toldTo(m.rooms[workspace])
	h.drop(c, m, workspace)
	return told, true
}

// toldTo is the place up to which a watch was told everything. The lock is held.
func (h *hub) toldTo(w *watch) tree.Seq { return max(w.from, h.told) }

// drop takes a watch away, and the member with its last one. The lock is held.
func (h *hub) drop(c conn, m *member, workspace string) {
	delete(m.rooms, workspace)
	delete(h.rooms[workspace], c)
	h.count--
	if len(h.rooms[workspace]) == 0 {
		delete(h.rooms, workspace)
	}
	if len(m.rooms) == 0 {
		m.forget()
		delete(h.conns, c)
	}
}

// closeRoom ends all watches of a workspace that is no more. The lock is held.
func (h *hub) closeRoom(workspace string) {
	for c := range h.rooms[workspace] {
		h.drop(c, h.conns[c], workspace)
	}
}

// gone ends all watches of a connection that has ended.
func (h *hub) gone(c conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.conns[c]
	if m == nil {
		return
	}
	for workspace := range m.rooms {
		h.drop(c, m, workspace)
	}
}
