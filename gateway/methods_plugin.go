package gateway

import (
	"context"
	"errors"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/runtime"
)

// releaseParams are those of plugin/release.
type releaseParams struct {
	Plugin string `json:"plugin"          jsonschema:"the plugin's name in the configuration"`
	Actor  string `json:"actor,omitempty"`
}

func (g *Gateway) pluginMethods() []rpc.Method {
	return []rpc.Method{
		method("plugin/release", rpc.AdminRight,
			"Starts a plugin at once that is in quarantine or waits for its next start, with its failures forgotten, and closes its breakers. It waits for the start; one that failed again is a result that says so.",
			func(p *releaseParams) asked { return asked{nil, &p.Actor} }, g.release),
	}
}

// release answers when the start has gone well or failed.
func (g *Gateway) release(ctx context.Context, c call[releaseParams]) (*runtime.Released, error) {
	switch {
	case !c.AllWorkspaces():
		return nil, errBound()
	case g.opts.Engine == nil:
		return nil, errNoEngine()
	}
	r, err := g.opts.Engine.Release(ctx, c.params.Plugin)
	if none, ok := errors.AsType[*runtime.ReleaseError](err); ok {
		code := rpc.CodeInvalid
		if none.Unknown {
			code = rpc.CodeNotFound
		}
		return nil, &rpc.Error{Code: code, Message: "plugin: " + none.Message, Err: err}
	}
	return r, err
}
