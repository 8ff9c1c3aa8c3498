package proc

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// Process is one running plugin process. Its methods are safe for concurrent use, also after its end. A Process
// that Start returned must be stopped or killed, unless it has ended by itself.
type Process struct {
	spec    Spec
	program *program
	dir     *privateDir
	cage    *cage
	child   *child

	stdio *lineWriter // stdio receives what the plugin's library sends of its stderr over the connection

	waitingFor atomic.Pointer[waiting]

	// Set by connect, valid when connected is closed. hangUp asks the plugin to end and closes the connection;
	// cutOff ends the wait for its answer.
	conn       *wire.ClientConn
	lane       atomic.Pointer[net.Conn] // the host's end, until somebody takes it
	ends       atomic.Pointer[Streams]  // as lane
	hangUp     func()
	cutOff     func()
	streams    sync.WaitGroup
	connectErr error
	connected  chan struct{}

	stopping atomic.Bool
	leftover error         // valid when gone is closed
	gone     chan struct{} // closed when nothing of the process is left
}

// Start starts a plugin process and connects to it. ctx (or defaultStart) bounds only the start. On an error
// nothing is left behind. Errors are [*phases.Error]; [ClassOf] says what they mean for the next start:
//
//   - exec_failed, unsafe_path, checksum_mismatch: the program cannot be run, or its address is not its own
//   - start_noise, version_mismatch (not with Spec.Stdio): it is not a plugin, or not one for this host
//   - session_reset: it does not speak gRPC there, or not with its certificate
//   - crash, oom: it ended before the connection was up
//   - start_timeout: it did nothing in time
//   - unavailable: the host is out of processes, descriptors or memory
//   - cancelled: by the caller
func Start(ctx context.Context, s Spec) (*Process, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if _, ok := ctx.Deadline(); !ok {
		ctx, cancel = context.WithTimeout(ctx, defaultStart)
		defer cancel()
	}
	p, err := prepare(ctx, s)
	if ctx.Err() != nil {
		if err == nil {
			p.program.close()
			err = errors.Join(p.cage.remove(), p.dir.remove(context.WithoutCancel(ctx)))
		}
		return nil, ended(ctx, s.Name, "its program was still being checked", err)
	}
	if err != nil {
		return nil, err
	}
	// alive also ends with the process.
	alive, exit := context.WithCancel(ctx)
	p.child.atExit = exit
	hashed := make(chan struct{})
	go p.connect(alive, hashed)
	go p.finish(context.WithoutCancel(ctx))   // ctx bounds the start only
	if s.Sums != nil && p.program.sum == "" { // while the program gets ready
		p.program.sum = s.Sums.of(ctx, p.program.file)
	}
	close(hashed)

	select {
	case <-p.connected:
	case <-ctx.Done():
		p.Kill()
		await(p.connected, nil, KillTime)
	}
	if err := p.startError(ctx); err != nil {
		p.Kill()
		p.awaitGone(2 * KillTime)
		return nil, err
	}
	return p, nil
}

// prepare does what needs no process.
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
	dir, err := newPrivateDir(s.RuntimeDir)
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
		spec: s, program: prog, dir: dir, cage: box,
		hangUp: func() {}, cutOff: func() {},
		connected: make(chan struct{}), gone: make(chan struct{}),
	}
	p.child = &child{
		sink: newSink(s), mark: mark, now: s.Now, stdout: newStdout(), count: s.CountOrphans,
		memory: memory{limit: max(0, int64(s.Sandbox.Policy.Limits.Memory))}, //nolint:gosec // NoLimit is negative
		exited: make(chan struct{}), drained: make(chan struct{}), condemned: make(chan struct{}),
	}
	p.stdio = &lineWriter{sink: p.child.sink}
	p.setWaiting("it wrote no handshake", "")
	return p, nil
}

func (p *Process) spawn(ctx context.Context, handshake []string) error {
	if ctx.Err() != nil {
		return errGaveUp
	}
	inherit := p.program.inherit
	var standard [2]*os.File
	switch {
	case p.spec.Stdio:
		var err error
		if standard, err = p.openStreams(); err != nil {
			return p.program.startError(err)
		}
		defer closeAll(standard[:])
	case !p.spec.MutualTLS:
		lane, plugins, err := wire.LanePair()
		if err != nil {
			return p.program.startError(err)
		}
		if lane != nil {
			p.lane.Store(&lane)
			defer closeQuietly(plugins)
			handshake = append(handshake, wire.LaneKey+"="+strconv.Itoa(firstChildFD+len(inherit)))
			inherit = append(slices.Clone(inherit), plugins)
		}
	}
	dir := p.dir.path
	env := p.spec.Env.environ(os.LookupEnv, dir, p.child.mark, handshake)
	err := p.child.start(launch{
		path: p.program.target(dir, p.spec.Name), argv: p.program.argv, env: env, dir: dir, standard: standard, inherit: inherit, cage: p.cage,
	})
	if err == nil && p.spec.Spawned != nil {
		p.spec.Spawned(p)
	}
	return p.program.startError(err)
}

