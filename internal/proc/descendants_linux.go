package proc

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/sandbox"
)

// process is a row of the system's process table. A number alone does not
// name a process for long; number and start time together do.
type process struct {
	id      procID
	parent  int
	zombie  bool // no thread of it runs any more
	threads int
	pages   int64 // resident
	size    int64 // of its addresses, in bytes
}

// procID names one process for as long as the system runs.
type procID struct {
	pid   int
	start uint64 // in clock ticks since the system began
}

// family is what is known of one plugin's processes.
type family struct {
	root procID
	mark string
	tag  tag // a soft limit of 0 is that of all plugins of the host

	// ending says that all that was left has been killed, and that kill has waited for
	// its end, or still does.
	ending atomic.Bool

	// mu is held for no call that could block: a plugin would keep its own end by that.
	mu    sync.Mutex
	known map[procID]bool // seen as descendants while the root lived, or killed
	near  nearLook
}

// newFamily begins the family of a process just started.
func newFamily(pid int, mark string) *family {
	f := &family{root: procID{pid: pid}, mark: mark, tag: tagFor(mark), known: map[procID]bool{}}
	if p, ok := readProcess(pid); ok {
		f.root = p.id
	}
	return f
}

// note remembers the living descendants of the root, which must not have been
// reaped: once it is gone, nothing leads from it to them.
func (f *family) note() {
	f.remember(f.closure(readProcesses(f.root.start), map[procID]bool{f.root: true}))
}

// remember adds processes to the known ones.
func (f *family) remember(members map[procID]process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range members {
		f.known[id] = true
	}
}

// members returns the known processes, and the root.
func (f *family) members() map[procID]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := maps.Clone(f.known)
	all[f.root] = true
	return all
}

// owns reports whether a process bears the family's tag or mark.
func (f *family) owns(pid int) bool {
	if t := readTag(pid); f.tag.Max != 0 && t.Max == f.tag.Max && (t.Cur == f.tag.Cur || f.tag.Cur == 0) {
		return true
	}
	return f.mark != "" && readMark(pid) == f.mark
}

// closure returns roots and all their descendants in the table, without this
// process itself.
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

// readProcesses returns the processes that began at or after a time. None of a
// plugin's descendants is older than it. The list is nil if there was no looking.
func readProcesses(since uint64) []process {
	pids := numbersIn("/proc")
	if pids == nil {
		return nil
	}
	list := []process{}
	for _, pid := range pids {
		if p, ok := readProcess(pid); ok && p.id.start >= since {
			list = append(list, p)
		}
	}
	return list
}

// numbersIn returns the entries of a directory that are numbers.
func numbersIn(path string) []int {
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer closeQuietly(dir)
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// readProcess reads one row of the process table.
func readProcess(pid int) (process, bool) {
	data, err := readProc(pid, "stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(pid, data)
}

// readProc reads one small file about a process, without the cost of an
// os.File: a pass over the table reads hundreds.
func readProc(pid int, name string) ([]byte, error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	data := make([]byte, 0, 512)
	for {
		n, err := unix.Read(fd, data[len(data):cap(data)])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return data, nil
		}
		data = data[:len(data)+n]
		if len(data) == cap(data) {
			data = append(data, make([]byte, len(data))...)[:len(data)]
		}
	}
}

// parseStat reads a line of /proc/PID/stat. The name in it may hold anything,
// parentheses too: it ends at the last one.
func parseStat(pid int, data []byte) (process, bool) {
	rest, ok := afterLast(data, ')')
	fields := bytes.Fields(rest)
	// Counted from the state, which is field 3: parent is 4, threads are 20,
	// start time is 22, size is 23, resident pages are 24.
	if !ok || len(fields) < 22 {
		return process{}, false
	}
	numbers := [5]uint64{}
	for i, field := range []int{1, 17, 19, 21, 20} {
		n, err := strconv.ParseUint(string(fields[field]), 10, 64)
		if err != nil {
			return process{}, false
		}
		numbers[i] = n
	}
	state := fields[0][0]
	// The state is that of the first thread, which may end before the others.
	zombie := (state == 'Z' || state == 'X') && numbers[1] <= 1
	return process{
		id: procID{pid: pid, start: numbers[2]}, parent: int(numbers[0]), zombie: zombie, //nolint:gosec // the kernel's numbers
		threads: int(numbers[1]), pages: int64(numbers[3]), size: int64(numbers[4]), //nolint:gosec // likewise
	}, true
}

// afterLast returns what follows the last appearance of sep.
func afterLast(data []byte, sep byte) (after []byte, found bool) {
	i := bytes.LastIndexByte(data, sep)
	return data[i+1:], i >= 0
}

// readMark returns the mark in a process's environment, or "". That of another
// user's process cannot be read.
func readMark(pid int) string {
	data, err := readProc(pid, "environ")
	if err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(data, []byte{0}) {
		if v, ok := strings.CutPrefix(string(entry), markKey+"="); ok {
			return v
		}
	}
	return ""
}

// hostIdentity names this process in marks.
func hostIdentity() string {
	p, _ := readProcess(os.Getpid())
	return identity(os.Getpid(), p.id.start, pidNamespace("self"))
}

// pidNamespace names the space in which a process's number counts, or "?".
func pidNamespace(pid string) string {
	name, err := os.Readlink(filepath.Join("/proc", pid, "ns/pid"))
	if err != nil {
		return "?"
	}
	return strings.Trim(strings.TrimPrefix(name, "pid:"), "[]")
}

// sweepProcesses kills the processes whose tag or mark names a host that is
// dead, and returns how many. Hosts of another namespace cannot be judged from
// here.
func sweepProcesses(ctx context.Context) (killed int) {
	table, own := readProcesses(0), pidNamespace("self")
	hosts := livingHosts(table, own)
	judged := map[any]bool{}
	for _, p := range table {
		f := &family{known: map[procID]bool{}}
		var key any
		if t := readTag(p.id.pid); t.Max>>hostBits == namespaceTag(own)>>hostBits && !hosts[t.Max] {
			f.tag.Max, key = t.Max, t.Max
		} else if f.mark = readMark(p.id.pid); isMarkOfDead(f.mark, own) && pidNamespace(strconv.Itoa(p.id.pid)) == own {
			key = f.mark
		}
		if key == nil || judged[key] {
			continue
		}
		judged[key] = true
		f.kill(ctx)
		killed += len(f.members()) - 1 // without the root, which there is not
	}
	return killed
}

// isMarkOfDead reports whether a mark names a host that is known to have ended.
func isMarkOfDead(mark, own string) bool {
	host, ok := hostOf(mark)
	return ok && isDead(host, own)
}

// isDead reports whether the identity of a host is that of one that is known
// to have ended: it counted its processes as those of the namespace own are.
func isDead(host, own string) bool {
	pid, start, namespace, ok := parseIdentity(host)
	if !ok || namespace != own || own == "?" {
		return false
	}
	h, alive := readProcess(pid)
	return !alive || h.zombie || h.id.start != start
}

// sweepGroups kills what lives in the control groups of dead hosts below base
// and removes them; it returns how many.
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
		host, ok := hostOfGroup(e.Name())
		if ctx.Err() != nil || !ok || !isDead(host, own) {
			continue
		}
		path := filepath.Join(base, e.Name())
		if retry(ctx, func() error { return os.Remove(path) }, func() { _ = sandbox.KillGroup(path) }) == nil {
			removed++
		}
	}
	return removed
}
