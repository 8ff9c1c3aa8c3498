//go:build !unix

package autostart

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
)

// Connect trusts the directory of the socket, which belongs to the user.
func Connect(socket string) (io.ReadWriteCloser, error) {
	conn, err := (&net.Dialer{Timeout: connectTime}).DialContext(context.Background(), "unix", socket)
	if err != nil {
		return nil, errors.New("no gateway listens at " + socket)
	}
	return conn, conn.SetDeadline(time.Now().Add(answerTime))
}

func start(string, string, time.Duration) error {
	return errors.New("no gateway listens; on this system it must be started by hand: grapnel serve --socket PATH")
}
