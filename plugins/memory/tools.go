package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/internal/toolset"
	"github.com/grapnelhq/grapnel/sdk"
)

const bundleID = "memory"

// Reasons of refusals that do not come from a policy.
const (
	reasonNoPolicy  = "no_policy"
	reasonArguments = "arguments"
	reasonNotFound  = "not_found"
	reasonNoScope   = "no_scope"
	reasonSecret    = "secret"
)

func (m *memory) offer(_ context.Context, call *sdk.Call, in *phases.PreToolsInput) ([]phases.Contribution, error) {
	p, ok := turnPolicy(call.Policies)
	if !ok || !in.ToolCalling {
		return nil, nil
	}
	tools := toolset.Definitions(allows(p))
	if len(tools) == 0 {
		return nil, nil
	}
	return sdk.Reply(&phases.ToolBundle{Common: phases.Common{ContributionID: bundleID, Domain: domain}, BundleID: bundleID, Tools: tools})
}

type toolCall struct {
	*sdk.ToolCall

	view   itemstore.View    // what the turn may see; for a person at the command line the whole workspace
	policy turnpolicy.Policy // of the turn; a person needs none
}

// refused is the error of a call that the caller may not make, or made wrongly.
type refused struct{ code, message string }

func (r *refused) Error() string { return r.code + ": " + r.message }

func refuse(code, message string) error { return &refused{code, message} }

// tool makes a tool of a handler: it asks the policy and parses the arguments first, and answers a refusal to the
// model. An error of the store is an error of the call.
func tool[A any](
	m *memory, parse func(json.RawMessage) (A, error), handle func(context.Context, *itemstore.Store, *toolCall, A) (json.RawMessage, error),
) sdk.ToolHandler {
	run := func(ctx context.Context, call *sdk.ToolCall) (raw json.RawMessage, err error) {
		c, err := m.admit(call)
		if err != nil {
			return nil, err
		}
		args, err := parse(call.Arguments)
		if err != nil {
			return nil, refuse(reasonArguments, err.Error())
		}
		err = m.db.use(ctx, func(s *itemstore.Store) (err error) {
			raw, err = handle(ctx, s, c, args)
			return err
		})
		return raw, err
	}
	return func(ctx context.Context, call *sdk.ToolCall) (*phases.ToolResult, error) {
		raw, err := run(ctx, call)
		if no, ok := errors.AsType[*refused](err); ok {
			raw, err = toolset.AnswerRefusal(no.code, no.message)
			return &phases.ToolResult{Content: raw, IsError: true}, err
		}
		if err != nil {
			return nil, failure(err)
		}
		return &phases.ToolResult{Content: raw}, nil
	}
}

func (m *memory) admit(call *sdk.ToolCall) (*toolCall, error) {
	if call.OutsideTurn {
		return &toolCall{call, itemstore.View{WorkspaceID: call.Context.WorkspaceID, AllScopes: true}, turnpolicy.Policy{}}, nil
	}
	p, ok := turnPolicy(call.Policies)
	switch {
	case !ok:
		return nil, refuse(reasonNoPolicy, "this turn has no policy for memory, so memory is neither read nor written")
	case !allows(p)(call.Tool):
		return nil, refuse(p.ReasonCode, call.Tool+" is not allowed in this turn")
	}
	return &toolCall{call, m.view(&call.Context), p}, nil
}

func (m *memory) search(ctx context.Context, s *itemstore.Store, call *toolCall, args toolset.SearchArguments) (json.RawMessage, error) {
	hits, omitted, err := s.Search(ctx, call.view, args.Query, args.Limit, m.clock(&call.Context))
	if err != nil {
		return nil, err
	}
	return toolset.AnswerSearch(hits, omitted)
}

// list reads a page that is too long for an answer again with fewer items, so that its cursor continues where the
// answer ends.
func (m *memory) list(ctx context.Context, s *itemstore.Store, call *toolCall, args toolset.ListArguments) (json.RawMessage, error) {
	page := itemstore.Page{Limit: args.Limit, After: args.Cursor}
	for {
		items, next, err := s.List(ctx, call.view, itemstore.Filter{Scope: args.Scope, Category: args.Category}, page)
		if err != nil {
			return nil, invalid(err)
		}
		raw, shown, err := toolset.AnswerList(items, next)
		if err != nil || shown == len(items) || page.Limit == 1 {
			return raw, err
		}
		page.Limit = max(1, shown)
	}
}

