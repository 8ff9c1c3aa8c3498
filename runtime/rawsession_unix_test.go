//go:build unix

// A raw session lets a test be a plugin that breaks the rules of the wire: it speaks the session protocol frame by frame,
// from an answer with a foreign id to half a message. It reads only id, incarnation and kind of a frame. Start reading at
// [registerRaw].

package runtime_test

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
)

// rawScript is the plugin's side of one session, which ends when it returns.
type rawScript func(s *rawSession) error

// newRawServer returns a server for registerRaw.
func newRawServer(opts ...wire.ServerOption) *wire.Server {
	return grpc.NewServer(append(opts, grpc.ForceServerCodecV2(newCodec()), grpc.MaxSendMsgSize(maxRawMessage))...)
}

// maxRawMessage is far more than any host accepts.
const maxRawMessage = 1 << 30

// registerRaw makes a server of newRawServer answer sessions with a script.
func registerRaw(server *wire.Server, script rawScript) {
	var lane atomic.Pointer[cutConn]
	lane.Store(openLane())
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: pluginpb.Plugin_ServiceDesc.ServiceName,
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: pluginpb.Plugin_ServiceDesc.Streams[0].StreamName, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error {
				return script(&rawSession{stream: stream, offered: lane.Swap(nil)})
			},
		}},
	}, nil)
}

// openLane returns the lane that the process was started with; nil without one.
func openLane() *cutConn {
	fd, err := strconv.Atoi(os.Getenv(wire.LaneKey))
	if err != nil {
		return nil
	}
	conn, err := wire.LaneOf(fd)
	if err != nil {
		return nil // as a plugin that does not know it
	}
	return &cutConn{Conn: conn}
}

// rawSession is one session as a script sees it. It is for one goroutine.
type rawSession struct {
	stream grpc.ServerStream
	// offered is the lane that a Describe may take; lane is set from then on.
	offered, lane *cutConn
	lines         *bufio.Reader // what the host writes, over the transport stdio; lane is then the way back
}

// serveRawStdio runs a script on the standard input and output of the process, which the host has made sockets.
func serveRawStdio(script rawScript) error {
	in, err := net.FileConn(os.Stdin)
	if err != nil {
		return err
	}
	out, err := net.FileConn(os.Stdout)
	if err != nil {
		return err
	}
	return errors.Join(os.Stdin.Close(), os.Stdout.Close(), script(&rawSession{lines: bufio.NewReader(in), lane: &cutConn{Conn: out}}))
}

// rawFrame is a frame of the host's. Body is a *pluginpb.HostFrame's oneof, Hook the hook's name in a Dispatch.
type rawFrame struct {
	ID          uint64
	Incarnation uint64
	Body        any
	Hook        string
	Lane        bool // a Hello offers a lane, and this process has one
}

// Receive waits for the host's next frame; io.EOF after the last.
func (s *rawSession) Receive() (*rawFrame, error) {
	var in rawBytes
	var err error
	switch {
	case s.lines != nil:
		in, err = s.receiveLine()
	case s.lane != nil:
		in, err = s.receiveLane()
	default:
		err = s.stream.RecvMsg(&in)
	}
	if err != nil {
		return nil, err
	}
	var f pluginpb.HostFrame
	if err := proto.Unmarshal(in, &f); err != nil {
		return nil, fmt.Errorf("frame of the host: %w", err)
	}
	lane := s.offered != nil && slices.Contains(f.GetHello().GetFeatures(), "lane")
	return &rawFrame{ID: f.GetId(), Incarnation: f.GetIncarnation(), Body: f.GetBody(), Hook: f.GetDispatch().GetHook(), Lane: lane}, nil
}

func (s *rawSession) receiveLine() ([]byte, error) {
	line, err := s.lines.ReadBytes('\n')
	if err != nil {
		return nil, io.EOF
	}
	return wire.HostFrameOf(line)
}

func (s *rawSession) receiveLane() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(s.lane, head[:]); err != nil {
		return nil, io.EOF // the host closes it
	}
	data := make([]byte, binary.LittleEndian.Uint32(head[:]))
	_, err := io.ReadFull(s.lane, data)
	return data, err
}

// Send sends any bytes as a frame; over stdio, as they are if they are none. After a Describe that takes the lane, all goes there.
func (s *rawSession) Send(data []byte) error {
	if s.lines != nil {
		if line, err := wire.PluginLineOf(data); err == nil {
			data = line
		}
		_, err := s.lane.Write(append(data, '\n'))
		return err
	}
	if s.lane != nil {
		_, err := s.lane.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(data))), data...))
		return err
	}
	var f pluginpb.PluginFrame
	if s.offered != nil && proto.Unmarshal(data, &f) == nil && f.GetDescribe().GetLane() {
		s.lane = s.offered
	}
	return s.stream.SendMsg((*rawBytes)(&data))
}

// rawPlugin is what a well-behaved script says of itself.
type rawPlugin struct {
	Name, Version string
	Hooks         []string                    // those of turn.pre_prompt_compile, by name
	Kinds         []string                    // what they declare; nil is sections
	Phase         string                      // another phase of the hooks; "sections" of turn.pre_prompt_compile is then added
	DeafTools     bool                        // DeafTools leaves calls of tools unanswered
	Change        func(*pluginpb.Description) // if set, changes the description
}

// answering is a script that keeps the rules except for what answer does with each Dispatch, in the reader's
// goroutine.
func answering(p rawPlugin, answer func(s *rawSession, f *rawFrame) error) rawScript {
	return func(s *rawSession) error {
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

// Reply is what the rules ask for; nil for a Dispatch and for frames that want no answer.
func (p rawPlugin) Reply(f *rawFrame) []byte {
	out := &pluginpb.PluginFrame{Id: f.ID, Incarnation: f.Incarnation}
	switch f.Body.(type) {
	case *pluginpb.HostFrame_Hello:
		out.Body = &pluginpb.PluginFrame_Describe{Describe: &pluginpb.Describe{Description: p.description(), Lane: f.Lane}}
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
	return encodeRaw(out)
}

func (p rawPlugin) description() *pluginpb.Description {
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
	if p.Change != nil {
		p.Change(d)
	}
	return d
}

type rawBytes []byte

// codec sends and receives frames as bytes, and everything else (go-plugin's services) as protobuf.
type codec struct{ encoding.CodecV2 }

var _ encoding.CodecV2 = codec{}

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*rawBytes); ok {
		return mem.BufferSlice{mem.SliceBuffer(*f)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if f, ok := v.(*rawBytes); ok {
		*f = data.Materialize()
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

// cutConn is a lane, or standard output, that may vanish in the middle of a write, or write very slowly.
type cutConn struct {
	net.Conn
	then     func() // what happens after cutAfter bytes; nil is nothing
	cutAfter int
	pause    time.Duration // that of Dribble; 0 writes at once
}

// Write implements net.Conn.
func (c *cutConn) Write(p []byte) (int, error) {
	switch {
	case c.pause > 0:
		return c.dribble(p)
	case c.then == nil || len(p) <= c.cutAfter:
		c.cutAfter -= len(p)
		return c.Conn.Write(p)
	}
	n, err := c.Conn.Write(p[:c.cutAfter])
	c.then()
	return n, err
}

// CutAfter lets n more bytes out to the host, then calls then, which ends the process.
func (s *rawSession) CutAfter(n int, then func()) { s.lane.cutAfter, s.lane.then = n, then }
