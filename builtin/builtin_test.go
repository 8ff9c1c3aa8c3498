package builtin_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/builtin"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
	"github.com/grapnelhq/grapnel/plugins/fileguard"
	"github.com/grapnelhq/grapnel/plugins/mcp"
	"github.com/grapnelhq/grapnel/plugins/memory"
	"github.com/grapnelhq/grapnel/plugins/scripted"
	"github.com/grapnelhq/grapnel/plugins/skills"
	"github.com/grapnelhq/grapnel/runtime"
)

// all are the first-party plugins.
func all() builtin.Plugins {
	return builtin.Plugins{skills.New, agentsdoc.New, fileguard.New, mcp.New, memory.New, scripted.New}
}

// TestMain lets this binary be its own plugins.
func TestMain(m *testing.M) {
	builtin.Main(all()...)
	os.Exit(m.Run())
}

func TestNames(t *testing.T) {
	t.Parallel()

	if diff := cmp.Diff(all().Names(), []string{"agentsdoc", "fileguard", "mcp", "memory", "scripted", "skills"}); diff != "" {
		t.Errorf("names (-got +want):\n%s", diff)
	}
}

// TestPlugin: each is a plugin of its name, made anew each time.
func TestPlugin(t *testing.T) {
	t.Parallel()

	for _, name := range all().Names() {
		one, err := all().New(name)
		if err != nil {
			t.Fatal(err)
		}
		two, err := all().New(name)
		if err != nil || one == two || one.Name != name {
			t.Errorf("%s: %q, the same twice: %v, %v", name, one.Name, one == two, err)
		}
	}
	if _, err := all().New("memry"); err == nil || !strings.Contains(err.Error(), `did you mean "memory"?`) {
		t.Errorf("unknown: %v", err)
	}
}

// TestLaunches starts every plugin as a process of this binary, with the least that it
// needs.
func TestLaunches(t *testing.T) {
	t.Parallel()

	launches, err := all().Launches()
	if err != nil {
		t.Fatal(err)
	}
	cfg := &config.Config{Version: 1}
	for _, name := range all().Names() {
		cfg.Plugins = append(cfg.Plugins, config.Plugin{
			Name: "my_" + name, Builtin: name, Env: config.Env{Set: map[string]config.Secret{"HOME": {Value: filepath.Join(t.TempDir(), name)}}},
		})
	}
	eng, err := runtime.New(t.Context(), cfg, runtime.Options{Builtins: launches})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range eng.Plugins() {
		if row.State != phases.PluginReady {
			t.Errorf("%s is %s: %s", row.Plugin, row.State, row.Message+" "+row.Detail)
		}
		if d := eng.Descriptions()[row.Plugin]; d == nil || "my_"+d.Name != row.Plugin {
			t.Errorf("%s says that it is %+v", row.Plugin, d)
		}
	}
	if n := len(eng.Plugins()); n != len(launches) || n == 0 {
		t.Errorf("%d plugins of %d launches", n, len(launches))
	}
	if err := eng.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestLaunchesDuplicate: the second of two plugins of one name would never run.
func TestLaunchesDuplicate(t *testing.T) {
	t.Parallel()

	_, err := builtin.Plugins{skills.New, scripted.New, skills.New}.Launches()
	if err == nil || !strings.Contains(err.Error(), `two plugins are named "skills"`) {
		t.Errorf("error %v", err)
	}
}
