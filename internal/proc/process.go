package proc

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// Process is one running plugin process. Its methods may be called at any
// time from any goroutine, also after its end. See the package comment for its
// life. A Process that Start returned must be stopped or killed, unless it has
// ended by itself.
type Process struct {
	spec    Spec
	program *program
	folder  *folder
	cage    *cage
	child   *child

	// stdio takes what the plugin's library sends over the connection of what
	// the plugin writes to its standard error.
	stdio *lineWriter

	waitingFor atomic.Pointer[waiting]

	// Set by connect, valid when connected is closed. hangUp asks the plugin to
	// end and closes the connection; cutOff keeps it from waiting for an answer.
	conn       *wire.ClientConn
	hangUp     func()
	cutOff     func()
	streams    sync.WaitGroup
	connectErr error
	connected  chan struct{}

	stopping atomic.Bool
	leftover error         // valid when gone is closed
	gone     chan struct{} // closed when nothing of the process is left
}

// Start starts a plugin process and connects to it. ctx bounds that alone; its
// deadline, or else DefaultStart, covers the spawn, the handshake and the
// dialling. On an error nothing is left behind. Errors are [*phases.Error];
// [ClassOf] tells what they mean for the next start:
//
//   - exec_failed, unsafe_path, checksum_mismatch: the program cannot be run
//   - start_noise, version_mismatch: it is no plugin, or not one for this host
//   - unsafe_path: also, that the address that it names is not its own
//   - session_reset: it does not speak gRPC there, or not with its certificate
//   - crash, oom: it ended before the connection was up
//   - start_timeout: it did nothing in time
//   - unavailable: the host is out of processes, descriptors or memory
//   - cancelled: the caller's doing
func Start(ctx context.Context, s Spec) (*Process, error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	p, err := prepare(ctx, s)
	if ctx.Err() != nil {
		if err == nil {
			p.program.close()
			err = errors.Join(p.cage.remove(), p.folder.remove(context.WithoutCancel(ctx)))
		}
		return nil, ended(ctx, s.Name, "its program was still being checked", err)
	}
	if err != nil {
		return nil, err
	}
	// alive also ends with the process.
	alive, exit := context.WithCancel(ctx)
	p.child.atExit = exit
	go p.connect(alive)
	go p.finish(context.WithoutCancel(ctx)) // ctx bounds the start only

	select {
	case <-p.connected:
	case <-ctx.Done():
		p.Kill()
		p.await(p.connected, KillTime)
	}
	if err := p.startError(ctx); err != nil {
		p.Kill()
		p.awaitGone(2 * KillTime)
		return nil, err
	}
	return p, nil
}

// withDeadline makes sure that a start has a deadline.
func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, DefaultStart)
}

// prepare does what needs no process: checks, hashes, folder and mark.
func prepare(ctx context.Context, s Spec) (*Process, error) {
	s, err := s.withDefaults()
	if err != nil {
		return nil, err
	}
	mark, err := newMark(s.Random)
	if err != nil {
		return nil, err
	}
	prog, err := openProgram(ctx, s)
	if err != nil {
		return nil, err
	}
	dir, err := newFolder(s.RuntimeDir)
	if err != nil {
		prog.close()
		return nil, err
	}
	box, err := newCage(s, prog, dir.path, mark)
	if err != nil {
		prog.close()
		_ = dir.remove(context.WithoutCancel(ctx)) // it is empty
		return nil, err
	}
	p := &Process{
		spec: s, program: prog, folder: dir, cage: box,
		hangUp: func() {}, cutOff: func() {},
		connected: make(chan struct{}), gone: make(chan struct{}),
	}
	p.child = &child{
		sink: newSink(s), mark: mark, now: s.Now, stdout: newStdout(),
		memory: memory{limit: limitOf(s)},
		exited: make(chan struct{}), drained: make(chan struct{}), condemned: make(chan struct{}),
	}
	p.stdio = &lineWriter{sink: p.child.sink}
	p.setWaiting("it wrote no handshake", "")
	return p, nil
}

// spawn starts the program. handshake is what go-plugin's servers read from the
// environment.
func (p *Process) spawn(ctx context.Context, handshake []string) error {
	if ctx.Err() != nil {
		return errGaveUp
	}
	dir := p.folder.path
	err := p.child.start(launch{
		path:    p.program.target(dir, p.spec.Name),
		argv:    p.program.argv,
		env:     p.spec.Env.environ(os.LookupEnv, dir, p.child.mark, handshake),
		dir:     dir,
		inherit: p.program.inherit,
		cage:    p.cage,
	})
	if err == nil && p.spec.Spawned != nil {
		p.spec.Spawned(p)
	}
	return p.program.startError(err)
}

// connect is the start, as far as it needs the process.
func (p *Process) connect(ctx context.Context) {
	defer close(p.connected)
	p.connectErr = p.guarded(ctx, p.establish)
	p.program.close()
	p.cage.begun()
	if p.child.processID() == 0 {
		p.child.abandon()
	}
}

