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
	"time"
)

const (
	connectTime = time.Second
	answerTime  = 10 * time.Minute // agents end a hook that takes too long
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

// Gateway connects to the gateway at a socket, which is started with a configuration (empty for the usual one) if none
// answers there, and waits that long for it.
func Gateway(socket, config string, wait time.Duration) (io.ReadWriteCloser, error) {
	conn, err := Connect(socket)
	if err == nil {
		return conn, nil
	}
	if err := start(socket, config, wait); err != nil {
		return nil, err
	}
	return await(socket, wait)
}

// await tries until a gateway that was just started answers.
func await(socket string, wait time.Duration) (io.ReadWriteCloser, error) {
	until := time.Now().Add(wait)
	for {
		conn, err := Connect(socket)
		switch {
		case err == nil:
			return conn, nil
		case time.Now().After(until):
			return nil, errors.New("a gateway was started, and does not answer yet; see hook.log beside " + socket)
		}
		<-time.After(20 * time.Millisecond)
	}
}
