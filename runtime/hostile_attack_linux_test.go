package runtime_test

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
)

// hostile is the test binary as a plugin that means harm, where the modes of badplugin
// are mistakes. Its argument is the behaviour.
type hostile struct{ *badProgram }

// hostileModes is the mode "hostile" for badplugin.
func hostileModes() map[string]func(*badProgram) error {
	return map[string]func(*badProgram) error{"hostile": func(p *badProgram) error {
		if len(p.Args) == 0 || behaviours()[p.Args[0]] == nil {
			return fmt.Errorf("no behaviour %q", p.Args)
		}
		return behaviours()[p.Args[0]](&hostile{p})
	}}
}

// hostileBehaviours lists the behaviours.
func hostileBehaviours() []string { return slices.Sorted(maps.Keys(behaviours())) }

func behaviours() map[string]func(*hostile) error {
	all := map[string]func(*hostile) error{}
	for _, part := range []map[string]func(*hostile) error{
		http2Attacks(), frameAttacks(), describeAttacks(), answerAttacks(), hostCallAttacks(),
	} {
		for name, run := range part {
			if all[name] != nil {
				panic("two behaviours are called " + name)
			}
			all[name] = run
		}
	}
	return all
}

// did reports what came of an attack, most often "done". A test waits for it.
func (p *hostile) did(what string) { _, _ = fmt.Fprintln(p.Stderr, "did "+what) }

// hostilePhase is the phase of the mode's hooks: one of the host's own that takes all
// kinds of contributions.
const hostilePhase = "x.hostile.all"

// accepting shakes hands and hands each connection to serve, one after the other.
func (p *hostile) accepting(serve func(conn net.Conn) error) error {
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
