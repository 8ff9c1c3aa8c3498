package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/supervise"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// drainGrace is how long a plugin may finish what it works on before it is told
// to end.
const drainGrace = 500 * time.Millisecond

// incarnation is one start of one plugin: a process with its session, or a
// plugin inside the host.
type incarnation struct {
	in     *instance
	number uint64
	since  time.Time
	// start is the number of this start among all plugins' of the engine.
	start       uint64
	description *phases.Description

	local   *local
	process *proc.Process
	session atomic.Pointer[wire.Session]

	visits *visits
	// abandoned counts the calls of this start that were left and are not answered.
	// Guarded by instance.mu.
	abandoned int

	done    chan struct{}
	endOnce sync.Once
	err     error
	watcher sync.WaitGroup
	// quit is done when the owner has begun to end it.
	quit    context.Context //nolint:containedctx // an owner of goroutines
	endQuit context.CancelFunc
}

var _ supervise.Running = (*incarnation)(nil)

// launch starts the plugin up to the accepted configuration. On error nothing
// is left.
func (in *instance) launch(ctx context.Context, number uint64) (*incarnation, error) {
	inc := &incarnation{in: in, number: number, since: time.Now(), start: in.engine.exchanges.starts.Add(1), done: make(chan struct{})}
	inc.visits = in.newVisits()
	inc.quit, inc.endQuit = context.WithCancel(context.WithoutCancel(ctx))
	if p, ok := in.engine.opts.InProcess[in.declared.Name]; ok {
		return inc, inc.blame(ctx, inc.configureLocal(ctx, p))
	}
	spec, err := in.engine.spec(in.declared)
	if err != nil {
		return nil, err
	}
	in.left.clear(false)
	var spawned atomic.Pointer[proc.Process]
	spec.Spawned = func(p *proc.Process) {
		spawned.Store(p)
		in.engine.memwatch.add(in.declared.Name, p)
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

// started notes what the ledger shows of the process.
func (in *instance) started(p *proc.Process) {
	c := p.Confinement()
	if len(c.Missing)+len(c.Absent) > 0 {
		in.engine.opts.Logger.Warn(codeSandboxPartial, "plugin", in.declared.Name, "tier", c.Tier.String(), "lacks", c.Missing, "absent", c.Absent)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.confined = &c
	switch {
	case in.declared.SHA256 != "":
		in.sha256 = p.SHA256()
	case in.declared.Builtin != "":
		in.sha256 = "builtin"
	default:
		in.sha256 = phases.CodeUnpinned
	}
}

// configureLocal describes and configures a plugin inside the host.
func (inc *incarnation) configureLocal(ctx context.Context, p Plugin) error {
	inc.local = &local{p}
	d, err := abandonable(ctx, func() {}, func() (*phases.Description, error) {
		d, err := p.Describe(ctx)
		return d, refusal(err)
	})
	if err != nil {
		return invalidDescription(err)
	}
	x := inc.beginExchange(ExchangeConfigure, 0, "")
	c, err := inc.in.configuration(d)
	if err == nil {
		d, err = abandonable(ctx, func() {}, func() (*phases.Description, error) {
			d, err := p.Configure(ctx, c)
			return d, refusal(err)
		})
	}
	x.configured(inc.in, c, d, err)
	if err != nil {
		return err
	}
	inc.in.mu.Lock()
	inc.in.sha256 = "in_process"
	inc.in.mu.Unlock()
	inc.description = d
	return inc.accept(d)
}

// refusal makes the error of a plugin inside the host, by which it refuses to start,
// one whose words are apart.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	code := phases.CodeOf(err)
	if !code.Failure() {
		code = phases.CauseInternal
	}
	return &phases.Error{Code: code, Message: "the plugin refuses to start", Detail: phases.Whole(err), Err: err}
}

// open makes a session on the running process, configures the plugin, and
// returns the description that counts.
func (inc *incarnation) open(ctx context.Context) (*phases.Description, error) {
	s, err := wire.Open(ctx, inc.process.Conn(), wire.HostOptions{
		Incarnation: inc.number,
		Instance:    inc.in.declared.Name,
		Frame:       frameOf(inc.in.declared),
		Host:        inc.in.host(),
		OnDropped:   inc.dropped,
	})
	if err != nil {
		return nil, err
	}
	var d *phases.Description
	x := inc.beginExchange(ExchangeConfigure, 0, "")
	c, err := inc.in.configuration(s.Description())
	if err == nil {
		if d, err = s.Configure(ctx, c); err == nil {
			err = inc.accept(d)
		}
	}
	x.configured(inc.in, c, d, err)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	inc.session.Store(s)
	return d, nil
}

// accept checks the description that counts.
func (inc *incarnation) accept(d *phases.Description) error {
	if err := phases.ValidateDescription(d, inc.in.engine.table); err != nil {
		return invalidDescription(err)
	}
	return nil
}

func invalidDescription(err error) error {
	return &phases.Error{
		Code: phases.CauseInvalidReply, Message: "the plugin's description of itself is not valid", Detail: phases.Whole(err), Err: err,
	}
}

// blame says why a start failed: that the process has ended, or that time was
// up, rather than what followed from it.
func (inc *incarnation) blame(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return phases.Errorf(phases.CauseStartTimeout, "the plugin %s did not describe and configure itself in time: %w", inc.in.declared.Name, err)
	case inc.broken(err) && inc.exited(ctx):
		return inc.exitError()
	}
	return err
}

// broken reports whether an error may follow from the end of the process.
func (inc *incarnation) broken(err error) bool {
	code := phases.CodeOf(err)
	return inc.process != nil && (code == phases.CauseSessionReset || code == phases.CauseCrash)
}

// exitError says how the process ended.
func (inc *incarnation) exitError() *phases.Error {
	return inc.process.Exit().Err(inc.in.declared.Name)
}

// peer returns what takes calls now.
func (inc *incarnation) peer() peer {
	if inc.local != nil {
		return inc.local
	}
	return inc.session.Load()
}

func (inc *incarnation) ping(ctx context.Context) error {
	if s := inc.session.Load(); s != nil {
		return s.Ping(ctx)
	}
	return nil
}

// dropped tells of an answer that was not applied.
func (inc *incarnation) dropped(d wire.Dropped) {
	inc.in.engine.emit(Event{Kind: EventDropped, Plugin: inc.in.declared.Name, Code: d.String()})
}

// watch ends the incarnation when its process has ended. A session that breaks
// while the process lives is opened anew, once.
func (inc *incarnation) watch() {
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
		err := fmt.Errorf("the session broke again: %w", broke)
		if !reopened {
			err = inc.reopen()
		}
		if err != nil {
			inc.end(inc.blame(inc.quit, err))
			return
		}
	}
}

