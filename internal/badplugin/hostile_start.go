//go:build unix

package badplugin

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/sdk"
)

// handshakes are attacks on the start: lines that are no handshake, or nearly one,
// and what comes around it.
func handshakes() map[string]func(*Program) error {
	all := map[string]func(*Program) error{
		"shake-twice":        (*Program).shakeTwice,
		"shake-by-child":     (*Program).shakeByChild,
		"shake-then-exec":    (*Program).shakeThenExec,
		"shake-then-exit":    func(p *Program) error { return p.shake(shaken) },
		"shake-then-close":   (*Program).shakeThenClose,
		"shake-binary-noise": func(p *Program) error { return p.shake("\x00\xff\xfe\x1b]0;title\x07\n") },
		"shake-no-newline":   func(p *Program) error { return errors.Join(p.shake(strings.Repeat("1|", 1<<20)), block(p)) },
		"shake-and-flood":    (*Program).shakeAndFlood,
	}
	for name, line := range lines() {
		all["line-"+name] = func(p *Program) error {
			l, err := listen()
			if err != nil {
				return err
			}
			defer func() { _ = l.Close() }()
			return errors.Join(p.shake(line()+"\n"), block(p))
		}
	}
	return all
}

// shaken is the handshake of a socket that nobody listens on.
const shaken = "1|1|unix|/nowhere|grpc\n"

// shake writes to standard output and says so.
func (p *Program) shake(text string) error {
	p.did("done")
	_, err := p.stdout.WriteString(text)
	return err
}

// lines are handshakes that are wrong in one place.
func lines() map[string]func() string {
	good := func(format string) func() string {
		return func() string { return fmt.Sprintf(format, socket()) }
	}
	plain := func(line string) func() string { return func() string { return line } }
	certified := func(format string) func() string {
		return func() string { return fmt.Sprintf(format, socket(), certificate()) }
	}
	return map[string]func() string{
		// A certificate where the host asked for none.
		"certificate":         certified("1|1|unix|%s|grpc|%s"),
		"certificate-text":    good("1|1|unix|%s|grpc|!!!!"),
		"certificate-mux":     certified("1|1|unix|%s|grpc|%s|true"),
		"certificate-garbage": good("1|1|unix|%s|grpc|" + base64.RawStdEncoding.EncodeToString([]byte("0\x82garbage"))),
		"multiplex":           good("1|1|unix|%s|grpc||true"),
		"many-fields":         good("1|1|unix|%s|grpc" + strings.Repeat("|x", 1000)),
		"empty":               plain(""),
		"bars":                plain("|||||||"),
		"short":               plain("1|1"),
		"huge-version":        good("1|99999999999999999999|unix|%s|grpc"),
		"negative":            good("-1|-1|unix|%s|grpc"),
		"crlf":                good("1|1|unix|%s|grpc\r"),
		"nul":                 good("1|1|unix|%s\x00/x|grpc"),
		"not-utf8":            good("1|1|unix|%s\xff|grpc"),
		"file":                plain("1|1|unix|/etc/passwd|grpc"),
		"directory":           plain("1|1|unix|/|grpc"),
		"relative":            plain("1|1|unix|../../s|grpc"),
		"abstract":            plain("1|1|unix|@grapnel-hostile|grpc"),
		"no-address":          plain("1|1|unix||grpc"),
		"long-path":           plain("1|1|unix|/" + strings.Repeat("a", 3000) + "|grpc"),
		"long-line":           plain("1|1|unix|/" + strings.Repeat("a", 1<<20) + "|grpc"),
		"tcp-of-others":       plain("1|1|tcp|127.0.0.1:1|grpc"),
		"tcp-elsewhere":       plain("1|1|tcp|192.0.2.1:80|grpc"),
		"tcp-name":            plain("1|1|tcp|localhost:80|grpc"),
		"tcp-zone":            plain("1|1|tcp|[::1%eth0]:80|grpc"),
		"tcp-mapped":          plain("1|1|tcp|[::ffff:127.0.0.1]:1|grpc"),
		"udp":                 plain("1|1|udp|127.0.0.1:80|grpc"),
		"other-transport":     good("1|1|unix|%s|netrpc"),
		"transport-by-spaces": good("1|1|unix|%s| grpc "),
	}
}

// certificate is a real one, as go-plugin writes it.
func certificate() string {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err.Error()
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return err.Error()
	}
	return base64.RawStdEncoding.EncodeToString(der)
}

// shakeTwice writes its handshake and another one, of another socket.
func (p *Program) shakeTwice() error {
	if _, err := p.stdout.WriteString("1|1|unix|" + socket() + "|grpc\n" + shaken); err != nil {
		return err
	}
	p.did("done")
	return block(p)
}

// shakeByChild lets a child serve in its place, and waits.
func (p *Program) shakeByChild() error {
	cmd := p.child("good")
	cmd.Stdout, cmd.Stderr = p.stdout, p.stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	p.did("done")
	return errors.Join(cmd.Wait(), block(p))
}

// shakeThenExec becomes another program right after the handshake.
func (p *Program) shakeThenExec() error {
	l, err := listen()
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	if err := p.handshake(1); err != nil {
		return err
	}
	p.did("done")
	return syscall.Exec(p.Self[0], append(slices.Clip(p.Self), "sleeper"), os.Environ()) //nolint:gosec // itself
}

// shakeThenClose accepts one connection and listens no more.
func (p *Program) shakeThenClose() error {
	return p.accepting(func(l net.Listener, conn net.Conn) error { return errors.Join(l.Close(), conn.Close(), block(p)) })
}

// accepting shakes hands and hands each connection to serve, one after the other.
func (p *Program) accepting(serve func(l net.Listener, conn net.Conn) error) error {
	l, err := listen()
	if err != nil {
		return err
	}
	if err := p.handshake(1); err != nil {
		return err
	}
	for first := true; ; first = false {
		conn, err := l.Accept()
		if err != nil {
			return errors.Join(err, block(p))
		}
		if first {
			p.did("done")
		}
		_ = serve(l, conn)
		_ = conn.Close()
	}
}

// shakeAndFlood serves, and writes to standard output all the time.
func (p *Program) shakeAndFlood() error {
	return p.serveAttack(func(context.Context, *sdk.Call) {
		chunk := strings.Repeat("1|1|unix|/x|grpc\n", 4000)
		for range 50 {
			_, _ = p.stdout.WriteString(chunk)
		}
		p.did("done")
	})
}
