package proc

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/phases"
)

// checkPeer waits until somebody listens on a plugin's unix socket, checks that
// it is the plugin or one of its descendants, and returns the address to dial:
// one that leads to the very socket that was checked, however the plugin's
// folder changes. The socket is held open until release.
//
// Who listens is what the system noted when the socket began to listen. The
// check needs a connection of its own, which is closed at once.
func (p *Process) checkPeer(ctx context.Context, addr string) (dial string, release func(), err error) {
	for {
		dial, release, err := p.peer(ctx, addr)
		_, decided := errors.AsType[*phases.Error](err)
		switch {
		case err == nil:
			return dial, release, nil
		case ctx.Err() != nil:
			return "", func() {}, errGaveUp
		case decided:
			return "", func() {}, err
		case !isNotYet(err):
			return "", func() {}, &phases.Error{ // which names the address, the plugin's own word
				Code: phases.CauseInternal, Message: "the socket of plugin " + p.spec.Name + " cannot be reached", Detail: err.Error(), Err: err,
			}
		}
		select {
		case <-ctx.Done():
			return "", func() {}, errGaveUp
		case <-time.After(socketPoll):
		}
	}
}

// isNotYet reports whether an error may pass: the socket is not there, nobody
// listens yet, or too many wait already. That the time is up the caller will
// see by itself, in a moment.
func isNotYet(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout() ||
		errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EAGAIN)
}

// peer is one look at the socket. A listener that is none of the plugin's is a
// *phases.Error.
func (p *Process) peer(ctx context.Context, addr string) (dial string, release func(), err error) {
	dial, release = addr, func() {}
	if !strings.HasPrefix(addr, "@") {
		if dial, release, err = holdSocket(addr); err != nil {
			return "", nil, err
		}
	}
	p.setWaiting("nothing answers on its socket", "unix "+clean(addr, noiseShown))
	pid, err := listenerOf(ctx, dial)
	if err == nil && !p.child.descendants().has(pid) {
		foreign := phases.Errorf(phases.CauseUnsafePath, "plugin %s names a socket on which process %d listens, and that is none of its own", p.spec.Name, pid)
		foreign.Detail, err = "it names "+clean(addr, noiseShown), foreign
	}
	if err != nil {
		release()
		return "", nil, err
	}
	return dial, release, nil
}

// holdSocket opens a socket's file without connecting, and returns a path that
// leads to it.
func holdSocket(path string) (held string, release func(), err error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return "/proc/self/fd/" + strconv.Itoa(fd), func() { _ = unix.Close(fd) }, nil
}

// listenerOf returns the process that listens on a socket.
func listenerOf(ctx context.Context, addr string) (int, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", addr)
	if err != nil {
		return 0, err
	}
	defer closeQuietly(conn)
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, net.UnknownNetworkError(conn.LocalAddr().Network())
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	return int(cred.Pid), nil
}

// has reports whether a process is the root, a descendant of it, or bears its
// mark.
func (f *family) has(pid int) bool {
	if pid == f.root.pid {
		return true
	}
	f.note()
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.known {
		if id.pid == pid {
			return true
		}
	}
	return pid > 0 && readMark(pid) == f.mark
}