// exited gives a dying process a moment to be reaped: its session breaks a
// little earlier, and the exit status says more.
func (inc *incarnation) exited(ctx context.Context) bool {
	grace := reapGrace
	if inc.process.Killed() {
		grace = proc.ClearTime // much memory takes the system long to free
	}
	select {
	case <-inc.process.Done():
		return true
	case <-ctx.Done():
	case <-time.After(grace):
	}
	return false
}

// reapGrace is how long the end of a session waits for the end of its process. On
// a busy machine a process that dies takes its time; a session that ends while
// its process lives is rare.
const reapGrace = 250 * time.Millisecond

func (inc *incarnation) reopen() error {
	ctx, cancel := context.WithTimeout(inc.quit, startTimeout(inc.in.declared))
	defer cancel()
	inc.in.sup.Degrade(inc.number, string(phases.CauseSessionReset), "the session broke and is opened anew")
	d, err := inc.open(ctx)
	if err != nil {
		return err
	}
	if err := inc.in.adopt(d); err != nil {
		return err
	}
	inc.in.sup.Restore(inc.number)
	return nil
}

func (inc *incarnation) end(err error) {
	inc.endOnce.Do(func() {
		inc.err = inc.in.failureOf(err)
		inc.in.live.CompareAndSwap(inc, nil)
		close(inc.done)
	})
}

// Done implements supervise.Running.
func (inc *incarnation) Done() <-chan struct{} { return inc.done }

// Err implements supervise.Running.
func (inc *incarnation) Err() error { return inc.err }

// Stop implements supervise.Running: no new calls, drain, end, sweep.
func (inc *incarnation) Stop(ctx context.Context) error {
	inc.in.live.CompareAndSwap(inc, nil)
	inc.endQuit()
	inc.watcher.Wait()
	// One grace for all steps: what takes long to drain has the less time to end.
	ctx, cancelAll := context.WithTimeout(ctx, proc.DefaultGrace)
	defer cancelAll()
	inc.endSession(ctx)
	inc.end(ErrClosed)
	if inc.process == nil {
		return nil
	}
	err := inc.process.Stop(ctx)
	inc.in.left.add(inc.process, err)
	return err
}

// endSession drains the session and closes it.
func (inc *incarnation) endSession(ctx context.Context) {
	s := inc.session.Load()
	if s == nil {
		return
	}
	drain, cancel := context.WithTimeout(ctx, drainGrace)
	// Callers first: a call may be on its way that the plugin has not seen when it
	// says that it has answered everything.
	inc.Drain(drain)
	drained := s.Drain(drain)
	cancel()
	if drained != nil {
		inc.in.engine.opts.Logger.Debug("drain", "plugin", inc.in.declared.Name, "error", phases.Whole(drained))
	}
	inc.closeSession(s)
}

func (inc *incarnation) closeSession(s *wire.Session) {
	if err := s.Close(); err != nil {
		inc.in.engine.opts.Logger.Debug("close session", "plugin", inc.in.declared.Name, "error", phases.Whole(err))
	}
}

// discard ends what a failed start has begun.
func (inc *incarnation) discard() {
	inc.endQuit()
	inc.watcher.Wait()
	if s := inc.session.Load(); s != nil {
		inc.closeSession(s)
	}
	if inc.process != nil {
		inc.process.Kill()
		ctx, cancel := context.WithTimeout(context.Background(), drainGrace)
		defer cancel()
		if err := inc.process.Stop(ctx); err != nil {
			inc.in.left.add(inc.process, err)
			inc.in.engine.opts.Logger.Warn("stop after a failed start", "plugin", inc.in.declared.Name, "error", phases.Whole(err))
		}
	}
}

func frameOf(p config.Plugin) int {
	if p.Limits.Frame == 0 {
		return config.DefaultFrame
	}
	return int(p.Limits.Frame)
}

func startTimeout(p config.Plugin) time.Duration {
	if p.Limits.Start == 0 {
		return config.DefaultStart
	}
	return p.Limits.Start.D()
}
