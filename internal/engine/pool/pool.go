// Package pool keeps plugins running. Each declared plugin is an [Instance] under a supervisor; one start of it is an
// [Incarnation]: a process with its session, or a plugin inside the host.
//
// A caller takes a [Lease] (one of the plugin's slots), waits for the incarnation that
// takes calls ([Instance.Await]), and calls its [Peer]. What is called, when, and what
// becomes of the answers is up to the owner, which an [Observer] notifies.
//
// Stability: internal.
package pool

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/supervise"
	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// startsAtOnce is how many plugin processes begin to start at the same time.
const startsAtOnce = 8

// ErrClosed is why plugins are stopped.
var ErrClosed = errors.New("the engine is closed")

// Plugin is a plugin inside the host; see runtime.Plugin.
type Plugin interface {
	Describe(ctx context.Context) (*phases.Description, error)
	Configure(ctx context.Context, c *phases.Configuration) (*phases.Description, error)
	Dispatch(ctx context.Context, d *phases.Dispatch) (*phases.Result, error)
	CallTool(ctx context.Context, c *phases.ToolCall) (*phases.ToolResult, error)
}

// Observer is notified of what happens to plugins, from many goroutines, with no lock held.
type Observer interface {
	// Changed reports a plugin's state. words are the plugin's own about it.
	Changed(in *Instance, st supervise.Status, words string)
	// Described reports the first description of a plugin. An error refuses it.
	Described(in *Instance, d *phases.Description) error
	// Configuring reports the beginning of a configuration, and the returned function, if not nil, its end.
	Configuring(inc *Incarnation) func(c *phases.Configuration, d *phases.Description, err error)
	// Dropped reports an answer that was late, double, stale or unknown.
	Dropped(in *Instance, why string)
	// Logged reports a line that a plugin wrote to its standard error.
	Logged(in *Instance, line LogLine)
}

// Options are what a pool needs. All fields but the last are required.
type Options struct {
	Logger   *slog.Logger
	Observer Observer
	// Local returns the plugin of a name that runs inside the host; nil for a process.
	Local    func(plugin string) Plugin
	Inline   func(plugin string) bool          // Inline reports whether hooks of a local plugin run on their callers' goroutines
	Programs map[string]wire.Launch            // Programs are the built-in plugins
	Check    func(d *phases.Description) error // Check checks the description of a plugin
	Services func(grants []string) []string    // Services are the names of the host services that grants allow
	Host     func(in *Instance) phases.Host    // Host answers an instance's host calls; it is called once for each
	Health   supervise.Health                  // the health check of running plugins, without Check
	Random   func() float64                    // Random gives numbers in [0, 1) for jitter; nil uses math/rand/v2
}

// Pool is what the plugins of one engine share: start gate, memory watch, and processes
// that could not be killed. It is safe for concurrent use.
type Pool struct {
	opts     Options
	gate     *supervise.Gate
	memory   *memwatch
	unkilled unkilled
	sums     proc.Sums
	starts   atomic.Uint64
	revision atomic.Uint64 // see Revision
	workers  workers
	over     chan struct{} // closed by Close
}

// New returns a pool without plugins.
func New(o Options) *Pool {
	over := make(chan struct{})
	return &Pool{opts: o, gate: supervise.NewGate(startsAtOnce), memory: newMemwatch(), over: over, workers: workers{work: make(chan *localCall), over: over}}
}

// sweepDelay is how long a host lives before it looks for processes of killed hosts: reading the process table takes a core
// that the first starts need, and a command that compiles one prompt is over by then.
const sweepDelay = time.Second

// Serve watches the memory of the plugins' processes until ctx ends, and removes what killed hosts have left behind: at once
// if one has left a private directory, otherwise after sweepDelay.
func (p *Pool) Serve(ctx context.Context) {
	var watch sync.WaitGroup
	watch.Go(func() { p.memory.serve(ctx) })
	dirs := proc.SweepDirectories(ctx, "")
	if dirs == 0 {
		select {
		case <-time.After(sweepDelay):
		case <-ctx.Done():
		}
	}
	if ctx.Err() == nil {
		s := proc.SweepLeftovers(ctx, "")
		if s.Directories += dirs; s.Processes+s.Directories+s.Groups > 0 {
			p.opts.Logger.Info("removed what an earlier host left behind", "processes", s.Processes, "directories", s.Directories, "groups", s.Groups)
		}
	}
	watch.Wait()
}

// Revision rises when the row of a plugin has changed.
func (p *Pool) Revision() uint64 { return p.revision.Load() }

// Memory returns the resident memory of each plugin's processes and their descendants in bytes, by declared name.
func (p *Pool) Memory() map[string]int64 { return p.memory.held() }

// MeasuresMemory reports whether this system can measure the memory of processes.
func MeasuresMemory() bool { return proc.CanMeasure() }

// CheckDirectory fails if no plugin can start, because nothing can be written where their sockets are made.
func CheckDirectory(ctx context.Context) error { return proc.CheckDirectory(ctx) }

// LogLine is a line that a plugin wrote to its standard error.
type LogLine = proc.LogLine

// Unkilled returns an error that names the processes that may still run.
func (p *Pool) Unkilled() error { return p.unkilled.err() }

// Start supervises plugins until ctx ends or they are stopped. The required ones get the first slots of the gate.
func (*Pool) Start(ctx context.Context, required, optional []*Instance) {
	for _, in := range required {
		in.run(ctx)
	}
	for _, in := range required {
		select {
		case <-in.gate.asked:
		case <-in.done:
		}
	}
	for _, in := range optional {
		in.run(ctx)
	}
}

// Stop stops running plugins at the same time and waits until nothing of them is left.
func (*Pool) Stop(ins ...*Instance) {
	var wait sync.WaitGroup
	for _, in := range ins {
		wait.Go(in.shutdown)
	}
	wait.Wait()
}

// Close stops the last plugins, after another attempt to kill what still runs.
func (p *Pool) Close(ins ...*Instance) {
	p.unkilled.retry()
	p.Stop(ins...)
	close(p.over)
}

// FrameSize is the most bytes of one message that a declared plugin takes.
func FrameSize(p *config.Plugin) int {
	return cmp.Or(int(p.Limits.Frame), config.DefaultFrame)
}

// StartTimeout is how long a start of a declared plugin may take.
func StartTimeout(p *config.Plugin) time.Duration {
	return cmp.Or(p.Limits.Start.D(), config.DefaultStart)
}
