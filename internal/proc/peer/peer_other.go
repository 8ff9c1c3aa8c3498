//go:build !linux && !darwin

package peer

import "net"

// Of returns [ErrUnsupported].
func Of(net.Conn) (Credentials, error) { return Credentials{}, ErrUnsupported }