// connect keeps the program's file open until it is hashed.
func (p *Process) connect(ctx context.Context, hashed <-chan struct{}) {
	defer close(p.connected)
	p.connectErr = p.establish(ctx)
	<-hashed
	p.program.close()
	p.cage.begun()
	if p.child.processID() == 0 {
		p.child.abandon()
	}
}

// finish waits for the end and removes the rest in an order that never blocks. Descendants of a killed process are
// killed at once, because a hanging system call can delay its end for ever.
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
	p.awaitStreams()
	p.cutOff()
	p.hangUp()
	if lane := p.TakeLane(); lane != nil {
		closeQuietly(lane)
	}
	if ends := p.TakeStreams(); ends != nil {
		closeQuietly(ends.Out)
		closeQuietly(ends.In)
	}
	p.streams.Wait()
	p.child.contained(func() { closeQuietly(p.stdio) })()
	p.child.sink.close()
	err := errors.Join(p.cage.removeSoon(ctx), p.dir.remove(ctx))
	if left != 0 {
		err = p.alive(left)
	}
	p.leftover = err
}

// awaitStreams lets the connection deliver what the plugin's library has sent of its last output.
func (p *Process) awaitStreams() {
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.streams.Wait()
	}()
	await(read, nil, drainTime)
}

// killAll returns how many processes are left after KillTime, or less than 0 if it could not look.
func (p *Process) killAll(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, KillTime)
	defer cancel()
	p.cage.kill()
	if f := p.child.descendants(); f != nil {
		return f.kill(ctx)
	}
	return 0
}

// waiting is what a start waits for, and the plugin's own words about it.
type waiting struct{ what, words string }

func (p *Process) setWaiting(what, words string) { p.waitingFor.Store(&waiting{what, words}) }

// startError returns the most telling reason: the plugin's words, the system's, the exit, and only then the timeout.
func (p *Process) startError(ctx context.Context) error {
	select {
	case <-p.connected:
	default:
		return p.tooLate(ctx)
	}
	e, coded := errors.AsType[*phases.Error](p.connectErr)
	switch {
	case p.connectErr == nil:
		return nil
	case coded:
		return e
	case ctx.Err() != nil:
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

func (p *Process) tooLate(ctx context.Context) error {
	w := p.waitingFor.Load()
	err := ended(ctx, p.spec.Name, w.what, nil)
	err.Detail = strings.Trim(w.words+"; "+lastWords(p.child.sink.tail()), "; ")
	return err
}

// ended is the error of a start whose context has ended.
func ended(ctx context.Context, plugin, waiting string, other error) *phases.Error {
	cause := errors.Join(ctx.Err(), other)
	if errors.Is(ctx.Err(), context.Canceled) {
		return phases.Errorf(phases.CauseCancelled, "start of plugin %s was cancelled: %w", plugin, cause)
	}
	err := phases.Errorf(phases.CauseStartTimeout, "plugin %s did not start in time: %s: %w", plugin, waiting, cause)
	err.Retryable = true
	return err
}

// Conn returns the connection to the plugin. The end of the process closes it.
func (p *Process) Conn() *wire.ClientConn { return p.conn }

// TakeLane returns the host's end of the plugin's lane, which the caller must close; nil if there is none, or it was
// taken.
func (p *Process) TakeLane() net.Conn {
	if lane := p.lane.Swap(nil); lane != nil {
		return *lane
	}
	return nil
}

// Streams are the host's ends of a plugin's standard output and input.
type Streams struct{ Out, In net.Conn }

// TakeStreams returns the streams of a plugin that was started with Spec.Stdio, which the caller must close; nil if there
// are none, or they were taken.
func (p *Process) TakeStreams() *Streams { return p.ends.Swap(nil) }

// openStreams makes the streams, and returns the plugin's ends of its standard input and output. They are two pairs of
// sockets, since what a program does to the one must not change the other.
func (p *Process) openStreams() (plugins [2]*os.File, err error) {
	var s Streams
	if s.In, plugins[0], err = wire.LanePair(); err == nil {
		s.Out, plugins[1], err = wire.LanePair()
	}
	switch {
	case err != nil:
		if s.In != nil {
			closeQuietly(s.In)
			closeQuietly(plugins[0])
		}
		return plugins, err
	case s.In == nil:
		return plugins, errors.New("transport stdio needs a Unix system")
	}
	p.ends.Store(&s)
	return plugins, nil
}

// Done is closed when the exit status is known. Descendants may live a moment longer; Stop waits for them.
func (p *Process) Done() <-chan struct{} { return p.child.exited }

// Exit waits for the end of the process, and briefly for its last output.
func (p *Process) Exit() Exit {
	<-p.child.drained
	return p.child.exit
}

// PID returns the process number.
func (p *Process) PID() int { return p.child.processID() }

// SHA256 returns the checksum in hex of the program's file, for a script that of the script; empty where it was
// neither pinned nor to be remembered (Spec.Sums), or cannot be read.
func (p *Process) SHA256() string { return p.program.sum }

// Confinement returns how the process is confined.
func (p *Process) Confinement() Confinement {
	c := Confinement{Tier: p.cage.tier}
	if p.cage.confinement != nil {
		c.Missing, c.Absent = slices.Concat(p.cage.confinement.Missing, p.cage.missing), p.cage.confinement.Absent
	}
	return c
}
