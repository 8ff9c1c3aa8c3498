//go:build !unix

package autostart

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// connect trusts the directory of the socket, which belongs to the user.
func connect(socket string) (io.ReadWriteCloser, error) {
	conn, err := (&net.Dialer{Timeout: connectTime}).DialContext(context.Background(), "unix", socket)
	if err != nil {
		return nil, absentError("no gateway listens at " + socket)
	}
	return conn, nil
}

func tryLock(*os.File) (bool, error) { return true, nil }

func start(string, string, time.Time) (io.ReadWriteCloser, error) {
	return nil, errors.New("no gateway listens; on this system it must be started by hand: grapnel serve --socket PATH")
}
