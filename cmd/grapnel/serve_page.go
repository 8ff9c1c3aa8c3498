package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/rpc"
)

// servedJobs is the queue of a store for the gateway's methods.
type servedJobs struct{ jobs.Records }

var _ gateway.Jobs = servedJobs{}

func (s servedJobs) List(ctx context.Context, state string, after int64, limit int) ([]gateway.Job, error) {
	rows, _, err := jobRows(ctx, s.Records, jobs.Filter{Dead: state == string(jobs.StateDead), After: after}, state, limit)
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
			if err == nil && removed.Lingering != nil {
				err = rpc.Errorf(rpc.CodeUnavailable, "they are forgotten, but bytes of them may still be in the files of the database: %v", oneLine{removed.Lingering})
			}
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

// openPage opens the gateway's page in a browser, logged in. It prints the address too, in case there is no browser here.
func (a *app) openPage(ctx context.Context, g *gateway.Gateway, s *serving) {
	address := s.doors.url() + "/"
	if s.doors.tcp.IP.IsUnspecified() { // no browser can call it by that
		address = fmt.Sprintf("http://localhost:%d/", s.doors.tcp.Port)
	}
	if name := pageToken(s.access.tokens); name != "" {
		address += "#login=" + g.LoginCode(name)
	}
	reportf(a.err, "grapnel: the page, for one login within a minute: %s\n", address)
	if err := browse(ctx, address); err != nil {
		reportf(a.err, "grapnel: no browser could be started (%v): open the address yourself\n", err)
	}
}

// pageToken is the token that the page is logged in as: the one with the most rights, of those for every workspace if
// there are any. It is empty without tokens.
func pageToken(tokens []rpc.Token) string {
	weight := func(t rpc.Token) int {
		if slices.Contains(t.Workspaces, rpc.EveryWorkspace) {
			return len(t.Rights) + len(rpc.Rights())
		}
		return len(t.Rights)
	}
	name, most := "", -1
	for _, t := range tokens {
		if n := weight(t); n > most {
			name, most = t.Name, n
		}
	}
	return name
}

// browse starts the user's browser: $BROWSER, or what the system opens addresses with.
func browse(ctx context.Context, address string) error {
	command := []string{os.Getenv("BROWSER")}
	switch {
	case command[0] != "":
	case goruntime.GOOS == "darwin":
		command = []string{"open"}
	case goruntime.GOOS == "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	default:
		command = []string{"xdg-open"}
	}
	c := exec.CommandContext(context.WithoutCancel(ctx), command[0], append(command[1:], address)...) //nolint:gosec // the user's own browser
	if err := c.Start(); err != nil {
		return err
	}
	return c.Process.Release() // it lives as long as it likes
}
