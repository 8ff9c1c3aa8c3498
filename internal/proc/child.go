package proc

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// drainTime is how long the output of a dead child is awaited if somebody else holds its pipes or connection open.
const drainTime = 50 * time.Millisecond

type launch struct {
	path string
	argv []string
	env  []string
	dir  string
	// standard are the program's standard input and output; without them it has none to read, and the first line of its
	// output is the handshake.
	standard [2]*os.File
	inherit  []*os.File
	cage     *cage
}

// child is one started program. Exactly one of start and abandon is called.
type child struct {
	sink   *sink
	stdout *stdout
	mark   string
	now    func() time.Time
	atExit func() // called once, after exited is closed
	memory memory

	// exited is closed when the child was reaped or will never start; drained when its output was read to the end.
	exited, drained chan struct{}
	condemned       chan struct{} // closed by the first SIGKILL, even before the start

	process *os.Process
	family  *family
	pipes   [2]*os.File // our ends: stdout, stderr
	pumps   sync.WaitGroup

	asked atomic.Bool // the end is our doing

	count   bool // fills orphans
	orphans int  // valid when exited is closed

	mu     sync.Mutex
	doomed bool // condemned is closed
	closed bool // the group no longer exists
	exit   Exit
}

func (c *child) abandon() {
	c.exit = Exit{Code: -1, At: c.now()}
	close(c.exited)
	close(c.drained)
	c.atExit()
}

// start returns when the program is being executed. On an error nothing was started; the caller abandons the child.
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
	passed := slices.Clone(files)
	if l.standard[0] != nil {
		copy(passed, l.standard[:])
	}
	// The child may be dead by the time its start is known, so the readers start first.
	logs := &lineWriter{sink: c.sink}
	c.pumps.Go(c.contained(func() { c.stdout.pump(newSource(c.pipes[0])) }))
	c.pumps.Go(c.contained(func() {
		_, _ = io.Copy(logs, newSource(c.pipes[1]))
		closeQuietly(logs)
	}))
	c.memory.system = oomKills()
	return c.launch(l, withoutStrays(slices.Concat(passed, l.inherit)))
}

// contained kills the plugin if read panics over its output, and reports the panic among its last words.
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

func panicText(r any) string { return fmt.Sprintf("the host panicked: %v\n%s", r, debug.Stack()) }

// launch starts the program from its own thread: whatever touches a file or a limit happens here or in watch.
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
	c.memory.host = ownPeak() // a peak that the system counts includes what the host held before the exec
	go c.watch(s.process, l.cage)
	return nil
}

type launched struct {
	process *os.Process
	thread  int // that started it
	err     error
}

func destroy(p *os.Process) {
	signal(p, syscall.SIGKILL)
	awaitEnd(p, func() {})
}

// signal signals an unreaped process and its group. SIGKILL also reaches a process that has joined another group.
func signal(p *os.Process, sig syscall.Signal) {
	signalGroup(p.Pid, sig)
	if sig == syscall.SIGKILL {
		_ = p.Kill()
	}
}

// run starts the program on a thread of its own: restrictions stick to the thread, and so does the death
// signal, so that the thread of an unconfined program lives as long as the program.
func (c *child) run(l launch, files []*os.File, started chan<- launched) {
	if l.cage.confinement != nil {
		if err := l.cage.confinement.Apply(); err != nil {
			started <- launched{err: err}
			return
		}
	}
	p, err := l.cage.spawn(l.path, l.argv, &os.ProcAttr{Dir: l.dir, Env: l.env, Files: files, Sys: sysProcAttr(l.cage)})
	started <- launched{process: p, thread: threadID(), err: err}
	if err == nil && l.cage.confinement == nil {
		<-c.exited
	}
}

func (c *child) watch(p *os.Process, g *cage) {
	state := awaitEnd(p, c.closeGroup)
	e := exitOf(state, c.now())
	e.Asked, e.Limit = c.asked.Load(), c.memory.limit
	e.OOM, e.Held = c.memory.judge(e, g.group != nil && g.group.OOMKills() > 0, peakOf(state))
	c.exit = e
	close(c.exited)
	c.atExit()
}

// begin records a started child, and kills it if it was condemned meanwhile.
func (c *child) begin(p *os.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.process, c.family = p, newFamily(p.Pid, c.mark)
	if c.doomed {
		signal(p, syscall.SIGKILL)
	}
}

// onOwnThread runs f on a thread that ends with it. Unfit threads are held until a fit one is found.
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

// closeGroup kills the rest of an ended child's group. Afterwards its number may belong to another group.
func (c *child) closeGroup() {
	if c.count {
		c.orphans = c.descendants().orphans()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	signalGroup(c.process.Pid, syscall.SIGKILL)
	c.closed = true
}

// signal signals the child and its group; the child's end then counts as asked for.
func (c *child) signal(sig syscall.Signal) {
	c.asked.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.send(sig)
}

// condemn kills the child and its group for something that it did.
func (c *child) condemn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.send(syscall.SIGKILL)
}

// send signals the child and its group; c.mu is held.
func (c *child) send(sig syscall.Signal) {
	if sig == syscall.SIGKILL && !c.doomed {
		c.doomed = true
		close(c.condemned)
	}
	if c.process != nil && !c.closed {
		signal(c.process, sig)
	}
}

// drain reads the pipes to their ends, or after drainTime what is left in them, and closes them.
func (c *child) drain() {
	if c.processID() == 0 {
		return
	}
	t := time.AfterFunc(drainTime, func() {
		for _, pipe := range c.pipes {
			cutShort(pipe)
		}
	})
	c.pumps.Wait()
	t.Stop()
	closeAll(c.pipes[:])
	c.contained(func() { c.exit.Stderr = c.sink.tail() })()
	close(c.drained)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		closeQuietly(f)
	}
}

// processID returns 0 before the start.
func (c *child) processID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return 0
	}
	return c.process.Pid
}

// noteTime bounds noteFamily: a system that does not answer must not delay a signal.
const noteTime = 100 * time.Millisecond

// noteFamily remembers the living child's descendants: after its end nothing may lead to those without tag and mark.
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

// descendants returns nil before the start.
func (c *child) descendants() *family {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.family
}
