package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/plugins/memory/recall"
	"github.com/grapnelhq/grapnel/plugins/memory/toolset"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// Reasons of refusals that are no policy's.
const (
	reasonNoPolicy  = "no_policy"
	reasonArguments = "arguments"
	reasonNotFound  = "not_found"
	reasonNoScope   = "no_scope"
	reasonSecret    = "secret"
)

// toolCall is one call of a tool that may be made.
type toolCall struct {
	*sdk.ToolCall

	// view is what may be seen: of a turn what the turn may see, and of a person at the
	// command line everything of the workspace.
	view itemstore.View
	// policy is the turn's; a person needs none.
	policy turnpolicy.Policy
}

// refused is a call that is not made, for the one who called.
type refused struct{ code, message string }

// Error implements error.
func (r *refused) Error() string { return r.code + ": " + r.message }

func refuse(code, message string) error { return &refused{code, message} }

// guarded makes a tool of a handler: it asks the policy first, and tells the model what
// it did wrong. What the store could not do is an error of the call, with a remedy.
func (m *memory) guarded(handle func(context.Context, *toolCall) (*phases.ToolResult, error)) sdk.ToolHandler {
	return func(ctx context.Context, call *sdk.ToolCall) (*phases.ToolResult, error) {
		c, err := m.admit(call)
		var res *phases.ToolResult
		if err == nil {
			res, err = handle(ctx, c)
		}
		return answered(res, err)
	}
}

// admit asks the turn's policy about a call. A person's call, outside any turn, needs
// none.
func (m *memory) admit(call *sdk.ToolCall) (*toolCall, error) {
	if call.OutsideTurn {
		return &toolCall{call, itemstore.View{WorkspaceID: call.Context.WorkspaceID, AllScopes: true}, turnpolicy.Policy{}}, nil
	}
	p, ok := turnPolicy(call.Policies)
	switch {
	case !ok:
		return nil, refuse(reasonNoPolicy, "this turn has no policy for memory, so memory is neither read nor written")
	case !allowed(p).Allows(call.Tool):
		return nil, refuse(p.ReasonCode, call.Tool+" is not allowed in this turn")
	}
	return &toolCall{call, m.view(&call.Context), p}, nil
}

// answered is the end of a call.
func answered(res *phases.ToolResult, err error) (*phases.ToolResult, error) {
	if no, ok := errors.AsType[*refused](err); ok {
		raw, err := toolset.AnswerRefusal(no.code, no.message)
		return &phases.ToolResult{Content: raw, IsError: true}, err
	}
	if err != nil {
		return nil, failure(err)
	}
	return res, nil
}

// content is the answer with some JSON.
func content(raw json.RawMessage, err error) (*phases.ToolResult, error) {
	if err != nil {
		return nil, err
	}
	return &phases.ToolResult{Content: raw}, nil
}

