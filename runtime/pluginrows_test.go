package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestPluginRows: outcomes share the rows of the plugins until one of them changes, and
// then have it at once.
func TestPluginRows(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		late, starts := plugin("late", on("h", phases.PrePolicy, reply())), 0
		late.OnConfigure = func(context.Context, *phases.Configuration) (sdk.Setup, error) {
			if starts++; starts < 3 {
				return sdk.Setup{}, sdk.Fail("down", "it cannot start")
			}
			return sdk.Setup{}, nil
		}
		eng := newHosted(plugin("good"), late).start(t)
		down := dispatch(t, eng, &phases.PrePolicyInput{})
		for range 60 {
			out := dispatch(t, eng, &phases.PrePolicyInput{})
			if want := fmt.Sprint(eng.Plugins()); fmt.Sprint(out.Plugins) != want {
				t.Errorf("the outcome has %v, want %s", out.Plugins, want)
			}
			if late := out.Plugins[1]; (late.State == phases.PluginReady) == strings.Contains(fmt.Sprint(codes(out)), "plugin_error") {
				t.Errorf("the plugin is %s, the diagnostics are %v", late.State, codes(out))
			}
			time.Sleep(100 * time.Millisecond)
		}
		up, again := dispatch(t, eng, &phases.PrePolicyInput{}), dispatch(t, eng, &phases.PrePolicyInput{})
		if down.Plugins[1].State != phases.PluginBackoff || up.Plugins[1].State != phases.PluginReady || up.Plugins[1].Version == "" {
			t.Errorf("first %+v, later %+v", down.Plugins[1], up.Plugins[1])
		}
		if &up.Plugins[0] != &again.Plugins[0] {
			t.Error("the rows were made again though nothing has changed")
		}
	})
}

// rowOf returns the ledger's row of a plugin.
func rowOf(t testing.TB, eng *runtime.Engine, plugin string) phases.PluginRow {
	t.Helper()
	for _, row := range eng.Plugins() {
		if row.Plugin == plugin {
			return row
		}
	}
	t.Fatalf("no row of %s", plugin)
	return phases.PluginRow{}
}
