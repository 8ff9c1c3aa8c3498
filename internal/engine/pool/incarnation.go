package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/supervise"
	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// drainGrace is how long a plugin may finish its calls before it is asked to end.
const drainGrace = 500 * time.Millisecond

// Incarnation is one start of one plugin: a process with its session, or a plugin inside the host.
type Incarnation struct {
	Instance      *Instance // the plugin. Number counts its starts, Start those of all plugins.
	Number, Start uint64
	Since         time.Time

	description *phases.Description
	local       *local
	process     *proc.Process
	session     atomic.Pointer[wire.Session]

	visits    *visits
	abandoned atomic.Int32 // abandoned counts the abandoned calls of this start that are not answered

	done    chan struct{}
	endOnce sync.Once
	err     error
	watcher sync.WaitGroup
	told    sync.Map // of the reasons, wire.Dropped, that are in the log
	// quit is done when the owner begins to end it.
	quit    context.Context //nolint:containedctx // an owner of goroutines
	endQuit context.CancelFunc
}

var _ supervise.Running = (*Incarnation)(nil)

// launch starts the plugin up to the accepted configuration. On error nothing is left.
func (in *Instance) launch(ctx context.Context, number uint64) (*Incarnation, error) {
	inc := &Incarnation{Instance: in, Number: number, Since: time.Now(), Start: in.pool.starts.Add(1), done: make(chan struct{})}
	inc.visits = in.newVisits()
	inc.quit, inc.endQuit = context.WithCancel(context.WithoutCancel(ctx))
	if in.local != nil {
		return inc, inc.blame(ctx, inc.configureLocal(ctx))
	}
	spec, err := in.spec()
	if err != nil {
		return nil, err
	}
	in.left.clear(false)
	var spawned atomic.Pointer[proc.Process]
	spec.Spawned = func(p *proc.Process) {
		spawned.Store(p)
		in.pool.memory.add(in.Declared.Name, p)
	}
	if inc.process, err = proc.Start(ctx, spec); err != nil {
		if p := spawned.Load(); p != nil {
			in.left.add(p, p.Clear()) // what Start could not remove
		}
		return nil, err
	}
	in.started(inc.process)
	if inc.description, err = inc.open(ctx); err != nil {
		err = inc.blame(ctx, err)
		inc.discard()
		return nil, err
	}
	inc.watcher.Go(inc.watch)
	return inc, nil
}

func (in *Instance) started(p *proc.Process) {
	c := p.Confinement()
	if len(c.Missing)+len(c.Absent) > 0 {
		in.pool.opts.Logger.Warn(CodeSandboxPartial, "plugin", in.Declared.Name, "tier", c.Tier.String(), "lacks", c.Missing, "absent", c.Absent)
	}
	in.learn(func(k *known) {
		k.confined = &c
		if k.sha256 = cmp.Or(p.SHA256(), "unpinned"); in.Declared.SHA256 == "" && in.Declared.Builtin != "" {
			k.sha256 = "builtin"
		}
	})
}

func (inc *Incarnation) configureLocal(ctx context.Context) error {
	p := inc.Instance.local
	inc.local = &local{p, inc.Instance.pool.opts.Inline(inc.Instance.Declared.Name), &inc.Instance.pool.workers}
	call := func(f func() (*phases.Description, error)) (*phases.Description, error) {
		return abandonable(ctx, func() {}, func() (*phases.Description, error) {
			d, err := f()
			return d, startRefusal(err)
		})
	}
	d, err := call(func() (*phases.Description, error) { return p.Describe(ctx) })
	if err != nil {
		return invalidDescription(err)
	}
	done := inc.Instance.configuring(inc)
	c, err := inc.Instance.configuration(d)
	if err == nil {
		d, err = call(func() (*phases.Description, error) { return p.Configure(ctx, c) })
	}
	done(c, d, err)
	if err != nil {
		return err
	}
	inc.Instance.learn(func(k *known) { k.sha256 = "in_process" })
	inc.description = d
	return inc.accept(d)
}

