package proc

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// kill kills the family: the root, if it has not ended, what bears the tag or the
// mark, what was noted, and the descendants of these, until a pass finds none. It
// returns how many are left when ctx ends, unseen if it could not look. For processes
// that are ending it waits for KillTime and ClearTime, whatever ctx says.
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

// unseen is the count of processes that could not be looked for, because this
// process had no descriptor free for the table. It is not 0: they may be there.
const unseen = -1

// pass sends one signal to each member of the family and returns how many ran, or
// unseen, and how many more were ending.
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

// reapOrphans takes the exit status of members that have ended and whose parent is this
// process: plugins make such by CLONE_PARENT, and a host to which orphans are given has
// others. Nobody else reaps them. The root is watch's to reap.
func (f *family) reapOrphans(table []process, members map[procID]bool) {
	for _, p := range table {
		if p.zombie && p.parent == os.Getpid() && p.id.pid != f.root.pid && (members[p.id] || f.owns(p.id.pid)) {
			reap(p.id)
		}
	}
}

// isEnding reports whether every thread of a process has begun to end. The system
// then frees what it held, which may take a while, and no code of it runs any more.
func isEnding(pid int) bool {
	const exiting = 0x4 // PF_EXITING
	threads := numbersIn("/proc/" + strconv.Itoa(pid) + "/task")
	for _, thread := range threads {
		data, err := readProc(pid, "task/"+strconv.Itoa(thread)+"/stat")
		rest, _ := afterLast(data, ')')
		fields := bytes.Fields(rest)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if len(fields) < 7 {
			return false
		}
		if flags, err := strconv.ParseUint(string(fields[6]), 10, 64); err != nil || flags&exiting == 0 {
			return false
		}
	}
	return len(threads) > 0
}

// killProcess kills one process.
func killProcess(id procID) {
	withHandle(id, func(handle int) {
		if handle < 0 {
			_ = unix.Kill(id.pid, unix.SIGKILL)
			return
		}
		_ = unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0)
	})
}

// reap takes the exit status of a child of this process that has ended.
func reap(id procID) {
	withHandle(id, func(handle int) {
		if handle < 0 {
			_, _ = unix.Wait4(id.pid, nil, unix.WNOHANG, nil)
			return
		}
		_ = unix.Waitid(unix.P_PIDFD, handle, nil, unix.WEXITED|unix.WNOHANG, nil)
	})
}

// withHandle calls f with a handle to a process, unless that is gone; a kernel before
// 5.3 has none, and then it is less than 0. It is opened before the start time is
// compared, so that the number cannot come to mean another in between.
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
