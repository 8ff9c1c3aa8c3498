package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Options are how to connect. The zero value is for a gateway without tokens.
type Options struct {
	// Token is the secret to be let in with; empty for none.
	Token string
	// OnNotification is called for each notification, in their order, one at a time,
	// on a goroutine of its own. It may call the client, but not close it. One that
	// falls behind by 256 ends the connection. Nil drops them. HTTP has none.
	OnNotification func(method string, params json.RawMessage)

	_ struct{}
}

// Dial connects to a gateway:
//
//   - http://HOST:PORT, https://: each call is a POST to /rpc. Dial connects to
//     nothing yet.
//   - ws://HOST:PORT, wss://: a WebSocket connection to /ws.
//   - unix:PATH: the same over a unix socket.
//
// A path in the URL stands instead of /rpc or /ws. A gateway that refuses gives an
// *[Error]. Close ends the client; ctx is for dialling only.
func Dial(ctx context.Context, target string, o Options) (*Client, error) {
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		dialer := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
		return dialSocket(ctx, "ws://localhost/ws", &http.Transport{DialContext: dialer}, o)
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
	switch u.Scheme {
	case "http", "https":
		if o.OnNotification != nil {
			return nil, errors.New("client: there are no notifications over HTTP: a target of ws://HOST:PORT or unix:PATH has them")
		}
		return &Client{way: newPoster(u.String(), o.Token)}, nil
	case "ws", "wss":
		return dialSocket(ctx, u.String(), &http.Transport{Proxy: http.ProxyFromEnvironment}, o)
	default:
		return nil, fmt.Errorf("client: %q: a target is http://, https://, ws://, wss:// or unix:PATH", target)
	}
}

// dialSocket opens a WebSocket connection over a transport that is its own.
func dialSocket(ctx context.Context, target string, transport *http.Transport, o Options) (*Client, error) {
	s, err := newSocket(ctx, target, transport, o)
	if err != nil {
		return nil, err
	}
	return &Client{way: s}, nil
}
