package gateway

import (
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
		WorkspaceID string `json:"workspace_id,omitempty" jsonschema:"only threads of this workspace; a token that is bound to workspaces names one"`
		After       int64  `json:"after,omitempty"        jsonschema:"the next of an earlier call"`
		Limit       int    `json:"limit,omitempty"        jsonschema:"so many: 50 if absent, 1000 at most"`
		Actor       string `json:"actor,omitempty"`
	}
	threadsResult struct {
		Threads []store.Thread `json:"threads" jsonschema:"the latest begun first"`
		Next    int64          `json:"next"    jsonschema:"after for the next page; 0 at the end"`
	}
	keptParams struct {
		WorkspaceID string `json:"workspace_id,omitempty" jsonschema:"only manifests of this workspace; a token that is bound to workspaces names one"`
		Actor       string `json:"actor,omitempty"`
	}
)

func (m *manifestMethods) overview(ctx context.Context, c call[overviewParams]) (overviewResult, error) {
	limit, err := limitOf(c.params.Limit, api.ListLimit, maxList)
	if err != nil {
		return overviewResult{}, err
	}
	filter := c.params.filter()
	filter.Limit = limit + 1 // one more says whether there are older ones
	if err := rpc.Expect(ctx, 2*filter.Limit*rowBytes); err != nil {
		return overviewResult{}, err
	}
	list, err := m.log.Page(ctx, filter, c.params.Before)
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
	result.Rows, err = m.log.Overviews(ctx, list)
	return result, err
}

func (m *manifestMethods) threads(ctx context.Context, c call[threadsParams]) (threadsResult, error) {
	limit, err := limitOf(c.params.Limit, api.ListLimit, maxList)
	if err != nil {
		return threadsResult{}, err
	}
	if c.params.After < 0 {
		return threadsResult{}, rpc.Errorf(rpc.CodeInvalid, "after: %d is less than 0", c.params.After)
	}
	if err := rpc.Expect(ctx, (limit+1)*rowBytes); err != nil {
		return threadsResult{}, err
	}
	list, err := m.log.Threads(ctx, c.params.WorkspaceID, c.params.After, limit+1)
	result := threadsResult{Threads: list}
	if len(list) > limit {
		result.Threads, result.Next = list[:limit], list[limit-1].ID
	}
	return result, err
}

func (m *manifestMethods) watch(ctx context.Context, c call[keptParams]) (struct{}, error) {
	return struct{}{}, m.kept.join(ctx, c.Conn, c.params.WorkspaceID)
}

func (m *manifestMethods) unwatch(_ context.Context, c call[keptParams]) (struct{}, error) {
	if !m.kept.stop(c.Conn, c.params.WorkspaceID) {
		return struct{}{}, rpc.Errorf(rpc.CodeNotFound, "this connection does not watch for these manifests")
	}
	return struct{}{}, nil
}
