package gateway

import (
	"cmp"
	"context"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

type (
	overviewParams struct {
		manifestFilter

		Before string `json:"before,omitempty" jsonschema:"the whole id of a manifest: only older ones than it"`
		Limit  int    `json:"limit,omitempty"  jsonschema:"so many: 50 if absent, 1000 at most"`
	}
	overviewResult struct {
		Rows []manifest.Overview `json:"rows" jsonschema:"the newest first"`
		More bool                `json:"more" jsonschema:"whether there are older ones: ask for those before the last row"`
	}
	threadsParams struct {
		Workspace string `json:"workspace_id,omitempty" jsonschema:"only threads of this workspace; a token that is bound to workspaces names one"`
		After     int64  `json:"after,omitempty"        jsonschema:"the next of an earlier call"`
		Limit     int    `json:"limit,omitempty"        jsonschema:"so many: 50 if absent, 1000 at most"`
		Actor     string `json:"actor,omitempty"`
	}
	threadsResult struct {
		Threads []store.Thread `json:"threads" jsonschema:"the latest begun first"`
		Next    int64          `json:"next"    jsonschema:"the after of what comes behind these; 0 at the end"`
	}
	keptParams struct {
		Workspace string `json:"workspace_id,omitempty" jsonschema:"only manifests of this workspace; a token that is bound to workspaces names one"`
		Actor     string `json:"actor,omitempty"`
	}
)

func (p threadsParams) filter() store.Filter { return store.Filter{Workspace: p.Workspace} }

func (p keptParams) filter() store.Filter { return store.Filter{Workspace: p.Workspace} }

func (g *Gateway) overviewMethods() []rpc.Method {
	return []rpc.Method{
		logged(g, "manifest/overview", "Lists kept manifests page by page, newest first, each with tokens, cache, failures, cuts and diagnostics.", g.overview),
		logged(g, "manifest/threads", "Lists the threads that have manifests.", g.threads),
		logged(g, "manifest/watch",
			"Sends "+NotifyKept+" for new manifests over this connection, also for those of other gateways on the database: watch first, then read the overview. A manifest may come twice.",
			g.watchKept),
		logged(g, "manifest/unwatch", "Stops that. Without a workspace all watches of this connection for manifests end.", g.unwatchKept),
	}
}

// limitOf is the limit of a list, 50 if it is absent.
func limitOf(given int) (int, error) {
	limit := cmp.Or(given, api.ListLimit)
	if limit < 1 || limit > maxList {
		return 0, rpc.Errorf(rpc.CodeInvalid, "limit: %d is not between 1 and %d", limit, maxList)
	}
	return limit, nil
}

func (g *Gateway) overview(ctx context.Context, c call[overviewParams]) (overviewResult, error) {
	limit, err := limitOf(c.params.Limit)
	if err != nil {
		return overviewResult{}, err
	}
	filter := c.params.filter()
	filter.Limit = limit + 1 // one more says whether there are older ones
	if err := rpc.Expect(ctx, 2*filter.Limit*rowBytes); err != nil {
		return overviewResult{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	list, err := g.opts.Log.Page(ctx, filter, c.params.Before)
	if err != nil {
		return overviewResult{}, err
	}
	result := overviewResult{More: len(list) > limit}
	list = list[:min(limit, len(list))]
	longest := 0
	for i := range list {
		longest = max(longest, list[i].Bytes)
	}
	if err := rpc.Expect(ctx, 2*filter.Limit*rowBytes+longest*manifestFactor); err != nil {
		return overviewResult{}, err
	}
	result.Rows, err = g.opts.Log.Overviews(ctx, list)
	return result, err
}

func (g *Gateway) threads(ctx context.Context, c call[threadsParams]) (threadsResult, error) {
	limit, err := limitOf(c.params.Limit)
	if err != nil {
		return threadsResult{}, err
	}
	if c.params.After < 0 {
		return threadsResult{}, rpc.Errorf(rpc.CodeInvalid, "after: %d is less than 0", c.params.After)
	}
	if err := rpc.Expect(ctx, (limit+1)*rowBytes); err != nil {
		return threadsResult{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	list, err := g.opts.Log.Threads(ctx, c.params.Workspace, c.params.After, limit+1)
	result := threadsResult{Threads: list}
	if len(list) > limit {
		result.Threads, result.Next = list[:limit], list[limit-1].ID
	}
	return result, err
}

func (g *Gateway) watchKept(ctx context.Context, c call[keptParams]) (struct{}, error) {
	if c.Conn == nil {
		return struct{}{}, errNoConn()
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return struct{}{}, g.kept.join(ctx, c.Conn, c.params.Workspace)
}

func (g *Gateway) unwatchKept(_ context.Context, c call[keptParams]) (struct{}, error) {
	if c.Conn == nil {
		return struct{}{}, errNoConn()
	}
	if !g.kept.stop(c.Conn, c.params.Workspace) {
		return struct{}{}, rpc.Errorf(rpc.CodeNotFound, "this connection does not watch for these manifests")
	}
	return struct{}{}, nil
}
