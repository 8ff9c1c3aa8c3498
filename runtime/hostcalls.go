package runtime

import (
	"context"

	"github.com/grapnelhq/grapnel/phases"
)

// maxChain is how deep host calls and dispatches may nest.
const maxChain = 4

// chain is the way from the host to a plugin's handler. The context of the call
// carries it: what the handler asks of the host inherits it.
type chain struct {
	context.Context //nolint:containedctx // the caller's, of which a callContext is made
	site
	parent *chain
	depth  int
}

// site is one call of a plugin, as a host call that it leads to is told of it and
// charged for it.
type site struct {
	plugin string
	turn   phases.Context
	// scope is that of the turn, or of what runs outside of any; never nil.
	scope *scope
	// subscription is the hook's full id, or PLUGIN.TOOL.
	subscription            string
	generation, incarnation uint64
	// exchange takes up the host calls that it leads to; nil for most.
	exchange *exchange
}

type chainKey struct{}

// chainOf returns the innermost link that ctx carries; nil outside any call.
func chainOf(ctx context.Context) *chain {
	c, ok := ctx.Value(chainKey{}).(*chain)
	if !ok {
		return nil
	}
	return c
}

// newChain is the link for a call of a plugin.
func newChain(ctx context.Context, at site) chain {
	link := chain{Context: ctx, site: at, parent: chainOf(ctx)}
	if link.parent != nil {
		link.depth = link.parent.depth + 1
	}
	return link
}

// holds reports whether the plugin is on the chain: it then has a slot already,
// and waiting for a second one could wait for ever.
func (c *chain) holds(plugin string) bool {
	for ; c != nil; c = c.parent {
		if c.plugin == plugin {
			return true
		}
	}
	return false
}
