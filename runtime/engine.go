package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/background"
	"github.com/grapnelhq/grapnel/internal/bounded"
	"github.com/grapnelhq/grapnel/internal/callctx"
	"github.com/grapnelhq/grapnel/internal/hostservice"
	"github.com/grapnelhq/grapnel/internal/keeper"
	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/internal/pool"
	"github.com/grapnelhq/grapnel/internal/sessions"
	"github.com/grapnelhq/grapnel/internal/stats"
	"github.com/grapnelhq/grapnel/internal/turnstate"
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
	lifetime
	generations

	opts  Options
	table *phases.Table
	// pool keeps the plugins running.
	pool       *pool.Pool
	background *background.Work
	open       turnstate.Open[turn]
	// sessions caches what is remembered from turn to turn.
	sessions *sessions.Cache
	stats    *stats.Counters
	// services are the host services that plugins may call.
	services hostservice.Services
	// keeper calls the sink, model the host's model; nil without one.
	keeper *keeper.Keeper
	model  *hostservice.Model
	// runs numbers the runs whose answers are cached.
	runs atomic.Uint64
	// calls are the calls of plugins that are under way.
	calls callctx.Group[site]
	// spare holds finished dispatches for reuse.
	spare sync.Pool
	// over holds invocations that nobody knows any more, for reuse.
	over sync.Pool
	// exchangeFailed is set by the first failure of Options.OnExchange, the only one that is reported.
	exchangeFailed atomic.Bool
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

// Load reads a configuration file and calls New.
func Load(ctx context.Context, path string, o Options) (*Engine, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	return New(ctx, cfg, o)
}

// New starts an engine. An error in the configuration, or one that only the plugins' descriptions show, names file
// and line. So does one about a hook that the configuration requires (budgets.phases.PHASE.require) and that cannot come:
// its plugin has no such hook or does not start for a reason that no restart cures, such as a missing program. Any other
// plugin that does not start is not an error: it is in the log and a row in every ledger, and the failure policies of its
// subscriptions apply.
func New(ctx context.Context, cfg *config.Config, o Options) (*Engine, error) {
	table, err := phases.NewTable(o.Phases...)
	if err != nil {
		return nil, err
	}
	e := &Engine{opts: o.withDefaults(), table: table, sessions: sessions.New()}
	e.stats = stats.New(table, e.opts.Now)
	if o.Sink != nil {
		e.keeper = keeper.New(o.Sink, ErrClosed)
	}
	if o.Complete != nil {
		e.model = hostservice.NewModel(o.Complete, ErrClosed)
	}
	if e.services, err = e.newServices(); err != nil {
		return nil, err
	}
	if err := e.opts.preparePersona(); err != nil {
		return nil, err
	}
	e.life, e.endLife = context.WithCancelCause(context.WithoutCancel(ctx))
	e.background = background.New(engineRunner{e}, o.Queue, o.Random)
	e.pool = e.newPool()
	e.wait.Go(func() { e.pool.Serve(e.life) })
	g, err := e.load(ctx, cfg, nil)
	if err != nil {
		e.endLife(ErrClosed)
		e.wait.Wait()
		if unclosed := e.closePlugins(ctx); unclosed != nil {
			e.opts.Logger.Warn("after a failed start", "error", unclosed)
		}
		return nil, err
	}
	e.install(g)
	e.refresh(g)
	e.wait.Go(e.serveBackground)
	return e, nil
}

// install puts a generation in force and retires the previous one. It fails on a closed engine.
func (e *Engine) install(g *generation) bool {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return false
	}
	e.inUse = append(e.inUse, g)
	old := e.current.Swap(g)
	e.mu.Unlock()
	e.expect(g, g.planned.Load())
	e.emit(Event{Kind: EventReload, State: reloadInForce, Message: fmt.Sprintf("generation %d", g.number)})
	if old != nil {
		e.wait.Go(func() { e.retire(old) })
	}
	return true
}

// Reload puts another configuration in force. Plugins whose declaration did not change keep their process; the others
// must be ready or have failed once before any turn gets them. Running turns end on the configuration that they began
// with.
func (e *Engine) Reload(ctx context.Context, cfg *config.Config) error {
	e.reloading.Lock()
	defer e.reloading.Unlock()
	if e.isClosed() {
		return ErrClosed
	}
	old := e.current.Load()
	g, err := e.load(ctx, cfg, old)
	if err != nil {
		e.emit(Event{Kind: EventReload, State: "refused", Detail: phases.Whole(err)})
		e.forgetStats(e.generationsInUse())
		return err
	}
	if !e.install(g) {
		e.pool.Stop(slices.DeleteFunc(slices.Clone(g.instances), func(in *pool.Instance) bool { return slices.Contains(old.instances, in) })...)
		return ErrClosed
	}
	e.refresh(g)
	return nil
}

// Close ends the engine. Background work that has begun may finish while ctx lasts; plugins then have their grace to
// end. After it no process, socket, directory or goroutine of the engine is left, unless it returns an error: a sink
// or Complete hangs, or a process could not be killed. A directory that cannot be removed is a warning in the log. A
// second call waits for the first and returns nil.
func (e *Engine) Close(ctx context.Context) (err error) {
	e.closing.Do(func() { err = e.close(ctx) })
	return err
}

func (e *Engine) close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	err := e.background.Drain(ctx)
	e.endLife(ErrClosed)
	e.reloading.Lock() // a reload under way fails soon: its plugins have ended
	defer e.reloading.Unlock()
	e.pool.Close(instancesOf(e.generationsInUse())...)
	err = errors.Join(err, e.awaitGoroutines())
	e.calls.Stop()
	err = errors.Join(err, e.pool.Unkilled(), e.closePlugins(ctx))
	e.recordOpen(ctx)
	if e.keeper != nil {
		err = errors.Join(err, e.keeper.Close(ctx))
	}
	if e.model != nil {
		err = errors.Join(err, e.model.Close(ctx))
	}
	return err
}

// goroutineTime is how long Close waits for goroutines after all plugins have stopped.
const goroutineTime = 10 * time.Second

// awaitGoroutines waits for the engine's goroutines. One that reads about a process can hang in the kernel.
func (e *Engine) awaitGoroutines() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), goroutineTime, errors.New("a goroutine of the engine has not ended"))
	defer cancel()
	_, err := bounded.Abandonable(ctx, func() {}, func() (struct{}, error) { e.wait.Wait(); return struct{}{}, nil })
	return err
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

var _ pool.Observer = observer{}
