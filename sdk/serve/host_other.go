//go:build !linux

package serve

import "net"

// newHostCheck returns a check that lets in everybody: this system does not say
// who connects. The socket lies in a folder that only the user can enter.
func newHostCheck(func(string) string) func(net.Conn) error {
	return func(net.Conn) error { return nil }
}
