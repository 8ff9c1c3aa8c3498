// Package serve runs an [sdk.Plugin] as a process: one call for an author's
// main.
//
//	func main() { serve.Main(plugin) }
//
// It speaks hashicorp/go-plugin's handshake and Grapnel's session protocol, and
// is the only package that links them for plugin authors. A program that only
// tests its plugin, or that runs it inside a host, does not need it.
//
// # Logs
//
// What the plugin writes to standard error is a log line of the host's, under
// the plugin's name; lines of JSON in the form of hclog keep their level and
// fields. Standard output belongs to the handshake: do not print to it before
// Main has begun. Both are always read by the host, so that writing never blocks
// for long, and both are limited there.
//
// Stability: experimental until 1.0.
package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/sdk"
)

// ErrNotStartedByHost is returned when the program was started by hand: a host
// sets an environment variable that tells plugins apart from programs.
var ErrNotStartedByHost = errors.New("this program is a Grapnel plugin: a host starts it; declare it under plugins in grapnel.yaml, or try it with: grapnel plugin run")

// gcPercent lets the heap of a plugin grow to 8 MiB before it is collected,
// instead of 4: a plugin holds little and answers often, so that at the default
// every few hundred calls pay for a collection. An operator sets another value by
// GOGC in the plugin's environment.
const gcPercent = 200

// Main serves the plugin until the host ends it, and exits: 0 at a regular end,
// 2 when the program was started by hand, or the plugin's literal has a mistake or
// cannot be closed, which is printed to standard error. It does not return.
func Main(p *sdk.Plugin) {
	if err := Serve(p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(0)
}

// closeTime bounds how long a plugin may take to end what it has started. It is
// less than what a host waits for the process.
const closeTime = time.Second

// Serve is Main for programs that are more than a plugin: it returns instead of
// exiting. Call it at most once a process; it replaces os.Stdout and os.Stderr
// by streams to the host.
func Serve(p *sdk.Plugin) error {
	if !StartedByHost() {
		return ErrNotStartedByHost
	}
	if err := p.Validate(); err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  wire.ProtocolVersion,
			MagicCookieKey:   wire.HandshakeCookieKey,
			MagicCookieValue: wire.HandshakeCookieValue,
		},
		Plugins: plugin.PluginSet{wire.PluginName: &served{handler: p}},
		GRPCServer: func(opts []wire.ServerOption) *wire.Server {
			if os.Getenv(clientCertKey) == "" {
				opts = append(opts, wire.AcceptOnly(newHostCheck(os.Getenv)))
			}
			return wire.NewServer(append(opts, wire.ServerOptions(wire.MaxFrame)...)...)
		},
		Logger: hclog.New(&hclog.LoggerOptions{Name: p.Name, Level: hclog.Warn, Output: os.Stderr, JSONFormat: true}),
	})
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return p.Close(ctx)
}

// StartedByHost reports whether a host started this program as a plugin.
func StartedByHost() bool {
	return os.Getenv(wire.HandshakeCookieKey) == wire.HandshakeCookieValue
}

// clientCertKey is the variable by which a host asks go-plugin for mutual TLS.
const clientCertKey = "PLUGIN_CLIENT_CERT"

// markKey is the variable in which a host says who it is: its process number,
// start time and namespace, and behind a slash what else it needs.
const markKey = "GRAPNEL_MARK"

// hostOf returns the process number of the host in a mark, and the namespace in
// which it counts.
func hostOf(mark string) (pid int, namespace string, ok bool) {
	identity, _, _ := strings.Cut(mark, "/")
	parts := strings.Split(identity, ".")
	if len(parts) != 3 {
		return 0, "", false
	}
	pid, err := strconv.Atoi(parts[0])
	return pid, parts[2], err == nil && pid > 0
}

// served is the plugin as go-plugin sees it.
type served struct {
	plugin.NetRPCUnsupportedPlugin
	handler wire.Handler
}

var _ plugin.GRPCPlugin = (*served)(nil)

// GRPCServer implements plugin.GRPCPlugin.
func (s *served) GRPCServer(_ *plugin.GRPCBroker, server *wire.Server) error {
	wire.Register(server, s.handler, wire.ServeOptions{})
	return nil
}

// GRPCClient implements plugin.GRPCPlugin. A plugin has no client side.
func (s *served) GRPCClient(context.Context, *plugin.GRPCBroker, *wire.ClientConn) (any, error) {
	return nil, errors.New("serve: not a client")
}
