package gateway

import (
	"context"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/phases"
)

// collected makes a call of the engine, waits for the background work that it has
// queued, and puts what became of that into the outcome. Work that nobody has waited
// long enough for goes on; done says what is over then.
func (g *Gateway) collected(ctx context.Context, done string, call func(ctx context.Context) (*phases.Outcome, error)) (*phases.Outcome, error) {
	calling, wait := g.opts.Engine.Collect(ctx)
	out, err := call(calling)
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	rows, late := wait(ctx)
	switch {
	case err != nil:
		return nil, err
	case late != nil:
		return nil, rpc.Errorf(rpc.CodeUnavailable, "%s; its background work was not done within %v and goes on", done, callTime)
	}
	out.Background = rows
	return out, nil
}
