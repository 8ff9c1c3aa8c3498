package proc_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/wire"
)

// BenchmarkStartStop is one life of a well-behaved plugin: with us from a path
// (the checksum of the test binary included) and from an open file, and with
// go-plugin alone.
func BenchmarkStartStop(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "gt") //nolint:usetesting // a socket needs a short path
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file, err := os.Open(self)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()

	ours := func(b *testing.B, s proc.Spec) {
		b.Helper()

		s.RuntimeDir = dir
		for b.Loop() {
			p, err := proc.Start(context.Background(), s)
			if err != nil {
				b.Fatal(err)
			}
			if err := p.Stop(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("path", func(b *testing.B) { ours(b, specFor("serve")) })
	b.Run("file", func(b *testing.B) {
		s := specFor("serve")
		s.File = file
		ours(b, s)
	})
	b.Run("go-plugin", func(b *testing.B) {
		for b.Loop() {
			goPluginLife(b, self)
		}
	})
}

// goPluginLife starts and stops a plugin with go-plugin alone.
func goPluginLife(b *testing.B, self string) {
	b.Helper()

	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: wire.ProtocolVersion, MagicCookieKey: wire.HandshakeCookieKey, MagicCookieValue: wire.HandshakeCookieValue,
		},
		Plugins:          plugin.PluginSet{wire.PluginName: serverPlugin{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd:              exec.CommandContext(context.Background(), self, modeArg, "serve"),
		Logger:           hclog.NewNullLogger(),
	})
	defer client.Kill()
	protocol, err := client.Client()
	if err != nil {
		b.Fatal(err)
	}
	if err := protocol.Ping(); err != nil {
		b.Fatal(err)
	}
}
