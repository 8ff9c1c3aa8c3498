package serve

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/sdk"
)

// Plugins are the constructors of the plugins that a program ships. Each returns a new
// plugin, whose name is always the same.
type Plugins []func() *sdk.Plugin

// serveArgs are the arguments, before the name, of a built-in plugin's process.
func serveArgs() []string { return []string{"plugin", "serve"} }

// Builtins serves one of the plugins if the process was started for that, and exits when the
// plugin ends; otherwise it returns them at once. Call it first thing in main:
//
//	plugins := serve.Builtins(agentsdoc.New, skills.New) // does not return in a plugin's process
//	launches, err := plugins.Launches()
//	…
//	eng, err := runtime.Load(ctx, path, runtime.Options{Builtins: launches})
//
// The plugins may be Grapnel's (plugins/…) or the host's own. A host that wants separate binaries (plugins/*/cmd) fills
// runtime.Options.Builtins itself, or declares commands.
func Builtins(plugins ...func() *sdk.Plugin) Plugins {
	all := Plugins(plugins)
	if !StartedByHost() || len(os.Args) != 4 || !slices.Equal(os.Args[1:3], serveArgs()) {
		return all
	}
	p, err := all.New(os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	Main(p)
	return nil // not reached
}

// Names returns the names of the plugins, sorted.
func (all Plugins) Names() []string {
	names := make([]string, 0, len(all))
	for _, build := range all {
		names = append(names, build().Name)
	}
	slices.Sort(names)
	return names
}

// New returns a new plugin of that name.
func (all Plugins) New(name string) (*sdk.Plugin, error) {
	for _, build := range all {
		if p := build(); p.Name == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("no plugin %q%s", name, suggest.DidYouMean(name, all.Names()))
}

// Launches says how to start each plugin as a process of this program's own binary. The
// binary is opened now, so that a file that is replaced later does not mix versions; it
// stays open as long as the program runs. Two plugins of one name are an error.
func (all Plugins) Launches() (map[string]wire.Launch, error) {
	if StartedByHost() {
		return nil, errors.New("this process is a plugin itself and starts none: that would never end")
	}
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program's path: %w", err)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening this program: %w", err)
	}
	launches := map[string]wire.Launch{}
	for _, name := range all.Names() {
		if _, twice := launches[name]; twice {
			return nil, errors.Join(fmt.Errorf("two plugins are named %q", name), file.Close())
		}
		launches[name] = wire.Launch{Path: path, File: file, Args: append(serveArgs(), name)}
	}
	return launches, nil
}
