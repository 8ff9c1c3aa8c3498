package wire

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/grapnelhq/grapnel/phases"
)

// testPlugin is a Handler made of functions; a nil one gives a plain answer.
type testPlugin struct {
	describe  func(context.Context) (*phases.Description, error)
	configure func(context.Context, *phases.Configuration) (*phases.Description, error)
	dispatch  func(context.Context, *phases.Dispatch) (*phases.Result, error)
	callTool  func(context.Context, *phases.ToolCall) (*phases.ToolResult, error)
}

var _ Handler = (*testPlugin)(nil)

func (p *testPlugin) Describe(ctx context.Context) (*phases.Description, error) {
	if p.describe != nil {
		return p.describe(ctx)
	}
	return &phases.Description{Name: "test", Version: "1"}, nil
}

func (p *testPlugin) Configure(ctx context.Context, c *phases.Configuration) (*phases.Description, error) {
	if p.configure != nil {
		return p.configure(ctx, c)
	}
	return &phases.Description{Name: "test", Version: "1", Doc: c.Instance}, nil
}

func (p *testPlugin) Dispatch(ctx context.Context, d *phases.Dispatch) (*phases.Result, error) {
	if p.dispatch != nil {
		return p.dispatch(ctx, d)
	}
	return echo(d), nil
}

func (p *testPlugin) CallTool(ctx context.Context, c *phases.ToolCall) (*phases.ToolResult, error) {
	if p.callTool != nil {
		return p.callTool(ctx, c)
	}
	return &phases.ToolResult{Content: c.Arguments}, nil
}

// echo answers with the text that the dispatch holds.
func echo(d *phases.Dispatch) *phases.Result {
	content := d.Hook
	if in, ok := d.Input.(*phases.RuntimePreContextInput); ok {
		content = in.UserText.Value
	}
	section := &phases.PromptSection{SectionID: "echo", Title: "Echo", Stability: phases.StabilityDynamic, Content: content}
	return &phases.Result{Contributions: []phases.Contribution{section}}
}

// echoed returns the text of an answer of echo.
func echoed(tb testing.TB, r *phases.Result) string {
	tb.Helper()
	if len(r.Contributions) != 1 {
		tb.Fatalf("got %d contributions, want 1", len(r.Contributions))
	}
	section, ok := r.Contributions[0].(*phases.PromptSection)
	if !ok {
		tb.Fatalf("got a %s", phases.KindOf(r.Contributions[0]))
	}
	return section.Content
}

// textDispatch is a dispatch that carries a text.
func textDispatch(text string) *phases.Dispatch {
	return &phases.Dispatch{
		Subscription: "test.echo", Hook: "echo", Phase: phases.RuntimePreContext, Attempt: 1,
		Context: phases.Context{
			WorkspaceID: "w1", ThreadID: "t1", TurnID: "u1", Mode: phases.ModeAgent, Dir: "/repo",
			Actor: phases.Actor{Kind: "user", ID: "someone"}, Now: time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC),
		},
		Input:  &phases.RuntimePreContextInput{UserText: phases.T(text)},
		Budget: phases.AnswerBudget{MaxChars: 20000, MaxBytes: DefaultFrame},
	}
}

// listen serves srv on a socket of its own and returns a connection to it.
func listen(tb testing.TB, srv *grpc.Server, frame int) *grpc.ClientConn {
	tb.Helper()
	path := filepath.Join(shortTempDir(tb), "s")
	l, err := new(net.ListenConfig).Listen(tb.Context(), "unix", path)
	if err != nil {
		tb.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	tb.Cleanup(func() {
		srv.Stop()
		if err := <-served; err != nil {
			tb.Errorf("serve: %v", err)
		}
	})
	return dial(tb, path, frame)
}

// shortTempDir is a temporary directory whose path leaves room for a socket's name.
func shortTempDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "w") //nolint:usetesting // names of tests make paths too long for a socket
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

