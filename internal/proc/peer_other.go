//go:build !linux

package proc

import (
	"context"
	"net"
)

// checkListener takes a TCP address only where certificates say who listens
// there: this system does not. A unix socket lies in a private folder.
func (p *Process) checkListener(h handshake) error {
	if h.network == "tcp" && !p.spec.MutualTLS {
		return p.foreign(h, "a TCP address, and this system does not say whose it is; set tls: true")
	}
	return nil
}

// checkPeer takes every peer: who listens on a unix socket is not asked on this
// system, which [Missing] says, and for TCP certificates are checked.
func (*Process) checkPeer(context.Context, net.Conn, handshake) error { return nil }
