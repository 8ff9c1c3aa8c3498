package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/internal/peer"
)

// unixScheme begins the target of a unix socket.
const unixScheme = "unix:"

// maxSocketPath is how long the path of a socket may be on every system.
const maxSocketPath = 103

// checkListen refuses addresses that cannot be meant, before anything is opened.
func checkListen(f *serveFlags) error {
	if f.socket != "" {
		path, err := filepath.Abs(f.socket)
		if err != nil {
			return usagef("--socket %s: %w", f.socket, err)
		}
		if f.socket = path; len(path) > maxSocketPath {
			return usagef("--socket %s: the path has %d bytes, and systems take %d; choose a shorter one", path, len(path), maxSocketPath)
		}
	}
	if f.listen == "" {
		return nil
	}
	addr, err := net.ResolveTCPAddr("tcp", f.listen)
	if err != nil {
		return usagef("--listen %q: use HOST:PORT, such as 127.0.0.1:7433: %w", f.listen, err)
	}
	if !addr.IP.IsLoopback() && f.tokenFile == "" {
		return usagef("--listen %s: others than this machine could call it, so it needs --token-file; use 127.0.0.1 for this machine alone", f.listen)
	}
	return nil
}

// openDoors listens at the port and the socket. Connections wait until there is
// somebody to answer.
func openDoors(ctx context.Context, f *serveFlags) (*doors, error) {
	d := &doors{}
	if f.listen != "" {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
		if err != nil {
			return nil, unable(fmt.Errorf("--listen %s: %w", f.listen, plainListenError(err)))
		}
		d.listeners = append(d.listeners, l)
		d.tcp, _ = l.Addr().(*net.TCPAddr)
	}
	if f.socket != "" {
		l, err := openSocket(ctx, f.socket)
		if err != nil {
			d.close()
			return nil, err
		}
		d.listeners, d.socket, d.release = append(d.listeners, l), f.socket, ownSocket(f.socket)
	}
	return d, nil
}

// plainListenError says what matters of a failure to listen.
func plainListenError(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w; choose another port, or 0 for a free one", errInUse)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// openSocket listens at a unix socket that this user alone can open. One that was
// left behind is replaced; one that somebody answers at is not, and no other file
// either.
func openSocket(ctx context.Context, path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, usagef("--socket %s: %w", path, unwrapPath(err))
	}
	if err := checkDir(dir); err != nil {
		return nil, usagef("--socket %s: %w", path, err)
	}
	unlock, err := lockSocket(ctx, path)
	if err != nil {
		return nil, unable(fmt.Errorf("--socket %s: %w", path, err))
	}
	defer unlock() // of two who replace a socket the second finds the first
	if err := clearSocket(ctx, path); err != nil {
		return nil, err
	}
	l, err := listenPrivately(ctx, path)
	if err != nil {
		return nil, unable(fmt.Errorf("--socket %s: %w", path, plainListenError(err)))
	}
	return &ownUser{l}, nil
}

// ownUser is a unix socket that takes connections of its own user, and of root. Its
// mode says the same to the system; this holds also where somebody changed that.
type ownUser struct{ net.Listener }

// Accept implements net.Listener.
func (l *ownUser) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || peer.Check(conn) == nil {
			return conn, err
		}
		_ = conn.Close() // there is nothing to say to it
	}
}

// socketLockTime is how long another gateway may take to open the same socket.
const socketLockTime = 2 * knock

// lockSocket keeps other gateways from opening the same socket meanwhile. The lock is
// a file of its own beside the socket, which no other user can open: whoever can open
// a file, or a directory, can lock it for ever.
func lockSocket(ctx context.Context, path string) (unlock func(), err error) {
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock")
	ctx, cancel := context.WithTimeoutCause(ctx, socketLockTime, fmt.Errorf("it has been locked for %s", socketLockTime))
	defer cancel()
	for {
		f, err := openOwn(name, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return nil, err
		}
		if err := waitLock(ctx, f); err != nil {
			err = fmt.Errorf("another gateway opens it, or hangs, with the lock %s%s: %w; end that one, or remove the file", name, lockHolder(f), err)
			return nil, errors.Join(err, f.Close())
		}
		// Who had the lock before has removed the file.
		if isStill(name, f) {
			return func() {
				_ = os.Remove(name) // one that stays is used again
				_ = f.Close()       // which frees the lock
			}, nil
		}
		_ = f.Close()
	}
}

// knock is how long a socket may take to be answered at. Whoever listens answers
// at once: the system does it.
const knock = 2 * time.Second

// clearSocket removes a socket that nobody answers at.
func clearSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return usagef("--socket %s: %w", path, unwrapPath(err))
	case info.Mode().Type() != fs.ModeSocket:
		return usagef("--socket %s: something else is there, and it is not touched; choose another path", path)
	}
	ctx, cancel := context.WithTimeout(ctx, knock)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close() // nothing was said
		return unable(fmt.Errorf("--socket %s: %w", path, errInUse))
	case !errors.Is(err, syscall.ECONNREFUSED):
		return unable(fmt.Errorf("--socket %s: it cannot be told whether somebody answers there: %w", path, plainListenError(err)))
	}
	if err := os.Remove(path); err != nil {
		return unable(fmt.Errorf("--socket %s: nobody answers there, and it cannot be replaced: %w", path, unwrapPath(err)))
	}
	return nil
}

// ownSocket returns what removes the socket that is there now, and leaves another
// one that has taken its place.
func ownSocket(path string) func() {
	own, err := os.Lstat(path)
	if err != nil {
		return func() {}
	}
	return func() {
		if now, err := os.Lstat(path); err == nil && os.SameFile(own, now) {
			_ = os.Remove(path) // if it stays, the next start replaces it
		}
	}
}
