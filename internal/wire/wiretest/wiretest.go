// Package wiretest lets a test be a plugin that breaks the rules of the wire:
// it speaks the session protocol frame by frame, and may send what a plugin
// must not send, from an answer with somebody else's id to half a message.
//
// It is no second implementation of the protocol: what it reads of a frame is
// its id, its incarnation and what kind it is. Plugins that keep the rules are
// served by package wire. Start reading at [Register].
//
// Stability: internal.
package wiretest

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
)

// Script is the plugin's side of one session. The session ends when it returns,
// with its error.
type Script func(s *Session) error

// NewServer returns a server for Register, in the place of wire.NewServer.
func NewServer(opts ...wire.ServerOption) *wire.Server {
	return grpc.NewServer(append(opts, grpc.ForceServerCodecV2(newCodec()), grpc.Creds(newCutter()), grpc.MaxSendMsgSize(maxMessage))...)
}

// maxMessage is the longest frame that a script may send: far more than any host
// takes.
const maxMessage = 1 << 30

// Register makes a server that NewServer made answer sessions with a script.
func Register(server *wire.Server, script Script) {
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: pluginpb.Plugin_ServiceDesc.ServiceName,
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: pluginpb.Plugin_ServiceDesc.Streams[0].StreamName, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return script(&Session{stream: stream}) },
		}},
	}, nil)
}

// Session is one session as a script sees it. It is for one goroutine.
type Session struct{ stream grpc.ServerStream }

// Frame is a frame of the host's.
type Frame struct {
	ID          uint64
	Incarnation uint64
	// Body is what it holds: a *pluginpb.HostFrame's oneof.
	Body any
	// Hook is the hook's name in a Dispatch.
	Hook string
}

// Receive waits for the host's next frame; io.EOF when there is none.
func (s *Session) Receive() (*Frame, error) {
	var in frame
	if err := s.stream.RecvMsg(&in); err != nil {
		return nil, err
	}
	var f pluginpb.HostFrame
	if err := proto.Unmarshal(in, &f); err != nil {
		return nil, fmt.Errorf("frame of the host: %w", err)
	}
	return &Frame{ID: f.GetId(), Incarnation: f.GetIncarnation(), Body: f.GetBody(), Hook: f.GetDispatch().GetHook()}, nil
}

// Send sends any bytes as a frame.
func (s *Session) Send(data []byte) error { return s.stream.SendMsg((*frame)(&data)) }

// Plugin is what a well-mannered script says of itself.
type Plugin struct {
	Name, Version string
	// Hooks are those of turn.pre_prompt_compile, by name.
	Hooks []string
	// Kinds are what they declare; nil is sections.
	Kinds []string
	// Phase is another phase of the hooks; there is then one of
	// turn.pre_prompt_compile beside them, "sections".
	Phase string
	// DeafTools leaves calls of tools unanswered.
	DeafTools bool
	// Change changes the description, by a name of [Descriptions]; "" leaves it.
	Change string
}

// Answering is a script that keeps the rules, but for what answer does with each
// Dispatch. It does nothing meanwhile: answer is called by the one who reads.
func Answering(p Plugin, answer func(s *Session, f *Frame) error) Script {
	return func(s *Session) error {
		for {
			f, err := s.Receive()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if _, dispatch := f.Body.(*pluginpb.HostFrame_Dispatch); dispatch {
				err = answer(s, f)
			} else if reply := p.Reply(f); reply != nil {
				err = s.Send(reply)
			}
			if err != nil {
				return err
			}
		}
	}
}

// Reply is what the rules ask for, nil for frames that want no answer. A Dispatch
// is answered by the script.
func (p Plugin) Reply(f *Frame) []byte {
	out := &pluginpb.PluginFrame{Id: f.ID, Incarnation: f.Incarnation}
	switch f.Body.(type) {
	case *pluginpb.HostFrame_Hello:
		out.Body = &pluginpb.PluginFrame_Describe{Describe: &pluginpb.Describe{Description: p.description()}}
	case *pluginpb.HostFrame_Configure:
		out.Body = &pluginpb.PluginFrame_Configured{Configured: &pluginpb.Configured{Description: p.description()}}
	case *pluginpb.HostFrame_Ping, *pluginpb.HostFrame_Drain:
		out.Body = &pluginpb.PluginFrame_Pong{Pong: &pluginpb.Pong{}}
	case *pluginpb.HostFrame_CallTool:
		if p.DeafTools {
			return nil
		}
		out.Body = &pluginpb.PluginFrame_ToolResult{ToolResult: &pluginpb.ToolResult{ContentJson: []byte(`"done"`)}}
	default:
		return nil
	}
	return encode(out)
}

func (p Plugin) description() *pluginpb.Description {
	d := &pluginpb.Description{Name: p.Name, Version: p.Version}
	kinds := p.Kinds
	if kinds == nil {
		kinds = []string{"prompt_section"}
	}
	const usual = "turn.pre_prompt_compile"
	for _, name := range p.Hooks {
		d.Hooks = append(d.Hooks, &pluginpb.Hook{Name: name, Phase: cmp.Or(p.Phase, usual), Kinds: kinds})
	}
	if p.Phase != "" {
		d.Tools = []*pluginpb.Tool{{Name: "job"}}
		d.Hooks = append(d.Hooks, &pluginpb.Hook{Name: "sections", Phase: usual, Kinds: []string{"prompt_section", "reminder"}})
	}
	if change := descriptions()[p.Change]; change != nil {
		change(d)
	}
	return d
}
