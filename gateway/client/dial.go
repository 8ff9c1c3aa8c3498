package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/grapnelhq/grapnel/internal/peer"
)

// Options are how to connect. The zero value is for a gateway without tokens.
type Options struct {
	// Token is the secret to be let in with; empty for none.
	Token string
	// OnNotification is called for each notification, in their order, one at a time,
	// on a goroutine of its own. It may call the client, but not close it. One that
	// falls behind by 256 ends the connection. Nil drops them. HTTP has none.
	OnNotification func(method string, params json.RawMessage)
	// Prove is called with each new connection, before anything is sent over it: its
	// error closes the connection, so that a program that is not the gateway gets
	// neither the token nor a call. It may exchange a request of its own. It is for
	// http, ws and unix, and no proxy is used then; a certificate proves the others.
	// Nil proves nothing beyond what Dial says of unix sockets.
	Prove func(ctx context.Context, conn net.Conn) error

	_ struct{}
}

// Dial connects to a gateway:
//
//   - http://HOST:PORT, https://: each call is a POST to /rpc. Dial connects to
//     nothing yet.
//   - ws://HOST:PORT, wss://: a WebSocket connection to /ws.
//   - unix:PATH: the same over a unix socket. Nothing is sent if the program that
//     listens there belongs to another user than this one's or root.
//
// A path in the URL stands instead of /rpc or /ws. Redirects are not followed. A
// gateway that refuses gives an *[Error]. Close ends the client; ctx is for dialling
// only.
func Dial(ctx context.Context, target string, o Options) (*Client, error) {
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		check := func(ctx context.Context, conn net.Conn) error {
			if err := peer.Check(conn); err != nil || o.Prove == nil {
				return err
			}
			return o.Prove(ctx, conn)
		}
		return dialSocket(ctx, "ws://localhost/ws", proven("unix", path, check), o)
	}
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if u.Host == "" {
		return nil, fmt.Errorf("client: %q: it has no host", target)
	}
	path := "/ws"
	if strings.HasPrefix(u.Scheme, "http") {
		path = "/rpc"
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = path
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if o.Prove != nil {
		if u.Scheme == "https" || u.Scheme == "wss" {
			return nil, fmt.Errorf("client: %q: its certificate proves the gateway, and Prove is for http, ws and unix", target)
		}
		transport = proven("tcp", "", o.Prove)
	}
	switch u.Scheme {
	case "http", "https":
		if o.OnNotification != nil {
			return nil, errors.New("client: there are no notifications over HTTP: a target of ws://HOST:PORT or unix:PATH has them")
		}
		return &Client{way: newPoster(u.String(), o.Token, transport)}, nil
	case "ws", "wss":
		return dialSocket(ctx, u.String(), transport, o)
	default:
		return nil, fmt.Errorf("client: %q: a target is http://, https://, ws://, wss:// or unix:PATH", target)
	}
}

// proven is a transport whose connections are proven before they are used. They all
// lead to one address, unless that is empty.
func proven(network, address string, prove func(context.Context, net.Conn) error) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, host string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, cmp.Or(address, host))
		if err != nil {
			return nil, err
		}
		if err := prove(ctx, conn); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	}}
}

// stay keeps a token from following a redirect: gateways send none.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// dialSocket opens a WebSocket connection over a transport that is its own.
func dialSocket(ctx context.Context, target string, transport *http.Transport, o Options) (*Client, error) {
	s, err := newSocket(ctx, target, transport, o)
	if err != nil {
		return nil, err
	}
	return &Client{way: s}, nil
}
