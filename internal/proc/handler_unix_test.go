//go:build unix

package proc_test

import (
	"context"
	"os"

	"github.com/hashicorp/go-plugin"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// handler is the least that a plugin answers over a session. It ends during a
// dispatch.
type handler struct{}

func (handler) Describe(context.Context) (*phases.Description, error) {
	return &phases.Description{Name: "tester", Version: "1.2.3"}, nil
}

func (handler) Configure(context.Context, *phases.Configuration) (*phases.Description, error) {
	return &phases.Description{Name: "tester", Version: "1.2.3"}, nil
}

func (handler) Dispatch(context.Context, *phases.Dispatch) (*phases.Result, error) {
	os.Exit(7)
	return nil, context.Canceled
}

func (handler) CallTool(context.Context, *phases.ToolCall) (*phases.ToolResult, error) {
	return &phases.ToolResult{}, nil
}

// sessionPlugin serves the real protocol.
type sessionPlugin struct{ serverPlugin }

// GRPCServer registers the protocol.
func (sessionPlugin) GRPCServer(_ *plugin.GRPCBroker, s *wire.Server) error {
	wire.Register(s, handler{}, nil)
	return nil
}
