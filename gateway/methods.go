package gateway

import (
	"context"
	"maps"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/internal/surface"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/tree"
)

// callTime bounds a call to the tree or the log. Turns have budgets of their own.
const callTime = 20 * time.Second

// docsBytes is what the two longest documents take, as some calls answer with, and
// their JSON.
const docsBytes = 1 << 20

// openActor is who acts on a gateway without tokens and does not say who.
const openActor = "local"

// asked points at what all params have beside what they are about. Workspace is
// nil for a method of no workspace.
type asked struct{ workspace, actor *string }

// call is one call of a method: who calls, and what for.
type call[P any] struct {
	*rpc.Caller

	params P
}

// audience is who reads the answers of a call: what of plugins' words they may hold.
func audience(c *rpc.Caller) phases.Audience {
	if c.May(rpc.AdminRight) {
		return phases.AudienceOperator
	}
	return phases.AudienceUser
}

// method makes a row of the table. Before the work is done, the caller must be one
// who may see the workspace, and the actor is settled. An answer that may hold words of
// plugins has a method For, and is given as its caller may see it.
func method[P, R any](name string, right rpc.Right, doc string, ask func(*P) asked, do func(ctx context.Context, c call[P]) (R, error)) rpc.Method {
	return rpc.Typed(name, right, doc, func(ctx context.Context, c *rpc.Caller, p P) (R, error) {
		var none R
		a := ask(&p)
		if a.workspace != nil && !c.MayWorkspace(*a.workspace) {
			return none, noWorkspace(*a.workspace)
		}
		if err := settleActor(c, a.actor); err != nil {
			return none, wireError(err)
		}
		r, err := do(ctx, call[P]{c, p})
		if err != nil {
			return none, wireError(err)
		}
		if words, ok := any(r).(interface{ For(a phases.Audience) R }); ok {
			r = words.For(audience(c))
		}
		return r, nil
	})
}

// quick is method for work that a database does: it is bounded in time, and has
// memory for documents.
func quick[P, R any](name string, right rpc.Right, doc string, ask func(*P) asked, do func(ctx context.Context, p P) (R, error)) rpc.Method {
	return method(name, right, doc, ask, func(ctx context.Context, c call[P]) (R, error) {
		if err := rpc.Expect(ctx, docsBytes); err != nil {
			var none R
			return none, err
		}
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		return do(ctx, c.params)
	})
}

// settleActor makes the actor the token's name. Only where there are no tokens the
// params say who it is.
func settleActor(c *rpc.Caller, actor *string) error {
	switch {
	case !c.Open:
		if *actor != "" && *actor != c.Name {
			return rpc.Errorf(rpc.CodeInvalid, "actor: it is %q, by the token; leave it out", c.Name)
		}
		*actor = c.Name
	case *actor == "":
		*actor = openActor
	}
	return tree.CheckActor(*actor)
}

// anyone is the params of methods about everything.
type anyone struct {
	Actor string `json:"actor,omitempty"`
}

func (p *anyone) asked() asked { return asked{nil, &p.Actor} }

// methods is the table of all methods, in the order of the documents. Those that
// only read are admitted a few at a time.
func (g *Gateway) methods() []rpc.Method {
	var all []rpc.Method
	reads, verifies := newLane(maxLight), newLane(maxVerifies)
	for _, part := range [][]rpc.Method{
		g.workspaceMethods(), g.folderMethods(), g.threadMethods(), g.docMethods(), g.turnMethods(), g.sessionMethods(), g.phaseMethods(), g.manifestMethods(), g.statusMethods(),
		g.configMethods(), g.pluginMethods(),
	} {
		all = append(all, part...)
	}
	for i, m := range all {
		switch {
		case m.Name == methodVerify:
			all[i] = verifies.admit(m)
		case m.Right == rpc.ReadRight:
			all[i] = reads.admit(m)
		}
	}
	return all
}

// wireTypes are the schemas of types whose JSON reflection does not see.
func wireTypes() (map[reflect.Type]*jsonschema.Schema, error) {
	own := surface.Schemas{}
	maps.Copy(own, surface.Schemas{
		reflect.TypeFor[tree.FolderID](): {Types: []string{"null", "string"}, Description: "a folder's id; null is the root"},
	})
	surface.AddWords(own, tree.Draft, tree.Active, tree.Archived)
	surface.AddWords(own, tree.Autosave, tree.Manual, tree.Archive, tree.Restore)
	surface.AddWords(own, tree.AllThreads, tree.NoThreads)
	surface.AddWords(own, ReloadSignal, ReloadWatch, ReloadCall)
	surface.AddWords(own, tree.Created, tree.Renamed, tree.Moved, tree.Deleted, tree.DocSaved, tree.DocArchived, tree.DocRestored, actionGap)
	return surface.NewSchemas(own)
}
