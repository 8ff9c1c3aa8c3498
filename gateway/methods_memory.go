package gateway

import (
	"context"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/rpc"
)

// Memories are what the memory plugin remembers, as methods show and change it. Its items are those of a whole workspace.
type Memories interface {
	// List returns items, the latest first, and the cursor of the next page; empty at the end.
	List(ctx context.Context, workspace string, f MemoryFilter, cursor string, limit int) (items []Memory, next string, err error)
	// Search returns the items that fit best, with a score.
	Search(ctx context.Context, workspace, query string, limit int) ([]Memory, error)
	// Forget removes items for good, and returns the ids of those that there were.
	Forget(ctx context.Context, workspace string, ids []string) ([]string, error)
}

// MemoryFilter narrows a list; empty words narrow nothing.
type MemoryFilter struct{ Scope, Category string }

// Memory is one item that is remembered.
type Memory struct {
	ID         string     `json:"id"`
	Workspace  string     `json:"workspace_id"`
	Scope      string     `json:"scope"`
	ScopeID    string     `json:"scope_id"     jsonschema:"the thread, agent or user; empty for a workspace's items"`
	Category   string     `json:"category"`
	Text       string     `json:"text"`
	Evidence   string     `json:"evidence"     jsonschema:"the original wording; empty if it is not known"`
	Slot       string     `json:"slot"         jsonschema:"the question that the item alone answers; empty for most"`
	CreatedAt  time.Time  `json:"created_at"`
	UpdatedAt  time.Time  `json:"updated_at"   jsonschema:"when it was made, or last confirmed"`
	LastUsedAt *time.Time `json:"last_used_at" jsonschema:"when it last went into a prompt; null is never"`
	Uses       int        `json:"uses"         jsonschema:"how many prompts it went into"`
	Score      *float64   `json:"score"        jsonschema:"how well it fits what was searched for; null in a list"`
}

type (
	memoryListParams struct {
		WorkspaceID string `json:"workspace_id"`
		Scope       string `json:"scope,omitempty"    jsonschema:"only items of this scope"`
		Category    string `json:"category,omitempty" jsonschema:"only items of this category"`
		Cursor      string `json:"cursor,omitempty"   jsonschema:"the next of an earlier call"`
		Limit       int    `json:"limit,omitempty"    jsonschema:"so many: 50 if absent, 1000 at most"`
		Actor       string `json:"actor,omitempty"`
	}
	memorySearchParams struct {
		WorkspaceID string `json:"workspace_id"`
		Query       string `json:"query"`
		Limit       int    `json:"limit,omitempty" jsonschema:"so many: 10 if absent, 20 at most"`
		Actor       string `json:"actor,omitempty"`
	}
	memoryForgetParams struct {
		WorkspaceID string   `json:"workspace_id"`
		IDs         []string `json:"ids"             jsonschema:"1000 at most"`
		Actor       string   `json:"actor,omitempty"`
	}
	memoryResult struct {
		Items []Memory `json:"items"`
		Next  string   `json:"next"  jsonschema:"cursor for the next page; empty at the end"`
	}
	memoryForgotten struct {
		Forgotten []string `json:"forgotten" jsonschema:"the ids of those that there were"`
	}
)

const foundLimit, maxFound = 10, 20

func memoryMethods(kept Memories) []rpc.Method {
	of := quick().unless(kept == nil, "this gateway has no memory: its configuration has no memory plugin")
	return []rpc.Method{
		method(of, "memory/list", rpc.ReadRight, "Lists what is remembered of a workspace, the latest first, as \"grapnel memory list\" does.",
			func(ctx context.Context, c call[memoryListParams]) (memoryResult, error) {
				p := &c.params
				limit, err := limitOf(p.Limit, api.ListLimit, maxList)
				if err != nil {
					return memoryResult{}, err
				}
				items, next, err := kept.List(ctx, p.WorkspaceID, MemoryFilter{p.Scope, p.Category}, p.Cursor, limit)
				return memoryResult{append([]Memory{}, items...), next}, err
			}),
		method(of, "memory/search", rpc.ReadRight, "Finds what fits a query best, as \"grapnel memory search\" does.",
			func(ctx context.Context, c call[memorySearchParams]) (memoryResult, error) {
				p := &c.params
				limit, err := limitOf(p.Limit, foundLimit, maxFound)
				if err == nil && strings.TrimSpace(p.Query) == "" {
					err = rpc.Errorf(rpc.CodeInvalid, "query: it is empty")
				}
				if err != nil {
					return memoryResult{}, err
				}
				items, err := kept.Search(ctx, p.WorkspaceID, p.Query, limit)
				return memoryResult{Items: append([]Memory{}, items...)}, err
			}),
		method(of, "memory/forget", rpc.WriteRight, "Removes memories for good, as \"grapnel memory forget\" does.",
			func(ctx context.Context, c call[memoryForgetParams]) (memoryForgotten, error) {
				if err := checkCount("ids", len(c.params.IDs), maxList); err != nil {
					return memoryForgotten{}, err
				}
				done, err := kept.Forget(ctx, c.params.WorkspaceID, c.params.IDs)
				return memoryForgotten{append([]string{}, done...)}, err
			}),
	}
}
