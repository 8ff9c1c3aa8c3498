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
	plugin          string
	turn            phases.Context
	parent          *chain
	depth           int
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

// newChain is the link for a call of the named plugin.
func newChain(ctx context.Context, plugin string, turn phases.Context) chain {
	link := chain{Context: ctx, plugin: plugin, turn: turn, parent: chainOf(ctx)}
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
