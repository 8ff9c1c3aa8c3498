package proc

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-plugin"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	// maxHandshake bounds the line that a plugin begins with.
	maxHandshake = 4 << 10
	// noiseShown is how much of something else is quoted.
	noiseShown = 200
)

// stdout reads a plugin's standard output: the first line must be go-plugin's
// handshake and is passed on to it; everything after it is counted and thrown
// away, so that the plugin never waits for a reader.
type stdout struct {
	// onError learns once that the first line is no handshake.
	onError func(*phases.Error)
	extra   atomic.Int64
	head    []byte
	passed  bool
}

// Write counts output that reaches us over go-plugin's own stream. It
// implements io.Writer and never fails.
func (o *stdout) Write(p []byte) (int, error) {
	o.extra.Add(int64(len(p)))
	return len(p), nil
}

// pump reads src until its end. It writes at most one line to dst, and leaves
// it open: go-plugin takes its end for the end of the process.
func (o *stdout) pump(src io.Reader, dst io.Writer) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		o.take(buf[:n], dst)
		if err != nil {
			break
		}
	}
	// What came without a newline before the end may be a whole handshake all the
	// same. The beginning of one says nothing: its plugin was too slow, or has
	// crashed. Anything else was noise.
	if !o.passed && len(o.head) > 0 && (!beginsHandshake(o.head) || checkHandshake(o.head) == nil) {
		o.decide(o.head, dst)
	}
}

// beginsHandshake reports whether a line that was not finished could have become
// a handshake.
func beginsHandshake(line []byte) bool {
	parts := strings.Split(string(line), "|")
	for i, part := range parts[:min(2, len(parts))] {
		if !isNumber(part) && (part != "" || i < len(parts)-1) {
			return false
		}
	}
	return true
}

// take looks for the first line, and counts what follows it.
func (o *stdout) take(p []byte, dst io.Writer) {
	if o.passed {
		o.extra.Add(int64(len(p)))
		return
	}
	o.head = append(o.head, p...)
	line, rest, found := bytes.Cut(o.head, []byte{'\n'})
	if !found && len(o.head) < maxHandshake {
		return
	}
	o.extra.Add(int64(len(rest)))
	o.decide(line, dst)
}

// decide judges the first line and passes a good one on. The reader of dst
// takes it at once, or has gone.
func (o *stdout) decide(line []byte, dst io.Writer) {
	o.passed, o.head = true, nil
	if err := checkHandshake(line); err != nil {
		o.onError(err)
		return
	}
	_, _ = dst.Write(append(slices.Clip(line), '\n'))
}

// checkHandshake checks the line CORE|VERSION|NETWORK|ADDRESS|PROTOCOL|….
// go-plugin checks it again, but says why in words only.
func checkHandshake(line []byte) *phases.Error {
	text := strings.TrimSpace(string(line))
	parts := strings.Split(text, "|")
	if len(line) > maxHandshake || len(parts) < 4 || !isNumber(parts[0]) || !isNumber(parts[1]) {
		shown := clean(string(line[:min(len(line), noiseShown)]), noiseShown)
		return &phases.Error{
			Code: phases.CauseStartNoise, Message: "plugin wrote to its standard output before the handshake; logs belong on standard error",
			Detail: fmt.Sprintf("it wrote %q", shown),
		}
	}
	protocol := "netrpc"
	if len(parts) > 4 {
		protocol = parts[4]
	}
	want := []string{strconv.Itoa(plugin.CoreProtocolVersion), strconv.Itoa(wire.ProtocolVersion), string(plugin.ProtocolGRPC)}
	if got := []string{parts[0], parts[1], protocol}; !slices.Equal(got, want) {
		err := phases.Errorf(phases.CauseVersionMismatch, "plugin speaks another handshake, protocol or transport than this host: %q", want)
		err.Detail = fmt.Sprintf("it speaks %q", got)
		return err
	}
	return nil
}

// isNumber reports whether s is a short decimal number.
func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// checkAddress refuses an address on another machine: what a host tells a
// plugin must not leave the machine by a plugin's mere word.
func checkAddress(network, addr string) error {
	switch network {
	case "unix":
		return nil
	case "tcp":
		host, _, err := net.SplitHostPort(addr)
		if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsLoopback() {
			return nil
		}
	}
	return &phases.Error{
		Code: phases.CauseVersionMismatch, Message: "plugin does not listen on a local socket or a loopback address; this host speaks with no others",
		Detail: fmt.Sprintf("it listens on %q %q", clean(network, 20), clean(addr, noiseShown)),
	}
}
