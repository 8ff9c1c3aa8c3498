package gateway

import (
	"context"
	"encoding/json"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/internal/surface"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/tree"
)

// dispatchParams are those of phase/dispatch.
type dispatchParams struct {
	Phase   phases.Phase    `json:"phase"`
	Context phases.Context  `json:"context,omitzero" jsonschema:"where and when. A dir must lie below one of the gateway's roots"`
	Input   json.RawMessage `json:"input,omitempty"  jsonschema:"the input of the phase, as its schema has it"`
	Actor   string          `json:"actor,omitempty"`
}

func (g *Gateway) phaseMethods() []rpc.Method {
	return []rpc.Method{
		method("phase/dispatch", rpc.DispatchRight,
			"Runs one phase without a turn: there are no policies, contexts or hidden tools, and a phase with a hook that needs a turn is refused (turn_needed). One that failed closed is a result with an error in it.",
			func(p *dispatchParams) asked { return asked{nil, &p.Actor} }, g.dispatch),
	}
}

// dispatch answers as "grapnel dispatch --json" prints.
func (g *Gateway) dispatch(ctx context.Context, c call[dispatchParams]) (*phases.Outcome, error) {
	in, err := phaseInput(c.params.Phase, c.params.Input)
	if err != nil {
		return nil, err
	}
	where, err := g.completeContext(ctx, c.Caller, "context", c.params.Context)
	if err != nil {
		return nil, err
	}
	return outcomeOf(g.opts.Engine.Dispatch(ctx, where, in))
}

// phaseInput reads the input of a phase.
func phaseInput(phase phases.Phase, raw json.RawMessage) (phases.Input, error) {
	table := phases.Standard()
	if _, known := table.Lookup(phase); !known {
		return nil, rpc.Errorf(rpc.CodeInvalid, "phase: unknown phase %q%s", phase, phases.DidYouMean(string(phase), table.Names()))
	}
	in, err := phases.DecodeInput(table, phase, raw)
	if err == nil {
		err = phases.ValidateInput(in)
	}
	if err != nil {
		return nil, &rpc.Error{Code: rpc.CodeInvalid, Message: err.Error()}
	}
	return in, nil
}

// completeContext fills in what the command line does, but for what only its user
// can mean: ids and a folder. The workspace must be there, the session not another
// token's, and there must be an engine for what comes next.
func (g *Gateway) completeContext(ctx context.Context, caller *rpc.Caller, name string, c phases.Context) (phases.Context, error) {
	if err := phases.CheckContext(&c); err != nil {
		return c, rpc.Errorf(rpc.CodeTooLarge, "%s.%s", name, err.Message)
	}
	if err := g.checkWorkspace(ctx, caller, c.WorkspaceID); err != nil {
		return c, err
	}
	c, err := surface.Complete(c)
	if err != nil {
		return c, rpc.Errorf(rpc.CodeInvalid, "%s.profile: %v", name, err)
	}
	if c.DirRoot != "" {
		return c, rpc.Errorf(rpc.CodeInvalid, "%s.dir_root: the gateway sets it, by serve.roots of its configuration", name)
	}
	if c.Dir, c.DirRoot, err = g.inRoots(c.Dir); err != nil {
		return c, rpc.Errorf(rpc.CodeInvalid, "%s.dir: %v", name, err)
	}
	if g.opts.Engine == nil {
		return c, errNoEngine()
	}
	if c.Now.IsZero() {
		c.Now = g.opts.Now()
	}
	return c, g.claimSession(caller, name, &c)
}

// checkWorkspace refuses a workspace that is not the caller's or is not in the tree,
// with one answer. Without an id, which only a phase may be dispatched with, it is
// about none.
func (g *Gateway) checkWorkspace(ctx context.Context, c *rpc.Caller, id string) error {
	switch {
	case !c.MayWorkspace(id):
		return noWorkspace(id)
	case id == "":
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := g.opts.Tree.Doc(ctx, tree.Scope{WorkspaceID: id})
	if tree.HasCode(err, tree.CodeNotFound) {
		return noWorkspace(id)
	}
	return err
}

// namedID is an id with its name in params.
type namedID struct{ name, value string }

// needIDs refuses ids that are missing.
func needIDs(of, why string, ids ...namedID) error {
	for _, id := range ids {
		if id.value == "" {
			return rpc.Errorf(rpc.CodeInvalid, "%s.%s: it is missing; %s", of, id.name, why)
		}
	}
	return nil
}
