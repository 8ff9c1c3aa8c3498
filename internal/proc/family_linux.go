package proc

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
)

// family is what is known of one plugin's processes.
type family struct {
	root procID
	mark string
	tag  tag // a soft limit of 0 matches all plugins of the host

	ending atomic.Bool // ending says that everything left was killed and is being taken down

	mu    sync.Mutex      // not held for calls that could block: a plugin would delay its own end by that
	known map[procID]bool // seen as descendants while the root lived, or killed
	near  nearLook
}

func newFamily(pid int, mark string) *family {
	f := &family{root: procID{pid: pid}, mark: mark, tag: tagFor(mark), known: map[procID]bool{}}
	if p, ok := readProcess(pid); ok {
		f.root = p.id
	}
	return f
}

// note remembers the descendants of the root, which must not have been reaped: afterwards nothing leads to them.
func (f *family) note() {
	f.remember(f.closure(readProcesses(f.root.start), map[procID]bool{f.root: true}))
}

func (f *family) remember(members map[procID]process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range members {
		f.known[id] = true
	}
}

func (f *family) members() map[procID]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := maps.Clone(f.known)
	all[f.root] = true
	return all
}

func (f *family) owns(pid int) bool {
	if t := readTag(pid); f.tag.Max != 0 && t.Max == f.tag.Max && (t.Cur == f.tag.Cur || f.tag.Cur == 0) {
		return true
	}
	return f.mark != "" && readMark(pid) == f.mark
}

// closure returns roots and all their descendants in the table, except this process.
func (f *family) closure(table []process, roots map[procID]bool) map[procID]process {
	children := map[int][]process{}
	members := map[procID]process{}
	var queue []process
	for _, p := range table {
		children[p.parent] = append(children[p.parent], p)
		if roots[p.id] {
			queue = append(queue, p)
		}
	}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		if _, seen := members[p.id]; seen || p.id.pid == os.Getpid() {
			continue
		}
		members[p.id] = p
		queue = append(queue, children[p.id.pid]...)
	}
	return members
}

func hostIdentity() string {
	p, _ := readProcess(os.Getpid())
	return identity(os.Getpid(), p.id.start, pidNamespace("self"))
}

// sweepProcesses kills the processes of dead hosts. Hosts of another namespace cannot be judged from here.
func sweepProcesses(ctx context.Context) (killed int) {
	table, own := readProcesses(0), pidNamespace("self")
	hosts := livingHosts(table, own)
	judged := map[any]bool{}
	for _, p := range table {
		f := &family{known: map[procID]bool{}}
		var key any
		if t := readTag(p.id.pid); t.Max>>hostBits == namespaceTag(own)>>hostBits && !hosts[t.Max] {
			f.tag.Max, key = t.Max, t.Max
		} else if f.mark = readMark(p.id.pid); isDead(f.mark, own) && pidNamespace(strconv.Itoa(p.id.pid)) == own {
			key = f.mark
		}
		if key == nil || judged[key] {
			continue
		}
		judged[key] = true
		f.kill(ctx)
		killed += len(f.members()) - 1 // without the root, which does not exist
	}
	return killed
}

// isDead reports whether a mark's host, which must be of the namespace own, is known to have ended.
func isDead(mark, own string) bool {
	host, marked := hostOf(mark)
	pid, start, namespace, ok := parseIdentity(host)
	if !ok || !marked || namespace != own || own == "?" {
		return false
	}
	h, alive := readProcess(pid)
	return !alive || h.zombie || h.id.start != start
}

// sweepGroups kills what lives in the control groups of dead hosts below base, and removes them.
func sweepGroups(ctx context.Context, base string) (removed int) {
	base, _, err := sandbox.FindGroupBase(base, sandbox.Limits{Tasks: sandbox.NoLimit})
	if err != nil {
		return 0
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		return 0
	}
	own := pidNamespace("self")
	for _, e := range entries {
		mark, ok := strings.CutPrefix(e.Name(), dirPrefix)
		if ctx.Err() != nil || !ok || !isDead(strings.Replace(mark, "-", "/", 1), own) {
			continue
		}
		path := filepath.Join(base, e.Name())
		if retry(ctx, func() error { return os.Remove(path) }, func() { _ = sandbox.KillGroup(path) }) == nil {
			removed++
		}
	}
	return removed
}

// kill kills until a pass finds nothing: the root, what has the tag or the mark, what was noted, and their
// descendants. It returns how many are left when ctx ends, or unseen. It waits for ending processes whatever
// ctx says, for KillTime and ClearTime.
func (f *family) kill(ctx context.Context) (left int) {
	result := make(chan int, 1)
	limit := KillTime + ClearTime
	go func() { result <- f.killUntil(ctx, time.Now().Add(limit)) }()
	select {
	case left = <-result:
		return left
	case <-time.After(limit + KillTime): // the system does not answer
		return unseen
	}
}

func (f *family) killUntil(ctx context.Context, end time.Time) (left int) {
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		running, ending := f.pass()
		switch {
		case running == 0 && ending == 0:
			return 0
		case running != 0 && ctx.Err() != nil, time.Now().After(end):
			f.ending.Store(false)
			return running + ending
		}
		f.ending.Store(running == 0)
		<-time.After(pause)
	}
}

