package runtime

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/hostservice"
	"github.com/grapnelhq/grapnel/internal/engine/plan"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// ErrClosed is returned by calls on a closed engine.
var ErrClosed = pool.ErrClosed

var errNoInput = errors.New("a dispatch needs an input")

// Engine runs plugins and dispatches phases to them.
//
//  1. New (or Load) starts the plugins of a configuration and waits for them as
//     Options.WaitFor says. If it fails, nothing is left running.
//  2. BeginTurn, StartSession, CompileTurn, Dispatch and CallTool may be called
//     from any goroutine. A turn keeps the configuration that it began with.
//  3. Reload puts another configuration in force; on error the old one stays.
//  4. Close ends everything: background work is drained, plugins are asked to
//     end and then killed (those inside the host: see [Closer]), and what open
//     turns have not recorded is, all within a bounded time. It is safe to call twice. Calls on a closed engine fail.
type Engine struct {
	dispatcher
	lifetime
	generations

	// pool keeps the plugins running.
	pool *pool.Pool
	open turnstate.Open[turn]
	// services are the host services that plugins may call.
	services hostservice.Services
	// model calls the host's model; nil without one.
	model *hostservice.Model
}

// lifetime bounds what the engine itself starts.
type lifetime struct {
	life    context.Context //nolint:containedctx // an owner of goroutines
	endLife context.CancelCauseFunc
	wait    sync.WaitGroup
	closing sync.Once
}

type generations struct {
	// current is in force.
	current atomic.Pointer[generation]
	// reloading is held while a configuration is loaded, and by Close.
	reloading sync.Mutex

	mu sync.Mutex
	// inUse are the one in force and those that are being retired.
	inUse   []*generation
	numbers uint64
	closed  bool
}

// PlanView is a plan in the JSON shape of "grapnel plan --json": the stages of each phase, their layers, and each
// subscription as it is in force.
type PlanView = plan.Document

// Plan shows the plan in force: of one phase, or of all for "". An unknown phase gives an empty list.
func (e *Engine) Plan(phase phases.Phase) PlanView {
	return plan.View(e.current.Load().planned.Load().plan, phase)
}

// Config returns the configuration in force.
func (e *Engine) Config() *config.Config { return e.current.Load().cfg }

// Plugins returns a row for each declared plugin.
func (e *Engine) Plugins() []phases.PluginRow { return slices.Clone(e.current.Load().rows().rows) }

// Descriptions returns the plugins' descriptions of themselves by name, without plugins that never described
// themselves.
func (e *Engine) Descriptions() map[string]*phases.Description {
	out := map[string]*phases.Description{}
	for _, in := range e.current.Load().instances {
		if d := in.Description(); d != nil {
			out[in.Declared.Name] = d
		}
	}
	return out
}

// Diagnostics returns the planner's diagnostics about the configuration in force: subscriptions that are off,
// timeouts that were lowered.
func (e *Engine) Diagnostics() []phases.Diagnostic {
	return e.current.Load().planned.Load().diagnostics
}

// Dispatch runs one phase outside any turn, under its own time budget, without policies, contexts or hidden tools;
// see [Turn] for phases of a turn. A phase with a hook that needs a turn (its condition reads policies, or it decides
// and its grants name policies or contexts) is refused with a nil outcome and [phases.CauseTurnNeeded]. The outcome
// is nil, too, for a context that [phases.CheckContext] refuses. Other errors are those of [Turn.Dispatch].
func (e *Engine) Dispatch(ctx context.Context, c phases.Context, in phases.Input) (*phases.Outcome, error) {
	g, err := e.acquire()
	if err != nil {
		return nil, err
	}
	defer g.leave()
	if in == nil {
		return nil, errNoInput
	}
	if err := turnstate.CheckContext(&c); err != nil {
		return nil, err
	}
	if p := g.planned.Load().phases[phases.PhaseOf(in)]; p != nil && p.turnNeeded != nil {
		err := *p.turnNeeded // a copy for the caller
		return nil, &err
	}
	if c.Now.IsZero() {
		c.Now = e.opts.Now()
	}
	rq := &request{context: c, input: in, state: g.outside()}
	defer func() { _ = e.keepEvents(ctx, g, &rq.context, rq.state, false) }() // it is reported
	return e.dispatch(ctx, g, rq)
}

// acquire returns the generation in force and keeps it until the caller calls its leave. It fails on a closed engine.
func (e *Engine) acquire() (*generation, error) {
	if e.isClosed() {
		return nil, ErrClosed
	}
	return e.inForce(), nil
}

// inForce is acquire for work that goes on while the engine is being closed.
func (e *Engine) inForce() *generation {
	for {
		if g := e.current.Load(); g.enter() {
			return g
		}
	}
}

func (e *Engine) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// generationsInUse returns the one in force and those that are being retired.
func (g *generations) generationsInUse() []*generation {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.inUse)
}

// ReportUsage keeps what a provider reported for a manifest, for hosts without a Turn. Rounds is 1 and ReportedAt now
// by default. Errors are those of [Turn.ReportUsage].
func (e *Engine) ReportUsage(ctx context.Context, u manifest.Usage) error {
	if u.Rounds == 0 {
		u.Rounds = 1
	}
	if u.ReportedAt.IsZero() {
		u.ReportedAt = e.opts.Now()
	}
	u.ReportedAt = u.ReportedAt.UTC()
	if err := u.Check(); err != nil {
		return err
	}
	if e.keeper == nil {
		return nil
	}
	err := e.keeper.Report(ctx, u)
	if err == nil {
		return nil
	}
	code := e.sinkFailed(codeUsageNotKept, "what the provider reported was not kept", u.ManifestID, err)
	return phases.Errorf(code, "the provider's report for the manifest %s was not kept: %w", u.ManifestID, err)
}
