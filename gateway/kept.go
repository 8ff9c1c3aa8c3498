package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// notifyKept is sent to those who watch for new manifests.
const notifyKept = "manifest/kept"

// ManifestKept are the params of manifest/kept.
type ManifestKept struct {
	Rows []manifest.Overview `json:"rows" jsonschema:"the new manifests, in the order in which they were kept, as manifest/overview has them"`
}

const (
	keptEvery = time.Second // how often new manifests are looked for
	keptTime  = 5 * time.Second
	keptBatch = 1000 // how many rows one query reads
	keptRows  = 100  // how many rows one notification has
	// keptLooks is how many looks back a row may appear after one with a larger id: a server gives out ids before
	// transactions commit, and keptOverlap is how many ids before the first look count as not yet seen.
	keptLooks   = 10
	keptOverlap = 64
)

// keptWatch notifies connections of new manifests, whichever gateway kept them. Nothing is read while nobody watches.
type keptWatch struct {
	watchers[struct{}] // by workspace, "" is all; their lock also guards what is below woken

	source  Log
	log     *slog.Logger
	woken   chan struct{} // of capacity 1
	seen    *keptSeen     // nil while nobody watches
	failing atomic.Bool   // the last look failed, so that an outage is logged once
}

// keptSeen is what was looked at.
type keptSeen struct {
	floor int64          // everything up to it was seen
	ids   map[int64]bool // above the floor
	heads []int64        // the largest ids of the last looks, the oldest first
}

func newKeptWatch(source Log, log *slog.Logger) *keptWatch {
	return &keptWatch{source: source, log: log, woken: make(chan struct{}, 1)}
}

// take returns the rows that were not seen before, and moves the floor.
func (s *keptSeen) take(list []store.Kept) []store.Kept {
	fresh, head := []store.Kept{}, s.floor
	for _, k := range list {
		head = max(head, k.ID)
		if !s.ids[k.ID] {
			s.ids[k.ID] = true
			fresh = append(fresh, k)
		}
	}
	if s.heads = append(s.heads, head); len(s.heads) > keptLooks {
		s.floor, s.heads = s.heads[0], s.heads[1:]
		for id := range s.ids {
			if id <= s.floor {
				delete(s.ids, id)
			}
		}
	}
	return fresh
}

// run looks for new manifests as long as somebody watches.
func (k *keptWatch) run(ctx context.Context) {
	for {
		if k.state() == nil {
			select {
			case <-ctx.Done():
				return
			case <-k.woken:
				continue
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(keptEvery):
			k.look(ctx)
		}
	}
}

// state forgets what was seen once nobody watches.
func (k *keptWatch) state() *keptSeen {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.count() == 0 {
		k.seen = nil
	}
	return k.seen
}

// look notifies of what is new.
func (k *keptWatch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, keptTime)
	defer cancel()
	seen := k.state()
	if seen == nil {
		return
	}
	list, err := k.after(ctx, seen.floor) // nobody else changes the floor
	if err == nil {
		fresh := k.fresh(seen, list)
		if err = k.report(ctx, fresh); err != nil {
			k.again(seen, fresh)
		}
	}
	k.reached(ctx, err)
}

// again makes rows new for the next look.
func (k *keptWatch) again(seen *keptSeen, list []store.Kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range list {
		delete(seen.ids, list[i].ID)
	}
}

// reached logs when the log goes away.
func (k *keptWatch) reached(ctx context.Context, err error) {
	if was := k.failing.Swap(err != nil); err != nil && !was && ctx.Err() == nil {
		k.log.Warn("new manifests cannot be read; the next attempt is in a second", "error", err)
	}
}

func (k *keptWatch) after(ctx context.Context, id int64) (all []store.Kept, err error) {
	for {
		list, err := k.source.KeptAfter(ctx, id, keptBatch)
		all = append(all, list...)
		if err != nil || len(list) < keptBatch {
			return all, err
		}
		id = list[len(list)-1].ID
	}
}

// fresh returns the new rows that somebody watches.
func (k *keptWatch) fresh(seen *keptSeen, list []store.Kept) []store.Kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.DeleteFunc(seen.take(list), func(x store.Kept) bool { return k.of[""] == nil && k.of[x.WorkspaceID] == nil })
}

// report reads the rows' records and notifies of them.
func (k *keptWatch) report(ctx context.Context, list []store.Kept) error {
	for part := range slices.Chunk(list, keptRows) {
		rows, err := k.source.Overviews(ctx, part)
		if err != nil {
			return err
		}
		k.send(rows)
	}
	return nil
}

// send encodes the rows of each workspace once.
func (k *keptWatch) send(rows []manifest.Overview) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for workspace, conns := range k.of {
		text := keptNote(workspace, rows)
		for c := range conns {
			_, all := k.of[""][c]
			if text != nil && (workspace == "" || !all) {
				c.Notify("", notifyKept, text)
			}
		}
	}
}

// keptNote is nil if no row is of the workspace.
func keptNote(workspace string, rows []manifest.Overview) json.RawMessage {
	own := slices.DeleteFunc(slices.Clone(rows), func(o manifest.Overview) bool { return workspace != "" && o.WorkspaceID != workspace })
	if len(own) == 0 {
		return nil
	}
	text, err := json.Marshal(ManifestKept{own})
	if err != nil { // for example a time that JSON cannot have
		return nil
	}
	return text
}

// join begins a watch. The first one takes what is there by now as seen.
func (k *keptWatch) join(ctx context.Context, c conn, workspace string) error {
	var begin *keptSeen
	if k.state() == nil {
		newest, err := k.source.Page(ctx, store.Filter{Limit: keptOverlap}, "")
		if err != nil {
			return err
		}
		begin = &keptSeen{ids: map[int64]bool{}}
		for _, x := range newest {
			begin.ids[x.ID] = true
		}
		if len(newest) == keptOverlap {
			begin.floor = newest[keptOverlap-1].ID
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == nil {
		if begin == nil { // the last one left meanwhile
			return rpc.Errorf(rpc.CodeUnavailable, "the watch could not begin; try again")
		}
		k.seen = begin
	}
	select {
	case k.woken <- struct{}{}:
	default: // it runs
	}
	return k.enter(c, workspace, struct{}{})
}

// stop ends the watch of a workspace, or all of a connection. It reports whether there was one.
func (k *keptWatch) stop(c conn, workspace string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if workspace == "" {
		return k.leaveAll(c)
	}
	_, ok := k.leave(c, workspace)
	return ok
}