// unseen is not 0: without a free descriptor to read the table there may be processes.
const unseen = -1

// pass signals each member once and returns how many ran (or unseen), and how many more were ending.
func (f *family) pass() (running, ending int) {
	table := readProcesses(f.root.start)
	if table == nil && canExecHandle() { // there is a table
		return unseen, 0
	}
	roots := f.members()
	for _, p := range table {
		if !roots[p.id] && f.owns(p.id.pid) {
			roots[p.id] = true
		}
	}
	f.reapOrphans(table, roots)
	members := f.closure(table, roots)
	f.remember(members)
	for id, p := range members {
		switch {
		case p.zombie:
		case isEnding(id.pid):
			ending++
		default:
			killProcess(id)
			running++
		}
	}
	return running, ending
}

// orphanTime is how long the children of an ended plugin may take to end too.
const orphanTime = 200 * time.Millisecond

// orphans returns how many processes the ended root has left, without ending them.
func (f *family) orphans() (running int) {
	for end := time.Now().Add(orphanTime); ; <-time.After(orphanTime / 10) {
		table, roots := readProcesses(f.root.start), f.members()
		for _, p := range table {
			if f.owns(p.id.pid) {
				roots[p.id] = true
			}
		}
		running = 0
		for id, p := range f.closure(table, roots) {
			if id != f.root && !p.zombie && !isEnding(id.pid) {
				running++
			}
		}
		if running == 0 || time.Now().After(end) {
			return running
		}
	}
}

// reapOrphans reaps ended members whose parent is this process: plugins make them with CLONE_PARENT, and a
// subreaper inherits orphans. Nothing else reaps them; watch reaps the root.
func (f *family) reapOrphans(table []process, members map[procID]bool) {
	for _, p := range table {
		if p.zombie && p.parent == os.Getpid() && p.id.pid != f.root.pid && (members[p.id] || f.owns(p.id.pid)) {
			reap(p.id)
		}
	}
}

func killProcess(id procID) {
	withHandle(id, func(handle int) {
		if handle < 0 {
			_ = unix.Kill(id.pid, unix.SIGKILL)
			return
		}
		_ = unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0)
	})
}

// reap never waits: a zombie that another process traces cannot be reaped before its tracer ends.
func reap(id procID) {
	withHandle(id, func(handle int) {
		if handle < 0 {
			_, _ = unix.Wait4(id.pid, nil, unix.WNOHANG, nil)
			return
		}
		_ = unix.Waitid(unix.P_PIDFD, handle, nil, unix.WEXITED|unix.WNOHANG, nil)
	})
}

// withHandle calls f with a pidfd (-1 before Linux 5.3) unless the process has gone. It is opened before the
// start time is compared, so that the number cannot be reused in between.
func withHandle(id procID, f func(handle int)) {
	handle, err := unix.PidfdOpen(id.pid, 0)
	if err == nil {
		defer func() { _ = unix.Close(handle) }()
	} else {
		handle = -1
	}
	if p, ok := readProcess(id.pid); ok && p.id == id {
		f(handle)
	}
}

// A tag is a value of RLIMIT_LOCKS, which the kernel keeps for each process but has not enforced since Linux 2.4.
// Children inherit it whatever else they change (session, environment, parent, program, user namespace). The hard
// limit names the host, the soft limit the plugin process. Without CAP_SYS_RESOURCE a process can lower a limit but
// not raise it again. Reading one takes a system call, no descriptor, and no right to read /proc.
type tag = unix.Rlimit

const (
	tagBit   = 1 << 62 // set in the hard limit of each tag, and in no soft limit
	hostBits = 42      // hostBits of a hard limit name the host; the bits between them and tagBit its namespace
)

func tagFor(mark string) tag {
	host, _ := hostOf(mark)
	namespace := host[strings.LastIndexByte(host, '.')+1:]
	return tag{Cur: hash64(mark) >> 3, Max: hostTag(host, namespace)}
}

func hostTag(identity, namespace string) uint64 {
	return namespaceTag(namespace) | hash64(identity)>>(64-hostBits)
}

func namespaceTag(namespace string) uint64 {
	return tagBit | hash64(namespace)>>2>>hostBits<<hostBits
}

func hash64(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return binary.LittleEndian.Uint64(sum[:])
}

func tagProcess(pid int, mark string) { setTag(pid, tagFor(mark)) }

// setTag does nothing where it is refused (a host under such a limit): mark and parents must do.
func setTag(pid int, t tag) { _ = unix.Prlimit(pid, unix.RLIMIT_LOCKS, &t, nil) }

func readTag(pid int) tag {
	var t tag
	if unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &t) != nil {
		return tag{}
	}
	return t
}

// livingHosts returns the hard limits that living processes would give their plugins if they were hosts. This
// process's own tag counts too: it must not kill its ancestors.
func livingHosts(table []process, namespace string) map[uint64]bool {
	hosts := map[uint64]bool{readTag(os.Getpid()).Max: true}
	for _, p := range table {
		if !p.zombie {
			hosts[hostTag(identity(p.id.pid, p.id.start, namespace), namespace)] = true
		}
	}
	return hosts
}
