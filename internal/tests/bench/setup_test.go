package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// call is one operation that is measured; it may be called concurrently.
type call func() error

// startBare starts so many bare plugins and returns their connections.
func startBare(b *testing.B, n int) []*grpc.ClientConn {
	b.Helper()
	conns := make([]*grpc.ClientConn, n)
	for i := range conns {
		conns[i] = bareConn(b, bareClient(b))
	}
	return conns
}

// bareClient prepares one bare plugin; it ends with the benchmark.
func bareClient(b *testing.B) *plugin.Client {
	b.Helper()
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: handshake(), Plugins: plugin.PluginSet{"echo": &bare{}},
		Cmd:              exec.Command(os.Args[0], bareArg), //nolint:noctx // go-plugin ends it
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           hclog.New(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Off}),
	})
	b.Cleanup(client.Kill)
	return client
}

func bareConn(b *testing.B, client *plugin.Client) *grpc.ClientConn {
	b.Helper()
	protocol, err := client.Client()
	if err != nil {
		b.Fatal(err)
	}
	dispensed, err := protocol.Dispense("echo")
	if err != nil {
		b.Fatal(err)
	}
	conn, ok := dispensed.(*grpc.ClientConn)
	if !ok {
		b.Fatalf("dispensed %T", dispensed)
	}
	return conn
}

// unary is one bare call.
func unary(conn *grpc.ClientConn, text string) call {
	return func() error {
		out := new(wrapperspb.StringValue)
		if err := conn.Invoke(context.Background(), "/bench.Echo/Call", wrapperspb.String(text), out); err != nil {
			return err
		}
		return echoed(text, out.GetValue(), nil)
	}
}

// unaryAll is one bare call to each of several plugins at once.
func unaryAll(conns []*grpc.ClientConn, text string) call {
	calls := make([]call, len(conns))
	for i, conn := range conns {
		calls[i] = unary(conn, text)
	}
	return func() error { return together(calls) }
}

// together runs calls at the same time, the first of them here.
func together(calls []call) error {
	errs := make(chan error, len(calls))
	for _, c := range calls[1:] {
		go func() { errs <- c() }()
	}
	first := calls[0]()
	for range calls[1:] {
		if err := <-errs; err != nil {
			first = err
		}
	}
	return first
}

// startEngine starts an engine with so many echo plugins as processes.
func startEngine(b *testing.B, n int) *runtime.Engine {
	b.Helper()
	return start(b, engineConfig(b, n), runtime.Options{})
}

// start starts an engine, whose plugins must be ready, and ends it with the benchmark.
func start(b *testing.B, cfg *config.Config, o runtime.Options) *runtime.Engine {
	b.Helper()
	eng, err := runtime.New(b.Context(), cfg, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { closeEngine(b, eng) })
	for _, row := range eng.Plugins() {
		if row.State != phases.PluginReady {
			b.Fatalf("plugin %s is %s: %s", row.Plugin, row.State, row.Message+" "+row.Detail)
		}
	}
	return eng
}

func closeEngine(b *testing.B, eng *runtime.Engine) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := eng.Close(ctx); err != nil {
		b.Error(err)
	}
}

func engineConfig(b *testing.B, n int) *config.Config {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cfg := &config.Config{Version: 1}
	for i := range n {
		cfg.Plugins = append(cfg.Plugins, config.Plugin{
			Name: fmt.Sprintf("echo%d", i), Command: self, Path: self, UnsafePath: true,
			Grants: phases.Grants{Contribute: []string{"prompt_context", "prompt_section"}, Sections: []string{"echo"}, See: []string{"user_text"}},
			Limits: config.Limits{Concurrency: 128},
		})
	}
	return cfg
}

// dispatch is one whole dispatch of the engine, all its hooks included.
func dispatch(eng *runtime.Engine, text string, hooks int) call {
	turn := phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent}
	return func() error {
		out, err := eng.Dispatch(context.Background(), turn, &phases.PrePromptContextInput{UserText: phases.T(text)})
		if err != nil {
			return err
		}
		if len(out.Merged.Contexts) != hooks {
			return fmt.Errorf("%d contexts, want %d: %+v", len(out.Merged.Contexts), hooks, out.Runs)
		}
		return nil
	}
}

// dispatchSection is one whole dispatch whose answer is a section.
func dispatchSection(eng *runtime.Engine, text string) call {
	turn := phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent}
	return func() error {
		out, err := eng.Dispatch(context.Background(), turn, &phases.RuntimePreContextInput{UserText: phases.T(text)})
		if err != nil {
			return err
		}
		if len(out.Merged.Sections) != 1 || len(out.Merged.Sections[0].Content) != len(text) {
			return fmt.Errorf("the section did not come back whole: %+v", out.Runs)
		}
		return nil
	}
}

// build builds a program of this module, or of a file, in a directory.
func build(b *testing.B, dir, name, from string, flags ...string) string {
	b.Helper()
	path := filepath.Join(dir, name)
	args := append(append([]string{"build"}, flags...), "-o", path, from)
	if out, err := exec.CommandContext(b.Context(), "go", args...).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return path
}

// hello builds a program that does nothing.
func hello(b *testing.B, dir string) string {
	b.Helper()
	return build(b, dir, "hello", write(b, dir, "hello.go", "package main\n\nfunc main() {}\n"))
}

// write writes a file, and returns its path.
func write(b *testing.B, dir, name, text string) string {
	b.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// median sorts the list.
func median[T cmp.Ordered](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}
