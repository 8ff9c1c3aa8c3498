package rpc

import (
	"errors"
	"io"
)

// errBusy is a message for which there is no room, because of those of others.
var errBusy = errors.New("the gateway holds too much already")

// held reads a message and counts it against [Limits.Memory].
type held struct {
	io.Reader

	srv *Server
	n   int64
}

// hold begins to read a message. Its end is release.
func (s *Server) hold(r io.Reader) *held { return &held{Reader: r, srv: s} }

// Read implements io.Reader.
func (h *held) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	h.n += int64(n)
	if h.srv.holds.Add(int64(n)) > int64(h.srv.limits.Memory) {
		err = errBusy
	}
	return n, err
}

// release gives the room back.
func (h *held) release() {
	h.srv.holds.Add(-h.n)
	h.n = 0
}
