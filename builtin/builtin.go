// Package builtin makes the first-party plugins available to a program: as
// processes of its own binary, started anew with other arguments.
//
//	func main() {
//		builtin.Main() // does not return in a plugin's process
//		launches, err := builtin.Launches()
//		…
//		eng, err := runtime.Load(ctx, path, runtime.Options{Builtins: launches})
//	}
//
// The engine itself knows no plugin by name. A host that wants other plugins, or
// separate binaries for them (plugins/*/cmd), fills runtime.Options.Builtins by
// itself and does not need this package.
//
// Stability: experimental until 1.0.
package builtin

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
	"github.com/grapnelhq/grapnel/plugins/memory"
	"github.com/grapnelhq/grapnel/plugins/scripted"
	"github.com/grapnelhq/grapnel/plugins/skills"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// ErrInsidePlugin is returned by Launches in a process that is itself a plugin:
// a built-in that started built-ins would never end.
var ErrInsidePlugin = errors.New("builtin: this process is a plugin itself and starts none")

// serveArgs are the arguments, before the name, of a built-in's process.
func serveArgs() []string { return []string{"plugin", "serve"} }

// Names returns the names of the first-party plugins, sorted.
func Names() []string { return slices.Sorted(maps.Keys(plugins())) }

// plugins are the first-party plugins by name. A value is made when it is asked
// for, so that a program pays only for what it serves.
func plugins() map[string]func() *sdk.Plugin {
	return map[string]func() *sdk.Plugin{
		"agentsdoc": agentsdoc.New,
		"memory":    memory.New,
		"scripted":  scripted.New,
		"skills":    skills.New,
	}
}

// Plugin returns a new first-party plugin.
func Plugin(name string) (*sdk.Plugin, error) {
	make, ok := plugins()[name]
	if !ok {
		return nil, fmt.Errorf("builtin: no plugin %q%s", name, phases.DidYouMean(name, Names()))
	}
	return make(), nil
}

// Main turns the process into a built-in plugin if it was started as one, and
// exits when that ends; otherwise it returns at once. Call it first thing in
// main.
func Main() {
	if !serve.StartedByHost() || len(os.Args) != 4 || !slices.Equal(os.Args[1:3], serveArgs()) {
		return
	}
	p, err := Plugin(os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	serve.Main(p)
}

// Launches says how to start each first-party plugin as a process of this
// program's own binary. The binary is opened now, so that a file that is
// replaced later does not mix versions; it stays open as long as the program
// runs.
func Launches() (map[string]runtime.Launch, error) {
	if serve.StartedByHost() {
		return nil, ErrInsidePlugin
	}
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("builtin: where is this program: %w", err)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("builtin: opening this program: %w", err)
	}
	launches := map[string]runtime.Launch{}
	for _, name := range Names() {
		launches[name] = runtime.Launch{Path: path, File: file, Args: append(serveArgs(), name)}
	}
	return launches, nil
}
