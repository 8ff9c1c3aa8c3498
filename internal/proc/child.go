package proc

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"
)

// drainTime is how long the pipes of a dead child are still read. It matters
// only where somebody who inherited them keeps them open.
const drainTime = 50 * time.Millisecond

// launch is what the system needs to start a program.
type launch struct {
	path    string
	argv    []string
	env     []string
	dir     string
	inherit []*os.File
	cage    *cage
}

// child is one started program. Exactly one of start and abandon is called.
type child struct {
	sink   *sink
	stdout *stdout
	mark   string
	now    func() time.Time
	// atExit is called once, after exited is closed.
	atExit func()
	memory memory

	// exited is closed when the child has been reaped, or will never start;
	// drained when its output has been read to the end.
	exited, drained chan struct{}
	// condemned is closed by the first SIGKILL, also of a child that has yet to begin.
	condemned chan struct{}

	process *os.Process
	family  *family
	pipes   [2]*os.File // our ends: stdout, stderr
	pumps   sync.WaitGroup

	mu     sync.Mutex
	asked  bool // the end is our doing
	doomed bool // condemned is closed
	closed bool // there is no group any more
	exit   Exit
}

// abandon ends the life of a child that was never started.
func (c *child) abandon() {
	c.exit = Exit{Code: -1, At: c.now()}
	close(c.exited)
	close(c.drained)
	c.atExit()
}

// start starts the program and returns when it is being executed. On an error
// nothing was started; the caller abandons the child.
func (c *child) start(l launch) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	files := []*os.File{null}
	defer func() { closeAll(files) }()
	for i := range c.pipes {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(c.pipes[:i])
			return err
		}
		c.pipes[i], files = r, append(files, w)
	}
	// They read before there is anything to read: the child may be dead by the
	// time that its start is known.
	logs := &lineWriter{sink: c.sink}
	c.pumps.Go(c.contained(func() { c.stdout.pump(c.pipes[0]) }))
	c.pumps.Go(c.contained(func() {
		_, _ = io.Copy(logs, onlyReader{c.pipes[1]})
		closeQuietly(logs)
	}))
	c.memory.begin()
	return c.launch(l, withoutStrays(slices.Concat(files, l.inherit)))
}

// contained returns read, which reads what the plugin has written, with a panic
// made the plugin's end: what made it panic is among the plugin's last words.
func (c *child) contained(read func()) func() {
	return func() {
		defer func() {
			if r := recover(); r != nil {
				c.sink.keep(panicText(r))
				c.condemn()
			}
		}()
		read()
	}
}

// panicText describes a recovered panic, with the stack.
func panicText(r any) string { return fmt.Sprintf("the host panicked: %v\n%s", r, debug.Stack()) }

// launch starts the program from a thread of its own and sees to it that its end
// is noticed. That thread may be confined like the program: whatever touches a
// file, or a limit, happens here or in watch.
func (c *child) launch(l launch, files []*os.File) error {
	started := make(chan launched)
	onOwnThread(onMainThread, func() { c.run(l, files, started) })
	s := <-started
	if s.err == nil {
		tagProcess(s.process.Pid, c.mark) // a confined one has not run yet
		if s.err = l.cage.release(s.process.Pid, s.thread); s.err != nil {
			destroy(s.process)
		}
	}
	if s.err != nil {
		closeAll(c.pipes[:])
		c.pumps.Wait()
		return s.err
	}
	c.begin(s.process)
	c.memory.begun()
	go c.watch(s.process, l.cage)
	return nil
}

// launched is the outcome of starting a program.
type launched struct {
	process *os.Process
	thread  int // that started it
	err     error
}

// destroy kills a process that nobody knows of yet.
func destroy(p *os.Process) {
	signal(p, syscall.SIGKILL)
	awaitEnd(p, func() {})
}

// signal sends a signal to a process that has not been reaped and to the group that
// it was made the leader of. SIGKILL also reaches one that has joined another group.
func signal(p *os.Process, sig syscall.Signal) {
	signalGroup(p.Pid, sig)
	if sig == syscall.SIGKILL {
		_ = p.Kill()
	}
}

// onlyReader hides what else a file can do, so that io.Copy reads it in
// pieces of a known size.
type onlyReader struct{ io.Reader }

