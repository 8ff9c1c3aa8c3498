package main

import (
	"context"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/store/jobqueue"
)

// servedJobs is the queue of a store for the gateway's methods.
type servedJobs struct{ *jobqueue.Records }

var _ gateway.Jobs = servedJobs{}

func (s servedJobs) List(ctx context.Context, state string, after int64, limit int) ([]gateway.Job, error) {
	rows, _, err := jobRows(ctx, s.Records, jobqueue.Filter{Dead: state == string(jobqueue.StateDead), After: after}, state, limit)
	return rows, err
}

// servedMemories opens the memory plugin's database for each call: the plugin is another process, and the configuration
// that names the database may change.
type servedMemories struct{ app *app }

var _ gateway.Memories = servedMemories{}

// in works on the memories of a workspace; without a database there are none.
func (s servedMemories) in(ctx context.Context, workspace string, work func(m *memories) error) error {
	own := &app{globalFlags: globalFlags{Config: s.app.Config, JSON: true}, err: s.app.err}
	return own.withMemories(ctx, &memoriesFlags{Workspace: &workspace}, func(m *memories) error {
		if m.Store == nil {
			return nil
		}
		return work(m)
	})
}

func (s servedMemories) List(ctx context.Context, workspace string, f gateway.MemoryFilter, cursor string, limit int) (list []gateway.Memory, next string, err error) {
	filter := itemstore.Filter{Scope: itemstore.Scope(f.Scope), Category: turnpolicy.Category(f.Category)}
	err = s.in(ctx, workspace, func(m *memories) error {
		items, more, err := m.List(ctx, whole(workspace), filter, itemstore.Page{After: cursor, Limit: limit})
		for i := range items {
			list = append(list, servedMemory(&items[i], nil))
		}
		next = more
		return err
	})
	return list, next, err
}

func (s servedMemories) Search(ctx context.Context, workspace, query string, limit int) (list []gateway.Memory, err error) {
	err = s.in(ctx, workspace, func(m *memories) error {
		hits, _, err := m.Search(ctx, whole(workspace), query, limit, time.Now())
		for i := range hits {
			list = append(list, servedMemory(&hits[i].Item, &hits[i].Score))
		}
		return err
	})
	return list, err
}

func (s servedMemories) Forget(ctx context.Context, workspace string, ids []string) (gone []string, err error) {
	err = s.in(ctx, workspace, func(m *memories) error {
		return m.open(ctx, s.app, itemstore.Options{}, func() error {
			removed, err := m.Forget(ctx, whole(workspace), slices.Clone(ids))
			gone = removed.IDs
			return err
		})
	})
	return gone, err
}

func servedMemory(i *itemstore.Item, score *float64) gateway.Memory {
	return gateway.Memory{
		ID: i.ID, Workspace: i.WorkspaceID, Scope: string(i.Scope), ScopeID: i.ScopeID, Category: string(i.Category), Text: i.Text,
		Evidence: i.Evidence, Slot: i.Slot, CreatedAt: i.CreatedAt, UpdatedAt: i.UpdatedAt, LastUsedAt: orNull(i.LastUsedAt), Uses: i.Uses, Score: score,
	}
}