// search is the tool memory_search.
func (m *memory) search(ctx context.Context, call *toolCall) (*phases.ToolResult, error) {
	args, err := toolset.ParseSearch(call.Arguments)
	if err != nil {
		return nil, refuse(reasonArguments, err.Error())
	}
	var hits []itemstore.Hit
	left := 0
	err = m.db.use(ctx, func(s *itemstore.Store) (err error) {
		hits, left, err = m.find(ctx, s, call, args.Query, args.Limit, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return content(toolset.AnswerSearch(hits, left))
}

// weakest is the least share of the best score that an item needs for being what a wish
// to forget means.
const weakest = 0.25

// find returns the items that fit a text best, whole, and how many more there are:
// those with any of its words that say something, if they score at least that share of
// the best. It does not ask for as much as a recall, whose items nobody has asked for.
func (m *memory) find(ctx context.Context, s *itemstore.Store, call *toolCall, text string, limit int, share float64) (hits []itemstore.Hit, left int, err error) {
	found, err := s.Recall(ctx, call.view, recall.Read(text), m.clock(&call.Context))
	if err != nil {
		return nil, 0, err
	}
	ranked := slices.DeleteFunc(found.Ranked, func(r recall.Scored) bool { return r.Evidence == 0 })
	slices.SortFunc(ranked, func(a, b recall.Scored) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	if len(ranked) > 0 {
		least := share * ranked[0].Score
		ranked = slices.DeleteFunc(ranked, func(r recall.Scored) bool { return r.Score < least })
	}
	left = max(0, len(ranked)-limit)
	for _, r := range ranked[:len(ranked)-left] {
		item, err := s.Get(ctx, call.view, r.ID)
		if sqldb.HasCode(err, sqldb.CodeNotFound) {
			continue // it was forgotten just now
		}
		if err != nil {
			return nil, 0, err
		}
		hits = append(hits, itemstore.Hit{Item: item, Score: r.Score})
	}
	return hits, left, nil
}

// list is the tool memory_list. A page whose items have no room in an answer is asked
// for again with fewer, so that its cursor goes on where the answer ends.
func (m *memory) list(ctx context.Context, call *toolCall) (*phases.ToolResult, error) {
	args, err := toolset.ParseList(call.Arguments)
	if err != nil {
		return nil, refuse(reasonArguments, err.Error())
	}
	filter := itemstore.Filter{Scope: args.Scope, Category: args.Category}
	page := itemstore.Page{Limit: args.Limit, After: args.Cursor}
	var raw json.RawMessage
	err = m.db.use(ctx, func(s *itemstore.Store) error {
		for {
			items, next, err := s.List(ctx, call.view, filter, page)
			if err != nil {
				return invalid(err)
			}
			var shown int
			if raw, shown, err = toolset.AnswerList(items, next); err != nil || shown == len(items) || page.Limit == 1 {
				return err
			}
			page.Limit = max(1, shown)
		}
	})
	return content(raw, err)
}

// get is the tool memory_get.
func (m *memory) get(ctx context.Context, call *toolCall) (*phases.ToolResult, error) {
	args, err := toolset.ParseGet(call.Arguments)
	if err != nil {
		return nil, refuse(reasonArguments, err.Error())
	}
	var item itemstore.Item
	err = m.db.use(ctx, func(s *itemstore.Store) (err error) {
		item, err = s.Get(ctx, call.view, args.ID)
		return notFound(err, args.ID)
	})
	if err != nil {
		return nil, err
	}
	return content(toolset.AnswerGet(&item))
}

// notFound makes an id that a model made up, or must not see, its mistake.
func notFound(err error, id string) error {
	if sqldb.HasCode(err, sqldb.CodeNotFound) || sqldb.HasCode(err, itemstore.CodeInvalid) {
		return refuse(reasonNotFound, "there is no memory "+id)
	}
	return err
}

// remember is the tool memory_remember.
func (m *memory) remember(ctx context.Context, call *toolCall) (*phases.ToolResult, error) {
	args, err := toolset.ParseRemember(call.Arguments)
	if err != nil {
		return nil, refuse(reasonArguments, err.Error())
	}
	if found := m.scanner.Find(args.Text); len(found) > 0 {
		return nil, refuse(reasonSecret, "the text looks like a secret ("+found[0].Pattern+"), and secrets are not stored")
	}
	item, err := m.newItem(call, args)
	if err != nil {
		return nil, err
	}
	var out []itemstore.Outcome
	err = m.db.use(ctx, func(s *itemstore.Store) (err error) {
		if item.Replaces != "" {
			if _, err := s.Get(ctx, call.view, item.Replaces); err != nil {
				return notFound(err, item.Replaces)
			}
		}
		out, err = s.Remember(ctx, itemstore.Batch{
			WorkspaceID: call.Context.WorkspaceID, Key: callKey(call), Items: []itemstore.New{item},
			Restore: call.OutsideTurn || call.policy.ExplicitRemember,
		})
		return notFound(invalid(err), item.Replaces)
	})
	if err != nil {
		return nil, err
	}
	return content(toolset.AnswerRemember(&out[0]))
}

// newItem is what memory_remember stores.
func (m *memory) newItem(call *toolCall, args toolset.RememberArguments) (itemstore.New, error) {
	scope := args.Scope
	if scope == "" {
		scope = scopeOf(args.Category, &call.Context)
	}
	id, ok := scopeID(scope, &call.Context)
	if !ok {
		return itemstore.New{}, refuse(reasonNoScope, "the host does not say which "+string(scope)+" this is: leave scope out, or choose another one")
	}
	source := itemstore.SourceTool
	if call.OutsideTurn {
		source = itemstore.SourceUser
	}
	return itemstore.New{
		Scope: scope, ScopeID: id, Category: args.Category, Text: args.Text, Source: source,
		Slot: string(m.rules.Slot(args.Text)), Replaces: args.Replaces,
	}, nil
}

// invalid makes what the store does not take the caller's mistake.
func invalid(err error) error {
	if failed, ok := errors.AsType[*sqldb.Error](err); ok && failed.Code == itemstore.CodeInvalid {
		return refuse(reasonArguments, failed.Error())
	}
	return err
}

// callKey makes the repetition of a call harmless. Hosts count calls, so the arguments
// are in it: two calls with one number and other arguments are two.
func callKey(call *toolCall) string {
	if call.IdempotencyKey == "" {
		return ""
	}
	sum := sha256.Sum256(call.Arguments)
	return call.IdempotencyKey + "/" + hex.EncodeToString(sum[:8])
}