func dial(tb testing.TB, path string, frame int) *grpc.ClientConn {
	tb.Helper()
	opts := append([]grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	})}, DialOptions(frame, nil)...)
	conn, err := grpc.NewClient("passthrough:///plugin", opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := conn.Close(); err != nil {
			tb.Error(err)
		}
	})
	return conn
}

// serve serves a plugin in this process and returns a connection to it.
func serve(tb testing.TB, h Handler, frame int) *grpc.ClientConn {
	tb.Helper()
	srv := grpc.NewServer(ServerOptions(0)...)
	switch way {
	case overGRPC:
		Register(srv, h, nil)
		return listen(tb, srv, frame)
	case overLines:
		return serveLines(tb, h)
	}
	host, file, err := LanePair()
	if err != nil {
		tb.Fatal(err)
	}
	lane, err := net.FileConn(file)
	if err != nil {
		tb.Fatal(err)
	}
	_ = file.Close()
	Register(srv, h, lane)
	conn := listen(tb, srv, frame)
	lanes.Store(conn, host)
	tb.Cleanup(func() { // of a lane that no session has used
		_, _ = host.Close(), lane.Close()
		lanes.Delete(conn)
	})
	return conn
}

// linePairs are the host's ends of a plugin's standard input and output, and the plugin's.
func linePairs(tb testing.TB) (host [2]net.Conn, plugin [2]*os.File) {
	tb.Helper()
	for i := range host {
		var err error
		if host[i], plugin[i], err = LanePair(); err != nil {
			tb.Fatal(err)
		}
		if host[i] == nil {
			tb.Skip("this system has no pairs of sockets")
		}
	}
	return host, plugin
}

// serveLines serves over two pairs of sockets. The connection that it returns stands for them and is never dialed.
func serveLines(tb testing.TB, h Handler) *grpc.ClientConn {
	tb.Helper()
	ends, files := linePairs(tb)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = ServeLines(context.Background(), files[0], files[1], h)
		_, _ = files[0].Close(), files[1].Close() // as the end of a process does
	}()
	conn := dial(tb, "stdio", 0)
	pipes.Store(conn, ends)
	tb.Cleanup(func() {
		pipes.Delete(conn)
		_, _ = ends[0].Close(), ends[1].Close()
		<-served
	})
	return conn
}

// The ways that sessions go.
const (
	overGRPC  = "gRPC"
	overLane  = "lane"
	overLines = "lines"
)

// way is that of this run. lanes are the hosts' ends of lanes by their connections, pipes those of a plugin's standard
// input and output.
var (
	way          = overGRPC
	lanes, pipes sync.Map
)

// open opens a session that ends with the test.
func open(tb testing.TB, conn *grpc.ClientConn, o HostOptions) *Session {
	tb.Helper()
	if o.Incarnation == 0 {
		o.Incarnation = 7
	}
	if o.Instance == "" {
		o.Instance = "tested"
	}
	if lane, ok := lanes.LoadAndDelete(conn); ok {
		o.Lane = lane.(net.Conn) //nolint:forcetypeassert // serve puts nothing else there
	}
	s, err := openWith(deadline(tb), conn, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// openWith is Open, or OpenLines for what serveLines has returned.
func openWith(ctx context.Context, conn *grpc.ClientConn, o HostOptions) (*Session, error) {
	if ends, ok := pipes.LoadAndDelete(conn); ok {
		both := ends.([2]net.Conn) //nolint:forcetypeassert // serveLines puts nothing else there
		return OpenLines(ctx, both[1], both[0], o)
	}
	return Open(ctx, conn, o)
}

// patience is how long a test waits for what must happen, also under the race detector on a busy machine.
const patience = 2 * time.Minute

// deadline is a context that makes a hanging test fail in time.
func deadline(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	tb.Cleanup(cancel)
	return ctx
}

// raw is embedded JSON.
func raw(s string) json.RawMessage { return json.RawMessage(s) }
