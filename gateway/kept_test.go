package gateway

import (
	"testing"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// TestKeptWatch: who watches learns of new manifests, also those of another gateway on the database, and of no others'
// workspaces; once nobody watches, nothing is looked for.
func TestKeptWatch(t *testing.T) {
	t.Parallel()

	storetest.Both(t, storetest.NewPostgres, func(t *testing.T, dsn string) {
		model := treeOf(t, "v", "w")
		var gateways []*served
		for range 2 {
			log := must(store.Open(t.Context(), dsn, store.Options{}))(t)
			t.Cleanup(func() { _ = log.Close() })
			gateways = append(gateways, serve(t, Options{Tree: model, Engine: engine(t, model, log), Log: log}.with(
				token("all", []string{"*"}, rpc.Rights()...), token("bound", []string{"v"}, rpc.ReadRight))))
		}
		here, there, bound := gateways[0].dial(t, "all"), gateways[1].dial(t, "all"), gateways[0].dial(t, "bound")
		compile := func(workspace, id string) {
			do[any](t, there, "turn/compile", object{"turn": object{"workspace_id": workspace, "thread_id": "t", "turn_id": id}})
		}
		compile("w", "before")
		do[any](t, here, "manifest/watch", object{})
		do[any](t, bound, "manifest/watch", object{"workspace_id": "v"})
		if _, bad := bound.call(t, "manifest/watch", object{}); bad.code() != rpc.CodeUnauthorized {
			t.Errorf("a bound token watches all: %+v", bad)
		}
		compile("w", "1")
		compile("v", "2")
		next := func(c *caller, want ...string) {
			t.Helper()
			for len(want) > 0 {
				for _, row := range decoded[ManifestKept](t, c.anyNote(t).Params).Rows {
					if row.Kind != manifest.KindPrompt {
						continue
					}
					if len(want) == 0 || row.TurnID != want[0] {
						t.Fatalf("got the turn %s, want %v", row.TurnID, want)
					}
					want = want[1:]
				}
			}
		}
		next(here, "1", "2")
		next(bound, "2")
		do[any](t, bound, "manifest/unwatch", object{"workspace_id": "v"})
		do[any](t, here, "manifest/unwatch", object{})
		if _, bad := here.call(t, "manifest/unwatch", object{}); bad.code() != rpc.CodeNotFound {
			t.Errorf("unwatched twice: %+v", bad)
		}
		if gateways[0].g.kept.state() != nil {
			t.Error("it still looks")
		}
	})
}
