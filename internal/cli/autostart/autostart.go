// Package autostart finds the socket at which the programs that agents start call a gateway, and starts one there if none
// answers: it outlives whoever started it. It links nothing but the basics, because grapnel-hook starts for every event
// of an agent; the package net alone takes longer to start than a gateway takes to answer.
//
// Stability: internal.
package autostart

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/owned"
)

const (
	connectTime = time.Second
	tick        = 20 * time.Millisecond
)

// Socket returns where a gateway of this user listens unless somebody says otherwise. Without $XDG_RUNTIME_DIR and $HOME
// there is no such place: a relative one would depend on the repository that an agent works in.
func Socket() (string, error) {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return dir + "/grapnel/hook.sock", nil
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", errors.New("there is neither $HOME nor $XDG_RUNTIME_DIR to find the gateway's socket in; name it with --socket")
	}
	return home + "/.grapnel/hook.sock", nil
}

// absentError says that nobody listens at a socket, so that a gateway may be started there.
type absentError string

func (e absentError) Error() string { return string(e) }

func isAbsent(err error) bool {
	_, is := errors.AsType[absentError](err)
	return is
}

// Connect connects to a socket that no other user can listen at. Calls of the connection have no bounds but their own.
func Connect(socket string) (io.ReadWriteCloser, error) {
	switch err := owned.Socket(socket); {
	case errors.Is(err, os.ErrNotExist):
		return nil, absentError("no gateway listens at " + socket)
	case err != nil:
		return nil, err
	}
	return connect(socket)
}

// Gateway connects to the gateway at a socket, which is started with a configuration (empty for the usual one) if none
// answers there, and waits that long for it. Of several programs that find none, one starts it.
func Gateway(socket, config string, wait time.Duration) (io.ReadWriteCloser, error) {
	conn, err := Connect(socket)
	if !isAbsent(err) {
		return conn, err
	}
	until := time.Now().Add(wait)
	dir := filepath.Dir(socket)
	if err := errors.Join(os.MkdirAll(dir, 0o700), owned.Exclusive(dir)); err != nil {
		return nil, err
	}
	lock, err := owned.Open(socket+".lock", os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, err
	}
	defer lock.Close() //nolint:errcheck // it holds nothing but the lock
	for first := true; ; {
		locked, err := tryLock(lock)
		if err != nil {
			return nil, err
		}
		conn, err := Connect(socket) // also with the lock: another one may have started it
		switch {
		case !isAbsent(err):
			return conn, err
		case locked:
			conn, err := start(socket, config, until)
			if _, killed := errors.AsType[killedError](err); killed && first { // somebody did that, not its configuration
				first = false
				continue
			}
			return conn, err
		case time.Now().After(until):
			return nil, errors.New("another program has been starting a gateway for " + wait.String() + ", with the lock " + socket + ".lock; see hook.log beside it")
		}
		<-time.After(tick)
	}
}

// await tries until a gateway that was just started answers. Ended reports that it never will, and how it ended.
func await(socket string, until time.Time, ended func() (how string, is bool)) (io.ReadWriteCloser, error) {
	for {
		how, is := ended() // before the last attempt
		conn, err := Connect(socket)
		switch {
		case err == nil:
			return conn, nil
		case is && strings.HasPrefix(how, signal):
			return nil, killedError("a gateway was started, and has ended (" + how + ")" + lastWords(socket))
		case is:
			return nil, errors.New("a gateway was started, and has ended (" + how + ")" + lastWords(socket))
		case time.Now().After(until):
			return nil, errors.New("a gateway was started, and does not answer yet; see hook.log beside " + socket)
		}
		<-time.After(tick)
	}
}

// killedError says that a gateway that was just started was killed.
type killedError string

func (e killedError) Error() string { return string(e) }

const signal = "signal " // begins how a gateway ended that was killed

// started is the line before what a gateway that was started here writes to its log.
const started = "grapnel serve was started "

const mostWhy = 2 << 10

// Why says how to learn why a gateway at a socket gave no answer: what the one that was started last said, if it has ended.
func Why(socket string) string {
	conn, err := Connect(socket)
	if err == nil {
		_ = conn.Close() // nothing was asked
		return "; if it has ended, hook.log beside " + socket + " says why"
	}
	for until := time.Now().Add(lastWordsTime); ; <-time.After(tick) {
		if words := lastWords(socket); strings.HasPrefix(words, ": ") || time.Now().After(until) {
			return "; it has ended" + words
		}
	}
}

// lastWordsTime is how long a gateway may take to say why it ends, after its socket is gone.
const lastWordsTime = 2 * time.Second

// lastWords are the error at the end of a gateway's log, if it wrote one, and where the log is.
func lastWords(socket string) string {
	place := "; see hook.log beside " + socket
	f, err := owned.Open(filepath.Dir(socket)+"/hook.log", os.O_RDONLY)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was only read
	if info, err := f.Stat(); err == nil && info.Size() > mostWhy {
		_, _ = f.Seek(-mostWhy, io.SeekEnd) // else it is read from the start
	}
	data, _ := io.ReadAll(io.LimitReader(f, mostWhy)) // part of it is better than nothing
	text := "\n" + string(data)
	if i := strings.LastIndex(text, "\n"+started); i >= 0 {
		text = text[i+1:]
	}
	for _, begin := range []string{"\ngrapnel: ", "\npanic: ", "\nfatal error: "} {
		if i := strings.LastIndex(text, begin); i >= 0 {
			return ": " + strings.TrimPrefix(strings.TrimSpace(text[i:]), "grapnel: ") + place
		}
	}
	return place
}
