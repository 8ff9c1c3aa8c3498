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
	if err := checkFolder(dir); err != nil {
		return nil, usagef("--socket %s: %w", path, err)
	}
	unlock, err := lockFolder(dir)
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
	return l, nil
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
