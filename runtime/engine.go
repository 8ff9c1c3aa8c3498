package runtime

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/internal/supervise"
	"github.com/grapnelhq/grapnel/phases"
)

// startsAtOnce is how many plugin processes begin to start at the same time.
const startsAtOnce = 8

// ErrClosed is returned by calls on a closed engine.
var ErrClosed = errors.New("the engine is closed")

// errNoInput is returned for a dispatch of nothing.
var errNoInput = errors.New("a dispatch needs an input")

// Engine runs plugins and dispatches phases to them.
//
//  1. New (or Load) starts the plugins of a configuration and waits for them as
//     Options.WaitFor says. If it fails, nothing is left running.
//  2. BeginTurn, StartSession, CompileTurn, Dispatch and CallTool may be called
//     from any goroutine. A turn keeps the configuration that it began with.
//  3. Reload puts another configuration in force; on error the old one stays.
//  4. Close ends everything: background work is drained, plugins are told to
//     end and then killed (those inside the host: see [Closer]), all within a
//     bounded time. It is safe to call twice. Calls on a closed engine fail.
type Engine struct {
	opts  Options
	table *phases.Table
	gate  *supervise.Gate
	queue Queue

	current atomic.Pointer[generation]

	// mu guards generations: those in force and those being drained.
	mu          sync.Mutex
	generations []*generation
	numbers     uint64
	closed      bool

	// reloading is held while a configuration is loaded: the next one is built
	// on what is in force then, and Close must not miss plugins that are just
	// being started.
	reloading sync.Mutex
	closing   sync.Once

	// life is the lifetime of what the engine itself starts; Close ends it.
	life    context.Context //nolint:containedctx // an owner of goroutines
	endLife context.CancelCauseFunc
	wait    sync.WaitGroup
	memory  *memory
	// tally counts what becomes of everything.
	tally *tally
	// memwatch looks at what plugins' processes hold.
	memwatch *memwatch
	// unkilled are processes that may outlive the engine: Close reports them.
	unkilled unkilled
	// services are what plugins may ask the host for.
	services services
	// keeper calls the sink; nil without one.
	keeper *keeper
	// model asks the host's model; nil without one.
	model *model
	// collectors are told what becomes of background work.
	collectors collectors
	// runs numbers the runs whose answers are kept.
	runs atomic.Uint64
	// deadlines ends the calls whose time is over.
	deadlines deadlines
	// spare holds dispatches that have ended, for the next ones.
	spare sync.Pool
	// exchanges is for Options.OnExchange.
	exchanges exchanges
}

// Load reads a configuration file and calls New.
func Load(ctx context.Context, path string, o Options) (*Engine, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	return New(ctx, cfg, o)
}

// New starts an engine. An error in the configuration, or one that only the
// plugins' descriptions show, names file and line. A plugin that does not start
// is no error: it is a row in every ledger, and the failure policies of its
// subscriptions apply.
func New(ctx context.Context, cfg *config.Config, o Options) (*Engine, error) {
	table, err := phases.NewTable(o.Phases...)
	if err != nil {
		return nil, err
	}
	e := &Engine{opts: o.withDefaults(), table: table, gate: supervise.NewGate(startsAtOnce), memory: newMemory(), memwatch: newMemwatch(), keeper: newKeeper(o.Sink), model: newModel(o.Complete)}
	e.tally = newTally(table)
	if err := e.prepareServices(); err != nil {
		return nil, err
	}
	if err := e.opts.prepareHome(); err != nil {
		return nil, err
	}
	e.life, e.endLife = context.WithCancelCause(context.WithoutCancel(ctx))
	if e.queue = o.Queue; e.queue == nil {
		e.queue = newMemoryQueue(e.opts.Random, func(j Job, why error) { e.jobEvent(j, jobLost, why) })
	}
	e.wait.Go(e.sweep)
	e.wait.Go(func() { e.memwatch.serve(e.life) })
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
	e.wait.Go(func() {
		if err := e.queue.Serve(e.life, e.work); err != nil && !errors.Is(err, ErrClosed) {
			e.opts.Logger.Error("background work has stopped", "error", err)
		}
	})
	return e, nil
}

// install puts a generation in force and retires the one before. It refuses
// when the engine has been closed meanwhile.
func (e *Engine) install(g *generation) bool {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return false
	}
	e.generations = append(e.generations, g)
	old := e.current.Swap(g)
	e.mu.Unlock()
	e.tally.know(g, g.planned.Load())
	e.emit(Event{Kind: EventReload, State: reloadInForce, Message: fmt.Sprintf("generation %d", g.number)})
	if old != nil {
		e.wait.Go(func() { e.retire(old) })
	}
	return true
}

// Reload puts another configuration in force. Plugins whose declaration did not
// change keep their process; the others are waited for until they are ready or
// have failed once, each within its start deadline, before any turn gets them.
// Turns that run end on the configuration that they began with.
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
		e.forgetFigures()
		return err
	}
	if !e.install(g) {
		stopAll(slices.DeleteFunc(slices.Clone(g.instances), func(in *instance) bool { return slices.Contains(old.instances, in) }))
		return ErrClosed
	}
	e.refresh(g)
	return nil
}