// run starts the program. It runs on a thread of its own, because restrictions
// stick to the thread, and so does the death signal: the thread of a program
// that is not confined lives as long as it does.
func (c *child) run(l launch, files []*os.File, started chan<- launched) {
	if err := l.cage.enter(); err != nil {
		started <- launched{err: err}
		return
	}
	p, err := l.cage.spawn(l.path, l.argv, &os.ProcAttr{Dir: l.dir, Env: l.env, Files: files, Sys: sysProcAttr(l.cage)})
	started <- launched{process: p, thread: threadID(), err: err}
	if err == nil && l.cage.confinement == nil {
		<-c.exited
	}
}

// watch waits for the end of the child and records it.
func (c *child) watch(p *os.Process, g *cage) {
	state := awaitEnd(p, c.closeGroup)
	e := exitOf(state, c.now())
	e.Asked, e.Limit = c.wasAsked(), c.memory.limit
	e.OOM, e.Held = c.memory.judge(e, g.oomKilled(), peakOf(state))
	c.exit = e
	close(c.exited)
	c.atExit()
}

// begin records a child just started, and kills it if it was given up meanwhile.
func (c *child) begin(p *os.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.process, c.family = p, newFamily(p.Pid, c.mark)
	if c.doomed {
		signal(p, syscall.SIGKILL)
	}
}

// onOwnThread runs f in a goroutine with a thread of its own, which ends with
// it. A thread that is unfit, such as the process's first, is held until
// another one has been found, so that it cannot be found again.
func onOwnThread(unfit func() bool, f func()) {
	var run func(found func())
	run = func(found func()) {
		runtime.LockOSThread()
		if unfit() {
			other := make(chan struct{})
			go run(func() { close(other) })
			<-other
			runtime.UnlockOSThread()
			found()
			return
		}
		// Never unlocked: the runtime then ends the thread with the goroutine.
		found()
		f()
	}
	go run(func() {})
}

// closeGroup kills what is left of the group of a child that has ended. After
// it nothing is sent to the group any more: its number may come to mean
// another.
func (c *child) closeGroup() {
	c.mu.Lock()
	defer c.mu.Unlock()
	signalGroup(c.process.Pid, syscall.SIGKILL)
	c.closed = true
}

// signal sends a signal to the child and its group, if it lives. The end of the
// child counts as asked for from then on.
func (c *child) signal(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = true
	c.send(sig)
}

// condemn kills the child and its group for something that it did: its end does
// not count as asked for.
func (c *child) condemn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.send(syscall.SIGKILL)
}

// send sends a signal to the child and its group. The caller holds the lock.
func (c *child) send(sig syscall.Signal) {
	if sig == syscall.SIGKILL && !c.doomed {
		c.doomed = true
		close(c.condemned)
	}
	if c.process != nil && !c.closed {
		signal(c.process, sig)
	}
}

// expectEnd makes the end of the child, if it still lives, count as asked for.
func (c *child) expectEnd() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = true
}

// wasAsked reports whether the end was our doing.
func (c *child) wasAsked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// drain reads what the dead child has left in its pipes and closes them. A
// descendant that holds them open does not delay it for long.
func (c *child) drain() {
	if c.processID() == 0 {
		return
	}
	closePipes := func() { closeAll(c.pipes[:]) }
	t := time.AfterFunc(drainTime, closePipes)
	c.pumps.Wait()
	t.Stop()
	closePipes()
	c.contained(func() { c.exit.Stderr = c.sink.tail() })()
	close(c.drained)
}

// closeAll closes files; closing one twice does no harm.
func closeAll(files []*os.File) {
	for _, f := range files {
		closeQuietly(f)
	}
}

// processID returns the child's number, 0 before its start.
func (c *child) processID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return 0
	}
	return c.process.Pid
}

// noteTime bounds the look that precedes a signal: whatever keeps the system from
// answering must not keep the signal.
const noteTime = 100 * time.Millisecond

// noteFamily remembers the descendants that the living child has: once it has ended,
// nothing may lead to those any more that have shed their tag and mark.
func (c *child) noteFamily() {
	f := c.descendants()
	if f == nil {
		return
	}
	noted := make(chan struct{})
	go func() {
		defer close(noted)
		f.note()
	}()
	select {
	case <-noted:
	case <-time.After(noteTime):
	}
}

// killFamily kills the child, if it has not ended, and its descendants, and returns
// how many are left when ctx ends, less than 0 if it could not look.
func (c *child) killFamily(ctx context.Context) int {
	if f := c.descendants(); f != nil {
		return f.kill(ctx)
	}
	return 0
}

// ending reports whether all that is left of the child and its descendants has been
// killed and is ending.
func (c *child) ending() bool {
	f := c.descendants()
	return f != nil && f.ending.Load()
}

// descendants returns the child's family, nil before its start.
func (c *child) descendants() *family {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.family
}
