package plugintest

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// overWire makes the call through the wire and compares description and answer
// with those in process.
func (r *run) overWire(want *phases.Description) {
	s, stop, err := serve(r.Context(), r.plugin, r.c.Host)
	if err != nil {
		r.Errorf("over the wire: %v", err)
		return
	}
	defer stop()
	got, err := s.Configure(r.Context(), r.configuration())
	if err != nil {
		r.Errorf("over the wire: the plugin does not take its configuration: %v", err)
		return
	}
	if a, b := r.describe(want), r.describe(got); !bytes.Equal(a, b) {
		r.Errorf("the description is another over the wire\nin process: %s\nwire:       %s", a, b)
	}
	answer := r.twice("over the wire", session{s})
	if a, b := r.encode(r.answer), r.encode(answer); r.c.Volatile == "" && !bytes.Equal(a, b) {
		r.Errorf("the answer is another over the wire\nin process: %s\nwire:       %s", a, b)
	}
}

func (r *run) describe(d *phases.Description) []byte {
	data, err := encode(d)
	if err != nil {
		r.Errorf("the description cannot be written as JSON: %v", err)
	}
	return data
}

// session calls through the wire.
type session struct{ *wire.Session }

func (s session) dispatch(ctx context.Context, d *phases.Dispatch) (*phases.Result, error) {
	res, _, err := s.Dispatch(ctx, d, nil)
	return res, err
}

func (s session) callTool(ctx context.Context, c *phases.ToolCall) (*phases.ToolResult, error) {
	res, _, err := s.CallTool(ctx, c, nil)
	return res, err
}

// serve serves a plugin on a socket in a folder of its own and opens a session
// with it. stop ends both and waits for them.
func serve(ctx context.Context, p *sdk.Plugin, host phases.Host) (s *wire.Session, stop func(), err error) {
	// Not the test's own folder: its path may be too long for a socket.
	dir, err := os.MkdirTemp("", "plugintest")
	if err != nil {
		return nil, nil, err
	}
	ends := []func(){func() { _ = os.RemoveAll(dir) }} // only litter in a temporary folder
	stop = func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	socket := filepath.Join(dir, "s")
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, nil, err
	}
	server := wire.NewServer(wire.ServerOptions(0)...)
	wire.Register(server, p, wire.ServeOptions{})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends by Stop; what else goes wrong the session meets
	}()
	ends = append(ends, func() { server.Stop(); <-served })
	conn, err := wire.Connect(socket, 0)
	if err != nil {
		return nil, nil, err
	}
	ends = append(ends, func() { _ = conn.Close() }) // fails only when closed before
	s, err = wire.Open(ctx, conn, wire.HostOptions{Incarnation: 1, Instance: p.Name, Host: host})
	if err != nil {
		return nil, nil, err
	}
	ends = append(ends, func() { _ = s.Close() }) // always nil
	return s, stop, nil
}