// startRefusal codes the error by which a plugin inside the host refuses to start.
func startRefusal(err error) error {
	if err == nil {
		return nil
	}
	code := phases.CodeOf(err)
	if !code.Failure() {
		code = phases.CauseInternal
	}
	return &phases.Error{Code: code, Message: "the plugin refuses to start", Detail: phases.Whole(err), Err: err}
}

// open makes a session on the running process, configures the plugin, and returns the description that counts.
func (inc *Incarnation) open(ctx context.Context) (*phases.Description, error) {
	s, err := inc.connect(ctx)
	if err != nil {
		return nil, err
	}
	var d *phases.Description
	done := inc.Instance.configuring(inc)
	c, err := inc.Instance.configuration(s.Description())
	if err == nil {
		if d, err = s.Configure(ctx, c); err == nil {
			err = inc.accept(d)
		}
	}
	done(c, d, err)
	if err != nil {
		s.Close()
		return nil, err
	}
	inc.session.Store(s)
	return d, nil
}

// connect opens a session with the process, over its streams or over gRPC.
func (inc *Incarnation) connect(ctx context.Context) (*wire.Session, error) {
	o := wire.HostOptions{
		Incarnation: inc.Number,
		Instance:    inc.Instance.Declared.Name,
		Frame:       FrameSize(&inc.Instance.Declared),
		Host:        inc.Instance.host,
		OnDropped:   inc.dropped,
	}
	if inc.Instance.Declared.Transport == config.TransportStdio {
		ends := inc.process.TakeStreams()
		if ends == nil { // it has ended already, or had its session
			return nil, phases.Errorf(phases.CauseSessionReset, "plugin %q: its standard input and output are closed", o.Instance)
		}
		return wire.OpenLines(ctx, ends.Out, ends.In, o)
	}
	o.Lane = inc.process.TakeLane() // a session that is opened again goes without
	return wire.Open(ctx, inc.process.Conn(), o)
}

// dropped reports what the plugin sent in vain. Of each reason the first one is in the log.
func (inc *Incarnation) dropped(why wire.Dropped, id uint64) {
	inc.Instance.pool.opts.Observer.Dropped(inc.Instance, string(why))
	if _, told := inc.told.LoadOrStore(why, true); !told {
		inc.Instance.pool.opts.Logger.Warn("dropped what a plugin sent", "plugin", inc.Instance.Declared.Name, "why", string(why), "id", id, "incarnation", inc.Number)
	}
}

func (inc *Incarnation) accept(d *phases.Description) error {
	if err := inc.Instance.pool.opts.Check(d); err != nil {
		return invalidDescription(err)
	}
	return nil
}

func invalidDescription(err error) error {
	return &phases.Error{
		Code: phases.CauseInvalidReply, Message: "the plugin's description of itself is not valid", Detail: phases.Whole(err), Err: err,
	}
}

// blame says why a start failed: the end of the process or of the time, rather than what followed from it.
func (inc *Incarnation) blame(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return phases.Errorf(phases.CauseStartTimeout, "the plugin %s did not describe and configure itself in time: %w", inc.Instance.Declared.Name, err)
	case inc.broken(err) && inc.exited(ctx):
		return inc.exitError()
	}
	return err
}

// Explain says why a call has failed: by the end of the process rather than of its
// session. The plugin's secrets are redacted.
func (inc *Incarnation) Explain(ctx context.Context, err *phases.Error) *phases.Error {
	if !inc.broken(err) || !inc.exited(ctx) || inc.process.Exit().Asked {
		return inc.Instance.redactor.coded(err) // a process that the host has ended did not crash
	}
	return inc.exitError()
}

// broken reports whether an error may follow from the end of the process.
func (inc *Incarnation) broken(err error) bool {
	code := phases.CodeOf(err)
	return inc.process != nil && (code == phases.CauseSessionReset || code == phases.CauseCrash)
}

func (inc *Incarnation) exitError() *phases.Error {
	return inc.process.Exit().Err(inc.Instance.Declared.Name)
}

