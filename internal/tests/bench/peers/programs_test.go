package peers

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/containerd/ttrpc"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// asProgram makes the test binary one of the programs: -as-program NAME [SOCKET].
const asProgram = "-as-program"

// program is the life of the other process.
func program(args []string) error {
	switch args[0] {
	case "bare":
		plugin.Serve(&plugin.ServeConfig{HandshakeConfig: handshake(), Plugins: plugin.PluginSet{"echo": &bare{}}, GRPCServer: plugin.DefaultGRPCServer})
		return nil
	case "grpc": // Grapnel without its lane
		_ = os.Unsetenv("GRAPNEL_LANE")
		return serve.Serve(echo())
	case "lane":
		return serve.Serve(echo())
	case "hook":
		var m message
		if err := json.NewDecoder(os.Stdin).Decode(&m); err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(m)
	}
	l, err := listen(args)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the benchmark has ended
		os.Exit(0)
	}()
	fmt.Println(l.Addr())
	switch args[0] {
	case "http":
		return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			data, _ := io.ReadAll(r.Body) // the benchmark compares the answer
			_, _ = w.Write(data)
		}))
	case "ttrpc":
		return serveTTRPC(l)
	case "raw":
		return serveRaw(l)
	}
	return fmt.Errorf("no program %q", args[0])
}

func listen(args []string) (net.Listener, error) {
	if args[0] == "http" {
		return (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	}
	return (&net.ListenConfig{}).Listen(context.Background(), "unix", args[1])
}

// message is what a process for each hook reads and writes.
type message struct {
	Text string `json:"text"`
}

func handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "GRAPNEL_PEERS", MagicCookieValue: "bare"}
}

func echo() *sdk.Plugin {
	return &sdk.Plugin{Name: "echo", Version: "1.0.0", Hooks: []sdk.Hook{{
		Name: "echo", Kinds: []phases.Kind{phases.KindPromptContext},
		PrePromptContext: func(_ context.Context, _ *sdk.Call, in *phases.PrePromptContextInput) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.PromptContext{Content: in.UserText.Value})
		},
	}}}
}

type bare struct{ plugin.NetRPCUnsupportedPlugin }

func (*bare) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "peers.Echo", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Call", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(wrapperspb.StringValue)
			return in, decode(in)
		}}},
	}, nil)
	return nil
}

func (*bare) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

func serveTTRPC(l net.Listener) error {
	s, err := ttrpc.NewServer()
	if err != nil {
		return err
	}
	s.RegisterService("peers.Echo", &ttrpc.ServiceDesc{Methods: map[string]ttrpc.Method{
		"Call": func(_ context.Context, decode func(any) error) (any, error) {
			in := new(wrapperspb.StringValue)
			return in, decode(in)
		},
	}})
	return s.Serve(context.Background(), l)
}

// serveRaw sends back what it gets, behind its length.
func serveRaw(l net.Listener) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	for {
		data, err := readRaw(in)
		if err != nil {
			return err
		}
		if err := writeRaw(conn, data); err != nil {
			return err
		}
	}
}

func readRaw(in io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	data := make([]byte, binary.LittleEndian.Uint32(head[:]))
	_, err := io.ReadFull(in, data)
	return data, err
}

func writeRaw(out io.Writer, data []byte) error {
	_, err := out.Write(append(binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(data)), uint32(len(data))), data...))
	return err
}
