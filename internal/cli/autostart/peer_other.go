//go:build unix && !linux

package autostart

// checkPeer checks nothing: nobody else can have put the socket there.
func checkPeer(int) error { return nil }