// watch ends the incarnation when its process has ended. A session that breaks while the
// process lives is opened again, once.
func (inc *Incarnation) watch() {
	for reopened := false; ; reopened = true {
		select {
		case <-inc.quit.Done():
			return
		case <-inc.process.Done():
			inc.end(inc.exitError())
			return
		case <-inc.session.Load().Done():
		}
		broke := inc.session.Load().Err()
		if inc.broken(broke) && inc.exited(inc.quit) || inc.quit.Err() != nil {
			continue
		}
		err := broke
		switch {
		case inc.process.Conn() == nil: // standard input and output serve one session
		case reopened:
			err = fmt.Errorf("the session broke again: %w", broke)
		default:
			err = inc.reopen()
		}
		if err != nil {
			inc.end(inc.blame(inc.quit, err))
			return
		}
	}
}

// exited gives a dying process a moment to be reaped: its session breaks a little
// earlier, and the exit status says more.
func (inc *Incarnation) exited(ctx context.Context) bool {
	grace := reapGrace
	if inc.process.Killed() {
		grace = proc.ClearTime // freeing much memory takes long
	}
	select {
	case <-inc.process.Done():
		return true
	case <-ctx.Done():
	case <-time.After(grace):
	}
	return inc.dead()
}

// reapGrace is how long the end of a session waits for the end of its process.
const reapGrace = 250 * time.Millisecond

func (inc *Incarnation) reopen() error {
	ctx, cancel := context.WithTimeout(inc.quit, StartTimeout(&inc.Instance.Declared))
	defer cancel()
	inc.Instance.sup.Degrade(inc.Number, string(phases.CauseSessionReset), "the session broke and is opened again")
	d, err := inc.open(ctx)
	if err != nil {
		return err
	}
	if err := inc.Instance.adopt(d); err != nil {
		return err
	}
	inc.Instance.sup.Restore(inc.Number)
	return nil
}

func (inc *Incarnation) end(err error) {
	inc.endOnce.Do(func() {
		inc.err = inc.Instance.failureOf(err)
		inc.Instance.live.CompareAndSwap(inc, nil)
		close(inc.done)
	})
}

// Done implements supervise.Running.
func (inc *Incarnation) Done() <-chan struct{} { return inc.done }

// Err implements supervise.Running.
func (inc *Incarnation) Err() error { return inc.err }

// Stop implements supervise.Running: no new calls, drain, end, sweep.
func (inc *Incarnation) Stop(ctx context.Context) error {
	inc.Instance.live.CompareAndSwap(inc, nil)
	inc.endQuit()
	inc.watcher.Wait()
	// One grace for all steps.
	ctx, cancelAll := context.WithTimeout(ctx, proc.DefaultGrace)
	defer cancelAll()
	inc.endSession(ctx)
	inc.end(ErrClosed)
	if inc.process == nil {
		return nil
	}
	err := inc.process.Stop(ctx)
	inc.Instance.left.add(inc.process, err)
	return err
}

func (inc *Incarnation) endSession(ctx context.Context) {
	s := inc.session.Load()
	if s == nil {
		return
	}
	drain, cancel := context.WithTimeout(ctx, drainGrace)
	// Callers first: a call may be under way that the plugin has not seen yet.
	inc.Drain(drain)
	drained := s.Drain(drain)
	cancel()
	if drained != nil {
		inc.Instance.pool.opts.Logger.Debug("drain", "plugin", inc.Instance.Declared.Name, "error", phases.Whole(drained))
	}
	s.Close()
}

func (inc *Incarnation) discard() {
	inc.endQuit()
	inc.watcher.Wait()
	if s := inc.session.Load(); s != nil {
		s.Close()
	}
	if inc.process != nil {
		inc.process.Kill()
		ctx, cancel := context.WithTimeout(context.Background(), drainGrace)
		defer cancel()
		if err := inc.process.Stop(ctx); err != nil {
			inc.Instance.left.add(inc.process, err)
			inc.Instance.pool.opts.Logger.Warn("stop after a failed start", "plugin", inc.Instance.Declared.Name, "error", phases.Whole(err))
		}
	}
}
