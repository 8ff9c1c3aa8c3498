package memory

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/plugins/memory/toolset"
)

// maxMatches is how many memories a wish to forget matches at most, and maxEverything
// how many one call forgets of everything.
const (
	maxMatches    = 20
	maxEverything = itemstore.MaxPage
)

// forget is the tool memory_forget.
func (m *memory) forget(ctx context.Context, call *toolCall) (*phases.ToolResult, error) {
	args, err := toolset.ParseForget(call.Arguments)
	if err != nil {
		return nil, refuse(reasonArguments, err.Error())
	}
	var raw json.RawMessage
	err = m.db.use(ctx, func(s *itemstore.Store) (err error) {
		switch {
		case len(args.IDs) > 0:
			raw, err = forgetIDs(ctx, s, call, args.IDs, false)
		case args.Everything:
			raw, err = forgetEverything(ctx, s, call, args)
		default:
			raw, err = m.forgetMatches(ctx, s, call, args)
		}
		return err
	})
	return content(raw, err)
}

// forgetIDs forgets, as far as the caller may see what is named.
func forgetIDs(ctx context.Context, s *itemstore.Store, call *toolCall, ids []string, more bool) (json.RawMessage, error) {
	removed, err := s.Forget(ctx, call.view, ids)
	if err != nil {
		return nil, err
	}
	return toolset.AnswerForget(removed, more)
}

// forgetMatches shows what matches a query, or forgets that if the caller confirms it.
func (m *memory) forgetMatches(ctx context.Context, s *itemstore.Store, call *toolCall, args toolset.ForgetArguments) (json.RawMessage, error) {
	hits, left, err := m.find(ctx, s, call, args.Query, maxMatches, weakest)
	if err != nil {
		return nil, err
	}
	found := make([]itemstore.Item, len(hits))
	for i := range hits {
		found[i] = hits[i].Item
	}
	shown, err := toolset.Preview(found)
	if err != nil {
		return nil, err
	}
	return confirmed(ctx, s, call, args, shown, len(shown) < len(found) || left > 0)
}

// forgetEverything is forgetMatches for all that is in view, or all of a scope.
func forgetEverything(ctx context.Context, s *itemstore.Store, call *toolCall, args toolset.ForgetArguments) (json.RawMessage, error) {
	items, next, err := s.List(ctx, call.view, itemstore.Filter{Scope: args.Scope}, itemstore.Page{Limit: maxEverything})
	if err != nil {
		return nil, err
	}
	return confirmed(ctx, s, call, args, items, next != "")
}

// confirmed forgets items if the caller has confirmed just these, and shows them
// otherwise. The order in which they are shown does not count.
func confirmed(ctx context.Context, s *itemstore.Store, call *toolCall, args toolset.ForgetArguments, items []itemstore.Item, more bool) (json.RawMessage, error) {
	confirmation := toolset.Confirmation(call.Context.WorkspaceID, items)
	if len(items) == 0 || args.Confirmation != confirmation {
		return toolset.AnswerMatches(items, toolset.Ask{
			Count: len(items), Confirmation: confirmation, More: more, Stale: args.Confirmation != "",
		})
	}
	ids := make([]string, len(items))
	for i := range items {
		ids[i] = items[i].ID
	}
	slices.Sort(ids)
	return forgetIDs(ctx, s, call, ids, more)
}