func (m *memory) get(ctx context.Context, s *itemstore.Store, call *toolCall, args toolset.GetArguments) (json.RawMessage, error) {
	item, err := s.Get(ctx, call.view, args.ID)
	if err != nil {
		return nil, notFound(err, args.ID)
	}
	return toolset.AnswerGet(&item)
}

// notFound turns an id that does not exist, or is not in view, into a refusal.
func notFound(err error, id string) error {
	if sqldb.HasCode(err, sqldb.CodeNotFound) || sqldb.HasCode(err, itemstore.CodeInvalid) {
		return refuse(reasonNotFound, "there is no memory "+id)
	}
	return err
}

func invalid(err error) error {
	if sqldb.HasCode(err, itemstore.CodeInvalid) {
		return refuse(reasonArguments, err.Error())
	}
	return err
}

// remember answers a repeated call with the same memory, because a text is stored once.
func (m *memory) remember(ctx context.Context, s *itemstore.Store, call *toolCall, args toolset.RememberArguments) (json.RawMessage, error) {
	if found := m.scanner.Find(args.Text); len(found) > 0 {
		return nil, refuse(reasonSecret, "the text looks like a secret ("+found[0].Pattern+"), and secrets are not stored")
	}
	args.Category = cmp.Or(args.Category, turnpolicy.Factual)
	if args.Scope == "" {
		args.Scope = defaultScope(args.Category, &call.Context)
	}
	id, ok := scopeID(args.Scope, &call.Context)
	if !ok {
		return nil, refuse(reasonNoScope, "the host does not say which "+string(args.Scope)+" this is: omit scope, or choose another one")
	}
	item := itemstore.Item{
		Scope: args.Scope, ScopeID: id, Category: args.Category, Text: args.Text, Source: itemstore.SourceTool,
		Slot: string(m.rules.Slot(args.Text)), Supersedes: args.Replaces,
	}
	if call.OutsideTurn {
		item.Source = itemstore.SourceUser
	}
	if args.Replaces != "" {
		if _, err := s.Get(ctx, call.view, args.Replaces); err != nil {
			return nil, notFound(err, args.Replaces)
		}
	}
	out, err := s.Remember(ctx, itemstore.Batch{
		WorkspaceID: call.Context.WorkspaceID, Items: []itemstore.Item{item}, Restore: call.OutsideTurn || call.policy.ExplicitRemember,
	})
	if err != nil {
		return nil, notFound(invalid(err), args.Replaces)
	}
	return toolset.AnswerRemember(&out[0])
}

// forget forgets ids at once, and what matches only if the caller has confirmed exactly these items, in any order.
func (m *memory) forget(ctx context.Context, s *itemstore.Store, call *toolCall, args toolset.ForgetArguments) (json.RawMessage, error) {
	ids, more := args.IDs, false
	if len(ids) == 0 {
		var items []itemstore.Item
		var err error
		if items, more, err = m.toForget(ctx, s, call, args); err != nil {
			return nil, err
		}
		confirmation := toolset.Confirmation(call.Context.WorkspaceID, items)
		if len(items) == 0 || args.Confirmation != confirmation {
			return toolset.AnswerMatches(items, toolset.Ask{Count: len(items), Confirmation: confirmation, More: more, Stale: args.Confirmation != ""})
		}
		for i := range items {
			ids = append(ids, items[i].ID)
		}
	}
	removed, err := s.Forget(ctx, call.view, ids)
	if err != nil {
		return nil, err
	}
	return toolset.AnswerForget(removed, more)
}

// toForget returns what matches a query, as far as an answer can show it, or everything in view or in a scope. More
// says that there are others.
func (m *memory) toForget(ctx context.Context, s *itemstore.Store, call *toolCall, args toolset.ForgetArguments) (items []itemstore.Item, more bool, err error) {
	if args.Everything {
		items, next, err := s.List(ctx, call.view, itemstore.Filter{Scope: args.Scope}, itemstore.Page{Limit: itemstore.MaxPage})
		return items, next != "", err
	}
	hits, omitted, err := s.Matches(ctx, call.view, args.Query, m.clock(&call.Context))
	if err != nil {
		return nil, false, err
	}
	for i := range hits {
		items = append(items, hits[i].Item)
	}
	shown, err := toolset.Preview(items)
	return shown, len(shown) < len(items) || omitted > 0, err
}
