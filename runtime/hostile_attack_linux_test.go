package runtime_test

import (
	"errors"
	"fmt"
	"maps"
	"net"
)

// hostileModes are plugins that mean harm, where the other modes are mistakes.
func hostileModes() map[string]func(*badProgram) error {
	all := http2Attacks()
	for _, part := range []map[string]func(*badProgram) error{frameAttacks(), describeAttacks(), answerAttacks(), hostCallAttacks()} {
		maps.Copy(all, part)
	}
	return all
}

// did reports what came of an attack, most often "done". A test waits for it.
func (p *badProgram) did(what string) { _, _ = fmt.Fprintln(p.Stderr, "did "+what) }

// hostilePhase is the phase of the mode's hooks: one of the host's own that takes all
// kinds of contributions.
const hostilePhase = "x.hostile.all"

// accepting shakes hands and hands each connection to serve, one after the other.
func (p *badProgram) accepting(serve func(conn net.Conn) error) error {
	l, err := listenAt("unix", socketPath())
	if err != nil {
		return err
	}
	if err := p.Handshake(1); err != nil {
		return err
	}
	for first := true; ; first = false {
		conn, err := l.Accept()
		if err != nil {
			return errors.Join(err, p.Block())
		}
		if first {
			p.did("done")
		}
		_ = serve(conn)
		_ = conn.Close()
	}
}