// guarded makes a panic, which something in a plugin's first words may bring
// about, an error of the start.
func (p *Process) guarded(ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &phases.Error{Code: phases.CauseInternal, Message: "the host failed as it started plugin " + p.spec.Name, Detail: panicText(r)}
		}
	}()
	return f(ctx)
}

// finish waits for the end of the process and then removes all that is left
// of it, in the one order that blocks nowhere: first the processes, then the
// pipes, then the connection, then the folder. The descendants of a process that was
// killed do not wait for its end, which a system call that hangs can delay for ever.
func (p *Process) finish(ctx context.Context) {
	defer close(p.gone)
	select {
	case <-p.child.exited:
	case <-p.child.condemned:
		p.killAll(ctx)
		<-p.child.exited
	}
	p.child.drain()
	left := p.killAll(ctx)
	ctx, cancel := context.WithTimeout(ctx, KillTime)
	defer cancel()
	<-p.connected
	p.cutOff()
	p.hangUp()
	p.streams.Wait()
	p.child.contained(func() { closeQuietly(p.stdio) })()
	p.child.sink.close()
	err := errors.Join(p.cage.removeSoon(ctx), p.folder.remove(ctx))
	if left != 0 {
		err = p.alive(left)
	}
	p.leftover = err
}

// killAll kills everything that belongs to the process, and returns how many are left
// after KillTime, less than 0 if it could not look.
func (p *Process) killAll(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, KillTime)
	defer cancel()
	p.cage.kill()
	return p.child.killFamily(ctx)
}

// waiting is what a start waits for, and the plugin's own words about it.
type waiting struct{ what, words string }

// setWaiting records what the start is waiting for, for its error.
func (p *Process) setWaiting(what, words string) { p.waitingFor.Store(&waiting{what, words}) }

// startError says why the start failed, or nil. The first reason that is a
// reason counts: what the plugin said, what the system said, how the process
// ended, and only then that time was up.
func (p *Process) startError(ctx context.Context) error {
	select {
	case <-p.connected:
	default:
		return p.tooLate(ctx)
	}
	if p.connectErr == nil {
		return nil
	}
	if e, ok := errors.AsType[*phases.Error](p.connectErr); ok {
		return e
	}
	if ctx.Err() != nil {
		return p.tooLate(ctx)
	}
	select {
	case <-p.child.exited:
		return p.Exit().Err(p.spec.Name)
	default:
		return &phases.Error{
			Code: phases.CauseInternal, Message: "plugin " + p.spec.Name + " could not be started", Detail: p.connectErr.Error(), Err: p.connectErr,
		}
	}
}

// tooLate is the error of a start whose context has ended.
func (p *Process) tooLate(ctx context.Context) error {
	w := p.waitingFor.Load()
	err := ended(ctx, p.spec.Name, w.what, nil)
	err.Detail = strings.Trim(w.words+"; "+lastWords(p.child.sink.tail()), "; ")
	return err
}

// ended is the error of a start whose context has ended: what it was waiting
// for, and what else went wrong.
func ended(ctx context.Context, plugin, waiting string, other error) *phases.Error {
	cause := errors.Join(ctx.Err(), other)
	if errors.Is(ctx.Err(), context.Canceled) {
		return phases.Errorf(phases.CauseCancelled, "start of plugin %s was cancelled: %w", plugin, cause)
	}
	err := phases.Errorf(phases.CauseStartTimeout, "plugin %s did not start in time: %s: %w", plugin, waiting, cause)
	err.Retryable = true
	return err
}

// Conn returns the connection to the plugin. It is closed by the end of the
// process.
func (p *Process) Conn() *wire.ClientConn { return p.conn }

// Done is closed when the process has ended and its exit status is known. Its
// descendants may live a moment longer; Stop waits for them.
func (p *Process) Done() <-chan struct{} { return p.child.exited }

// Exit waits for the end of the process and says how it ended. The wait for
// its last output is short, whoever holds its pipes.
func (p *Process) Exit() Exit {
	<-p.child.drained
	return p.child.exit
}

// PID returns the process number.
func (p *Process) PID() int { return p.child.processID() }

// Mark returns the text that all descendants of the process bear in their
// environment, under the name GRAPNEL_MARK.
func (p *Process) Mark() string { return p.child.mark }

// SHA256 returns the checksum of the running program in hex; "" for an
// unpinned one, which nobody has hashed: reading a program of some 20 MB takes
// longer than starting it.
func (p *Process) SHA256() string { return p.program.sum }

// Tier returns the sandbox tier that was reached: the one that was asked for.
func (p *Process) Tier() string { return p.cage.tier.String() }

// Confinement returns how the process is confined.
func (p *Process) Confinement() Confinement {
	c := Confinement{Tier: p.cage.tier}
	if p.cage.confinement != nil {
		c.Missing, c.Absent = append(p.cage.confinement.Missing(), p.cage.missing...), p.cage.confinement.Absent()
	}
	return c
}

// DroppedLines returns how many log lines were dropped because of the rate.
func (p *Process) DroppedLines() int { return p.child.sink.droppedLines() }

// StrayOutput returns how many bytes the plugin wrote to its standard output
// after the handshake; they were thrown away.
func (p *Process) StrayOutput() int64 { return p.child.stdout.extra.Load() }
