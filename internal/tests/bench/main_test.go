package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// The benchmarks' plugins are this test binary, started again: bare go-plugin
// ones by an argument, ours by the engine.
const bareArg = "bare-plugin"

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == bareArg:
		plugin.Serve(&plugin.ServeConfig{HandshakeConfig: handshake(), Plugins: plugin.PluginSet{"echo": &bare{}}, GRPCServer: plugin.DefaultGRPCServer})
		os.Exit(0)
	case len(os.Args) > 1 && slices.Contains([]string{rawArg, httpArg, hookArg}, os.Args[1]):
		if err := runPeer(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case serve.StartedByHost():
		servePlugin()
	}
	os.Exit(m.Run())
}

func handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "GRAPNEL_BENCH", MagicCookieValue: "bare"}
}

// echo is the plugin of ours: one blocking hook that sends back what it got.
func echo() *sdk.Plugin {
	return &sdk.Plugin{
		Name: "echo", Version: "1.0.0",
		Hooks: []sdk.Hook{{
			Name: "echo", Kinds: []phases.Kind{phases.KindPromptContext}, When: `turn.mode == "agent"`,
			PrePromptContext: func(_ context.Context, _ *sdk.Call, in *phases.PrePromptContextInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.PromptContext{Content: in.UserText.Value})
			},
		}, {
			Name: "section", Kinds: []phases.Kind{phases.KindPromptSection}, When: `turn.mode == "agent"`,
			RuntimePreContext: func(_ context.Context, _ *sdk.Call, in *phases.RuntimePreContextInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.PromptSection{SectionID: "echo", Content: in.UserText.Value})
			},
		}},
	}
}

// bare is the plugin that ours are compared to: one unary call that sends back
// what it got, without anything around it.
type bare struct{ plugin.NetRPCUnsupportedPlugin }

func (*bare) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Echo", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Call", Handler: echoCall}},
	}, nil)
	return nil
}

func (*bare) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

//revive:disable-next-line:context-as-argument // the shape is gRPC's
func echoCall(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	in := new(wrapperspb.StringValue)
	if err := decode(in); err != nil {
		return nil, fmt.Errorf("echo: %w", err)
	}
	return wrapperspb.String(in.GetValue()), nil
}
