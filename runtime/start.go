package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/background"
	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/internal/engine/hostservice"
	"github.com/grapnelhq/grapnel/internal/engine/keeper"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/engine/sessions"
	"github.com/grapnelhq/grapnel/internal/engine/stats"
	"github.com/grapnelhq/grapnel/phases"
)

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
	e := &Engine{}
	e.opts, e.table, e.sessions = o.withDefaults(), table, sessions.New()
	e.stats = stats.New(table, e.opts.Now)
	e.facts = bounded.New("deriving facts", ErrClosed)
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
	err = errors.Join(err, e.facts.Close(ctx))
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

// Closer is an optional interface of plugins inside the host that start something of their own, such as a watch.
// [Engine.Close] calls it once, when no more calls are made; abandoned ones may still run. A *sdk.Plugin is one.
type Closer interface {
	// Close must return when ctx ends.
	Close(ctx context.Context) error
}

const closeGrace = 500 * time.Millisecond

// closePlugins closes the plugins inside the host, all at the same time. They have their grace whatever is left of
// ctx.
func (e *Engine) closePlugins(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	names := slices.Sorted(maps.Keys(e.opts.InProcess))
	errs := make([]error, len(names))
	var wait sync.WaitGroup
	for i, name := range names {
		if c, ok := e.opts.InProcess[name].(Closer); ok {
			wait.Go(func() { errs[i] = closePlugin(ctx, name, c) })
		}
	}
	wait.Wait()
	return errors.Join(errs...)
}

func closePlugin(ctx context.Context, name string, c Closer) error {
	_, err := bounded.Abandonable(ctx, func() {}, func() (struct{}, error) { return struct{}{}, c.Close(ctx) })
	if err != nil {
		return fmt.Errorf("close the plugin %s: %w", name, err)
	}
	return nil
}
