package proc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

const socketPoll = 5 * time.Millisecond

// errWSARefused is the ECONNREFUSED of Windows.
const errWSARefused = syscall.Errno(10061)

// errGaveUp ends a start whose reason is known elsewhere.
var errGaveUp = errors.New("start given up")

func (p *Process) establish(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil { // a plugin's first words may provoke one
			err = &phases.Error{Code: phases.CauseInternal, Message: "the host failed as it started plugin " + p.spec.Name, Detail: panicText(r)}
		}
	}()
	env := p.spec.handshakeEnv()
	var secure *tls.Config
	if p.spec.MutualTLS {
		own, pem, err := newCertificate()
		if err != nil {
			return err
		}
		env = append(env, "PLUGIN_CLIENT_CERT="+pem)
		secure = &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12, ServerName: certificateHost}
	}
	if err := p.spawn(ctx, env); err != nil || p.spec.Stdio {
		return err
	}
	h, err := p.awaitHandshake(ctx)
	if err != nil {
		return err
	}
	raw, err := p.dial(ctx, h)
	if err != nil {
		return err
	}
	if secure != nil {
		secure.RootCAs = x509.NewCertPool()
		secure.RootCAs.AddCert(h.certificate)
	}
	return p.open(ctx, raw, secure)
}

func (p *Process) awaitHandshake(ctx context.Context) (handshake, error) {
	var line firstLine
	select {
	case line = <-p.child.stdout.first:
	case <-ctx.Done():
		// A malformed first line explains more than the exit that follows it.
		select {
		case <-p.child.exited:
			<-p.child.drained
		default:
		}
		select {
		case line = <-p.child.stdout.first:
		default:
			return handshake{}, errGaveUp
		}
	}
	h, err := parseHandshake(line, p.spec.MutualTLS)
	switch {
	case err == nil:
		return h, nil
	case line.unfinished():
		<-ctx.Done()
		return handshake{}, errGaveUp
	}
	return handshake{}, err
}

// dial connects as soon as something listens at the address, and checks that the peer belongs to the plugin.
func (p *Process) dial(ctx context.Context, h handshake) (net.Conn, error) {
	words, place := h.network+" "+clean(h.address, noiseShown), "address"
	if h.network == "unix" {
		place = "socket"
	}
	p.setWaiting("nothing answers on its "+place, words)
	for {
		conn, err := p.dialOnce(ctx, h)
		what := "nothing answers on its " + place
		if errors.Is(err, fs.ErrNotExist) {
			what = "the socket of the handshake is not there"
		}
		if !timedOut(err) && ctx.Err() == nil { // the end of the wait says nothing about the cause
			p.setWaiting(what, words)
		}
		switch _, decided := errors.AsType[*phases.Error](err); {
		case err == nil:
			return conn, nil
		case ctx.Err() != nil:
			return nil, errGaveUp
		case decided:
			return nil, err
		case !isNotYet(err):
			return nil, &phases.Error{ // which names the address, the plugin's own word
				Code: phases.CauseInternal, Message: "the address of plugin " + p.spec.Name + " cannot be reached", Detail: err.Error(), Err: err,
			}
		}
		if !pause(ctx, socketPoll) {
			return nil, errGaveUp
		}
	}
}

func (p *Process) dialOnce(ctx context.Context, h handshake) (net.Conn, error) {
	if err := p.checkListener(h); err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, h.network, h.address)
	if err != nil {
		return nil, err
	}
	if err := p.checkPeer(ctx, conn, h); err != nil {
		closeQuietly(conn)
		return nil, err
	}
	return conn, nil
}

// isNotYet reports whether an error may pass: no socket or listener yet, a full backlog, an early close, a timeout.
func isNotYet(err error) bool {
	return timedOut(err) || slices.ContainsFunc([]error{
		fs.ErrNotExist, syscall.ECONNREFUSED, errWSARefused, syscall.EAGAIN, syscall.ECONNRESET,
	}, func(passing error) bool { return errors.Is(err, passing) })
}

func timedOut(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// pause waits and reports whether ctx lasted.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (p *Process) foreign(h handshake, what string) error {
	return &phases.Error{
		Code: phases.CauseUnsafePath, Message: "plugin " + p.spec.Name + " names " + what, Detail: "it names " + h.network + " " + clean(h.address, noiseShown),
	}
}

// open makes the gRPC connection and starts to read the plugin's standard streams from it.
func (p *Process) open(ctx context.Context, raw net.Conn, secure *tls.Config) error {
	conn, err := wire.ConnectOver(raw, p.spec.Frame, secure)
	if err != nil {
		closeQuietly(raw)
		return err
	}
	lasting, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	p.conn, p.cutOff = conn, cutOff
	p.hangUp = sync.OnceFunc(func() {
		wire.Shutdown(lasting, conn)
		closeQuietly(conn)
		closeQuietly(raw)
	})
	stop := context.AfterFunc(ctx, cutOff)
	stdio, err := wire.OpenStdio(lasting, conn)
	if stop(); err != nil {
		// A crashing plugin closes its connections a moment before its exit is known.
		await(p.child.exited, ctx.Done(), KillTime)
		if ctx.Err() != nil {
			return errGaveUp
		}
		return &phases.Error{
			Code: phases.CauseSessionReset, Message: "plugin " + p.spec.Name + " is connected to, but no gRPC connection comes about",
			Detail: clean(err.Error(), noiseShown), Err: err, Retryable: true,
		}
	}
	p.streams.Go(p.child.contained(func() { stdio.Copy(io.Discard, p.stdio) }))
	return nil
}