func (e *Engine) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// Close ends the engine. Background work that has begun may finish while ctx
// lasts; plugins then have their grace to end. After it no process, socket,
// folder or goroutine of the engine is left, unless it returns an error: that a sink or
// Complete hangs (the goroutine ends when the function returns), or that a process of a
// plugin could not be killed, as one that waits in the kernel for ever cannot be. A
// folder that a plugin made so that it cannot be removed is a warning in the log. A
// second call waits for the first and returns nil.
func (e *Engine) Close(ctx context.Context) (err error) {
	e.closing.Do(func() { err = e.close(ctx) })
	return err
}

func (e *Engine) close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	err := e.drainQueue(ctx)
	e.endLife(ErrClosed)
	e.reloading.Lock() // a reload on its way ends soon: its plugins have ended
	defer e.reloading.Unlock()
	e.mu.Lock()
	all := instancesOf(e.generations)
	e.mu.Unlock()
	e.unkilled.retry()
	stopAll(all)
	err = errors.Join(err, e.awaitGoroutines())
	e.deadlines.stop()
	return errors.Join(err, e.unkilled.err(), e.closePlugins(ctx), e.keeper.close(ctx), e.model.close(ctx))
}

// goroutineTime is what Close waits for goroutines after all plugins have been stopped.
const goroutineTime = 10 * time.Second

// awaitGoroutines waits for the engine's goroutines. One that reads what the kernel
// knows of a process can hang with it.
func (e *Engine) awaitGoroutines() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), goroutineTime, errors.New("a goroutine of the engine has not ended"))
	defer cancel()
	_, err := abandonable(ctx, func() {}, func() (*struct{}, error) { e.wait.Wait(); return nil, nil })
	return err
}

// PlanView is a plan in the JSON shape of "grapnel plan --json": phase by phase
// the stages, their layers, and each subscription as it is in force.
type PlanView = plan.Document

// Plan shows the plan in force: one phase, or all of them for "". A phase that
// there is not gives an empty list.
func (e *Engine) Plan(phase phases.Phase) PlanView {
	return plan.View(e.current.Load().planned.Load().plan, phase)
}

// Config returns the configuration in force.
func (e *Engine) Config() *config.Config { return e.current.Load().cfg }

// Plugins returns a row for each declared plugin.
func (e *Engine) Plugins() []phases.PluginRow { return e.current.Load().rows() }

// Descriptions returns what each declared plugin says of itself, by name;
// plugins that never described themselves are absent.
func (e *Engine) Descriptions() map[string]*phases.Description {
	out := map[string]*phases.Description{}
	for _, in := range e.current.Load().instances {
		if d := in.description(); d != nil {
			out[in.declared.Name] = d
		}
	}
	return out
}

// Diagnostics returns what the planner had to say about the configuration in
// force: subscriptions that are off, timeouts that were lowered.
func (e *Engine) Diagnostics() []phases.Diagnostic {
	return e.current.Load().planned.Load().diagnostics
}

// Dispatch runs one phase outside any turn, under its own time budget: there are no
// policies, contexts or hidden tools. See Turn for phases that belong to one. A phase
// with a hook that needs a turn (one whose condition reads policies, or one that
// decides and whose grants name policies or contexts) is refused before any hook runs,
// with a nil outcome and [phases.CauseTurnNeeded]; the error names the hook. A context
// that [phases.CheckContext] refuses has a nil outcome, too. Any other error is that of
// [Turn.Dispatch].
func (e *Engine) Dispatch(ctx context.Context, c phases.Context, in phases.Input) (*phases.Outcome, error) {
	g, err := e.acquire()
	if err != nil {
		return nil, err
	}
	defer g.leave()
	if in == nil {
		return nil, errNoInput
	}
	if err := checkContext(&c); err != nil {
		return nil, err
	}
	if p := g.planned.Load().phases[in.Phase()]; p != nil && p.turnNeeded != nil {
		err := *p.turnNeeded // the caller may do with it what it likes
		return nil, &err
	}
	if c.Now.IsZero() {
		c.Now = e.opts.Now()
	}
	return e.dispatch(ctx, g, request{context: c, input: in, scope: newScope(g.cfg.Budgets.Turn, false)})
}

// checkContext refuses a context that takes too much room ([phases.CheckContext]), a
// relative folder, since a plugin's working folder is another one, and a root that does
// not contain the folder.
func checkContext(c *phases.Context) error {
	if err := phases.CheckContext(c); err != nil {
		return err
	}
	if c.Dir != "" && !filepath.IsAbs(c.Dir) {
		return fmt.Errorf("the context's dir %q is not an absolute path", c.Dir)
	}
	if c.Dir == "" || c.DirRoot == "" {
		return nil
	}
	rel, err := filepath.Rel(c.DirRoot, c.Dir)
	if err != nil || !filepath.IsAbs(c.DirRoot) || !filepath.IsLocal(rel) {
		return fmt.Errorf("the context's dir %q is not below its dir_root %q", c.Dir, c.DirRoot)
	}
	return nil
}

// WaitBackground waits until no background work is due, or ctx ends.
func (e *Engine) WaitBackground(ctx context.Context) error { return e.queue.Idle(ctx) }
